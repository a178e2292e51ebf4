"""Atomic writes: a reader never sees a partly written file."""

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
    """A binary file that appears at ``path`` complete, on leaving the block, or not at all.

    The bytes go to a hidden file beside it, so that the last step is a rename within one file
    system; a process killed earlier leaves ``path`` unchanged. ``sync=False`` does not wait for
    the disk, for small files that can be made again after a power cut.
    """
    path = Path(path)
    with _staged(path, sync=sync) as (stream, name):
        yield stream
    _put(name, path)


@contextlib.contextmanager
def _staged(path: Path, *, sync: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """A hidden file beside ``path`` to fill, and its name; removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=_hidden(path), suffix=".tmp")
    name = Path(made)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream, name
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        # mkstemp makes the file private; apply the user's umask instead
        name.chmod(0o666 & ~_umask())
    except BaseException as error:
        with contextlib.suppress(OSError):
            name.unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # "no space left on device" names no file
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
    """Write files that belong together: all of them, or none if the disk is full.

    ``None`` removes a file. All bytes are on the disk before the first old file is touched. Then
    the old ``seal`` (one of ``contents``) is removed first and the new one renamed last: if the
    seal exists, all other files are complete, even after a kill in between. Temporary files of a
    killed call are removed.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            for stale in path.parent.glob(f"{glob.escape(_hidden(path))}*.tmp"):
                stale.unlink(missing_ok=True)
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
    """A folder to fill that appears at ``path`` complete, on leaving the block, or not at all.

    UsageError unless ``path`` is a new or empty folder, so that no old file stays among the new.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"{path}: found a file or a folder with content; expected a new or empty folder "
            "(no old file may stay among the new ones)"
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
    """Write ``data`` to ``path``, all of it or nothing."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_text_atomic(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write ``text`` to ``path`` as UTF-8, all of it or nothing; line ends stay as they are."""
    with atomic_writer(path, sync=sync) as stream:
        stream.write(text.encode("utf-8"))
