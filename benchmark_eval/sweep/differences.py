"""Differences between two numbers of the same model.

Both come from one training run and mostly vary together, so the interval of their difference over
seeds is more informative than their two intervals.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmark_eval.core.numbers import difference
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.results.registry import SPLIT_PREFIX
from benchmark_eval.sweep.summaries import STRATUM_METRICS, ModelResult

CLASSIFICATION_MINUS_LOCALISATION = {
    split: f"{SPLIT_PREFIX[split]}_classification_minus_localisation_loss"
    for split in SPECIES_SPLITS
}
"""Misidentified minus missed specimens, by split: above 0, identification is the bottleneck."""
RECALL_1_MINUS_OVER_10 = "ood_image_mean_recall_1_minus_over_10"
"""Recall on images with one unseen specimen minus that on images with more than ten (means over
images)."""
NEAR_TARGETS = "iid_target_near_minus_far_AP_50"
"""AP@.5 of near target species minus that of far ones, in distribution."""
DIFFERENCES = (*CLASSIFICATION_MINUS_LOCALISATION.values(), RECALL_1_MINUS_OVER_10, NEAR_TARGETS)
"""The names in differences.csv, in its order. Other differences are curve metrics."""


def differences(model: ModelResult, targets: Mapping[str, float | None]) -> dict[str, float | None]:
    """The differences of one model; ``targets`` are its ``target_means``, empty without them."""
    values, at = model.values, STRATUM_METRICS.index("image_mean_recall")

    def recall(stratum: str) -> float | None:
        cells = model.density.get(("semantic_ood", "", stratum))
        return cells[at] if cells else None

    return {
        **{
            name: difference(
                values[f"{SPLIT_PREFIX[split]}_classification_loss"],
                values[f"{SPLIT_PREFIX[split]}_localisation_loss"],
            )
            for split, name in CLASSIFICATION_MINUS_LOCALISATION.items()
        },
        RECALL_1_MINUS_OVER_10: difference(recall("1"), recall(">10")),
        NEAR_TARGETS: difference(
            targets.get("iid_test/near_genus/AP_50"), targets.get("iid_test/far_tribe/AP_50")
        ),
    }
