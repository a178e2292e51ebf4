"""Values that no model can change, because of how the benchmark is built.

Unseen species have no correct name, and target species have no training images at k = 0. Tables
name such values in a column ``by_construction``.
"""

from __future__ import annotations

from collections.abc import Sequence

FIXED_CURVES = frozenset(
    {
        "ood_joint_AP_50",
        "ood_classification_given_detection_acc",
        "ood_classification_loss_ratio",
        "ood_species_recall",
        "ood_mid_tribe_correct_genus",
        "ood_far_tribe_correct_genus",
        "ood_far_tribe_correct_tribe",
    }
)
"""Curve metrics that are constant."""
COPIED_CURVES = frozenset(
    {"ood_classification_loss", "ood_band_gap_correct_genus", "ood_band_gap_correct_tribe"}
)
"""Curve metrics that equal another one: all detected specimens of unseen species are misidentified,
and band gaps of genus and tribe are the near band's own values, because those of far are 0."""
CURVES = FIXED_CURVES | COPIED_CURVES
_NAMES = frozenset({"classification_given_detection_acc", "species_recall"})
_TARGETS = ("AP_50", "AP_50_95", "target_AP_50", "target_AP_50_95")


def fixed_on(split: str, names: Sequence[str]) -> list[str]:
    """Those of the metrics of a density stratum or a confidence threshold that are fixed."""
    if split != "semantic_ood":
        return []
    return [name for name in names if name.removeprefix("image_mean_") in _NAMES]


def fixed_at(k: str, names: Sequence[str]) -> list[str]:
    """Those of the metrics of target species that are fixed with k images of each."""
    return [name for name in names if name in _TARGETS] if k == "0" else []
