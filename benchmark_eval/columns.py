"""From decoded records to numpy columns, without a Python list in between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def int_column(records: Sequence[Any], name: str) -> Ints:
    """One integer attribute of every record; ``OverflowError`` beyond 64 bits."""
    return np.fromiter(map(attrgetter(name), records), np.int64, len(records))


def float_column(records: Sequence[Any], name: str) -> Floats:
    """One number of every record."""
    return np.fromiter(map(attrgetter(name), records), np.float64, len(records))


def box_columns(records: Sequence[Any]) -> Floats:
    """(records, 4) the attribute ``bbox``: x, y, w, h in px."""
    flat = chain.from_iterable(map(attrgetter("bbox"), records))
    return np.fromiter(flat, np.float64, 4 * len(records)).reshape(len(records), 4)
