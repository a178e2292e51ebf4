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

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.detections import Detections, first_of_run, place_in_run, stable_order
from benchmark_eval.scoring.pairs import Pairs

PAIRS_IN_BLOCK = 200_000
"""Pairs of a contest that are sorted into rounds at a time."""
ROUNDS_AT_ONCE = 64
"""Rounds of a contest between two looks at which pairs can still be chosen."""
Taken = NDArray[np.int32]


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
        turn = place_in_run(group[rivals], order)[np.searchsorted(rivals, detection)]
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

    ``true_positive`` and ``matched_truth`` are the rows of detections and of ground truth that
    belong together, in image order and descending score; ``matched_iou`` their IoU.
    ``false_positive`` are the rows of detections that hit nothing and lie on no crowd region.
    ``judged`` = hits and false positives, in image order and descending score. ``iou`` is the
    threshold.
    """

    iou: float
    true_positive: Ints
    matched_truth: Ints
    matched_iou: Floats
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
    is_tp = np.zeros(len(detections), np.bool_)
    is_tp[hit] = True
    of_hit = np.zeros(len(detections), np.int64)
    of_hit[hit] = found
    hit = detections.by_image[is_tp[detections.by_image]]
    found = of_hit[hit]
    on_crowd = np.zeros(len(detections), np.bool_)
    on_crowd[pairs.detection[reach & pairs.crowd]] = True
    missed = np.flatnonzero(~is_tp & ~on_crowd)
    judged = detections.by_image[(is_tp | ~on_crowd)[detections.by_image]]
    pair_key = scored.detection * n_truth + scored.truth
    matched_iou = scored.iou[np.searchsorted(pair_key, hit * n_truth + found)]
    # where sides are lost in rounding, union and intersection can be too
    matched_iou = np.where(np.isfinite(matched_iou), matched_iou, 1.0)
    return Localisation(iou, hit, found, matched_iou, missed, judged)
