"""From decoded records to numpy columns, without a Python list in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


LARGEST_WHOLE = 2**53
"""From here up a float may stand for another whole number than was written."""


_FLOAT = b"\xcb"
"""What stands before a double in MessagePack."""


class Box(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True):
    """[x, y, w, h] in px as JSON has it: four numbers, no more and no less."""

    x: float
    y: float
    w: float
    h: float


class NumberColumns:
    """The numbers of decoded records as columns, all at once.

    For a struct of fields that are ``float``, and one ``bbox`` that may be a ``Box``: in
    MessagePack each such record takes the same number of bytes, so that the encoder lays out a
    table that numpy reads. That takes a third of the time of going from attribute to attribute.
    """

    def __init__(self, record: type[msgspec.Struct]) -> None:
        number = [("mark", "S1"), ("value", ">f8")]
        layout: list[tuple[Any, ...]] = [("fields", "S1")]
        for name in record.__struct_fields__:
            layout.append((f"name of {name}", f"S{1 + len(name)}"))
            box = name == "bbox"
            layout += [("numbers", "S1"), (name, number, 4)] if box else [(name, number)]
        self._layout = np.dtype(layout)
        self._encoder = msgspec.msgpack.Encoder()
        self._table = bytearray()

    def of(self, records: Sequence[msgspec.Struct]) -> dict[str, Floats]:
        """Each field's column: (records,), for ``bbox`` (records, 4)."""
        self._encoder.encode_into(records, self._table)
        size = len(records) * self._layout.itemsize
        start = len(self._table) - size
        # a list's length takes one byte, three or five
        if start not in (1, 3, 5):
            raise AssertionError("records of unequal length")
        table = np.frombuffer(self._table, self._layout, len(records), start)
        names = [name for name in self._layout.names or () if table[name].dtype.names]
        if any((table[name]["mark"][-1:] != _FLOAT).any() for name in names):
            raise AssertionError("a number that is no double")
        return {name: table[name]["value"].astype(np.float64) for name in names}


def whole_column(column: Floats) -> Ints:
    """Ids that were decoded as floats; ``msgspec.DecodeError`` where one is not exactly whole."""
    if not ((column == np.trunc(column)) & (np.abs(column) < LARGEST_WHOLE)).all():
        raise msgspec.DecodeError("an id is no whole number, or too large for a float")
    return column.astype(np.int64)


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
