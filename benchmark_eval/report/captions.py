"""The list of plots: file, title, question, caption and painter of each. Loads no drawing library.

``report.md``, ``report.draw`` and the workflow read it. ``python -m benchmark_eval.report.captions
DIR`` writes the captions for Snakemake's report (``workflow/report/*.rst``).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.atomic_write import write_text_atomic


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: its file stem, title, question and caption.

    ``painter`` is the function of ``report.plots`` that draws it (``module.function``), then its
    arguments after the tables.
    """

    name: str
    title: str
    question: str
    caption: str
    painter: tuple[str, ...]


DATA = "Data efficiency"
AWAY = "Field photographs and unseen species"
IMBALANCE = "Rare and common species"
IDENTIFICATION = "Detection versus identification"
TARGETS = "Target species"
CONFIDENCE = "Confidence"

PLOTS: tuple[Plot, ...] = (
    Plot(
        "learning_iid_AP_50_95",
        "In-distribution AP by budget",
        DATA,
        "AP@[.5:.95] on test specimens of trained species, one panel per training regime. A curve "
        "that is still rising at its right end suggests that more images would help. Where the "
        "bars of two architectures overlap, their difference is inconclusive.",
        ("curves.learning", "iid_AP_50_95"),
    ),
    Plot(
        "learning_inat_AP_50_95",
        "Field-photograph AP by budget",
        DATA,
        "AP@[.5:.95] on field photographs of trained species. The split has few scored specimens, "
        "so seeds differ widely: read the trend, not single steps.",
        ("curves.learning", "inat_AP_50_95"),
    ),
    Plot(
        "learning_ood_class_agnostic_AR_100",
        "Unseen-species recall by budget",
        DATA,
        "Class-agnostic AR@100 on species that are in no training set: how many specimens are "
        "detected and how well their boxes fit, whatever species is predicted.",
        ("curves.learning", "ood_class_agnostic_AR_100"),
    ),
    Plot(
        "learning_iid_AP_50",
        "In-distribution AP@.5 by budget, compared with the benchmark's card",
        DATA,
        "AP@.5, the metric of the benchmark's card. The shaded box is the card's range over five "
        "architectures trained on all data of the real benchmark. On other data, such as the "
        "synthetic benchmark of the demo, it is only a rough reference.",
        ("curves.learning", "iid_AP_50"),
    ),
    Plot(
        "budget_images",
        "All regimes by number of training images",
        DATA,
        "The headline metrics by the number of distinct training images, which makes regimes "
        "comparable at equal cost: where bars at one position do not overlap, the higher line "
        "gains more from the same cost. Curves of incremental_uniform_targets start far right "
        "because all other species keep their images.",
        ("budgets.cost", "n_images"),
    ),
    Plot(
        "budget_specimens",
        "All regimes by number of training specimens",
        DATA,
        "The same metrics by the number of annotated specimens in the training set. Use this axis "
        "if drawing boxes, rather than finding images, is the cost.",
        ("budgets.cost", "n_specimens"),
    ),
    Plot(
        "generalization_gaps",
        "Gaps to field photographs and to unseen species",
        AWAY,
        "Top: AP@.5 in distribution minus AP@.5 on field photographs, over the species that both "
        "splits score, so that the mix of species has no effect. Bottom: class-agnostic AR@100 in "
        "distribution minus that on unseen species. 0 means no gap. A rising line means that more "
        "training data widen the gap, often because only in-distribution results improve.",
        ("curves.generalization_gaps",),
    ),
    Plot(
        "ood_bands",
        "Recall on unseen species by taxonomic distance",
        AWAY,
        "Class-agnostic AR@100 on unseen species by their taxonomic distance from the training "
        "species. Three similar lines mean that detection does not depend on known relatives. A "
        "low line for far species means that it does, or that images of the far band are denser.",
        ("curves.bands",),
    ),
    Plot(
        "ood_band_taxonomic_agreement",
        "Taxonomic agreement on unseen species by distance",
        AWAY,
        "Fraction of true positives on unseen species whose predicted species is of the correct "
        "genus or tribe, where the training set has that genus or tribe: it has no genus of mid "
        "species and no tribe of far species. Some agreement is due to chance, more for a tribe "
        "than for a genus; the chance level for the whole split is given in each model's summary, "
        "under chance.",
        ("curves.band_agreement",),
    ),
    Plot(
        "density_detection_recall",
        "Detection recall by density",
        AWAY,
        "Fraction of specimens detected, by number of specimens on the image (crowd regions "
        "count). Every image has the same weight, so that a few dense images do not dominate. "
        "Compare bands within one density only.",
        ("best_condition.density", "image_mean_recall"),
    ),
    Plot(
        "imbalance_tiers",
        "Head, medium and tail species",
        IMBALANCE,
        "AP@.5 of species grouped by their number of images in the full training set: the quarter "
        "with the most images (head), the middle half, and the quarter with the fewest (tail). The "
        "groups are the same at every budget. Under global_uniform, all species get the same k "
        "until their images run out. Under incremental_uniform_targets, the groups include the "
        "target species, whose images are limited.",
        ("curves.tiers",),
    ),
    Plot(
        "imbalance_gap",
        "Head minus tail",
        IMBALANCE,
        "The vertical distance between the head and tail lines of the previous plot. A line that "
        "falls towards 0 means that more data reduce the gap.",
        ("curves.tier_gap",),
    ),
    Plot(
        "decomposition_iid",
        "Detection and identification in distribution",
        IDENTIFICATION,
        "Detection recall, species accuracy given detection, and their product, the fraction of "
        "specimens detected and correctly identified (species recall). Missed specimens are the "
        "distance from 1 down to the first line; misidentified ones that from the first line down "
        "to the third. The larger distance is the bottleneck.",
        ("curves.decomposition", "iid_test"),
    ),
    Plot(
        "decomposition_inat",
        "Detection and identification on field photographs",
        IDENTIFICATION,
        "The same on field photographs, where the bottleneck may be different.",
        ("curves.decomposition", "inat_test"),
    ),
    Plot(
        "density_species_accuracy",
        "Species accuracy by density",
        IDENTIFICATION,
        "Fraction of detected specimens that are correctly identified, by number of specimens on "
        "the image, on the splits with trained species. Every image with a true positive has the "
        "same weight.",
        ("best_condition.density", "image_mean_classification_given_detection_acc"),
    ),
    Plot(
        "operating_curve",
        "Confidence thresholds",
        IDENTIFICATION,
        "Results if only detections at or above a confidence threshold are kept: precision, "
        "detection recall, their F1, and species recall. The vertical line is the threshold with "
        "the highest F1 in distribution. Choose a threshold by the cost of a missed specimen "
        "relative to a false positive.",
        ("best_condition.operating",),
    ),
    Plot(
        "target_grid",
        "Target species: distance band by number of images",
        TARGETS,
        "AP@.5 of the target species of each distance band if they get k images each and all "
        "other species keep theirs. Rows that improve at the same rate mean that close relatives "
        "in the training set do not help. A band has few species, so compare rows, not single "
        "cells.",
        ("targets.grid",),
    ),
    Plot(
        "target_vs_nontarget",
        "Target and non-target species",
        TARGETS,
        "AP@.5 of the target species, of all other species, and their difference. The training "
        "images of the other species do not change with k. The gap is closed where the difference "
        "reaches 0.",
        ("targets.target_vs_nontarget",),
    ),
    Plot(
        "confidence",
        "Mean confidence",
        CONFIDENCE,
        "Mean confidence of true and false positives on each split. A model whose confidence is "
        "useful is less confident on unseen species than in distribution.",
        ("curves.confidence",),
    ),
    Plot(
        "calibration_error",
        "Calibration error",
        CONFIDENCE,
        "Mean distance between confidence and precision, over ten bins of confidence; 0 means "
        "calibrated. A detection counts as a true positive whatever species is predicted.",
        ("curves.calibration_error",),
    ),
    Plot(
        "novelty",
        "Novelty detection by low confidence",
        CONFIDENCE,
        "How well low confidence alone separates true positives on unseen species from those on "
        "trained species: 0.5 is chance, 1 is perfect. The shaded box is the range of the "
        "benchmark's card.",
        ("curves.novelty",),
    ),
)
"""All plots, in the order of the report."""


def write_captions(folder: str | Path) -> None:
    """Write each caption as ``<plot>.rst``, for ``report(caption=...)`` in the workflow."""
    for plot in PLOTS:
        write_text_atomic(Path(folder) / f"{plot.name}.rst", plot.caption + "\n")


if __name__ == "__main__":
    write_captions(sys.argv[1])
