"""Plots over the budgets of each regime."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from benchmark_eval.report.looks import BAND_LOOK, QUANTITY_LOOK, TIER_LOOK
from benchmark_eval.report.plots.budget_panels import by_architecture, by_part
from benchmark_eval.report.plots.view import View
from benchmark_eval.results.registry import SPLIT_PREFIX


def learning(view: View, title: str, metric: str) -> Figure:
    """Learning curves of one metric, by regime."""
    return by_architecture(view, title, [metric])


def generalization_gaps(view: View, title: str) -> Figure:
    """The gaps from in-distribution images to field photographs and to unseen species."""
    return by_architecture(
        view,
        title,
        ["photography_robustness_gap_AP_50_shared_species", "species_generalization_gap_AR_100"],
    )


def decomposition(view: View, title: str, split: str) -> Figure:
    """Detection recall, species accuracy given detection, and their product."""
    prefix = SPLIT_PREFIX[split]
    keys = {
        "recall": "detection_recall",
        "accuracy": "classification_given_detection_acc",
        "species_recall": "species_recall",
    }
    parts = [(f"{prefix}_{key}", QUANTITY_LOOK[name]) for name, key in keys.items()]
    return by_part(view, title, parts, "fraction")


def tiers(view: View, title: str) -> Figure:
    """AP of species with many, medium and few training images."""
    parts = [(f"iid_{tier}_AP_50", look) for tier, look in TIER_LOOK.items()]
    return by_part(view, title, parts, "AP@.5")


def bands(view: View, title: str) -> Figure:
    """Recall on unseen species by their distance from the training species."""
    parts = [(f"ood_{band}_AR_100", look) for band, look in BAND_LOOK.items()]
    return by_part(view, title, parts, "AR@100")


def band_agreement(view: View, title: str) -> Figure:
    """Genus and tribe agreement on unseen species, where the model knows the genus or tribe."""
    near, mid = BAND_LOOK["near_genus"], BAND_LOOK["mid_tribe"]
    parts = [
        ("ood_near_genus_correct_genus", replace(near, label="correct genus, near species")),
        (
            "ood_near_genus_correct_tribe",
            replace(near, label="correct tribe, near species", marker="D", dash=":"),
        ),
        ("ood_mid_tribe_correct_tribe", replace(mid, label="correct tribe, mid species")),
    ]
    return by_part(view, title, parts, "fraction of\ntrue positives")


def novelty(view: View, title: str) -> Figure:
    """How well low confidence separates unseen from trained species."""
    figure = by_architecture(view, title, ["novelty_det_AUROC", "novelty_det_FPR@95TPR"], base=0.45)
    for at, panel in enumerate(figure.axes):
        chance = 0.5 if at < len(view.regimes) else 0.95
        panel.axhline(chance, color="#555555", linewidth=0.7, linestyle=(0, (4, 3)), label="chance")
    return figure
