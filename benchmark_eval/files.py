"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_writer(path: str | Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` whole, on leaving the block, or not at all.

    The bytes go to a hidden sibling first, so that the last step is one rename on one file
    system; a process killed before it leaves ``path`` as it was. ``sync=False`` spares the wait
    for the disk, for small files that are made again when a power cut loses them.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        # mkstemp makes the file private; give it what the user's umask gives any new file
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def write_bytes_atomic(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_text_atomic(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write ``text`` as UTF-8 with plain line feeds to ``path``, whole or not at all."""
    with atomic_writer(path, sync=sync) as stream:
        stream.write(text.encode("utf-8"))
