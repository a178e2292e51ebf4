"""Writing CSV tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text as a formula."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r")


def separator_hint(header: Sequence[str]) -> str:
    """The likely cause of a header with one column (a separator other than a comma), or ``""``."""
    other = next((c for c in (";", "\t", "|") if c in header[0]), "") if len(header) == 1 else ""
    return f"the columns are separated by {other!r}" if other else ""


def csv_text(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, escape_formulas: bool = True
) -> str:
    """A table as CSV with LF line endings; every CSV file of this package is written by it.

    None becomes an empty cell, a float the shortest text that parses to the same number. Text that
    a spreadsheet would run as a formula is prefixed with an apostrophe, except in files that a
    program reads back (``escape_formulas=False``).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    if escape_formulas:
        rows = ([_escaped(cell) for cell in row] for row in rows)
    writer.writerows(rows)
    return out.getvalue()


def csv_cell(text: str) -> str:
    """One text as a cell of ``csv_text``, quoted if necessary."""
    out = io.StringIO()
    # csv quotes an empty cell if it is the only one in its row
    csv.writer(out, lineterminator="\n").writerow([_escaped(text), ""])
    return out.getvalue()[:-2]


def _escaped(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell
