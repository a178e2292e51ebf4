"""Reads a report back: its tables, its numbers, and the CSV files that they must come from."""

import csv
import re

NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
ESTIMATE = re.compile(
    rf"(?P<mean>{NUMBER}) \[(?P<low>[<>]? ?{NUMBER}), (?P<high>[<>]? ?{NUMBER})"
    r"(?:; (?P<covers>species|retraining))?\]"
)
BOTH = "species and retraining"
# of each CSV file: mean, the stem of the limits, and what they cover (or the column that says it)
COLUMNS = {
    "differences.csv": [("mean", "ci95", "retraining")],
    "comparisons.csv": [("a_minus_b", "ci95", "@covers")],
    "retention.csv": [
        ("gap", "gap_ci95", "@gap_covers"),
        ("retention", "retention_ci95_species", "species"),
    ],
    "tiers.csv": [("mean", "ci95", "@covers")],
    "target_gains.csv": [
        ("gain", "gain_ci95", "@covers"),
        ("share_closed", "share_closed_ci95", "@covers"),
    ],
    "pooled_shares.csv": [("species_mean", "species_mean_ci95", "@covers")],
    "error_types.csv": [
        ("per_100_images", "per_100_images_ci95_retraining", "retraining"),
        ("dAP_50", "dAP_50_ci95_retraining", "retraining"),
    ],
    "novelty.csv": [
        ("AUROC", "AUROC_ci95_species", "species"),
        ("FPR_95TPR", "FPR_95TPR_ci95_species", "species"),
    ],
    "reliability.csv": [("observed", "ci95", "@covers")],
    "species.csv": [("iid_AP_50_95", "iid_AP_50_95_ci95_retraining", "retraining")],
    "budget_planning.csv": [("cost", "ci95", "retraining")],
}


def read_csv(folder, name):
    """The rows of a table as text."""
    with (folder / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def sections(text):
    """The text of each section by title."""
    parts = re.split(r"^## (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tables(text):
    """The Markdown tables of a text: lists of {header: cell}."""
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        header, _, *rows = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.strip().splitlines()
        )
        found.append([dict(zip(header, row, strict=True)) for row in rows])
    return found


def value(text):
    """A printed number, and half a unit of its last decimal."""
    plain = text.replace(",", "").lstrip("<> ")
    decimals = len(plain.partition(".")[2])
    return float(plain), 0.5 * 10.0**-decimals + 1e-9


def shows(text, number):
    """Whether a printed number is this one, rounded."""
    printed, half = value(text)
    return number is not None and abs(printed - number) <= half


def _or_none(cell):
    return float(cell) if cell else None


def estimates(folder):
    """Every (mean, low, high, what the interval covers) of the CSV files."""
    found = []
    for row in read_csv(folder, "learning_curves.csv"):
        for name in row:
            if not name.endswith("_mean"):
                continue
            stem, mean = name.removesuffix("_mean"), _or_none(row[name])
            one = row[f"{stem}_n"] == "1"
            for part, covers in (
                ("ci95_retraining", "retraining"),
                ("ci95_species_retraining", "species" if one else BOTH),
            ):
                low, high = (row.get(f"{stem}_{part}_{end}", "") for end in ("low", "high"))
                found.append((mean, _or_none(low), _or_none(high), covers))
    for file, columns in COLUMNS.items():
        for row in read_csv(folder, file):
            for mean, stem, what in columns:
                covers = row[what[1:]] if what.startswith("@") else what
                limits = [_or_none(row[f"{stem}_{end}"]) for end in ("low", "high")]
                found.append((_or_none(row[mean]), *limits, covers))
            if file == "budget_planning.csv":
                found.append(_planned(row))
            if file == "comparisons.csv" and row["ci95_low"]:
                mean, low, high, covers = found[-1]
                found.append((-mean, -high, -low, covers))
    return [item for item in found if None not in item]


def _planned(row):
    """A cost with the smallest or largest budget in place of what lies beyond it."""
    beyond = {"< smallest": row["smallest"], "> largest": row["largest"]}
    cells = [
        row[name] or beyond.get(row[flag], "")
        for name, flag in (
            ("cost", "cost_beyond"),
            ("ci95_low", "low_beyond"),
            ("ci95_high", "high_beyond"),
        )
    ]
    return (*map(_or_none, cells), "retraining")


def assert_estimates(text, folder):
    """Every estimate of a report is one of the tables, with what its interval covers.

    Returns how many there are.
    """
    known = estimates(folder)
    lines = [line for line in text.splitlines() if not line.startswith("Brackets")]
    found = [match for line in lines for match in ESTIMATE.finditer(line)]
    for match in found:
        covers = match["covers"] or BOTH
        assert any(
            covers == row[3]
            and all(shows(match[key], row[at]) for at, key in enumerate(("mean", "low", "high")))
            for row in known
        ), match[0]
    return len(found)
