"""Reading ``.npz`` archives of arrays that may be damaged or of another kind."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
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
    with np.load(stream, allow_pickle=False) as store:
        size = sum(entry.file_size for entry in store.zip.infolist())
        if size > UNCHECKED_BYTES:
            check_size(size, 2.0)
        return {name: store[name] for name in store.files if wanted(name)}
