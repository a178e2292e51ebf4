"""What is wrong with each detection: the error types of TIDE, twice.

``error_types`` follows the localisation matching, which ignores species, so its counts add up with
all other counts of the evaluation. ``class_aware_errors`` follows the matching behind AP@.5, which
is that of TIDE (Bolya et al. 2020), because only there a repaired error changes AP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints
from benchmark_eval.results.evidence import UNDEFINED
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.scoring.coco import CAPS, MATCH_THRESHOLDS, Suite
from benchmark_eval.scoring.matching import Match, localise
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
        None,
        None,
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
    n_near_crowd : int
        Number of detections on the background that have an IoU from 0.1 with a crowd region.
    missed : (n_missed,) int
        Rows of the scored annotations without a match.
    """

    of_detection: Types
    n_near_crowd: int
    missed: Ints


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
    if overlaps.other is not None:
        kind[overlaps.other.iou >= BACKGROUND_IOU] = BOTH
    kind[overlaps.same.iou >= BACKGROUND_IOU] = POOR_BOX
    well = ~data.pairs.crowd & (data.pairs.iou >= local.iou)
    kind[data.pairs.detection[well]] = DUPLICATE
    if len(local.evaluated) < len(detections):
        evaluated = np.zeros(len(detections), np.bool_)
        evaluated[local.evaluated] = True
        kind[~evaluated] = NO_TYPE
    n_near_crowd = 0
    if overlaps.crowd is not None:
        near_crowd = (kind == BACKGROUND) & (overlaps.crowd.iou >= BACKGROUND_IOU)
        n_near_crowd = int(np.count_nonzero(near_crowd))
    if is_class_agnostic(truth.name):
        kind[local.true_positive] = CORRECT
    else:
        kind[local.true_positive] = _names(data, data.pred_category, data.gt_category)
    found = truth.crowd.copy()
    found[local.matched_truth] = True
    return ErrorTypes(kind, n_near_crowd, np.flatnonzero(~found))


def count_types(
    data: SplitData, types: ErrorTypes, of_image: Ints, threshold: float | None
) -> Codes:
    """Error types by species, in all and at and above a threshold.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    types : ErrorTypes
        The type of each detection.
    of_image : (n_images,) int
        Species of each image, for false positives; the number of categories stands for none.
    threshold : float or None
        Detections with a score >= it are kept. The localisation matching serves every threshold.

    Returns
    -------
    (2, n_categories + 1, len(ERROR_TYPES)) int32
        True positives and missed specimens count for their true species. The second plane is
        ``UNDEFINED`` without a threshold.
    """
    k, n_types = len(data.categories.ids), len(ERROR_TYPES)
    detections, local = data.detections, data.local
    species = of_image[detections.image]
    species[local.true_positive] = data.gt_category
    # types start at NO_TYPE, which is -1
    key = species * (n_types + 1)
    key += types.of_detection
    key += 1
    n_scored = data.truth.scored_per_category(k)
    counts = np.full((2, k + 1, n_types), UNDEFINED, np.int32)
    for plane, at in enumerate((None, threshold)):
        if plane and at is None:
            continue
        keys, found = key, data.gt_category
        if at is not None:
            keys = key[detections.score >= at]
            found = found[detections.score[local.true_positive] >= at]
        table = np.bincount(keys, minlength=(k + 1) * (n_types + 1)).reshape(k + 1, n_types + 1)
        counts[plane] = table[:, 1:]
        counts[plane, :k, MISSED] = n_scored - np.bincount(found, minlength=k)
    return counts


def nearest_specimen(overlaps: Overlaps) -> Best:
    """The scored specimen that each detection overlaps most, from IoU 0.1."""
    same, other = overlaps.same, overlaps.other
    if other is None:
        return same
    same_is_best = same.iou >= other.iou
    return Best(
        np.where(same_is_best, same.iou, other.iou),
        np.where(same_is_best, same.truth, other.truth),
    )


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
    if overlaps.other is not None:
        wrong = np.flatnonzero(kind == WRONG_OTHER)
        true = truth.category[overlaps.other.truth[wrong]]
        kind[wrong] = _names(data, detections.category[wrong], true)
    winner, usable = _repairs(data, overlaps, kind, scored & ~used)
    missed = scored & ~used & ~usable
    count = np.bincount(kind[kind >= 0], minlength=len(ERROR_TYPES))
    count[CORRECT], count[MISSED] = int(used.sum()), int(missed.sum())

    gain, wrong_name_gain = _gains(
        data, suite, _Typed(counted, is_tp, kind, winner), scored, missed
    )
    return ClassAwareErrors(count, gain, wrong_name_gain)


class _Typed(NamedTuple):
    """Detections that count in AP, true positives, error types; the repair of each specimen."""

    counted: Bools
    is_tp: Bools
    kind: Types
    winner: Ints


def _gains(
    data: SplitData, suite: Suite, typed: _Typed, scored: Bools, missed: Bools
) -> tuple[Floats, float]:
    """AP@.5 gained by repairing each type, and all wrong names together."""
    detections = data.detections
    positives = np.bincount(suite.truth_label[scored], minlength=suite.n_labels)
    ap = _MeanAP(positives > 0)
    order = detections.best_first[typed.counted[detections.best_first]]
    if suite.n_labels > 1:
        order = order[np.argsort(suite.label[order], kind="stable")]
    # all columns from here on have one row per detection that counts in AP, in this order
    label, is_tp, kind = suite.label[order], typed.is_tp[order], typed.kind[order]
    target = np.full(len(detections), -1, np.int64)  # the specimen that a repair would match
    repairable = np.flatnonzero(typed.winner >= 0)
    target[typed.winner[repairable]] = repairable
    target = target[order]
    everything = np.ones(len(order), np.bool_)
    before = ap.of(label, is_tp, everything, positives)

    def gain(types: tuple[int, ...]) -> float:
        """AP@.5 with all errors of these types repaired, minus AP@.5."""
        of_type = np.zeros(len(ERROR_TYPES) + 1, np.bool_)  # the last entry is NO_TYPE
        of_type[list(types)] = True
        repaired = of_type[kind]
        fixed = repaired & (target >= 0)
        kept, hit = ~repaired | fixed, is_tp | fixed
        if types[0] not in WRONG_NAMES:
            return max(ap.of(label, hit, kept, positives) - before, 0.0)
        named = label.copy()
        named[fixed] = suite.truth_label[target[fixed]]
        rank = np.empty(len(detections), np.int64)
        rank[detections.best_first] = np.arange(len(detections))
        again = np.lexsort((rank[order], named))
        return max(ap.of(named[again], hit[again], kept[again], positives) - before, 0.0)

    gains = np.full(len(ERROR_TYPES), np.nan)
    together = math.nan
    if positives.any():
        for one in range(WRONG_CONGENER, MISSED):
            gains[one] = gain((one,)) if (kind == one).any() else 0.0
        together = gain(WRONG_NAMES) if np.isin(kind, WRONG_NAMES).any() else 0.0
        left = positives - np.bincount(suite.truth_label[missed], minlength=suite.n_labels)
        gains[MISSED] = max(ap.of(label, is_tp, everything, left) - before, 0.0)
    return gains, together


def _on_crowd(data: SplitData, suite: Suite, is_tp: Bools) -> tuple[Bools, Bools]:
    """Unmatched detections with IoU >= 0.5 with a crowd region, and those that COCO ignores."""
    pairs = data.pairs.subset(data.pairs.crowd)
    on_crowd, ignored = (np.zeros(len(is_tp), np.bool_) for _ in range(2))
    on_crowd[pairs.detection[pairs.iou >= AP_IOU]] = True
    same = suite.label[pairs.detection] == suite.truth_label[pairs.truth]
    ignored[pairs.detection[same & (pairs.overlap >= AP_IOU)]] = True
    local = data.local
    if local.iou != AP_IOU:
        local = localise(data.detections, data.truth, data.pairs, AP_IOU)
    on_crowd[local.true_positive] = False
    return on_crowd & ~is_tp, ignored & ~is_tp


def _tide_types(overlaps: Overlaps, of: Bools) -> Types:
    """TIDE's type of the unmatched detections ``of``; wrong names are not told apart yet."""
    same = overlaps.same.iou
    kind = np.full(len(of), BACKGROUND, np.int8)
    if overlaps.other is not None:
        other = overlaps.other.iou
        kind[np.maximum(same, other) > BACKGROUND_IOU] = BOTH
    kind[same > AP_IOU] = DUPLICATE
    if overlaps.other is not None:
        kind[other >= AP_IOU] = WRONG_OTHER
    kind[(same >= BACKGROUND_IOU) & (same <= AP_IOU)] = POOR_BOX
    kind[~of] = NO_TYPE
    return kind


def _repairs(data: SplitData, overlaps: Overlaps, kind: Types, free: Bools) -> tuple[Ints, Bools]:
    """The detection whose repair would match each specimen (-1: none), and whether there is one.

    ``free`` are the scored specimens without a match.
    """
    detections = data.detections
    of = np.flatnonzero(kind == POOR_BOX)
    specimen = overlaps.same.truth[of].astype(np.int64)
    if overlaps.other is not None:
        wrong = np.flatnonzero(np.isin(kind, WRONG_NAMES))
        of, specimen = np.r_[of, wrong], np.r_[specimen, overlaps.other.truth[wrong]]
    of, specimen = of[free[specimen]], specimen[free[specimen]]
    order = np.argsort(detections.rank[of], kind="stable")[::-1]
    winner = np.full(len(free), -1, np.int64)
    winner[specimen[order]] = of[order]  # the last assignment, of the best rank, counts
    return winner, winner >= 0


class _MeanAP:
    """AP@.5, mean over the labels ``defined``."""

    def __init__(self, defined: Bools) -> None:
        self.defined = np.flatnonzero(defined)
        self.n_labels = len(defined)

    def of(self, label: Ints, is_tp: Bools, kept: Bools, positives: Ints) -> float:
        """The mean for detections sorted by label, then descending score.

        As in tidecv, a label without specimens (which a repair can cause) has AP 0 if it has
        detections, and does not count otherwise.
        """
        before = np.zeros(len(label) + 1, np.int64)  # number of kept detections before each row
        np.cumsum(kept, out=before[1:])
        first = np.array([0, len(label)])
        if self.n_labels > 1:
            first = np.searchsorted(label, np.arange(self.n_labels + 1))
        true = np.flatnonzero(is_tp & kept)
        bounds = np.searchsorted(true, first)
        n_true = np.diff(bounds)
        first = before[first]
        number = np.arange(len(true)) - np.repeat(bounds[:-1], n_true) + 1
        place = before[true] - np.repeat(first[:-1], n_true) + 1
        # the precisions of each label in turn, with a zero for recalls that it does not reach
        begin = bounds[:-1] + np.arange(self.n_labels)
        precision = np.zeros(len(true) + self.n_labels)
        precision[np.repeat(begin, n_true) + number - 1] = number / place
        counts = self.defined[(positives[self.defined] > 0)]
        emptied = (positives == 0) & (np.diff(first) > 0)
        n_labels = len(counts) + int(emptied[self.defined].sum())
        if not len(counts):
            return 0.0
        needed = _true_positives_needed(positives[counts])
        at = begin[counts][:, None] + np.minimum(needed - 1, n_true[counts][:, None])
        curve = np.maximum.reduceat(np.r_[precision, 0.0], np.c_[at, at[:, -1:] + 1].ravel())
        curve = curve.reshape(len(counts), -1)[:, :-1]
        curve = np.maximum.accumulate(curve[:, ::-1], axis=1)[:, ::-1]
        return math.fsum(curve.ravel().tolist()) / (len(RECALL_POINTS) * n_labels)


def _true_positives_needed(n_positive: Ints) -> Ints:
    """Number of the first true positive to reach each recall point, (labels, 101).

    The smallest m >= 1 with m / n >= r in floating point.
    """
    n = n_positive[:, None].astype(np.float64)
    needed = np.ceil(RECALL_POINTS * n)
    needed = np.where((needed - 1) / n >= RECALL_POINTS, needed - 1, needed)
    needed = np.where(needed / n < RECALL_POINTS, needed + 1, needed)
    return np.maximum(needed, 1).astype(np.int64)
