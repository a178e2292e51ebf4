"""JSON values: numbers, ids, and how messages show them."""

from __future__ import annotations

import json
import math
from typing import Any

from benchmark_eval.core.duplicate_keys import as_record

_MOST_DIGITS = 1000


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number in the range of floats (true and false are not)."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def as_id(value: object) -> int | None:
    """The id in a JSON value: an integer, written as 7 or 7.0; None for anything else.

    From 2**53 on, a float may differ from the integer that was written, so only integers are
    accepted in that range.
    """
    if not is_number(value):
        return None
    assert isinstance(value, int | float)
    if isinstance(value, float):
        return int(value) if value == int(value) and abs(value) < 2**53 else None
    return value if -(2**63) <= value < 2**63 else None


class LongInteger:
    """An integer with too many digits to parse; equal to no JSON value."""

    def __init__(self, text: str) -> None:
        self.digits = len(text.lstrip("-"))

    def __repr__(self) -> str:
        return f"an integer of {self.digits:,} digits"


def plain_json(data: bytes | str) -> Any:
    """Decode any JSON, including NaN and Infinity; the ``ValueError`` says what is wrong.

    An integer of more than 1,000 digits becomes a ``LongInteger``, which no reader of records
    accepts; a record with duplicate keys becomes a ``RecordWithDuplicates``.
    """
    try:
        return json.loads(data, parse_int=_integer, object_pairs_hook=as_record)
    except RecursionError:
        raise ValueError("lists or objects nested too deeply") from None


def _integer(text: str) -> int | LongInteger:
    return int(text) if len(text) <= _MOST_DIGITS else LongInteger(text)


def json_kind(value: object) -> str:
    """What a JSON value is, for messages: ``a JSON list``, ``the number 5``."""
    if isinstance(value, dict):
        return f"a JSON object with the keys {', '.join(value)[:80]}" if value else "{}"
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return f"the JSON string {show(value)}"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"the number {show(value)}" if number else f"the JSON text {show(value)}"


def show(value: object, width: int = 60) -> str:
    """A value as JSON for a message, truncated to ``width`` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."
