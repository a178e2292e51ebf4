"""Values of JSON as they are written: numbers, ids, and how a message shows one."""

from __future__ import annotations

import json
import math
from typing import Any

from benchmark_eval.core.duplicate_keys import as_record

_MOST_DIGITS = 1000


def is_number(value: object) -> bool:
    """Whether a JSON value is a number that a finite float can hold (true and false are not)."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def as_id(value: object) -> int | None:
    """An id as written: a whole number, 7.0 as well as 7; None for anything else.

    From 2**53 up a float may stand for another whole number than was written, so only integers
    are ids there.
    """
    if not is_number(value):
        return None
    assert isinstance(value, int | float)
    if isinstance(value, float):
        return int(value) if value == int(value) and abs(value) < 2**53 else None
    return value if -(2**63) <= value < 2**63 else None


class LongInteger:
    """An integer of more digits than are read as a number; no JSON value is equal to it."""

    def __init__(self, text: str) -> None:
        self.digits = len(text.lstrip("-"))

    def __repr__(self) -> str:
        return f"an integer of {self.digits:,} digits"


def plain_json(data: bytes | str) -> Any:
    """Any JSON, NaN and Infinity too; ``ValueError`` says in plain words why it is none.

    An integer of very many digits becomes a ``LongInteger``, which whoever reads its record
    refuses there; a record with a key twice becomes a ``TwiceKeyed``.
    """
    try:
        return json.loads(data, parse_int=_whole_number, object_pairs_hook=as_record)
    except RecursionError:
        raise ValueError("lists or objects nested too deeply to be read") from None


def _whole_number(text: str) -> int | LongInteger:
    return int(text) if len(text) <= _MOST_DIGITS else LongInteger(text)


def show(value: object, width: int = 60) -> str:
    """A found value in a message: as JSON would spell it, cut to a readable length."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."
