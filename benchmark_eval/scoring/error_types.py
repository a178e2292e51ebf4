"""What is wrong with each detection: the error types of TIDE, twice.

``error_types`` follows the localisation matching, which ignores species, so its counts add up with
all other counts of the evaluation. ``class_aware_errors`` follows the matching behind AP@.5, which
is that of TIDE (Bolya et al. 2020), because only there a repaired error changes AP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.scoring.coco import CAPS, MATCH_THRESHOLDS, Suite
from benchmark_eval.scoring.matching import Match
from benchmark_eval.scoring.overlaps import Best, Overlaps, find_overlaps
from benchmark_eval.scoring.split_data import SplitData, agreement

Types = NDArray[np.int8]

BACKGROUND_IOU = 0.1
"""Below this IoU with every specimen a detection is on the background, as in TIDE."""
AP_IOU = float(MATCH_THRESHOLDS[0])
RECALL_POINTS: Floats = np.arange(101) / 100
"""Those of tidecv; ``numpy.linspace``, which pycocotools uses, differs in the last bit."""

(
    CORRECT,
    WRONG_CONGENER,
    WRONG_TRIBE,
    WRONG_OTHER,
    POOR_BOX,
    BOTH,
    DUPLICATE,
    BACKGROUND,
    MISSED,
) = range(len(ERROR_TYPES))
NO_TYPE = -1
"""Detections on crowd regions."""
WRONG_NAMES = (WRONG_CONGENER, WRONG_TRIBE, WRONG_OTHER)


def is_class_agnostic(split: str) -> bool:
    """Whether the error types of a split ignore species: no detection can name an unseen one."""
    return split == "semantic_ood"


def split_overlaps(data: SplitData) -> Overlaps:
    """The overlaps that both kinds of error types need, from IoU 0.1.

    On semantic_ood every specimen counts as of the same species, and detections that overlap a
    specimen well are taken from the pairs of the split, which is much faster.
    """
    pairs, detections, truth = data.pairs, data.detections, data.truth
    if not is_class_agnostic(truth.name):
        return find_overlaps(
            detections,
            truth,
            np.arange(len(detections)),
            BACKGROUND_IOU,
            data.categories.name_code[detections.category].astype(np.int64),
            data.categories.name_code[truth.category].astype(np.int64),
        )
    well = np.zeros(len(detections), np.bool_)
    scored = ~pairs.crowd
    well[pairs.detection[scored]] = True
    found = find_overlaps(
        detections,
        truth,
        np.flatnonzero(~well),
        BACKGROUND_IOU,
        np.zeros(len(detections), np.int64),
        np.zeros(len(truth.image), np.int64),
    )
    found.same.update(pairs.detection[scored], pairs.truth[scored], pairs.iou[scored])
    return found


@dataclass(frozen=True, slots=True)
class ErrorTypes:
    """The error type of each detection, by the localisation matching.

    Attributes
    ----------
    of_detection : (n_detections,) int
        Index into ``ERROR_TYPES``; ``NO_TYPE`` on crowd regions.
    near_crowd : (n_detections,) bool
        Whether a detection on the background has an IoU from 0.1 with a crowd region.
    missed : (n_missed,) int
        Rows of the scored annotations without a match.
    nearest : Best
        The scored specimen that each detection overlaps most, from IoU 0.1.
    """

    of_detection: Types
    near_crowd: Bools
    missed: Ints
    nearest: Best


def error_types(data: SplitData, overlaps: Overlaps) -> ErrorTypes:
    """Assign one type to every detection that is not on a crowd region.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    overlaps : Overlaps
        From ``split_overlaps``.

    Returns
    -------
    ErrorTypes

    Notes
    -----
    Ours, after TIDE (Bolya et al. 2020, ECCV). True positives of the localisation matching are
    correct or have a wrong name. An unmatched detection is, in this order: ignored, with IoU >=
    ``iou`` with a crowd region; a duplicate, with IoU >= ``iou`` with a specimen, which another
    detection then has matched; a poor box, with 0.1 <= IoU < ``iou`` with a specimen of its
    species; both (wrong name and poor box), the same with one of another species; otherwise on the
    background. On semantic_ood species is ignored: there are neither wrong names nor "both".
    """
    detections, truth, local = data.detections, data.truth, data.local
    kind = np.full(len(detections), BACKGROUND, np.int8)
    kind[overlaps.other.iou >= BACKGROUND_IOU] = BOTH
    kind[overlaps.same.iou >= BACKGROUND_IOU] = POOR_BOX
    near_crowd = (kind == BACKGROUND) & (overlaps.crowd.iou >= BACKGROUND_IOU)
    well = ~data.pairs.crowd & (data.pairs.iou >= local.iou)
    kind[data.pairs.detection[well]] = DUPLICATE
    evaluated = np.zeros(len(detections), np.bool_)
    evaluated[local.evaluated] = True
    kind[~evaluated] = NO_TYPE
    near_crowd &= kind == BACKGROUND
    if is_class_agnostic(truth.name):
        kind[local.true_positive] = CORRECT
    else:
        kind[local.true_positive] = _names(data, data.pred_category, data.gt_category)
    found = truth.crowd.copy()
    found[local.matched_truth] = True
    same_is_best = overlaps.same.iou >= overlaps.other.iou
    nearest = Best(
        np.where(same_is_best, overlaps.same.iou, overlaps.other.iou),
        np.where(same_is_best, overlaps.same.truth, overlaps.other.truth),
    )
    return ErrorTypes(kind, near_crowd, np.flatnonzero(~found), nearest)


def _names(data: SplitData, predicted: Ints, true: Ints) -> Types:
    """Correct or the kind of wrong name, of predicted and true rows of ``Categories``."""
    agree = agreement(data.categories, predicted, true)
    kind = np.full(len(predicted), WRONG_OTHER, np.int8)
    kind[agree.tribe] = WRONG_TRIBE
    kind[agree.genus] = WRONG_CONGENER
    kind[agree.species] = CORRECT
    return kind


@dataclass(frozen=True, slots=True)
class ClassAwareErrors:
    """Counts of the error types by TIDE's definitions, and what repairing each adds to AP@.5.

    Both are (len(ERROR_TYPES),); ``gain`` is NaN if AP@.5 is undefined, and for ``correct``;
    ``wrong_name_gain`` is that of all three kinds of wrong names together.
    """

    count: Ints
    gain: Floats
    wrong_name_gain: float


def class_aware_errors(
    data: SplitData, overlaps: Overlaps, suite: Suite, match: Match
) -> ClassAwareErrors:
    """Error types behind AP@.5, and the AP@.5 gained if all errors of one type are repaired.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    overlaps : Overlaps
        From ``split_overlaps``.
    suite, match : Suite, Match
        Suite by species (on semantic_ood the class-agnostic one) and its COCO matching.

    Returns
    -------
    ClassAwareErrors

    Notes
    -----
    Source: TIDE (Bolya et al. 2020, ECCV) as implemented in tidecv 1.0.1: the order of the types,
    at most one repair per specimen (the best-scoring wrong name or poor box on it), all other
    errors of the type removed, missed specimens removed from the ground truth, gains below zero
    set to zero. Deviations: the matching, ignored detections and the cap of 100 are those of COCO
    (the last of several specimens with equal IoU, 100 per image and species); the mean is over
    species with scored specimens; unmatched detections with an IoU >= 0.5 with a crowd region are
    false positives in AP as COCO counts them, but have no type; tied scores keep their order.
    """
    detections, truth = data.detections, data.truth
    within = (suite.label >= 0) & (suite.rank < CAPS[-1])
    scored = ~truth.crowd & (suite.truth_label >= 0)
    matched = match.gt_matches[0, 0].astype(np.int64)
    used = scored & (matched >= 0)
    used[used] = within[matched[used]]
    is_tp = np.zeros(len(detections), np.bool_)
    is_tp[matched[used]] = True
    on_crowd, ignored = _on_crowd(data, suite, is_tp)
    counted = within & ~ignored
    kind = _tide_types(overlaps, counted & ~is_tp & ~on_crowd)
    wrong = np.flatnonzero(kind == WRONG_OTHER)
    kind[wrong] = _names(
        data, detections.category[wrong], truth.category[overlaps.other.truth[wrong]]
    )
    winner, usable = _repairs(data, overlaps, kind, used)
    missed = scored & ~used & ~usable
    count = np.bincount(kind[kind >= 0], minlength=len(ERROR_TYPES))
    count[CORRECT], count[MISSED] = int(used.sum()), int(missed.sum())

    order = detections.best_first[counted[detections.best_first]]
    positives = np.bincount(suite.truth_label[scored], minlength=suite.n_labels)
    ap = _MeanAP(positives > 0, order)
    before = ap.of(suite.label, is_tp, counted, positives)
    target = np.full(len(detections), -1, np.int64)  # the specimen that a repair would match
    target[winner[winner >= 0]] = np.flatnonzero(winner >= 0)

    def gain(types: tuple[int, ...]) -> float:
        """AP@.5 with all errors of these types repaired, minus AP@.5."""
        of_type = np.zeros(len(ERROR_TYPES) + 1, np.bool_)  # the last entry is NO_TYPE
        of_type[list(types)] = True
        repaired = of_type[kind]
        fixed = repaired & (target >= 0)
        label = suite.label.copy()
        label[fixed] = suite.truth_label[target[fixed]]
        after = ap.of(label, is_tp | fixed, counted & (~repaired | fixed), positives)
        return max(after - before, 0.0)

    gains = np.full(len(ERROR_TYPES), np.nan)
    together = math.nan
    if positives.any():
        for one in range(WRONG_CONGENER, MISSED):
            gains[one] = gain((one,)) if count[one] else 0.0
        together = gain(WRONG_NAMES) if count[list(WRONG_NAMES)].any() else 0.0
        left = positives - np.bincount(suite.truth_label[missed], minlength=suite.n_labels)
        after = ap.of(suite.label, is_tp, counted, left)
        gains[MISSED] = max(after - before, 0.0) if count[MISSED] else 0.0
    return ClassAwareErrors(count, gains, together)


def _on_crowd(data: SplitData, suite: Suite, is_tp: Bools) -> tuple[Bools, Bools]:
    """Unmatched detections with IoU >= 0.5 with a crowd region, and those that COCO ignores."""
    pairs = data.pairs.subset(data.pairs.crowd)
    on_crowd, ignored = (np.zeros(len(is_tp), np.bool_) for _ in range(2))
    on_crowd[pairs.detection[pairs.iou >= AP_IOU]] = True
    same = suite.label[pairs.detection] == suite.truth_label[pairs.truth]
    ignored[pairs.detection[same & (pairs.overlap >= AP_IOU)]] = True
    on_crowd[data.local.true_positive] = False
    return on_crowd & ~is_tp, ignored & ~is_tp


def _tide_types(overlaps: Overlaps, of: Bools) -> Types:
    """TIDE's type of the unmatched detections ``of``; wrong names are not told apart yet."""
    same, other = overlaps.same.iou, overlaps.other.iou
    kind = np.full(len(of), BOTH, np.int8)
    kind[np.maximum(same, other) <= BACKGROUND_IOU] = BACKGROUND
    kind[same > AP_IOU] = DUPLICATE
    kind[other >= AP_IOU] = WRONG_OTHER
    kind[(same >= BACKGROUND_IOU) & (same <= AP_IOU)] = POOR_BOX
    kind[~of] = NO_TYPE
    return kind


def _repairs(data: SplitData, overlaps: Overlaps, kind: Types, used: Bools) -> tuple[Ints, Bools]:
    """The detection whose repair would match each specimen (-1: none), and whether there is one."""
    detections = data.detections
    wrong = np.isin(kind, WRONG_NAMES)
    of = np.flatnonzero(wrong | (kind == POOR_BOX))
    specimen = np.where(wrong[of], overlaps.other.truth[of], overlaps.same.truth[of])
    free = ~used[specimen]
    of, specimen = of[free], specimen[free]
    order = np.argsort(detections.rank[of], kind="stable")[::-1]
    winner = np.full(len(used), -1, np.int64)
    winner[specimen[order]] = of[order]  # the last assignment, of the best rank, counts
    return winner, winner >= 0


class _MeanAP:
    """AP@.5, mean over the labels ``defined``, of detections that may change their label."""

    def __init__(self, defined: Bools, order: Ints) -> None:
        self.defined = defined
        self.order = order

    def of(self, label: Ints, is_tp: Bools, kept: Bools, positives: Ints) -> float:
        """The mean for these labels, true positives and numbers of specimens.

        As in tidecv, a label without specimens (which a repair can cause) has AP 0 if it has
        detections, and does not count otherwise.
        """
        rows = self.order[kept[self.order]]
        if len(self.defined) > 1:
            rows = rows[np.argsort(label[rows], kind="stable")]
        label, is_tp = label[rows], is_tp[rows]
        first = np.searchsorted(label, np.arange(len(self.defined) + 1))
        true = np.flatnonzero(is_tp)
        bounds = np.searchsorted(true, first)
        values = []
        for at in np.flatnonzero(self.defined).tolist():
            n = int(positives[at])
            if n:
                places = true[bounds[at] : bounds[at + 1]] - first[at]
                values.append(_average_precision(places, n))
            elif first[at + 1] > first[at]:
                values.append(0.0)
        return math.fsum(values) / len(values) if values else 0.0


def _average_precision(places: Ints, n_positive: int) -> float:
    """Mean precision at 101 recalls; ``places`` are the 0-based ranks of the true positives."""
    if not len(places):
        return 0.0
    number = np.arange(1, len(places) + 1)
    precision = np.maximum.accumulate((number / (places + 1))[::-1])[::-1]
    at = np.searchsorted(number / n_positive, RECALL_POINTS, side="left")
    return math.fsum(precision[at[at < len(places)]].tolist()) / len(RECALL_POINTS)
