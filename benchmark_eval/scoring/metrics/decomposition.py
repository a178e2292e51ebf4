"""Finding against naming: what share of specimens is lost to which."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.numbers import difference, mean, ratio, share
from benchmark_eval.inputs.predictions import Predictions
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.results.schema import Decomposition
from benchmark_eval.scoring.detections import order_detections
from benchmark_eval.scoring.matching import localise
from benchmark_eval.scoring.pairs import find_pairs
from benchmark_eval.scoring.split_data import SplitData

RATIO_NOTE = (
    "class-agnostic AP is no upper bound of joint AP (duplicates under other names lower it), "
    "so this ratio can be negative; read classification_loss"
)


def open_vocabulary_recall(data: SplitData, predictions: Predictions) -> float | None:
    """Detection recall with every box, those of categories that the split does not list too.

    The benchmark's evaluator leaves the latter out before it looks for hits. On a split of few
    listed species a beetle that was found under another name then counts as not found; this
    number tells the two apart (ours).
    """
    if not predictions.n_out_of_vocabulary:
        return share(len(data.local.true_positive), data.truth.n_scored)
    detections = order_detections(predictions.with_out_of_vocabulary(), len(data.categories.ids))
    pairs = find_pairs(detections, data.truth, data.local.iou)
    found = localise(detections, data.truth, pairs, data.local.iou)
    return share(len(found.true_positive), data.truth.n_scored)


def decomposition(
    data: SplitData,
    predictions: Predictions,
    joint_ap_50: float | None,
    detection_only_ap_50: float | None,
) -> Decomposition:
    """Detection recall, accuracy given detection and their products (benchmark evaluator).

    From the localisation matching; recalls are None without scored specimens, accuracies
    without hits. The two APs are those of the COCO suites, class-aware and class-agnostic.
    """
    n_gt, n_hits = data.truth.n_scored, len(data.local.true_positive)
    species, genus, tribe = (
        int(right.sum())
        for right in (data.agreement.species, data.agreement.genus, data.agreement.tribe)
    )
    recall, species_recall = share(n_hits, n_gt), share(species, n_gt)
    loss_ratio = ratio(joint_ap_50, detection_only_ap_50)
    return Decomposition(
        n_gt=n_gt,
        n_matched_tp=n_hits,
        detection_recall=recall,
        detection_recall_open_vocabulary=open_vocabulary_recall(data, predictions),
        classification_given_detection_acc=share(species, n_hits),
        acc_genus_given_det=share(genus, n_hits),
        acc_tribe_given_det=share(tribe, n_hits),
        species_recall=species_recall,
        genus_recall=share(genus, n_gt),
        tribe_recall=share(tribe, n_gt),
        localisation_loss=difference(1.0, recall),
        classification_loss=difference(recall, species_recall),
        joint_AP_50=joint_ap_50,
        detection_only_AP_50=detection_only_ap_50,
        classification_loss_ratio=difference(1.0, loss_ratio),
        classification_loss_ratio_note=RATIO_NOTE,
        mean_confidence_matched=mean(data.detections.score[data.local.true_positive]),
        median_iou_matched=float(np.median(data.local.matched_iou)) if n_hits else None,
        is_species_meaningful=data.truth.name in SPECIES_SPLITS,
    )
