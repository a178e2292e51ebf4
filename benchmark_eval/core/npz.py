"""Reading ``.npz`` archives of arrays that may be damaged or of another kind."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.safe_read import check_size

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


def load_npz(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; raises one of ``BROKEN``, also if they do not fit in memory."""
    with np.load(stream, allow_pickle=False) as store:
        check_size(sum(entry.file_size for entry in store.zip.infolist()), 2.0)
        return {name: store[name] for name in store.files}
