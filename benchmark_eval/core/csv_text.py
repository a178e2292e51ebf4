"""Writing CSV tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text as a formula."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r")


def separator_hint(header: Sequence[str]) -> str:
    """The likely cause of a header with one column: a separator other than the comma; or ``""``."""
    other = next((c for c in (";", "\t", "|") if c in header[0]), "") if len(header) == 1 else ""
    return f"the columns are separated by {other!r}" if other else ""


def csv_text(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, escape_formulas: bool = True
) -> str:
    """A table as CSV, its lines ended by a line feed: the one writer of this package.

    None is an empty cell, a float the shortest text that reads back as the same number. A text
    that a spreadsheet would run as a formula gets an apostrophe in front, unless a program reads
    the file back (``escape_formulas=False``).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    if escape_formulas:
        rows = ([_escaped(cell) for cell in row] for row in rows)
    writer.writerows(rows)
    return out.getvalue()


def csv_cell(text: str) -> str:
    """One text as a cell of ``csv_text``, quoted if it must be."""
    out = io.StringIO()
    # a row of one empty cell would be quoted
    csv.writer(out, lineterminator="\n").writerow([_escaped(text), ""])
    return out.getvalue()[:-2]


def _escaped(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell
