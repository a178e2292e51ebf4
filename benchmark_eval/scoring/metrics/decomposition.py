"""Detection versus identification: fractions of specimens missed and misidentified."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.numbers import difference, mean, ratio, share
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.results.schema import Decomposition
from benchmark_eval.scoring.metrics.open_vocabulary import OpenVocabulary
from benchmark_eval.scoring.split_data import SplitData

RATIO_NOTE = (
    "class-agnostic AP is no upper bound of joint AP (duplicate detections as other species lower "
    "it), so this ratio can be negative; use classification_loss"
)


def decomposition(
    data: SplitData,
    open_vocabulary: OpenVocabulary,
    joint_ap_50: float | None,
    detection_only_ap_50: float | None,
) -> Decomposition:
    """Detection recall, accuracy given detection, their products and the loss at each step.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    open_vocabulary : OpenVocabulary
        The true positives of the same matching with nothing left out.
    joint_ap_50, detection_only_ap_50 : float or None
        AP at IoU 0.50 of the COCO suite and of the class-agnostic suite.

    Returns
    -------
    Decomposition
        Recalls are None without scored specimens, accuracies None without true positives.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1, and its README; ``localisation_loss``,
    ``mean_confidence_matched``, ``median_iou_matched`` and ``*_open_vocabulary`` are ours. From the
    localisation matching: detection_recall = n_matched_tp / n_gt; accuracies are fractions of the
    true positives, <rank>_recall fractions of the specimens. localisation_loss = 1 -
    detection_recall (missed), classification_loss = detection_recall - species_recall
    (misidentified), classification_loss_ratio = 1 - joint_AP_50 / detection_only_AP_50, not
    clamped.
    """
    n_gt, n_tp = data.truth.n_scored, len(data.local.true_positive)
    species, genus, tribe = (
        int(correct.sum())
        for correct in (data.agreement.species, data.agreement.genus, data.agreement.tribe)
    )
    recall, species_recall = share(n_tp, n_gt), share(species, n_gt)
    n_open, right_open = len(open_vocabulary.true), int(open_vocabulary.right.sum())
    loss_ratio = ratio(joint_ap_50, detection_only_ap_50)
    return Decomposition(
        n_gt=n_gt,
        n_matched_tp=n_tp,
        detection_recall=recall,
        detection_recall_open_vocabulary=share(n_open, n_gt),
        classification_given_detection_acc_open_vocabulary=share(right_open, n_open),
        species_recall_open_vocabulary=share(right_open, n_gt),
        classification_given_detection_acc=share(species, n_tp),
        acc_genus_given_det=share(genus, n_tp),
        acc_tribe_given_det=share(tribe, n_tp),
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
        median_iou_matched=float(np.median(data.local.matched_iou)) if n_tp else None,
        is_species_meaningful=data.truth.name in SPECIES_SPLITS,
    )
