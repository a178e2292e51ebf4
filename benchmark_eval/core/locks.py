"""Locks that the kernel releases when a process ends, for any reason including ``kill -9``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from typing import IO, Any

_held: weakref.WeakSet[IO[Any]] = weakref.WeakSet()


def _close_held() -> None:
    """A forked child must not keep the locks of its parent: it may outlive it."""
    for stream in list(_held):
        with contextlib.suppress(OSError, ValueError):
            stream.close()


os.register_at_fork(after_in_child=_close_held)


def lock(file: IO[Any]) -> bool | None:
    """Lock a file, open for writing, until it is closed or this process ends.

    A forked child closes the file. Returns False if another process holds the lock, and None if
    the file system does not support locks.
    """
    locked = _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if locked:
        _held.add(file)
    return locked


def wait_for_lock(file: int | IO[Any]) -> bool:
    """Wait until an open file or folder can be locked; False if the file system lacks locks."""
    return bool(_lock(file, fcntl.LOCK_EX))


def _lock(file: int | IO[Any], operation: int) -> bool | None:
    try:
        fcntl.flock(file, operation)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
