"""Every plot of a sweep: its file, its question, its caption. No drawing library is needed here.

The captions stand in ``report.md``, in Snakemake's report (``workflow/report/*.rst``, which
``python -m benchmark_eval.report.captions DIR`` writes) and nowhere else.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.atomic_write import write_text_atomic


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: its file stem, its heading, the question it answers and how to read it.

    ``painter`` is the function of ``report.plots`` that draws it (``module.function``), then the
    arguments that follow the tables.
    """

    name: str
    title: str
    question: str
    caption: str
    painter: tuple[str, ...]


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
        ("curves.learning", "iid_AP_50_95"),
    ),
    Plot(
        "learning_inat_AP_50_95",
        "Field-photograph AP by budget",
        DATA,
        "AP@[.5:.95] on field photographs of trained species. The split has few scored specimens, "
        "so seeds differ widely: read the direction, not single steps.",
        ("curves.learning", "inat_AP_50_95"),
    ),
    Plot(
        "learning_ood_class_agnostic_AR_100",
        "Unseen-species recall by budget",
        DATA,
        "Class-agnostic AR@100 on species that are in no training set: how completely and how "
        "tightly specimens are boxed, whatever they are called.",
        ("curves.learning", "ood_class_agnostic_AR_100"),
    ),
    Plot(
        "learning_iid_AP_50",
        "In-distribution AP@.5 by budget, with the benchmark's card",
        DATA,
        "AP@.5, the metric that the benchmark's card reports: the shaded box is the card's range "
        "over five architectures trained on all data of the real benchmark. On other data, as the "
        "synthetic benchmark of the demo, it is there for orientation only.",
        ("curves.learning", "iid_AP_50"),
    ),
    Plot(
        "budget_images",
        "All regimes by distinct training images",
        DATA,
        "The headline metrics over the number of distinct training images, so that regimes can "
        "be compared at equal cost: where the bars at one place on the axis do not overlap, the "
        "higher line buys more. Target acquisition starts far right because all other species keep "
        "their images.",
        ("budgets.cost", "n_images"),
    ),
    Plot(
        "budget_specimens",
        "All regimes by annotated specimens",
        DATA,
        "The same over the number of annotated specimens that are trained on. Where drawing boxes "
        "is the cost, rather than finding images, this is the axis to read.",
        ("budgets.cost", "n_specimens"),
    ),
    Plot(
        "generalization_gaps",
        "Loss on field photographs and on unseen species",
        AWAY,
        "Top: AP@.5 in distribution minus on field photographs, over the species that both hold, "
        "so that the mix of species plays no part. Bottom: class-agnostic AR@100 in distribution "
        "minus on unseen species. 0 is no loss; a rising line means that more training data "
        "widen the gap, often because only the curated side gains.",
        ("curves.generalization_gaps",),
    ),
    Plot(
        "ood_bands",
        "Finding unseen species by distance",
        AWAY,
        "Class-agnostic AR@100 on unseen species by their taxonomic distance from the training "
        "species. Three lines together mean a generic notion of a beetle; a low far line means "
        "that near relatives were needed, or that the far band's images are denser.",
        ("curves.bands",),
    ),
    Plot(
        "ood_band_taxonomic_agreement",
        "Naming unseen species by distance",
        AWAY,
        "Share of hits on unseen species that get a name from the right genus or tribe, where the "
        "model knows one: no trained species shares a genus with mid species, nor a tribe with "
        "far ones. No chance level is drawn: some names are right by luck, more of them in a tribe "
        "than in a genus; how many on the whole split stands in each model's summary, as chance.",
        ("curves.band_agreement",),
    ),
    Plot(
        "density_detection_recall",
        "Found by density",
        AWAY,
        "Share of specimens found by how many specimens share the image (crowd counted). Every "
        "image counts once, so that a few crowded plates do not decide. Bands are compared "
        "fairly only within one density.",
        ("best_condition.density", "image_mean_recall"),
    ),
    Plot(
        "imbalance_tiers",
        "Head, medium and tail species",
        IMBALANCE,
        "AP@.5 of species grouped by their number of training images in the full training set: "
        "the richest quarter, the middle half, the poorest quarter. The tiers stay the same at "
        "every budget; under global_uniform all species get the same k until they run out. In "
        "incremental_uniform_targets the starved targets stand in the tiers themselves.",
        ("curves.tiers",),
    ),
    Plot(
        "imbalance_gap",
        "Head minus tail",
        IMBALANCE,
        "The distance between the upper and the lower line of the plot above. A line that falls "
        "towards 0 says that more data mend the imbalance.",
        ("curves.tier_gap",),
    ),
    Plot(
        "decomposition_iid",
        "Finding and naming in distribution",
        NAMING,
        "Detection recall, species accuracy of what was found, and their product, the share of "
        "specimens found and named right. The bottleneck is where more specimens are lost: from 1 "
        "down to the first line (not found), or from the first line down to the third (found, "
        "wrong name).",
        ("curves.decomposition", "iid_test"),
    ),
    Plot(
        "decomposition_inat",
        "Finding and naming on field photographs",
        NAMING,
        "The same on field photographs, where the bottleneck may be another one.",
        ("curves.decomposition", "inat_test"),
    ),
    Plot(
        "density_species_accuracy",
        "Named right by density",
        NAMING,
        "Share of the specimens found that are named right, by how many specimens share the "
        "image, where species can be named. Every image with a hit counts once.",
        ("best_condition.density", "image_mean_classification_given_detection_acc"),
    ),
    Plot(
        "operating_curve",
        "Confidence cuts",
        NAMING,
        "What a user gets who keeps only boxes above a confidence: precision and recall of "
        "finding, both joined in F1, and the share found and named right. The upright line is the "
        "cut of the highest F1 in distribution. Choose the cut by what a missed beetle costs "
        "against a false alarm.",
        ("best_condition.operating",),
    ),
    Plot(
        "target_grid",
        "Target species: band by images",
        TARGETS,
        "AP@.5 of the target species of each distance band when they get k images and all other "
        "species keep theirs. Rows that brighten at the same pace mean that close relatives in "
        "the training set do not help; a band has few species, so read rows, not single cells.",
        ("targets.grid",),
    ),
    Plot(
        "target_vs_nontarget",
        "Target species against all others",
        TARGETS,
        "AP@.5 of the targets, of all other species, and their difference. Others should stay "
        "flat: their training images do not change. The gap closes where the line reaches 0.",
        ("targets.target_vs_nontarget",),
    ),
    Plot(
        "confidence",
        "Mean confidence",
        CONFIDENCE,
        "Mean confidence of hits and false positives on each split. A model that knows what it "
        "does not know is less sure on unseen species than in distribution.",
        ("curves.confidence",),
    ),
    Plot(
        "calibration_error",
        "Calibration error",
        CONFIDENCE,
        "How far confidence lies from the share of hits, over ten bins; 0 is calibrated. Boxes "
        "are judged as hits whatever their name.",
        ("curves.calibration_error",),
    ),
    Plot(
        "novelty",
        "Unseen species by low confidence",
        CONFIDENCE,
        "How well low confidence alone tells hits on unseen species from hits on trained ones: "
        "0.5 is chance, 1 is perfect. The shaded box is the range on the benchmark's card.",
        ("curves.novelty",),
    ),
)
"""In the order of the report."""


def write_captions(folder: str | Path) -> None:
    """Write each caption as ``<plot>.rst``, for ``report(caption=...)`` in the workflow."""
    for plot in PLOTS:
        write_text_atomic(Path(folder) / f"{plot.name}.rst", plot.caption + "\n")


if __name__ == "__main__":
    write_captions(sys.argv[1])
