"""AP and AR from COCO matching, equal to pycocotools' ``COCOeval`` for boxes.

``match_coco`` matches at the ten IoU thresholds and four area ranges, ``Suite.score`` turns a
matching into precision and recall. Precision is only ever needed at true positives: the
monotone envelope has its steps there. So everything here is as long as the ground truth is,
not as the detections are.
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
RECALL_POINTS: Floats = np.linspace(0.0, 1.0, 101)
AREA_RANGES = ((0.0, 1e10), (0.0, 32.0**2), (32.0**2, 96.0**2), (96.0**2, 1e10))
"""All, small, medium, large: px², both ends included."""
N_AREAS = len(AREA_RANGES)
CAPS = (1, 10, 100)
"""Detections per image (and category) that recall is told at; AP is at the last."""
AT_50, AT_75 = 0, 5
ALL = 0


def in_area_ranges(area: Floats, ranges: Sequence[tuple[float, float]] = AREA_RANGES) -> Bools:
    """(areas, n): whether each area in px² lies in each of the ranges."""
    low, high = np.array(ranges).T[:, :, None]
    inside: Bools = (area >= low) & (area <= high)
    return inside


@dataclass(frozen=True, slots=True)
class Suite:
    """One way to group boxes for COCO: by species, or all as one.

    ``label`` (per detection) and ``truth_label`` (per ground truth) number the categories
    0..n_labels-1, -1 for a box that takes no part. ``rank`` is what the cap counts: the
    detection's place in its image and category.
    """

    n_labels: int
    label: Ints
    truth_label: Ints
    rank: Ints

    @classmethod
    def by_species(cls, detections: Detections, truth: SplitTruth, n_categories: int) -> Suite:
        """Categories that the split lists; boxes of others take no part."""
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
        """Every category on both sides is one."""
        return cls(
            1,
            np.zeros(len(detections), np.int64),
            np.zeros(len(truth.image), np.int64),
            detections.rank,
        )

    def restricted(self, keep: Bools, keep_truth: Bools) -> Suite:
        """The same suite on some detections and some ground truth only."""
        return Suite(
            self.n_labels,
            np.where(keep, self.label, -1),
            np.where(keep_truth, self.truth_label, -1),
            self.rank,
        )


def match_coco(suite: Suite, detections: Detections, truth: SplitTruth, pairs: Pairs) -> Match:
    """COCO matching of a suite at every threshold and area range, without a cap."""
    ours = (suite.label[pairs.detection] == suite.truth_label[pairs.truth]) & (
        suite.truth_label[pairs.truth] >= 0
    )
    pairs = pairs.subset(ours & (pairs.overlap >= MATCH_THRESHOLDS[0]))
    return greedy_match(
        pairs,
        pairs.overlap,
        detections.rank,
        detections.image * suite.n_labels + suite.label,
        len(truth.image),
        MATCH_THRESHOLDS,
        truth.crowd | ~in_area_ranges(truth.area),
        last_on_ties=True,
    )


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision and recall of a suite; NaN for a category without scored ground truth.

    ``precision`` is (areas, thresholds, recall points, categories) at the last cap;
    ``recall`` is (caps, thresholds, categories) over all areas; ``recall_by_area`` is
    (areas, thresholds, categories) at the last cap.
    """

    precision: Floats
    recall: Floats
    recall_by_area: Floats

    def metrics(self) -> CocoMetrics:
        """The twelve numbers, means over categories that have scored ground truth."""
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
    """Mean of the values that are not NaN; None where there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None


def score_suite(
    suite: Suite,
    detections: Detections,
    truth: SplitTruth,
    match: Match,
    n_areas: int = N_AREAS,
) -> Scores:
    """Precision at 101 recall points and recall at each cap (pycocotools ``accumulate``).

    Of the first ``n_areas`` area ranges: 1 for "all" alone. The others' values are NaN.
    """
    k = suite.n_labels
    cap = CAPS[-1]
    counted, n_positive = _counted(suite, truth, n_areas)
    ranking = _Ranking(suite, detections, cap, n_areas)
    n_thresholds = len(MATCH_THRESHOLDS)
    precision = np.full((len(AREA_RANGES), n_thresholds, len(RECALL_POINTS), k), np.nan)
    for a in range(n_areas):
        defined = n_positive[a] > 0
        if not defined.any():
            continue
        needed = _true_positives_needed(n_positive[a])
        for t in range(n_thresholds):
            curve = ranking.precision_at(match, a, t, counted[a], needed)
            precision[a, t][:, defined] = curve[:, defined]
    beyond = _caps_exceeded(suite, match, n_areas, CAPS)
    by_cap = np.stack(
        [
            _recall(suite, beyond[:, :1] <= c, counted[:1], n_positive[:1])[ALL]
            for c in range(len(CAPS))
        ]
    )
    by_area = np.full((len(AREA_RANGES), n_thresholds, k), np.nan)
    by_area[:n_areas] = _recall(suite, beyond < len(CAPS), counted, n_positive)
    return Scores(precision, by_cap, by_area)


Scorer = Callable[[Suite, Detections, SplitTruth, Match, int], Scores]
"""An engine: ``score_suite``, or pycocotools behind the same call."""


def recall_at(suite: Suite, match: Match, truth: SplitTruth, cap: int | None) -> float | None:
    """AR over all areas at any cap (``None``: no cap), mean over thresholds and categories."""
    limit = len(suite.rank) if cap is None else cap
    found = _caps_exceeded(suite, match, 1, (limit,)) == 0
    return mean_defined(_recall(suite, found, *_counted(suite, truth, 1))[ALL])


def _counted(suite: Suite, truth: SplitTruth, n_areas: int) -> tuple[Bools, Ints]:
    """(areas, ground truth) whether it is scored there; (areas, categories) how many are."""
    ours = ~truth.crowd & (suite.truth_label >= 0)
    counted: Bools = ours & in_area_ranges(truth.area, AREA_RANGES[:n_areas])
    n_positive = [np.bincount(suite.truth_label[row], minlength=suite.n_labels) for row in counted]
    return counted, np.stack(n_positive)


def _caps_exceeded(
    suite: Suite, match: Match, n_areas: int, caps: Sequence[int]
) -> NDArray[np.uint8]:
    """(thresholds, areas, ground truth) how many of the ascending caps its taker lies beyond.

    All of them for ground truth that nothing took. So small a number keeps the table in reach.
    """
    exceeded = np.zeros(len(suite.rank) + 1, np.uint8)
    for cap in caps:
        exceeded[:-1] += suite.rank >= cap
    exceeded[-1] = len(caps)  # the last stands for -1, "no taker"
    return exceeded[match.taker[:, :n_areas]]


def _recall(suite: Suite, found: Bools, counted: Bools, n_positive: Ints) -> Floats:
    """(areas, thresholds, categories) share of counted ground truth that is found.

    ``found`` is (thresholds, areas, ground truth): whether it was taken within the cap.
    """
    out = np.full((len(n_positive), len(found), suite.n_labels), np.nan)
    for a, positives in enumerate(n_positive):
        defined = positives > 0
        for t in range(len(found)):
            hits = np.bincount(
                suite.truth_label[found[t, a] & counted[a]], minlength=suite.n_labels
            )
            out[a, t, defined] = hits[defined] / positives[defined]
    return out


def _true_positives_needed(n_positive: Ints) -> Ints:
    """(recall points, categories): the first true positive whose recall reaches each point.

    1-based; the smallest m with m / n >= r in floating point, which is what a left search in
    the list of recalls finds. At r = 0 it is the first detection, whose envelope is that of the
    first true positive.
    """
    n = np.maximum(n_positive, 1)[None, :].astype(np.float64)
    r = RECALL_POINTS[:, None]
    needed = np.ceil(r * n)
    needed = np.where((needed - 1) / n >= r, needed - 1, needed)
    needed = np.where(needed / n < r, needed + 1, needed)
    return np.maximum(needed, 1).astype(np.int64)


class _Ranking:
    """The detections of a suite within the cap, category by category, best first."""

    def __init__(self, suite: Suite, detections: Detections, cap: int, n_areas: int) -> None:
        within = (suite.label >= 0) & (suite.rank < cap)
        rows = detections.best_first[within[detections.best_first]]
        if suite.n_labels > 1:
            rows = rows[stable_order(suite.label[rows])]
        self.n_labels = suite.n_labels
        self.slot: NDArray[np.int64] = np.full(len(suite.label) + 1, -1, np.int64)
        """Place of each detection in this ranking, -1 beyond the cap; the last is "none"."""
        self.slot[rows] = np.arange(len(rows))
        self.label = suite.label[rows]
        self.first = np.searchsorted(self.label, np.arange(suite.n_labels))
        self.in_area = in_area_ranges(detections.area[rows], AREA_RANGES[:n_areas])
        # how many detections in the area range stand before each place
        self.before = np.zeros((n_areas, len(rows) + 1), np.int64)
        np.cumsum(self.in_area, axis=1, out=self.before[:, 1:])
        self.is_true = np.zeros(len(rows), np.bool_)

    def precision_at(self, match: Match, a: int, t: int, counted: Bools, needed: Ints) -> Floats:
        """(recall points, categories) of the monotone envelope at one area and threshold.

        A detection counts (as true or false positive) unless it took ignored ground truth, or
        took nothing and lies outside the area range. So the count up to a place is the number
        in range, corrected by the few matched ones for which that is wrong.
        """
        taken = self.slot[match.taker[t, a]]
        self.is_true[:] = False
        self.is_true[taken[(taken >= 0) & counted]] = True
        place = np.flatnonzero(self.is_true)

        wrong_in = taken[(taken >= 0) & ~counted]
        absorbed = self.slot[match.absorbed[t][a]]
        wrong_in = np.concatenate([wrong_in, absorbed[absorbed >= 0]])
        wrong_in = np.sort(wrong_in[self.in_area[a, wrong_in]])
        wrong_out = place[~self.in_area[a, place]]

        label = self.label[place]
        start = self.first[label]
        count = self.before[a, place + 1] - self.before[a, start]
        for places, sign in ((wrong_in, -1), (wrong_out, 1)):
            if len(places):
                upto = np.searchsorted(places, place, side="right")
                count += sign * (upto - np.searchsorted(places, start, side="left"))

        n_hits = np.bincount(label, minlength=self.n_labels)
        begin = np.cumsum(n_hits) - n_hits
        number = np.arange(len(place)) - begin[label]
        value = (number + 1) / (count + np.spacing(1))
        width = int(n_hits.max(initial=0))
        table = np.zeros((self.n_labels, width + 1))
        table[label, number] = value
        # the envelope: the best precision at this or any later true positive
        table = np.maximum.accumulate(table[:, ::-1], axis=1)[:, ::-1]
        column = np.minimum(needed - 1, width)
        curve: Floats = table[np.arange(self.n_labels)[None, :], column]
        return curve
