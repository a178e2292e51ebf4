"""Box AP and AR with the same values as ``COCOeval`` of pycocotools.

``match_coco`` matches at ten IoU thresholds and four area ranges, and ``score_suite`` turns the
matching into precision and recall. The interpolated precision only changes at true positives,
so the arrays have the length of the ground truth, not of the detections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.results.schema import CocoMetrics
from benchmark_eval.scoring.detections import Detections, stable_order
from benchmark_eval.scoring.matching import Match, greedy_match
from benchmark_eval.scoring.pairs import Pairs

IOU_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
MATCH_THRESHOLDS: Floats = np.minimum(IOU_THRESHOLDS, 1 - 1e-10)
"""The thresholds that ``COCOeval.evaluateImg`` compares IoUs with."""
RECALL_POINTS: Floats = np.linspace(0.0, 1.0, 101)
AREA_RANGES = ((0.0, 1e10), (0.0, 32.0**2), (32.0**2, 96.0**2), (96.0**2, 1e10))
"""All, small, medium, large, in px²; both ends included."""
N_AREAS = len(AREA_RANGES)
CAPS = (1, 10, 100)
"""Detections per image and category at which AR is reported; AP uses the last."""
AT_50, AT_75 = 0, 5
ALL = 0


def in_area_ranges(area: Floats, ranges: Sequence[tuple[float, float]] = AREA_RANGES) -> Bools:
    """Whether each area (px²) lies in each range, as (n_ranges, n) bool."""
    low, high = np.array(ranges).T[:, :, None]
    inside: Bools = (area >= low) & (area <= high)
    return inside


@dataclass(frozen=True, slots=True)
class Suite:
    """A grouping of boxes into COCO categories: by species, or all in one.

    Attributes
    ----------
    n_labels : int
        Number of categories.
    label : (n_detections,) int
        Category of each detection, 0 to n_labels - 1; -1 excludes the detection.
    truth_label : (n_truth,) int
        The same for each annotation.
    rank : (n_detections,) int
        0-based rank of each detection in its image and category, which the cap limits.
    """

    n_labels: int
    label: Ints
    truth_label: Ints
    rank: Ints

    @classmethod
    def by_species(cls, detections: Detections, truth: SplitTruth, n_categories: int) -> Suite:
        """One category per species that the split lists; boxes of other species are excluded."""
        number = np.full(n_categories, -1, np.int64)
        number[truth.listed] = np.arange(len(truth.listed))
        return cls(
            len(truth.listed),
            number[detections.category],
            number[truth.category],
            detections.rank_in_category,
        )

    @classmethod
    def class_agnostic(cls, detections: Detections, truth: SplitTruth) -> Suite:
        """One category for all detections and annotations, those of unlisted species included.

        The benchmark's evaluator assigns one id to every box in the same way. (pycocotools'
        ``useCats=0`` would drop detections of unlisted species.)
        """
        return cls(
            1,
            np.zeros(len(detections), np.int64),
            np.zeros(len(truth.image), np.int64),
            detections.rank,
        )

    def restricted(self, keep: Bools, keep_truth: Bools) -> Suite:
        """The suite restricted to some detections and some annotations."""
        return Suite(
            self.n_labels,
            np.where(keep, self.label, -1),
            np.where(keep_truth, self.truth_label, -1),
            self.rank,
        )


def match_coco(suite: Suite, detections: Detections, truth: SplitTruth, pairs: Pairs) -> Match:
    """COCO matching of a suite at every IoU threshold and area range.

    Parameters
    ----------
    suite : Suite
        Categories of the boxes. Only boxes of the same category match.
    detections : Detections
        Detections of one split.
    truth : SplitTruth
        Annotations of the split.
    pairs : Pairs
        All pairs with an IoU of at least 0.5.

    Returns
    -------
    Match
        (10 thresholds, 4 areas, n_truth).

    Notes
    -----
    Source: ``COCOeval.evaluateImg`` in pycocotools. Scored specimens match before ignored ones
    (crowd regions, and annotations whose ``area`` lies outside the range). On equal IoU the last
    in file order wins. The overlap with a crowd region is intersection over detection area. The
    cap on detections is applied afterwards by ``score_suite``, with the same result.
    """
    pairs = pairs.subset(pairs.overlap >= MATCH_THRESHOLDS[0])
    return greedy_match(
        pairs,
        pairs.overlap,
        detections.rank,
        detections.image * suite.n_labels + suite.label,
        suite.label,
        suite.truth_label,
        truth.crowd,
        MATCH_THRESHOLDS,
        truth.crowd | ~in_area_ranges(truth.area),
        last_on_ties=True,
    )


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision and recall of a suite; NaN for a category without scored annotations.

    Attributes
    ----------
    precision : (4 areas, 10 thresholds, 101 recall points, n_labels) float
        Interpolated precision with up to 100 detections.
    recall : (3 caps, 10 thresholds, n_labels) float
        Recall with up to 1, 10 and 100 detections, all areas.
    recall_by_area : (4 areas, 10 thresholds, n_labels) float
        Recall with up to 100 detections.
    """

    precision: Floats
    recall: Floats
    recall_by_area: Floats

    def metrics(self) -> CocoMetrics:
        """The twelve COCO metrics: means over categories with scored annotations."""
        ap = self.precision
        ar = [mean_defined(recall) for recall in self.recall]
        return CocoMetrics(
            AP_50_95=mean_defined(ap[ALL]),
            AP_50=mean_defined(ap[ALL, AT_50]),
            AP_75=mean_defined(ap[ALL, AT_75]),
            AP_small=mean_defined(ap[1]),
            AP_medium=mean_defined(ap[2]),
            AP_large=mean_defined(ap[3]),
            AR_1=ar[0],
            AR_10=ar[1],
            AR_100=ar[2],
            AR_small=mean_defined(self.recall_by_area[1]),
            AR_medium=mean_defined(self.recall_by_area[2]),
            AR_large=mean_defined(self.recall_by_area[3]),
        )

    def ap_of(self, label: int) -> tuple[float | None, float | None]:
        """AP at IoU 0.50 and AP over all thresholds of one category."""
        of_one = self.precision[ALL, :, :, label]
        return mean_defined(of_one[AT_50]), mean_defined(of_one)


def mean_defined(values: Floats) -> float | None:
    """Mean of the values that are not NaN; None if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None


def score_suite(
    suite: Suite,
    detections: Detections,
    truth: SplitTruth,
    match: Match,
    n_areas: int = N_AREAS,
) -> Scores:
    """Precision at 101 recall points and recall at each cap.

    Parameters
    ----------
    suite : Suite
        Categories of the boxes.
    detections : Detections
        Detections of one split.
    truth : SplitTruth
        Annotations of the split.
    match : Match
        Result of ``match_coco``.
    n_areas : int
        Number of area ranges to score: 4, or 1 for "all" only. The others are NaN.

    Returns
    -------
    Scores

    Notes
    -----
    Source: ``COCOeval.accumulate`` in pycocotools. Per category, detections are ranked by score
    over all images (by image id, then file order on ties). Detections matched to ignored ground
    truth, and unmatched detections outside the area range, do not count. Precision at a recall
    point is the highest precision at this or any higher recall, 0 if the recall is not reached.
    """
    k = suite.n_labels
    cap = CAPS[-1]
    scored, n_positive = _scored_truth(suite, truth, n_areas)
    ranking = _Ranking(suite, detections, cap, n_areas)
    n_thresholds = len(MATCH_THRESHOLDS)
    precision = np.full((len(AREA_RANGES), n_thresholds, len(RECALL_POINTS), k), np.nan)
    for a in range(n_areas):
        defined = n_positive[a] > 0
        if not defined.any():
            continue
        needed = _true_positives_needed(n_positive[a])
        for t in range(n_thresholds):
            curve = ranking.precision_at(match, a, t, scored[a], needed)
            precision[a, t][:, defined] = curve[:, defined]
    exceeded = _caps_exceeded(suite, match, n_areas, CAPS)
    by_cap = np.stack(
        [
            _recall(suite, exceeded[:, :1] <= c, scored[:1], n_positive[:1])[ALL]
            for c in range(len(CAPS))
        ]
    )
    by_area = np.full((len(AREA_RANGES), n_thresholds, k), np.nan)
    by_area[:n_areas] = _recall(suite, exceeded < len(CAPS), scored, n_positive)
    return Scores(precision, by_cap, by_area)


Scorer = Callable[[Suite, Detections, SplitTruth, Match, int], Scores]
"""An engine: ``score_suite``, or pycocotools with the same signature."""


def recall_at(suite: Suite, match: Match, truth: SplitTruth, cap: int | None) -> float | None:
    """AR at a cap (None: no cap): mean over thresholds and categories, all areas."""
    limit = len(suite.rank) if cap is None else cap
    matched = _caps_exceeded(suite, match, 1, (limit,)) == 0
    return mean_defined(_recall(suite, matched, *_scored_truth(suite, truth, 1))[ALL])


def _scored_truth(suite: Suite, truth: SplitTruth, n_areas: int) -> tuple[Bools, Ints]:
    """Whether each annotation is scored, (areas, n_truth), and counts, (areas, categories)."""
    included = ~truth.crowd & (suite.truth_label >= 0)
    scored: Bools = included & in_area_ranges(truth.area, AREA_RANGES[:n_areas])
    n_positive = [np.bincount(suite.truth_label[row], minlength=suite.n_labels) for row in scored]
    return scored, np.stack(n_positive)


def _caps_exceeded(
    suite: Suite, match: Match, n_areas: int, caps: Sequence[int]
) -> NDArray[np.uint8]:
    """Number of the ascending caps that exclude the match of each annotation.

    Shape (thresholds, areas, n_truth). Every cap excludes an unmatched annotation. uint8 keeps
    the table small.
    """
    exceeded = np.zeros(len(suite.rank) + 1, np.uint8)
    for cap in caps:
        exceeded[:-1] += suite.rank >= cap
    exceeded[-1] = len(caps)  # index -1 is "unmatched"
    return exceeded[match.gt_matches[:, :n_areas]]


def _recall(suite: Suite, matched: Bools, scored: Bools, n_positive: Ints) -> Floats:
    """Fraction of scored annotations that are matched, (areas, thresholds, categories).

    ``matched`` is (thresholds, areas, n_truth): whether the match lies within the cap.
    """
    out = np.full((len(n_positive), len(matched), suite.n_labels), np.nan)
    for a, positives in enumerate(n_positive):
        defined = positives > 0
        for t in range(len(matched)):
            n_tp = np.bincount(
                suite.truth_label[matched[t, a] & scored[a]], minlength=suite.n_labels
            )
            out[a, t, defined] = n_tp[defined] / positives[defined]
    return out


def _true_positives_needed(n_positive: Ints) -> Ints:
    """1-based number of the first true positive to reach each recall point, (101, categories).

    The smallest m with m / n >= r in floating point, as found by the left ``searchsorted`` in
    pycocotools. At r = 0 it is the first detection, where the interpolated precision equals that
    of the first true positive.
    """
    n = np.maximum(n_positive, 1)[None, :].astype(np.float64)
    r = RECALL_POINTS[:, None]
    needed = np.ceil(r * n)
    needed = np.where((needed - 1) / n >= r, needed - 1, needed)
    needed = np.where(needed / n < r, needed + 1, needed)
    return np.maximum(needed, 1).astype(np.int64)


class _Ranking:
    """Detections of a suite within the cap, by category, then descending score."""

    def __init__(self, suite: Suite, detections: Detections, cap: int, n_areas: int) -> None:
        within = (suite.label >= 0) & (suite.rank < cap)
        rows = detections.best_first[within[detections.best_first]]
        if suite.n_labels > 1:
            rows = rows[stable_order(suite.label[rows])]
        self.n_labels = suite.n_labels
        self.slot: NDArray[np.int64] = np.full(len(suite.label) + 1, -1, np.int64)
        """Place of each detection in this ranking, -1 beyond the cap; index -1 is "unmatched"."""
        self.slot[rows] = np.arange(len(rows))
        self.label = suite.label[rows]
        self.first = np.searchsorted(self.label, np.arange(suite.n_labels))
        self.in_area = in_area_ranges(detections.area[rows], AREA_RANGES[:n_areas])
        # number of detections in the area range before each place
        self.before = np.zeros((n_areas, len(rows) + 1), np.int64)
        np.cumsum(self.in_area, axis=1, out=self.before[:, 1:])
        self.is_tp = np.zeros(len(rows), np.bool_)

    def precision_at(self, match: Match, a: int, t: int, scored: Bools, needed: Ints) -> Floats:
        """Interpolated precision at one area and threshold, (recall points, categories).

        A detection counts as true or false positive unless it matched ignored ground truth, or
        is unmatched and outside the area range. The count up to a place is therefore the number
        of detections in the area range, corrected for the few matched detections that differ.
        """
        matched = self.slot[match.gt_matches[t, a]]
        self.is_tp[:] = False
        self.is_tp[matched[(matched >= 0) & scored]] = True
        place = np.flatnonzero(self.is_tp)

        # in range but not counted; counted but out of range
        excess = matched[(matched >= 0) & ~scored]
        on_crowd = self.slot[match.crowd_matched(t, a)]
        excess = np.concatenate([excess, on_crowd[on_crowd >= 0]])
        excess = np.sort(excess[self.in_area[a, excess]])
        lacking = place[~self.in_area[a, place]]

        label = self.label[place]
        start = self.first[label]
        count = self.before[a, place + 1] - self.before[a, start]
        for places, sign in ((excess, -1), (lacking, 1)):
            if len(places):
                upto = np.searchsorted(places, place, side="right")
                count += sign * (upto - np.searchsorted(places, start, side="left"))

        n_tp = np.bincount(label, minlength=self.n_labels)
        begin = np.cumsum(n_tp) - n_tp
        number = np.arange(len(place)) - begin[label]
        # each category's values in turn, with a zero for the recalls that it does not reach
        begin += np.arange(self.n_labels)
        value = np.zeros(len(place) + self.n_labels)
        value[begin[label] + number] = (number + 1) / (count + np.spacing(1))
        # interpolate: the highest precision at this or any later true positive
        at = begin + np.minimum(needed - 1, n_tp)
        highest = np.maximum.reduceat(value, at.T.ravel()).reshape(self.n_labels, -1)
        curve: Floats = np.maximum.accumulate(highest[:, ::-1], axis=1)[:, ::-1].T
        return curve
