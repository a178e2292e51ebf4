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
    """A binary file that appears at ``path`` when the block ends: complete, or not at all.

    The bytes are written to a hidden file in the same folder, which is then renamed. If the
    process is killed before that, ``path`` is unchanged. ``sync=False`` does not wait for the disk;
    use it for small files that can be regenerated after a power failure.
    """
    path = Path(path)
    with _staged(path, sync=sync) as (stream, name):
        yield stream
    _put(name, path)


@contextlib.contextmanager
def _staged(path: Path, *, sync: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """A hidden file beside ``path`` to write to, and its path; removed on failure."""
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

    ``None`` removes a file. All bytes are on disk before the first old file is touched. Then
    the old ``seal`` (one of ``contents``) is removed first and the new one renamed last: if the
    seal exists, all other files are complete, even after a kill in between. Temporary files left
    by a killed call are removed.
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
    """A folder to fill, which appears at ``path`` when the block ends: complete, or not at all.

    Raises UsageError unless ``path`` is a new or empty folder: old and new files must not mix.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"{path}: found a file or a non-empty folder; expected a new or empty folder "
            "(old and new files must not be mixed)"
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
    """Write ``data`` to ``path``, completely or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_text_atomic(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write ``text`` to ``path`` as UTF-8, completely or not at all; line endings are kept."""
    with atomic_writer(path, sync=sync) as stream:
        stream.write(text.encode("utf-8"))
