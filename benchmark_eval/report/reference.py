"""What the benchmark's card reports for its own five detectors, to stand beside our numbers.

Ranges over five architectures trained on all training data, mean of three seeds each, on the
real benchmark, version 2.0.1. Only metrics that are defined as ours are listed.
"""

from __future__ import annotations

CARD = (
    "what the card of the real benchmark (v2.0.1) reports for five architectures trained on "
    "all its training data, mean of three seeds each"
)
CARD_RANGES: dict[str, tuple[float, float]] = {
    "iid_AP_50": (0.504, 0.558),
    "iid_detection_recall": (0.926, 0.936),
    "iid_classification_given_detection_acc": (0.581, 0.626),
    "iid_species_recall": (0.538, 0.586),
    "ood_detection_recall": (0.797, 0.810),
    "inat_detection_recall": (0.192, 0.450),
    "novelty_det_AUROC": (0.539, 0.705),
    "novelty_det_FPR@95TPR": (0.638, 0.914),
}
"""(lowest, highest) by the name of a curve metric."""
CARD_IOU = 0.5
"""The IoU at which the card's numbers other than AP were measured."""
