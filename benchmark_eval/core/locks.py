"""Locks that the kernel releases when a process ends, for any reason including ``kill -9``."""

from __future__ import annotations

import fcntl
from typing import IO, Any


def lock(file: int | IO[Any], *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed.

    Returns False if another process holds the lock (never with ``wait``), and None if the file
    system does not support locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
