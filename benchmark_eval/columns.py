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


WIDEST_TABLE = 10_000_000
"""Span of ids up to which a table of all of them is laid out to look rows up."""


def rows_of_ids(ids: Ints, wanted: Ints) -> Ints:
    """Row in ``ids`` (ascending) of each id in ``wanted``; -1 where it is not there."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    span = int(ids[-1]) - int(ids[0])
    if span > WIDEST_TABLE:
        at = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
        return np.where(ids[at] == wanted, at, -1)
    table = np.full(span + 2, -1, np.int64)
    table[ids - ids[0]] = np.arange(len(ids))
    # ids below the first one wrap around to very large numbers; the last place means "not there"
    at = (wanted - ids[0]).view(np.uint64)
    found: Ints = table[np.minimum(at, np.uint64(span + 1)).view(np.int64)]
    return found


def finite_boxes(boxes: Floats) -> Bools:
    """Whether x, y, w, h and what is made of them (far corner, area) are finite numbers."""
    x, y, w, h = boxes.T
    with np.errstate(over="ignore", invalid="ignore"):
        # nothing that is not finite can vanish in this sum, but it can be too large itself
        finite: Bools = np.isfinite((x + w) + (y + h) + w * h)
        for row in np.flatnonzero(~finite).tolist():
            far, area = boxes[row, :2] + boxes[row, 2:], boxes[row, 2] * boxes[row, 3]
            finite[row] = np.isfinite(np.r_[boxes[row], far, area]).all()
    return finite
