"""Plots over the budgets of each regime."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.plots.budget_panels import by_architecture, by_part
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_LABEL, SPLIT_PREFIX
from benchmark_eval.sweep.tables import Aggregated


def learning(table: Aggregated, metric: str) -> Figure:
    """A learning curve per regime of one metric."""
    return by_architecture(table, [metric], BY_NAME[metric].label)


def generalization_gaps(table: Aggregated) -> Figure:
    """What is lost from curated photographs to field photographs and to unseen species."""
    return by_architecture(
        table,
        ["photography_robustness_gap_AP_50_shared_species", "species_generalization_gap_AR_100"],
        "What is lost away from the training distribution",
    )


def decomposition(table: Aggregated, split: str) -> Figure:
    """Finding, naming what was found, and both."""
    prefix = SPLIT_PREFIX[split]
    return by_part(
        table,
        [
            (f"{prefix}_detection_recall", "found (detection recall)"),
            (f"{prefix}_classification_given_detection_acc", "named right, of those found"),
            (f"{prefix}_species_recall", "both (the product)"),
        ],
        f"Finding and naming, {SPLIT_LABEL[split]}",
        "share",
    )


def tiers(table: Aggregated) -> Figure:
    """AP of species rich, middling and poor in training images."""
    return by_part(
        table,
        [
            ("iid_head_AP_50", "head: richest quarter of species"),
            ("iid_medium_AP_50", "medium: middle half"),
            ("iid_tail_AP_50", "tail: poorest quarter"),
        ],
        "AP@.5 of species rich and poor in training images, in-distribution",
        "AP@.5",
    )


def tier_gap(table: Aggregated) -> Figure:
    """The gap between head and tail species."""
    return by_architecture(
        table,
        ["iid_head_minus_tail_AP_50"],
        "Head minus tail AP@.5, in-distribution: 0 serves rare species as well as common ones",
    )


def bands(table: Aggregated) -> Figure:
    """Finding unseen species by their distance from the training species."""
    return by_part(
        table,
        [(f"ood_{band}_AR_100", label) for band, label in BAND_LABEL.items()],
        "Finding unseen species by taxonomic distance",
        "class-agnostic AR@100",
    )


def band_agreement(table: Aggregated) -> Figure:
    """How near the names given to unseen species come, where the right group is known."""
    return by_part(
        table,
        [
            ("ood_near_genus_correct_genus", "right genus, near species"),
            ("ood_near_genus_correct_tribe", "right tribe, near species"),
            ("ood_mid_tribe_correct_tribe", "right tribe, mid species"),
        ],
        "Naming unseen species: right genus or tribe, where the model has seen it",
        "share of hits",
    )


def confidence(table: Aggregated) -> Figure:
    """Mean confidence on each split."""
    return by_part(
        table,
        [(f"{SPLIT_PREFIX[split]}_mean_confidence", SPLIT_LABEL[split]) for split in TEST_SPLITS],
        "Mean confidence of hits and false positives",
        "mean confidence",
    )


def calibration_error(table: Aggregated) -> Figure:
    """Expected calibration error on each split."""
    return by_part(
        table,
        [(f"{SPLIT_PREFIX[split]}_ECE", SPLIT_LABEL[split]) for split in TEST_SPLITS],
        "Expected calibration error: distance of confidence from the share of hits",
        "ECE",
    )


def novelty(table: Aggregated) -> Figure:
    """Whether confidence tells unseen species from known ones."""
    figure = by_architecture(
        table,
        ["novelty_det_AUROC"],
        "Telling unseen species by low confidence: AUROC (0.5 is chance)",
        base=0.45,
    )
    for panel in figure.axes:
        panel.axhline(0.5, color="#555555", linewidth=1, linestyle=(0, (4, 3)), label="chance")
    return figure
