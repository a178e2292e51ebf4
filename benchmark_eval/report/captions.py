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

    ``title`` says what is shown; a figure whose tables give a conclusion has that one as heading.
    ``painter`` is the function of ``report.plots`` that draws it (``module.function``), then its
    arguments after the tables and the heading.
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
        "that is still rising at its right end suggests that more images would help. Thick bars "
        "are 95 % intervals over retraining, thin ones over species and retraining; n is the "
        "number of seeds. Overlap of bars is no test: see the paired differences.",
        (
            "curves.learning",
            "iid_AP_50_95",
        ),
    ),
    Plot(
        "learning_inat_AP_50_95",
        "Field-photograph AP by budget",
        DATA,
        "AP@[.5:.95] on field photographs of trained species. The split has few scored specimens "
        "of few species, so the interval over species and retraining (thin bars) is much wider "
        "than that over retraining (thick bars): read the trend, not single steps.",
        (
            "curves.learning",
            "inat_AP_50_95",
        ),
    ),
    Plot(
        "learning_ood_class_agnostic_AR_100",
        "Unseen-species recall by budget",
        DATA,
        "Class-agnostic AR@100 on species that are in no training set: how many specimens are "
        "detected and how well their boxes fit, whatever species is predicted. Bars are 95 % "
        "intervals over retraining only; other unseen species are not covered.",
        (
            "curves.learning",
            "ood_class_agnostic_AR_100",
        ),
    ),
    Plot(
        "learning_iid_AP_50",
        "In-distribution AP@.5 by budget, compared with the benchmark's card",
        DATA,
        "AP@.5, the metric of the benchmark's card. The shaded box is the card's range over five "
        "architectures trained on all data of the real benchmark. On other data, such as the "
        "synthetic benchmark of the demo, it is only a rough reference. Bars are 95 % intervals "
        "over retraining (thick) and over species and retraining (thin).",
        (
            "curves.learning",
            "iid_AP_50",
        ),
    ),
    Plot(
        "architecture_differences",
        "Paired differences between architectures",
        DATA,
        "Each row is one architecture minus another at the same condition, paired by species and "
        "seed. Bars are plain 95 % intervals over species and retraining; a filled diamond marks "
        "a difference that remains after Holm's correction over all tests of the panel. Where the "
        "bar excludes 0 but the marker is open, the difference is inconclusive after correction.",
        ("forest.architectures",),
    ),
    Plot(
        "steps",
        "Gain from each step to a larger budget",
        DATA,
        "Each row is a budget minus the budget before it, paired by species and by the regime's "
        "own seeds. Bars are plain 95 % intervals over species and retraining; a filled diamond "
        "marks a step that remains different from 0 after Holm's correction over the steps of its "
        "curve.",
        ("forest.steps",),
    ),
    Plot(
        "budget_images",
        "All regimes by number of training images",
        DATA,
        "The headline metrics by the number of distinct training images, on a log2 axis: equal "
        "distances are doublings, so slopes can be compared. Curves of "
        "incremental_uniform_targets start far right because all other species keep their images. "
        "Bars are 95 % intervals over retraining (thick) and, for AP, over species and retraining "
        "(thin).",
        (
            "budgets.cost",
            "n_images",
        ),
    ),
    Plot(
        "budget_specimens",
        "All regimes by number of training specimens",
        DATA,
        "The same metrics by the number of annotated specimens in the training set. Use this axis "
        "if drawing boxes, rather than finding images, is the cost.",
        (
            "budgets.cost",
            "n_specimens",
        ),
    ),
    Plot(
        "equal_budget",
        "Regimes at equal budget",
        DATA,
        "Pairs of regimes over the number of training images. The shaded range holds the costs "
        "that both cover; only there can they be compared. The numbers are the mean distance of "
        "the two curves over that range (in log2 of the cost), first regime minus second, at "
        "equal images and at equal specimens, with the plain 95 % interval over species and "
        "retraining and the verdict.",
        ("budgets.equal_budget",),
    ),
    Plot(
        "generalization_gaps",
        "Gaps to field photographs and to unseen species",
        AWAY,
        "Top: AP@.5 in distribution minus AP@.5 on field photographs, over the species that both "
        "splits score, so that the mix of species has no effect. Bottom: class-agnostic AR@100 in "
        "distribution minus that on unseen species, which contains the different density of their "
        "images. 0 means no gap. A rising line means that more "
        "training data widen the gap, often because only in-distribution results improve; a model "
        "that can do nothing has no gap. Bars are 95 % intervals over retraining.",
        ("curves.generalization_gaps",),
    ),
    Plot(
        "ood_bands",
        "Recall on unseen species by taxonomic distance",
        AWAY,
        "Class-agnostic AR@100 on unseen species by their taxonomic distance from the training "
        "species. Bars are 95 % intervals over retraining only: bands have few species, and with "
        "other species the lines could lie elsewhere. A low line for far species can also mean "
        "that their images are denser: compare bands at equal density.",
        ("curves.bands",),
    ),
    Plot(
        "band_density",
        "Detection recall by distance band and density",
        AWAY,
        "Mean over species of detection recall, by the number of specimens on the image (crowd "
        "regions count). Bars are 95 % intervals over species and retraining. Strata of fewer "
        "than 10 images are open markers without line and interval. At the right, near minus mid "
        "and near minus far species at the density of near species; there is no number if the "
        "strata that both bands fill hold less than 80 % of the near specimens.",
        ("bands.band_density",),
    ),
    Plot(
        "ood_band_taxonomic_agreement",
        "Taxonomic agreement on unseen species by distance",
        AWAY,
        "Fraction of true positives on unseen species whose predicted species is of the correct "
        "genus or tribe, where the training set has that genus or tribe. Genus of mid species, "
        "and genus and tribe of far species, are 0 by construction and not drawn. Some agreement "
        "is due to chance, more for a tribe than for a genus. Bars are 95 % intervals over "
        "retraining.",
        ("curves.band_agreement",),
    ),
    Plot(
        "imbalance_tiers",
        "Head, medium and tail species",
        IMBALANCE,
        "AP@.5 of species grouped by their number of images in the full training set: the quarter "
        "with the most images (head), the middle half, and the quarter with the fewest (tail). "
        "The groups are the same at every budget. Under global_uniform, all species get at most k "
        "images: the tail runs out first. Under incremental_uniform_targets, the groups include "
        "the target species, whose images are limited. Bars are 95 % intervals over retraining.",
        ("curves.tiers",),
    ),
    Plot(
        "species",
        "Every trained species",
        IMBALANCE,
        "AP@[.5:.95] in distribution of every scored species, sorted, at the best condition of the "
        "architecture with the highest AP for it. Bars are 95 % intervals over retraining; a "
        "species has about ten scored specimens, and other photographs of it are not covered. The "
        "vertical tick is species recall at the operating threshold. Crosses mark species that "
        "should not be relied on.",
        ("species.dots",),
    ),
    Plot(
        "decomposition_iid",
        "Detection and identification in distribution",
        IDENTIFICATION,
        "Detection recall, species accuracy given detection, and their product, the fraction of "
        "specimens detected and correctly identified (species recall), with detections of any "
        "confidence: at a threshold, more are missed. Missed specimens are the "
        "distance from 1 down to the first line; misidentified ones that from the first line down "
        "to the third. The larger distance is the bottleneck. Bars are 95 % intervals over "
        "retraining.",
        (
            "curves.decomposition",
            "iid_test",
        ),
    ),
    Plot(
        "decomposition_inat",
        "Detection and identification on field photographs",
        IDENTIFICATION,
        "The same on field photographs, where the bottleneck may be different. Detections whose "
        "label the split does not list are left out, as in the benchmark's evaluator.",
        (
            "curves.decomposition",
            "inat_test",
        ),
    ),
    Plot(
        "error_types",
        "Types of error",
        IDENTIFICATION,
        "Left: detections of each error type and missed specimens per 100 images, at the "
        "operating threshold (that of the best F1 in distribution, on every split). Right: the "
        "AP@.5 gained if that type alone is repaired; these gains do not add up. Bars are 95 % "
        "intervals over retraining.",
        ("errors.types",),
    ),
    Plot(
        "confusion_genus",
        "Confusion between genera",
        IDENTIFICATION,
        "Misidentified specimens in distribution by true and predicted genus, for the "
        "architecture with the highest AP at its best condition. Squares on the outlined diagonal "
        "are confusions within a genus. At the right, how often a wrong name is of the correct "
        "genus or tribe, relative to chance, with 95 % intervals over species.",
        ("errors.genera",),
    ),
    Plot(
        "operating_curve",
        "Confidence thresholds",
        IDENTIFICATION,
        "Results if only detections at or above a confidence threshold are kept: precision, "
        "detection recall, their F1, and species recall. The vertical line is the threshold with "
        "the highest F1 in distribution, and the numbers say on how many detections the precision "
        "there rests. Choose a threshold by the cost of a missed specimen relative to a false "
        "positive.",
        ("operating.operating",),
    ),
    Plot(
        "target_grid",
        "Target species: distance band by number of images",
        TARGETS,
        "AP@.5 of the target species of each distance band if they get at most k images each and "
        "all other species keep theirs. At k = 0 it is 0 by construction. A band has few species: "
        "intervals are in the plot of gains.",
        ("targets.grid",),
    ),
    Plot(
        "target_gains",
        "Target images: gain of targets, change of other species",
        TARGETS,
        "Top: AP of the target species with k images minus without any, by distance band; the "
        "dotted line is the gain with all images. Bottom: the change of all other species, whose "
        "training images stay the same. They may rise, because specimens of targets no longer "
        "count as their false positives, or fall, because they are confused with the new species. "
        "Bars are 95 % intervals over species and retraining.",
        ("targets.gains",),
    ),
    Plot(
        "reliability",
        "Reliability of the confidence",
        CONFIDENCE,
        "Observed fraction by confidence, in bins of equally many detections. Above the diagonal, "
        "a model is better than its confidence says; below it, worse. Top: whether a detection is "
        "a true positive. Bottom: whether a true positive has the correct species. Bars are 95 % "
        "intervals over species and retraining.",
        ("confidence.reliability",),
    ),
    Plot(
        "novelty_histograms",
        "Confidence on trained and unseen species",
        CONFIDENCE,
        "True positives by confidence. If low confidence flagged unseen species, their histograms "
        "would lie left of those of trained species. AUROC and the false positive rate at a true "
        "positive rate of 95 % measure how well they separate; the latter counts true positives "
        "(specimens), and its threshold is set on the unseen test specimens themselves. Both "
        "contain the different density of the images. Intervals resample trained and unseen "
        "species.",
        ("confidence.histograms",),
    ),
    Plot(
        "novelty",
        "Novelty detection by low confidence, by budget",
        CONFIDENCE,
        "How well low confidence alone separates true positives on unseen species from those on "
        "trained species. AUROC: 0.5 is chance, 1 is perfect. FPR: the share of true "
        "positives on trained species flagged if 95 % of those on unseen species are, by a "
        "threshold that is set on the unseen test specimens themselves; 0.95 is chance, 0 is "
        "perfect. The images of trained and unseen species differ in density. Shaded boxes are "
        "ranges of the benchmark's card. Bars are 95 % intervals over retraining.",
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
