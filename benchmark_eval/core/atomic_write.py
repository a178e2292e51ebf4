"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from benchmark_eval.core.errors import UsageError


@contextlib.contextmanager
def atomic_writer(path: str | Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A binary file that appears under ``path`` whole, on leaving the block, or not at all.

    The bytes go to a hidden sibling first, so that the last step is one rename on one file
    system; a process killed before it leaves ``path`` as it was. ``sync=False`` spares the wait
    for the disk, for small files that are made again when a power cut loses them.
    """
    path = Path(path)
    with _staged(path, sync=sync) as (stream, name):
        yield stream
    _put(name, path)


@contextlib.contextmanager
def _staged(path: Path, *, sync: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """A hidden sibling of ``path`` to fill, and its name; gone again if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=_hidden(path), suffix=".tmp")
    name = Path(made)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream, name
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        # mkstemp makes the file private; give it what the user's umask gives any new file
        name.chmod(0o666 & ~_umask())
    except BaseException as fault:
        with contextlib.suppress(OSError):
            name.unlink()
        if isinstance(fault, OSError) and fault.filename is None:
            fault.filename = str(path)  # a full disk does not say of itself where
        raise


def _hidden(path: Path) -> str:
    return f".{path.name[:100]}."


def _put(name: Path, path: Path) -> None:
    try:
        name.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise


def write_together(contents: Mapping[Path, bytes | None], seal: Path) -> None:
    """Write files that belong together: all of them, or none where the disk does not take them.

    ``None`` takes a file away. All bytes are on the disk before the first old file is touched.
    Then the old ``seal`` (one of ``contents``) goes first and the new one comes last, so that
    whoever finds it finds all the others beside it, even after a kill in between. What a killed
    call left half-written is cleared away.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            for left in path.parent.glob(f"{glob.escape(_hidden(path))}*.tmp"):
                left.unlink(missing_ok=True)
            if data is not None:
                with _staged(path, sync=True) as (stream, name):
                    stream.write(data)
                staged[path] = name
        seal.unlink(missing_ok=True)
        for path in contents:
            if path not in staged:
                path.unlink(missing_ok=True)
            elif path != seal:
                _put(staged.pop(path), path)
        _put(staged.pop(seal), seal)
    except BaseException:
        for name in staged.values():
            with contextlib.suppress(OSError):
                name.unlink()
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
