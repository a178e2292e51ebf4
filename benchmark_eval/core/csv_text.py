"""CSV text: how tables are written, and what a spreadsheet would make of a cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r")


def separator_hint(header: Sequence[str]) -> str:
    """What a CSV file's columns are separated by instead of commas, or the empty text."""
    other = next((c for c in (";", "\t", "|") if c in header[0]), "") if len(header) == 1 else ""
    return f"the columns are separated by {other!r}" if other else ""


def neutral(cell: object) -> object:
    """A cell of a CSV file: a text that a spreadsheet would run as a formula gets an apostrophe.

    Models and architectures are never called so; species in a benchmark's files may be.
    """
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV with plain line feeds."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
