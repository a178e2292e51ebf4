"""Detection and identification with out-of-vocabulary detections, which all else leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.predictions import Predictions
from benchmark_eval.scoring.detections import order_detections
from benchmark_eval.scoring.matching import localise
from benchmark_eval.scoring.pairs import find_matching_pairs
from benchmark_eval.scoring.split_data import SplitData, agreement


@dataclass(frozen=True, slots=True)
class OpenVocabulary:
    """The true positives with nothing left out, one row each.

    ``true`` is the true species (row of ``Categories``), ``right`` whether the prediction names it,
    ``score`` the confidence.
    """

    true: Ints
    right: Bools
    score: Floats


def open_vocabulary(data: SplitData, predictions: Predictions) -> OpenVocabulary:
    """Localisation matching that also counts out-of-vocabulary detections.

    Parameters
    ----------
    data : SplitData
        One model on one split, without out-of-vocabulary detections.
    predictions : Predictions
        The predictions of the split; ``out_of_vocabulary`` holds the detections of species that
        the split does not list.

    Returns
    -------
    OpenVocabulary

    Notes
    -----
    Ours. The benchmark's evaluator drops out-of-vocabulary detections before matching. On a
    split that lists few species, a beetle detected as another species then counts as missed, or a
    detection with a lower score and the right name takes its place, which makes identification
    look better than it is. Here the same matching runs on all detections, in file order
    on equal scores.
    """
    detections, local = data.detections, data.local
    if predictions.n_out_of_vocabulary:
        everything = predictions.with_out_of_vocabulary()
        detections = order_detections(everything, len(data.categories.ids))
        pairs = find_matching_pairs(detections, data.truth, local.iou)
        local = localise(detections, data.truth, pairs, local.iou)
    hits = local.true_positive
    true = data.truth.category[local.matched_truth]
    right = agreement(data.categories, detections.category[hits], true).species
    return OpenVocabulary(true, right, detections.score[hits])
