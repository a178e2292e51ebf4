"""JSON values: numbers, ids, and how messages show them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from benchmark_eval.core.duplicate_keys import as_record
from benchmark_eval.core.first_bytes import json_cause

_MOST_DIGITS = 1000
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAYBE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|\0")
"""An escaped or encoded surrogate, or UTF-16."""


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


def syntax_cause(data: bytes) -> str:
    """The likely cause if text is not JSON at all; blank for JSON of any content."""
    try:
        plain_json(data)
    except ValueError:
        return json_cause(data)
    return ""


def lone_surrogate(data: bytes, tree: object) -> str:
    """The place of a text with half of a surrogate pair in decoded JSON; blank if there is none.

    Such text, usually written as an escape, is not valid Unicode and cannot be written to a file.
    ``data`` is the JSON text of ``tree``.
    """
    if not _MAYBE_SURROGATE.search(data):
        return ""
    pending: list[tuple[str, object]] = [("", tree)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, str):
            if not value.isascii() and _SURROGATE.search(value):
                return place.removeprefix(".") or "the text"
        elif isinstance(value, dict):
            pending += [(f"{place}.{show(key, 20)}", item) for key, item in value.items()]
            pending += [(f"a key of {place or 'the object'}", key) for key in value]
        elif isinstance(value, list):
            pending += [(f"{place}[{at}]", item) for at, item in enumerate(value)]
    return ""


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
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which cannot be printed or written
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."
