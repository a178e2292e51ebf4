"""Plots over the budgets of each regime."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.plots.budget_panels import by_architecture, by_part
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_LABEL, SPLIT_PREFIX
from benchmark_eval.sweep.tables import Aggregated


def learning(table: Aggregated, metric: str) -> Figure:
    """Learning curves of one metric, by regime."""
    return by_architecture(table, [metric], BY_NAME[metric].label)


def generalization_gaps(table: Aggregated) -> Figure:
    """The gaps from in-distribution images to field photographs and to unseen species."""
    return by_architecture(
        table,
        ["photography_robustness_gap_AP_50_shared_species", "species_generalization_gap_AR_100"],
        "Gaps from in-distribution images to field photographs and to unseen species",
    )


def decomposition(table: Aggregated, split: str) -> Figure:
    """Detection recall, species accuracy given detection, and their product."""
    prefix = SPLIT_PREFIX[split]
    return by_part(
        table,
        [
            (f"{prefix}_detection_recall", "detection recall"),
            (f"{prefix}_classification_given_detection_acc", "correctly identified, of detected"),
            (f"{prefix}_species_recall", "both (species recall)"),
        ],
        f"Detection and identification, {SPLIT_LABEL[split]}",
        "fraction",
    )


def tiers(table: Aggregated) -> Figure:
    """AP of species with many, medium and few training images."""
    return by_part(
        table,
        [
            ("iid_head_AP_50", "head (quarter of species with the most images)"),
            ("iid_medium_AP_50", "medium (middle half)"),
            ("iid_tail_AP_50", "tail (quarter with the fewest images)"),
        ],
        "AP@.5 of species with many and few training images, in-distribution",
        "AP@.5",
    )


def tier_gap(table: Aggregated) -> Figure:
    """The gap between head and tail species."""
    return by_architecture(
        table,
        ["iid_head_minus_tail_AP_50"],
        "Head minus tail AP@.5, in-distribution (0: no difference between common and rare species)",
    )


def bands(table: Aggregated) -> Figure:
    """Recall on unseen species by their distance from the training species."""
    return by_part(
        table,
        [(f"ood_{band}_AR_100", label) for band, label in BAND_LABEL.items()],
        "Recall on unseen species by taxonomic distance",
        "class-agnostic AR@100",
    )


def band_agreement(table: Aggregated) -> Figure:
    """Genus and tribe agreement on unseen species, where the model knows the genus or tribe."""
    return by_part(
        table,
        [
            ("ood_near_genus_correct_genus", "correct genus, near species"),
            ("ood_near_genus_correct_tribe", "correct tribe, near species"),
            ("ood_mid_tribe_correct_tribe", "correct tribe, mid species"),
        ],
        "Taxonomic agreement on unseen species whose genus or tribe is in the training set",
        "fraction of\ntrue positives",
    )


def confidence(table: Aggregated) -> Figure:
    """Mean confidence on each split."""
    return by_part(
        table,
        [(f"{SPLIT_PREFIX[split]}_mean_confidence", SPLIT_LABEL[split]) for split in TEST_SPLITS],
        "Mean confidence of true and false positives",
        "mean confidence",
    )


def calibration_error(table: Aggregated) -> Figure:
    """Expected calibration error on each split."""
    return by_part(
        table,
        [(f"{SPLIT_PREFIX[split]}_ECE", SPLIT_LABEL[split]) for split in TEST_SPLITS],
        "Expected calibration error (mean distance between confidence and precision)",
        "ECE",
    )


def novelty(table: Aggregated) -> Figure:
    """How well low confidence separates unseen from trained species."""
    figure = by_architecture(
        table,
        ["novelty_det_AUROC"],
        "Novelty detection by low confidence: AUROC (dashed: 0.5, chance)",
        base=0.45,
    )
    for panel in figure.axes:
        panel.axhline(0.5, color="#555555", linewidth=1, linestyle=(0, (4, 3)), label="chance")
    return figure
