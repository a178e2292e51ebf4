"""Reading and writing CSV tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from benchmark_eval.core.problems import Problems


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text as a formula."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r")


def separator_hint(header: Sequence[str]) -> str:
    """The likely cause of a header with one column (a separator other than a comma), or ``""``."""
    other = next((c for c in (";", "\t", "|") if c in header[0]), "") if len(header) == 1 else ""
    return f"the columns are separated by {other!r}" if other else ""


def csv_records(text: str, problems: Problems) -> list[tuple[int, list[str]]] | None:
    """The records of a CSV text, each with the line on which it starts; empty lines are skipped.

    None and a problem for text that is not CSV, such as a double quote that is never closed.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[tuple[int, list[str]]] = []
    start = 1
    try:
        for cells in reader:
            if cells:
                records.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        found, cause = str(error), ""
        if "unexpected end" in found:
            found, cause = (
                "a double quote that is never closed",
                "a truncated file, or a stray quote",
            )
        elif "field limit" in found:
            found = f"a cell of more than {csv.field_size_limit():,} characters"
            cause = "a double quote that is never closed"
        problems.add("not-csv", found, "comma-separated text", record=f"line {start}", cause=cause)
        return None
    return records


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
