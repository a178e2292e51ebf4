"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from benchmark_eval.errors import UsageError


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
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A folder to fill that appears under ``path`` whole, on leaving the block, or not at all.

    ``path`` must not be there or be an empty folder (UsageError), so that nothing of before stays
    among what is new.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"{path} is there already; a new or empty folder is wanted, so that nothing old stays "
            "among the new files"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}."))
    try:
        made.chmod(0o777 & ~_umask())
        yield made
        made.replace(path)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def write_bytes_atomic(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_text_atomic(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write ``text`` as UTF-8 with plain line feeds to ``path``, whole or not at all."""
    with atomic_writer(path, sync=sync) as stream:
        stream.write(text.encode("utf-8"))
