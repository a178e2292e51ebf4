"""Reading ``.npz`` archives of arrays that may be damaged or of another kind."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.safe_read import UNCHECKED_BYTES, check_size

BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    SyntaxError,
    EOFError,
    MemoryError,
    RuntimeError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    msgspec.DecodeError,
)
"""Everything that zipfile, numpy and msgspec raise on such files."""


def load_npz(
    stream: IO[bytes], wanted: Callable[[str], bool] = lambda _: True
) -> dict[str, NDArray[Any]]:
    """The arrays of an archive whose names are ``wanted``, by default all.

    Raises one of ``BROKEN``, also if the archive does not fit in memory.
    """
    with zipfile.ZipFile(stream) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > UNCHECKED_BYTES:
            check_size(size, 2.0)
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        return {name: _array(archive.read(f"{name}.npy")) for name in names if wanted(name)}


def _array(data: bytes) -> NDArray[Any]:
    """The array of a .npy file of version 1 or 2; as numpy, but with the header's text parsed once.

    Parsing takes most of the time of reading the small arrays of thousands of models.
    """
    width = {1: 2, 2: 4}[data[6]]
    start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
    shape, is_fortran, dtype = _layout(data[:start])
    if dtype.hasobject:
        raise ValueError("an array of Python objects")
    array = np.frombuffer(data, dtype, offset=start)
    return array.reshape(shape, order="F" if is_fortran else "C").copy()


@lru_cache(maxsize=4096)
def _layout(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type in the header of a .npy file."""
    stream = io.BytesIO(header)
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)
