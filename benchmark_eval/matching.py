"""Pairing detections with ground truth, and the two matchings: the only hot loops.

One IoU pass per split (``find_pairs``) keeps the few pairs that can matter; both matchings
work on those pairs alone. A detection that can take only one specimen, which no ambiguous
detection can take, needs no loop: the specimen goes to the first detection that reaches the
threshold. What is left is decided in rounds: round ``r`` lets the ``r``-th detection of every
image choose at once, with thresholds and area ranges as array axes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.benchmark import SplitTruth
from benchmark_eval.columns import Bools, Floats, Ints
from benchmark_eval.predictions import Predictions

PAIRS_AT_ONCE = 250_000
"""Candidate pairs whose IoU is computed at a time; bounds the memory of the IoU pass."""

PAIRS_IN_BLOCK = 200_000
"""Pairs of a contest that are sorted into rounds at a time."""
ROUNDS_AT_ONCE = 64
"""Rounds of a contest between two looks at which pairs can still be chosen."""

FARTHEST = 1e12
"""Coordinates in px below which a double holds them to a fraction of a thousandth."""

Taken = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Detections:
    """The detections of a split in image order (file order within an image), ready to match.

    ``best_first`` lists the rows in the split-wide order in which COCO accumulates (descending
    score, then ascending image id, then file order); ``by_image`` image by image, best first.
    ``rank`` is a detection's 0-based place in its image by descending score (file order on
    ties), ``rank_in_category`` the same among its image's detections of its category.
    """

    image: Ints
    category: Ints
    boxes: Floats
    area: Floats
    score: Floats
    best_first: Ints
    by_image: Ints
    rank: Ints
    rank_in_category: Ints

    def __len__(self) -> int:
        return len(self.score)


def order_detections(predictions: Predictions, n_categories: int) -> Detections:
    """Sort predictions by image and number them as COCO does."""
    image, category = predictions.image, predictions.category
    boxes, score = predictions.boxes, predictions.score
    if (image[1:] < image[:-1]).any():
        order = stable_order(image)
        image, category, boxes, score = image[order], category[order], boxes[order], score[order]
    best_first = _best_first(score)
    by_image = best_first[stable_order(image[best_first])]
    by_category = by_image[stable_order(category[by_image])]
    by_category = by_category[stable_order(image[by_category])]
    return Detections(
        image=image,
        category=category,
        boxes=boxes,
        area=boxes[:, 2] * boxes[:, 3],
        score=score,
        best_first=best_first,
        by_image=by_image,
        rank=_place_in_run(image, by_image),
        rank_in_category=_place_in_run(image * (n_categories + 1) + category, by_category),
    )


def stable_order(keys: Ints) -> Ints:
    """Stable ascending order of small non-negative integers.

    numpy sorts 16-bit keys by radix, several times faster than 64-bit ones.
    """
    if len(keys) and int(keys.max()) < 2**16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")


def _best_first(score: Floats) -> Ints:
    """Stable descending order of scores in [0, 1], digit by digit of 16 bits.

    The bits of floats from 0 up, read as integers, ascend as the floats do.
    """
    bits = (score + 0.0).view(np.uint64)  # -0.0, equal to 0.0, becomes it
    ascending = np.float64(1.0).view(np.uint64) - bits
    order: Ints = np.arange(len(score))
    for shift in (0, 16, 32, 48):
        digit = (ascending >> np.uint64(shift)).astype(np.uint16)
        if (digit != digit[:1]).any():
            order = order[np.argsort(digit[order], kind="stable")]
    return order


def first_of_run(values: Ints | Floats) -> Bools:
    """True where a run of equal values begins."""
    first = np.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    return first


def _place_in_run(group: Ints, order: Ints) -> Ints:
    """0-based place of each row within its group; ``order`` lists the rows group by group."""
    first = np.flatnonzero(first_of_run(group[order]))
    length = np.diff(np.r_[first, len(group)])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, length)
    return place


@dataclass(frozen=True, slots=True)
class Pairs:
    """Detection and ground truth boxes of one image that overlap enough to matter.

    Sorted by detection, then by ground truth in file order. ``iou`` is the plain IoU;
    ``overlap`` is what COCO compares: the IoU, or for a crowd region the intersection over the
    detection's area. ``crowd`` says which of the two a pair is.
    """

    detection: Ints
    truth: Ints
    iou: Floats
    overlap: Floats
    crowd: Bools

    def subset(self, keep: Bools) -> Pairs:
        """The pairs where ``keep`` is true."""
        return Pairs(
            self.detection[keep],
            self.truth[keep],
            self.iou[keep],
            self.overlap[keep],
            self.crowd[keep],
        )


def find_pairs(detections: Detections, truth: SplitTruth, floor: float) -> Pairs:
    """All pairs with IoU >= ``floor`` (and > 0), or on a crowd region with either measure so.

    Arithmetic and its order are those of pycocotools' ``bbIou``, so that the values are equal
    to the last bit.
    """
    parts = [
        _pairs_of(detections, truth, np.flatnonzero(~truth.crowd), floor, crowd=False),
        _pairs_of(detections, truth, np.flatnonzero(truth.crowd), floor, crowd=True),
    ]
    detection, at, iou, overlap, crowd = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    # within an image, ground truth is in file order; one key sorts by both, nearly sorted already
    order = np.argsort(detection * len(truth.image) + at, kind="stable")
    return Pairs(detection[order], at[order], iou[order], overlap[order], crowd[order])


def _pairs_of(
    detections: Detections, truth: SplitTruth, rows: Ints, floor: float, *, crowd: bool
) -> tuple[Ints, Ints, Floats, Floats, Bools]:
    """Pairs of all detections with the ground truth ``rows`` (one kind: scored or crowd)."""
    if not len(rows):
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    centre = _centres(truth.boxes[rows])
    order = np.lexsort((centre[:, 0], truth.image[rows]))
    rows, centre = rows[order], centre[order]
    near = _Near(detections.boxes, truth.boxes[rows], centre, floor, crowd=crowd)
    low, high = near.windows(detections.image, truth.image[rows], len(truth.image_ids))
    count = high - low
    ends = np.cumsum(count)
    found: list[tuple[Ints, Ints, Floats, Floats]] = []
    start = 0
    while start < len(count):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")), start + 1)
        if ends[stop - 1] > done:
            found.append(near.measure(start, low[start:stop], count[start:stop]))
        start = stop
    if not found:
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    detection, at, iou, overlap = (np.concatenate([f[i] for f in found]) for i in range(4))
    return detection, rows[at], iou, overlap, np.full(len(detection), crowd)


def _centres(boxes: Floats) -> Floats:
    """(boxes, 2) the centre of each box: x, y in px."""
    return boxes[:, :2] + boxes[:, 2:] / 2


def _farthest(boxes: Floats) -> float:
    """The largest absolute number in boxes."""
    return max(float(boxes.max(initial=0.0)), -float(boxes.min(initial=0.0)))


def _too_thin(boxes: Floats) -> Bools:
    """Boxes with a side so short, for where they lie, that its far end is rounded noticeably.

    An IoU that is computed from such an end (pycocotools' as ours) can be any number.
    """
    limit: Any = 1e7 * np.spacing(_farthest(boxes))
    if limit > 1e-3:
        limit = 1e7 * np.spacing(np.abs(boxes).max(axis=1))
    thin: Bools = np.minimum(boxes[:, 2], boxes[:, 3]) < limit
    return thin


class _Near:
    """Detections and ground truth of one kind, and how far apart their centres may lie.

    IoU >= t asks that the boxes share at least the fraction t of either width. With widths w
    and v, they share at most (w + v) / 2 - d, d being the distance of the centres; so d is at
    most w (1 - t), or w (1 - t) / 2t where t < 0.5. The same for heights. A crowd region may be
    of any size: there is no such bound.
    """

    def __init__(
        self, boxes: Floats, true: Floats, true_centre: Floats, floor: float, *, crowd: bool
    ) -> None:
        self.boxes, self.true, self.true_centre = boxes, true, true_centre
        self.floor, self.crowd = floor, crowd
        self.area = boxes[:, 2] * boxes[:, 3]
        self.true_area = true[:, 2] * true[:, 3]
        self.farthest = _farthest(true)
        # beyond this size sums lose the millihundredths of a pixel that the slack allows for, and
        # a floor so low that 1 / floor pixels are any image (or no number) leaves nothing out
        self.bounded = not crowd and floor >= 1e-9 and self.farthest < FARTHEST
        if self.bounded:
            size = boxes[:, 2:]
            slack = (1e-3 + 1e-6 * size) / floor
            self.centre = _centres(boxes)
            self.reach = size * max(1 - floor, (1 - floor) / (2 * floor)) + slack
            self.reach[_too_thin(boxes)] = np.inf

    def windows(self, image: Ints, truth_image: Ints, n_images: int) -> tuple[Ints, Ints]:
        """Range of ground truth (sorted by image, then centre) to measure each detection with.

        ``image`` is each detection's image, ``truth_image`` each ground truth's.
        """
        first = np.searchsorted(truth_image, np.arange(n_images + 1))
        low, high = first[image], first[image + 1]
        # images are laid side by side on one axis, `stride` apart, so that one search serves all
        stride = 4 * self.farthest + 4
        if not self.bounded or stride * n_images > FARTHEST:
            return low, high
        line = truth_image * stride + self.true_centre[:, 0]
        ends = 2 * self.farthest + 1  # no centre of ground truth lies beyond
        begin = np.clip(self.centre[:, 0] - self.reach[:, 0], -ends, ends)
        end = np.clip(self.centre[:, 0] + self.reach[:, 0], -ends, ends)
        left = np.searchsorted(line, image * stride + begin, side="left")
        right = np.searchsorted(line, image * stride + end, side="right")
        low = np.maximum(low, left)
        return low, np.maximum(low, np.minimum(high, right))

    def measure(self, start: int, low: Ints, count: Ints) -> tuple[Ints, Ints, Floats, Floats]:
        """IoU of detections ``start, start + 1, ...`` with their windows; pairs that reach it."""
        detection = np.repeat(np.arange(start, start + len(count)), count)
        at = np.arange(len(detection)) + np.repeat(low - (np.cumsum(count) - count), count)
        if self.bounded:
            distance = np.abs(self.centre[detection, 1] - self.true_centre[at, 1])
            near = distance <= self.reach[detection, 1]
            detection, at = detection[near], at[near]
        x, y, w, h = self.boxes[detection].T
        true_x, true_y, true_w, true_h = self.true[at].T
        width = np.minimum(w + x, true_w + true_x) - np.maximum(x, true_x)
        height = np.minimum(h + y, true_h + true_y) - np.maximum(y, true_y)
        inter = np.maximum(width, 0) * np.maximum(height, 0)
        area = self.area[detection]
        # an intersection can underflow to zero beside areas that do too: no overlap then
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = inter / (area + self.true_area[at] - inter)
            overlap = inter / area if self.crowd else iou
        keep = (iou >= self.floor) & (iou > 0)
        if self.crowd:
            keep |= overlap >= self.floor
        return detection[keep], at[keep], iou[keep], overlap[keep]


@dataclass(frozen=True, slots=True)
class Match:
    """Who took what, for every threshold and area range.

    ``taker`` is (thresholds, areas, ground truth): the detection that took the specimen, -1 for
    none (and for crowd regions, which many detections can take). ``absorbed[t][a]`` are the
    detections that fell to a crowd region.
    """

    taker: Taken
    absorbed: list[list[Ints]]


def greedy_match(
    pairs: Pairs,
    overlap: Floats,
    rank: Ints,
    group: Ints,
    n_truth: int,
    thresholds: Floats,
    ignored: Bools,
    *,
    last_on_ties: bool,
) -> Match:
    """Let each detection of a group, best first, take the best free ground truth.

    ``overlap`` is the measure to compare, one a pair; ``thresholds`` ascend. ``rank`` (per
    detection) says who comes first in a group, ``group`` (per detection) who competes.
    ``ignored`` is (areas, ground truth): such ground truth is taken only where no other reaches
    the threshold. Crowd pairs are taken
    without being used up. On equal overlap the first ground truth in file order wins, or the
    last (COCO). No cap: as better detections choose first, a cap of n is the same matching
    without the detections of rank n and beyond.
    """
    n_areas = len(ignored)
    taker = np.full((len(thresholds), n_areas, n_truth), -1, np.int32)
    absorbed: list[list[list[Ints]]] = [[[] for _ in range(n_areas)] for _ in thresholds]
    n_choices = np.bincount(pairs.detection, minlength=1)
    contested = np.zeros(n_truth, np.bool_)
    contested[pairs.truth[n_choices[pairs.detection] > 1]] = True
    hard = contested[pairs.truth]

    # one candidate each: the best detection that reaches the threshold takes it
    easy = np.flatnonzero(~hard)
    easy = easy[stable_order(rank[pairs.detection[easy]])]
    easy = easy[stable_order(pairs.truth[easy])]
    for t, threshold in enumerate(thresholds):
        easy = easy[overlap[easy] >= threshold]
        on_crowd = pairs.crowd[easy]
        solo = easy[~on_crowd]
        best = solo[first_of_run(pairs.truth[solo])]
        taker[t][:, pairs.truth[best]] = pairs.detection[best]
        if on_crowd.any():
            for a in range(n_areas):
                absorbed[t][a].append(pairs.detection[easy[on_crowd]])

    contest = _Contest(
        pairs, overlap, thresholds, ignored, taker, absorbed, last_on_ties=last_on_ties
    )
    contest.decide(np.flatnonzero(hard), rank, group)
    none = np.empty(0, np.int64)
    return Match(taker, [[np.concatenate([none, *a]) for a in row] for row in absorbed])


class _Contest:
    """The pairs of contested ground truth, decided in rounds; fills a matching in place."""

    def __init__(
        self,
        pairs: Pairs,
        overlap: Floats,
        thresholds: Floats,
        ignored: Bools,
        taker: Taken,
        absorbed: list[list[list[Ints]]],
        *,
        last_on_ties: bool,
    ) -> None:
        self.pairs, self.overlap = pairs, overlap
        self.thresholds, self.ignored = thresholds, ignored
        self.taker, self.absorbed = taker, absorbed
        self.last_on_ties = last_on_ties

    def decide(self, rows: Ints, rank: Ints, group: Ints) -> None:
        """Let the detections of the pairs ``rows`` choose, those of a group one after another.

        The best detections of all groups go first, a block at a time. Before a block, and after
        some rounds of it, the pairs that cannot be chosen any more are dropped: where many
        detections compete for little ground truth, few rounds are left to go.
        """
        place = rank[self.pairs.detection[rows]]
        order = np.argsort(place, kind="stable")
        rows, place = rows[order], place[order]
        begin = 0
        while begin < len(rows):
            last = place[min(begin + PAIRS_IN_BLOCK, len(rows)) - 1]
            end = int(np.searchsorted(place, last, side="right"))
            block = np.sort(rows[begin:end])
            begin = end
            while len(block := block[self._alive(block)]):
                block = self._some_rounds(block, rank, group)

    def _some_rounds(self, rows: Ints, rank: Ints, group: Ints) -> Ints:
        """The first rounds of the pairs ``rows``; the pairs that are left."""
        detection = self.pairs.detection[rows]
        rivals = np.unique(detection)
        order = np.lexsort((rank[rivals], group[rivals]))
        turn = _place_in_run(group[rivals], order)[np.searchsorted(rivals, detection)]
        # rows are sorted by detection, then file order of the ground truth: stable keeps it
        order = np.argsort(turn, kind="stable")
        rows, turn = rows[order], turn[order]
        n_rounds = min(int(turn[-1]) + 1, ROUNDS_AT_ONCE)
        limits = np.searchsorted(turn, np.arange(n_rounds + 1)).tolist()
        for begin, end in itertools.pairwise(limits):
            self._round(rows[begin:end])
        return np.sort(rows[limits[-1] :])

    def _alive(self, rows: Ints) -> Bools:
        """Whether the ground truth of each pair is still free at some threshold it reaches."""
        limit = np.where(self.taker < 0, self.thresholds[:, None, None], np.inf)
        easiest = limit.min(axis=(0, 1))
        return np.asarray(self.overlap[rows] >= easiest[self.pairs.truth[rows]])

    def _round(self, at: Ints) -> None:
        """Let one detection of every group choose: ``at`` are its pairs."""
        pairs = self.pairs
        truth, detection, on_crowd = pairs.truth[at], pairs.detection[at], pairs.crowd[at]
        overlap = self.overlap[at]
        new = np.flatnonzero(first_of_run(detection))
        size = np.diff(np.r_[new, len(at)])
        free = (self.taker[:, :, truth] < 0) | on_crowd
        free &= overlap >= self.thresholds[:, None, None]
        second = self.ignored[:, truth]
        value = np.where(free, overlap, -1.0)
        best_first = np.maximum.reduceat(np.where(second, -1.0, value), new, axis=2)
        best_second = np.maximum.reduceat(np.where(second, value, -1.0), new, axis=2)
        use_second = best_first < 0
        best = np.where(use_second, best_second, best_first)
        chosen = (value == np.repeat(best, size, axis=2)) & (value >= 0)
        chosen &= second == np.repeat(use_second, size, axis=2)
        place = np.arange(len(at))
        if self.last_on_ties:
            pick = np.maximum.reduceat(np.where(chosen, place, -1), new, axis=2)
            taken = pick >= 0
        else:
            pick = np.minimum.reduceat(np.where(chosen, place, len(at)), new, axis=2)
            taken = pick < len(at)
        t, a, n = np.nonzero(taken)
        picked = pick[t, a, n]
        crowded = on_crowd[picked]
        t_free, a_free, picked_free = t[~crowded], a[~crowded], picked[~crowded]
        self.taker[t_free, a_free, truth[picked_free]] = detection[picked_free]
        for i in np.flatnonzero(crowded):
            self.absorbed[t[i]][a[i]].append(detection[picked[i : i + 1]])


@dataclass(frozen=True, slots=True)
class Localisation:
    """The localisation matching of a split: species ignored, no cap, one IoU threshold.

    ``hit`` and ``hit_truth`` are the rows of detections and of ground truth that belong
    together, in image order and descending score; ``hit_iou`` their IoU.
    ``false_positive`` are the rows of detections that hit nothing and lie on no crowd region.
    ``judged`` = hits and false positives, in image order and descending score. ``iou`` is the
    threshold.
    """

    iou: float
    hit: Ints
    hit_truth: Ints
    hit_iou: Floats
    false_positive: Ints
    judged: Ints


def localise(detections: Detections, truth: SplitTruth, pairs: Pairs, iou: float) -> Localisation:
    """Match detections and scored specimens at one IoU (the benchmark's evaluator).

    Per image, descending score: each takes the free scored specimen with the highest
    IoU >= ``iou``, the first in file order on equal IoU. One that took nothing and has plain
    IoU >= ``iou`` with a crowd region leaves the analysis; the rest are false positives.
    """
    reach = pairs.iou >= iou
    scored = pairs.subset(reach & ~pairs.crowd)
    n_truth = len(truth.image)
    match = greedy_match(
        scored,
        scored.iou,
        detections.rank,
        detections.image,
        n_truth,
        np.array([iou]),
        np.zeros((1, n_truth), np.bool_),
        last_on_ties=False,
    )
    taker = match.taker[0, 0]
    found = np.flatnonzero(taker >= 0)
    hit = taker[found].astype(np.int64)
    is_hit = np.zeros(len(detections), np.bool_)
    is_hit[hit] = True
    of_hit = np.zeros(len(detections), np.int64)
    of_hit[hit] = found
    hit = detections.by_image[is_hit[detections.by_image]]
    found = of_hit[hit]
    on_crowd = np.zeros(len(detections), np.bool_)
    on_crowd[pairs.detection[reach & pairs.crowd]] = True
    missed = np.flatnonzero(~is_hit & ~on_crowd)
    judged = detections.by_image[(is_hit | ~on_crowd)[detections.by_image]]
    pair_key = scored.detection * n_truth + scored.truth
    hit_iou = scored.iou[np.searchsorted(pair_key, hit * n_truth + found)]
    # where sides are lost in rounding, union and intersection can be too
    hit_iou = np.where(np.isfinite(hit_iou), hit_iou, 1.0)
    return Localisation(iou, hit, found, hit_iou, missed, judged)
