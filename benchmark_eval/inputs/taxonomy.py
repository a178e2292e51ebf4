"""Reading ``species_taxonomy.csv``: one row per species, as text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from benchmark_eval.core.csv_text import csv_records, separator_hint
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import absent, decoded, read_input, unreadable
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
    except FileNotFoundError:
        problems.add(
            "missing-file",
            absent(path),
            "the benchmark's taxonomy",
            cause="benchmark_dir is not the unpacked benchmark",
        )
        return {}
    except OSError as error:
        problems.extend([unreadable(TAXONOMY, error)])
        return {}
    text = decoded(data, problems, "a CSV file in UTF-8")
    if text is None:
        return {}
    digests[TAXONOMY] = hashlib.sha256(data).hexdigest()
    records = csv_records(text, problems)
    if records is None:
        return {}
    header = records[0][1] if records else []
    _check_header(header, problems)
    if problems:
        return {}  # rows cannot be read if a column is missing or duplicated
    table: dict[str, dict[str, str]] = {}
    for line, cells in records[1:]:
        where = f"line {line}"
        if len(cells) != len(header):
            problems.add(
                "row-length",
                "a different number of cells than in the header",
                f"{len(header)} cells",
                record=where,
            )
            continue
        row = dict(zip(header, cells, strict=True))
        name = row["scientificName"]
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
