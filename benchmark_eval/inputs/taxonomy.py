"""Reading ``species_taxonomy.csv``: one row per species, as text."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

from benchmark_eval.core.csv_text import separator_hint
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.protocol import OOD_BANDS, RANKS, TAXONOMY

# Texts of a blank rank or band. The benchmark's evaluator reads the file with pandas, which treats
# these as missing by default.
BLANK = frozenset(
    [
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    ]
)


def _blank(text: str | None) -> str:
    """The cell's text, or the empty string if it means "missing"."""
    if text is None or text in BLANK or not text.strip():
        return ""
    return text


def _check_header(header: Sequence[str], problems: Problems) -> None:
    for name in dict.fromkeys(header):
        if name.strip() and header.count(name) > 1:
            problems.add(
                "duplicate-column",
                f"column {name!r} {header.count(name)} times",
                "unique column names",
                record="line 1",
            )
    missing = [c for c in ("scientificName", *RANKS) if c not in header]
    if missing:
        problems.add(
            "missing-column",
            f"columns {', '.join(header) or 'none'}",
            f"the columns {', '.join(missing)}",
            record="line 1",
            cause=separator_hint(header),
        )


def read_taxonomy(
    path: Path, digests: dict[str, str], problems: Problems
) -> dict[str, dict[str, str]]:
    """Rows by species name; blank cells and missing optional columns are empty strings."""
    found = Problems(TAXONOMY)
    rows = _read(path, digests, found)
    problems.extend(found.all())
    return rows


def _read(path: Path, digests: dict[str, str], problems: Problems) -> dict[str, dict[str, str]]:
    try:
        data = read_input(path)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        problems.add(
            "missing-file",
            "no such file",
            "the benchmark's taxonomy",
            cause="benchmark_dir is not the unpacked benchmark",
        )
        return {}
    except OSError as error:
        problems.extend([unreadable(TAXONOMY, error)])
        return {}
    except UnicodeDecodeError as error:
        problems.add("not-utf8", f"invalid UTF-8 at byte {error.start}", "a CSV file in UTF-8")
        return {}
    digests[TAXONOMY] = hashlib.sha256(data).hexdigest()
    rows = csv.DictReader(io.StringIO(text, newline=""))
    header = rows.fieldnames or []
    _check_header(header, problems)
    if problems:
        return {}  # rows cannot be read if a column is missing or duplicated
    table: dict[str, dict[str, str]] = {}
    for row in rows:
        where = f"line {rows.line_num}"
        name = row["scientificName"] or ""
        if None in row or any(value is None for value in row.values()):
            problems.add(
                "row-length",
                "a different number of cells than in the header",
                f"{len(header)} cells",
                record=where,
            )
            continue
        if name in table:
            problems.add(
                "duplicate-species",
                f"{name!r} again",
                "unique species names",
                record=where,
                field="scientificName",
            )
            continue
        table[name] = {
            column: _blank(row.get(column))
            for column in (*RANKS, "benchmark_role", "target_band", "distance_band_vs_trainable")
        }
        band = table[name]["target_band"]
        if band and band not in OOD_BANDS:
            problems.add(
                "target-band",
                repr(band),
                f"blank or one of {', '.join(OOD_BANDS)}",
                record=where,
                field="target_band",
            )
    return table
