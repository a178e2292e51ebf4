"""Results on the benchmark's card, to compare with those of a sweep.

Ranges over five architectures trained on all training data of the real benchmark, version 2.0.1,
each a mean over three seeds. Only metrics with the same definition are listed.
"""

from __future__ import annotations

CARD = (
    "range over five architectures on the card of the real benchmark (v2.0.1), trained on all its "
    "training data, each a mean over three seeds"
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
"""(lowest, highest) by name of a curve metric."""
CARD_IOU = 0.5
"""The IoU at which the card's numbers other than AP were measured."""
