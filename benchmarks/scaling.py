"""How a sweep scales with its models: planning, running, aggregating, nothing to do.

The prediction files are tiny (hard links), so that the workflow is measured and not the scoring.
Writes its table into ``docs/scaling.md``. 15,300 models are only planned.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import run
from sweep import ROOT, make_tree

SIZES = (153, 1_530, 15_300)
RUN_UP_TO = 1_530
BEGIN, END = "<!-- measured by benchmarks/scaling.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Growth:
    """Measurements of one size; ``cells`` are its table cells after the first."""

    models: int
    cells: tuple[str, ...]


def measure(scratch: Path, models: int, cores: int) -> Growth:
    """Plan a sweep twice; up to ``RUN_UP_TO`` models also run it and call it again."""
    tree = make_tree(scratch / f"data{models}", 0.005, 1.0, models // 153)
    results = scratch / f"results{models}"
    results.mkdir()
    first = run(tree.snakemake(results, "--dry-run"))
    again = run(tree.snakemake(results, "--dry-run"))
    cells = [f"{first.wall:.1f}", f"{again.wall:.1f}", f"{again.memory / 1e6:.0f}"]
    if models <= RUN_UP_TO:
        whole = run(tree.snakemake(results, "--cores", str(cores)))
        second = run(tree.snakemake(results, "--cores", str(cores)))
        cells += [
            f"{whole.wall:.0f}",
            *(f"{seconds_of(results, rule):.1f}" for rule in ("aggregate", "plot_sweep")),
            f"{second.wall:.1f}",
            f"{second.memory / 1e6:.0f}",
        ]
    else:
        cells += ["-"] * 5
    return Growth(models, tuple(cells))


def seconds_of(results: Path, rule: str) -> float:
    """Wall time of a rule, from its Snakemake benchmark file."""
    text = (results / f"results/benchmarks/{rule}.tsv").read_text()
    return float(text.splitlines()[1].split("\t")[0])


def table(rows: list[Growth], cores: int) -> str:
    """The measured section of the page."""
    lines = [
        BEGIN,
        "",
        "| models | first plan (s) | second plan (s) | its peak memory (MB) "
        "| full run (s) | tables (s) | plots (s) | no-op run (s) | its peak memory (MB) |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {row.models:,} | {' | '.join(row.cells)} |" for row in rows),
        "",
        f"Measured on {cores} of {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}. "
        "`make bench-scaling` repeats the measurement.",
        "",
        END,
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="multiples of 153")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/scaling.md")
    args = parser.parse_args()
    rows = []
    for models in args.sizes:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(measure(Path(scratch), models, args.cores))
        print(rows[-1], flush=True)
    page = args.output.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    args.output.write_text(before + table(rows, args.cores) + after)


if __name__ == "__main__":
    main()
