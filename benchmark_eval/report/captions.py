"""Every plot of a sweep: its file, its question, its caption. No drawing library is needed here.

The captions stand in ``report.md``, in Snakemake's report (``workflow/report/*.rst``, which
``python -m benchmark_eval.report.captions DIR`` writes) and nowhere else.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.files import write_text_atomic


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: its file stem, its heading, the question it answers and how to read it."""

    name: str
    title: str
    question: str
    caption: str


DATA = "Data efficiency"
AWAY = "Field photographs and unseen species"
IMBALANCE = "Rare and common species"
NAMING = "Finding against naming"
TARGETS = "Target species"
CONFIDENCE = "Confidence"

PLOTS: tuple[Plot, ...] = (
    Plot(
        "learning_iid_AP_50_95",
        "In-distribution AP by budget",
        DATA,
        "AP@[.5:.95] on held-out specimens of trained species, one panel a training regime. "
        "A curve that still rises at its right end would gain from more images; where the bars "
        "of two architectures overlap, their seeds do not tell them apart.",
    ),
    Plot(
        "learning_inat_AP_50_95",
        "Field-photograph AP by budget",
        DATA,
        "AP@[.5:.95] on field photographs of trained species. The split has few scored specimens, "
        "so seeds differ widely: read the direction, not single steps.",
    ),
    Plot(
        "learning_ood_class_agnostic_AR_100",
        "Unseen-species recall by budget",
        DATA,
        "Class-agnostic AR@100 on species that are in no training set: how completely and how "
        "tightly specimens are boxed, whatever they are called.",
    ),
)
"""In the order of the report."""


def write_captions(folder: str | Path) -> None:
    """Write each caption as ``<plot>.rst``, for ``report(caption=...)`` in the workflow."""
    for plot in PLOTS:
        write_text_atomic(Path(folder) / f"{plot.name}.rst", plot.caption + "\n")


if __name__ == "__main__":
    write_captions(sys.argv[1])
