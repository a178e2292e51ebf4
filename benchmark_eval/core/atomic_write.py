"""Atomic writes: a reader never sees a partly written file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_writer(path: str | Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A binary file that appears at ``path`` when the block ends: complete, or not at all.

    The bytes are written to a hidden file in the same folder, which is then renamed. If the
    process is killed before that, ``path`` is unchanged. ``sync=False`` does not wait for the disk;
    use it for small files that can be regenerated after a power failure.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    name = Path(made)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        # mkstemp makes the file private; apply the user's umask instead
        name.chmod(0o666 & ~_umask())
        name.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            name.unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # "no space left on device" names no file
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def write_bytes_atomic(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, completely or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_text_atomic(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write ``text`` to ``path`` as UTF-8, completely or not at all; line endings are kept."""
    with atomic_writer(path, sync=sync) as stream:
        stream.write(text.encode("utf-8"))
