"""Greedy matching of detections to ground truth, and the localisation matching.

``greedy_match`` is the only matching algorithm. COCO matching (``coco.match_coco``) and the
localisation matching (``localise``) call it with different rules. It considers overlapping pairs
only. A detection with a single candidate that no ambiguous detection overlaps needs no loop: the
specimen goes to the first detection that reaches the threshold. All other detections are matched
in rounds: in round ``r``, the ``r``-th detection of every image chooses, for all images,
thresholds and area ranges at once.

Two kinds of ground truth would make rounds and pairs many, and need neither. Specimens with the
same box are one candidate, a stack, from which detections take one after another. A crowd region
can match any number of detections, so detections never compete for it, and only the best crowd
region of each detection counts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Floats, Ints, first_of_run
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.detections import Detections, place_in_run, stable_order
from benchmark_eval.scoring.pairs import Pairs

PAIRS_IN_BLOCK = 200_000
"""Number of ambiguous pairs that are sorted into rounds at a time."""
ROUNDS_AT_ONCE = 64
"""Number of rounds between two passes that drop pairs that can no longer match."""
MatchedRows = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CrowdReach:
    """The crowd region that each detection overlaps most; only detections that overlap one.

    ``detection`` ascends. ``truth`` is the region, of equal overlaps the one that the matching
    prefers.
    """

    detection: Ints
    truth: Ints
    overlap: Floats

    def of(self, detection: Ints) -> tuple[Floats, Ints]:
        """Overlap and region of each of ``detection``; (-1, -1) if it overlaps none."""
        if not len(self.detection):
            return np.full(len(detection), -1.0), np.full(len(detection), -1)
        at = np.searchsorted(self.detection, detection).clip(max=len(self.detection) - 1)
        known = self.detection[at] == detection
        return np.where(known, self.overlap[at], -1.0), np.where(known, self.truth[at], -1)


@dataclass(frozen=True, slots=True)
class Match:
    """Result of a matching, for every threshold and area range.

    Attributes
    ----------
    thresholds : (n_thresholds,) float
        The smallest overlap of a match.
    gt_matches : (n_thresholds, n_areas, n_truth) int
        Row of the detection matched to each annotation, -1 if unmatched. Always -1 for crowd
        regions, which can match any number of detections.
    crowd : CrowdReach
        The crowd regions that detections match if they match no other annotation.
    """

    thresholds: Floats
    gt_matches: MatchedRows
    crowd: CrowdReach

    def crowd_matched(self, t: int, a: int) -> Ints:
        """Rows of the detections matched to a crowd region, ascending."""
        rows: Ints = self.crowd.detection[self.crowd.overlap >= self.thresholds[t]]
        if len(rows):
            matched = self.gt_matches[t, a]
            taken = np.zeros(int(rows[-1]) + 1, np.bool_)
            taken[matched[(matched >= 0) & (matched <= rows[-1])]] = True
            rows = rows[~taken[rows]]
        return rows


@dataclass(frozen=True, slots=True)
class _Stacks:
    """Scored specimens in stacks: of the same box, category and area ranges.

    ``rows[start[i] : start[i + 1]]`` are the annotations of stack ``i`` in the order in which
    they are matched. ``ignored`` is (n_areas, n_stacks).
    """

    rows: Ints
    start: Ints
    ignored: Bools

    @property
    def size(self) -> Ints:
        """Number of annotations of each stack."""
        size: Ints = self.start[1:] - self.start[:-1]
        return size

    def only(self, selected: Bools) -> _Stacks:
        """The selected stacks, renumbered."""
        size = np.where(selected, self.size, 0)
        rows = self.rows[np.repeat(selected, self.size)]
        start = np.r_[0, np.cumsum(size[selected])]
        return _Stacks(rows, start, self.ignored[:, selected])


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Pairs of a detection and a stack, sorted by detection."""

    detection: Ints
    stack: Ints
    overlap: Floats

    def subset(self, keep: Bools | Ints) -> _Candidates:
        return _Candidates(self.detection[keep], self.stack[keep], self.overlap[keep])


def greedy_match(
    pairs: Pairs,
    overlap: Floats,
    rank: Ints,
    group: Ints,
    label: Ints,
    truth_label: Ints,
    crowd: Bools,
    thresholds: Floats,
    ignored: Bools,
    *,
    last_on_ties: bool,
) -> Match:
    """Match each detection, in order of rank, to the unmatched ground truth it overlaps most.

    Parameters
    ----------
    pairs : Pairs
        Candidate pairs. A crowd region can match any number of detections.
    overlap : (n_pairs,) float
        The overlap to compare with the thresholds.
    rank : (n_detections,) int
        Order of the detections of a group: the lowest rank chooses first.
    group : (n_detections,) int
        Detections of one group compete with each other, for example those of one image. A
        specimen can only match detections of one group.
    label, truth_label : (n_detections,) int, (n_truth,) int
        Category of each detection and annotation. Only equal categories match, -1 matches
        nothing.
    crowd : (n_truth,) bool
        Whether each annotation is a crowd region.
    thresholds : (n_thresholds,) float
        Ascending. A pair matches if its overlap is >= the threshold.
    ignored : (n_areas, n_truth) bool
        Annotations to match only if no other one reaches the threshold (COCO: crowd regions and
        annotations outside the area range). Crowd regions are ignored in every case.
    last_on_ties : bool
        On equal overlap take the last annotation in file order (COCO) instead of the first.

    Returns
    -------
    Match

    Notes
    -----
    The rules are those of ``COCOeval.evaluateImg`` in pycocotools. There is no cap on the number
    of detections: the highest ranks choose first, so a cap of n gives the same matching without
    the detections of rank n and beyond. ``tests/scoring/test_matching.py`` compares this function
    with a loop over detections.
    """
    n_areas, n_truth = ignored.shape
    gt_matches = np.full((len(thresholds), n_areas, n_truth), -1, np.int32)
    labels = int(max(label.max(initial=0), truth_label.max(initial=0))) + 1
    kept = np.flatnonzero(~crowd & (truth_label >= 0))
    stacks, places = _stack(pairs.twin_of, truth_label, labels, ignored, kept, last_on_ties)
    candidates = _candidates(pairs, overlap, label, labels, places, n_truth)
    reach = _crowd_reach(pairs, overlap, label, truth_label, last_on_ties)

    n_choices = np.bincount(candidates.detection, minlength=1)
    several = n_choices[candidates.detection] > 1
    if len(reach.detection):
        several |= reach.of(candidates.detection)[1] >= 0
    contested = np.zeros(len(stacks.size), np.bool_)
    contested[candidates.stack[several]] = True
    ambiguous = contested[candidates.stack]

    # each of these has one candidate, whose specimens go to the first detections that reach the
    # threshold
    easy = np.flatnonzero(~ambiguous)
    easy = easy[stable_order(rank[candidates.detection[easy]])]
    easy = easy[stable_order(candidates.stack[easy])]
    size = stacks.size
    for t, threshold in enumerate(thresholds):
        easy = easy[candidates.overlap[easy] >= threshold]
        stack = candidates.stack[easy]
        first = np.flatnonzero(first_of_run(stack))
        place = np.arange(len(easy)) - np.repeat(first, np.diff(np.r_[first, len(easy)]))
        matched = place < size[stack]
        row = stacks.rows[stacks.start[stack[matched]] + place[matched]]
        gt_matches[t][:, row] = candidates.detection[easy[matched]]

    number = np.cumsum(contested) - 1
    hard = candidates.subset(ambiguous)
    hard = _Candidates(hard.detection, number[hard.stack], hard.overlap)
    rounds = _Rounds(
        hard, stacks.only(contested), reach, thresholds, gt_matches, last_on_ties=last_on_ties
    )
    rounds.match(rank, group)
    return Match(thresholds, gt_matches, reach)


def _stack(
    twin_of: Ints, truth_label: Ints, labels: int, ignored: Bools, kept: Ints, last_on_ties: bool
) -> tuple[_Stacks, Ints]:
    """Stacks of the annotations ``kept``, and the place of each: twin * labels + label, sorted."""
    if last_on_ties:
        kept = kept[::-1]
    pattern = np.zeros(len(kept), np.int64)
    for a, row in enumerate(ignored):
        pattern |= row[kept].astype(np.int64) << a
    place = twin_of[kept] * labels + truth_label[kept]
    order = np.lexsort((pattern, place))
    place, pattern, rows = place[order], pattern[order], kept[order]
    first = np.flatnonzero(first_of_run(place) | first_of_run(pattern))
    return _Stacks(rows, np.r_[first, len(rows)], ignored[:, rows[first]]), place[first]


def _candidates(
    pairs: Pairs, overlap: Floats, label: Ints, labels: int, places: Ints, n_truth: int
) -> _Candidates:
    """Pairs of detections and stacks of the same label."""
    begin = np.searchsorted(places, np.arange(n_truth + 1) * labels)
    detection, truth = pairs.detection, pairs.truth
    low, count = begin[truth], begin[truth + 1] - begin[truth]
    count[(label[detection] < 0) | pairs.crowd] = 0
    one = np.flatnonzero(count == 1)
    count[one] = places[low[one]] == truth[one] * labels + label[detection[one]]
    many = np.flatnonzero(count > 1)
    if len(many):
        place = truth[many] * labels + label[detection[many]]
        low[many] = np.searchsorted(places, place)
        count[many] = np.searchsorted(places, place, side="right") - low[many]
    if (count <= 1).all():
        pair = np.flatnonzero(count)
        return _Candidates(detection[pair], low[pair], overlap[pair])
    pair = np.repeat(np.arange(len(count)), count)
    stack = np.arange(len(pair)) + np.repeat(low - (np.cumsum(count) - count), count)
    return _Candidates(detection[pair], stack, overlap[pair])


def _crowd_reach(
    pairs: Pairs, overlap: Floats, label: Ints, truth_label: Ints, last_on_ties: bool
) -> CrowdReach:
    """The best crowd region of each detection."""
    rows = np.flatnonzero(pairs.crowd)
    of_truth = truth_label[pairs.truth[rows]]
    rows = rows[(of_truth >= 0) & (label[pairs.detection[rows]] == of_truth)]
    order = pairs.truth[rows] if last_on_ties else -pairs.truth[rows]
    rows = rows[np.lexsort((order, overlap[rows], pairs.detection[rows]))]
    last = np.flatnonzero(first_of_run(pairs.detection[rows]))[1:] - 1
    rows = rows[np.r_[last, len(rows) - 1]] if len(rows) else rows
    return CrowdReach(pairs.detection[rows], pairs.truth[rows], overlap[rows])


class _Rounds:
    """Matches ambiguous candidates in rounds; fills ``gt_matches`` in place."""

    def __init__(
        self,
        candidates: _Candidates,
        stacks: _Stacks,
        reach: CrowdReach,
        thresholds: Floats,
        gt_matches: MatchedRows,
        *,
        last_on_ties: bool,
    ) -> None:
        self.candidates, self.stacks = candidates, stacks
        self.thresholds = thresholds[:, None, None]
        self.gt_matches = gt_matches
        self.last_on_ties = last_on_ties
        self.size = stacks.size
        self.taken = np.zeros((*gt_matches.shape[:2], len(self.size)), np.int32)
        """Number of specimens matched from each stack."""
        self.single = bool((self.size == 1).all())
        self.with_crowd = len(reach.detection) > 0
        if self.with_crowd:
            self.crowd_overlap, self.crowd_row = reach.of(candidates.detection)

    def match(self, rank: Ints, group: Ints) -> None:
        """Match the detections of each group one after another.

        Works through the ranks in blocks. Before each block, and every ``ROUNDS_AT_ONCE`` rounds,
        candidates that can no longer match are dropped, so that many detections on few
        annotations take few rounds.
        """
        place = rank[self.candidates.detection]
        rows = np.argsort(place, kind="stable")
        place = place[rows]
        begin = 0
        while begin < len(rows):
            last = place[min(begin + PAIRS_IN_BLOCK, len(rows)) - 1]
            end = int(np.searchsorted(place, last, side="right"))
            block = np.sort(rows[begin:end])
            begin = end
            while len(block := block[self._can_match(block)]):
                block = self._some_rounds(block, rank, group)

    def _some_rounds(self, rows: Ints, rank: Ints, group: Ints) -> Ints:
        """Run the first rounds on the candidates ``rows``; return those of later rounds."""
        detection = self.candidates.detection[rows]
        rivals = np.unique(detection)
        order = np.lexsort((rank[rivals], group[rivals]))
        turn = place_in_run(group[rivals], order)[np.searchsorted(rivals, detection)]
        order = np.argsort(turn, kind="stable")
        rows, turn = rows[order], turn[order]
        n_rounds = min(int(turn[-1]) + 1, ROUNDS_AT_ONCE)
        limits = np.searchsorted(turn, np.arange(n_rounds + 1)).tolist()
        for begin, end in itertools.pairwise(limits):
            self._round(rows[begin:end])
        return np.sort(rows[limits[-1] :])

    def _next_row(self, stack: Ints, taken: MatchedRows | None = None) -> Ints:
        """The annotation that each stack gives next; its last one if it is used up.

        Shape (n,) if no stack has several annotations, else like ``taken``, by default
        (thresholds, areas, n).
        """
        if self.single:
            return self.stacks.rows[self.stacks.start[stack]]
        taken = self.taken[:, :, stack] if taken is None else taken
        return self.stacks.rows[self.stacks.start[stack] + np.minimum(taken, self.size[stack] - 1)]

    def _beats_crowd(self, rows: Ints, next_row: Ints) -> Bools:
        """Whether each candidate comes before the best crowd region of its detection, if ignored.

        ``next_row`` is the annotation that its stack gives.
        """
        overlap, of_crowd = self.candidates.overlap[rows], self.crowd_overlap[rows]
        ahead = next_row > self.crowd_row[rows]
        beats: Bools = (overlap > of_crowd) | (
            (overlap == of_crowd) & (ahead if self.last_on_ties else ~ahead)
        )
        return beats

    def _can_match(self, rows: Ints) -> Bools:
        """Whether the stack of each candidate is not used up at a threshold it reaches."""
        limit = np.where(self.taken < self.size, self.thresholds, np.inf)
        stack, overlap = self.candidates.stack[rows], self.candidates.overlap[rows]
        if not self.with_crowd:
            return np.asarray(overlap >= limit.min(axis=(0, 1))[stack])
        ignored = self.stacks.ignored
        scored_limit = np.where(ignored, np.inf, limit).min(axis=(0, 1))
        ignored_limit = np.where(ignored, limit, np.inf).min(axis=(0, 1))
        # a stack gives its annotations in the order of preference
        next_row = self._next_row(stack, self.taken.min(axis=(0, 1))[stack])
        can = overlap >= scored_limit[stack]
        can |= (overlap >= ignored_limit[stack]) & self._beats_crowd(rows, next_row)
        return np.asarray(can)

    def _round(self, rows: Ints) -> None:
        """Match one detection of every group; ``rows`` are its candidates."""
        detection, stack = self.candidates.detection[rows], self.candidates.stack[rows]
        overlap = self.candidates.overlap[rows]
        new = np.flatnonzero(first_of_run(detection))
        size = np.diff(np.r_[new, len(rows)])
        next_row = self._next_row(stack)
        free = self.taken[:, :, stack] < self.size[stack]
        free &= overlap >= self.thresholds
        ignored = self.stacks.ignored[:, stack]
        if self.with_crowd:
            free &= ~ignored | self._beats_crowd(rows, next_row)
        value = np.where(free, overlap, -1.0)
        best_scored = np.maximum.reduceat(np.where(ignored, -1.0, value), new, axis=2)
        best_ignored = np.maximum.reduceat(np.where(ignored, value, -1.0), new, axis=2)
        use_ignored = best_scored < 0
        best = np.where(use_ignored, best_ignored, best_scored)
        chosen = (value == np.repeat(best, size, axis=2)) & (value >= 0)
        chosen &= ignored == np.repeat(use_ignored, size, axis=2)
        # one number for the annotation, which decides between equal overlaps, and the candidate
        n = len(rows)
        key = next_row * n + np.arange(n)
        if self.last_on_ties:
            pick = np.maximum.reduceat(np.where(chosen, key, -1), new, axis=2)
            matched = pick >= 0
        else:
            never = np.iinfo(np.int64).max
            pick = np.minimum.reduceat(np.where(chosen, key, never), new, axis=2)
            matched = pick < never
        t, a, which = np.nonzero(matched)
        row, picked = np.divmod(pick[t, a, which], n)
        self.gt_matches[t, a, row] = detection[picked]
        self.taken[t, a, stack[picked]] += 1


@dataclass(frozen=True, slots=True)
class Localisation:
    """Localisation matching of a split: species ignored, no cap, one IoU threshold.

    Attributes
    ----------
    iou : float
        The IoU threshold.
    true_positive : (n_tp,) int
        Rows of the matched detections, by image, then descending score.
    matched_truth : (n_tp,) int
        Row of the annotation that each true positive matched.
    matched_iou : (n_tp,) float
        IoU of each true positive with its annotation.
    false_positive : (n_fp,) int
        Rows of the unmatched detections that are not on a crowd region.
    evaluated : (n_tp + n_fp,) int
        True and false positives, by image, then descending score.
    """

    iou: float
    true_positive: Ints
    matched_truth: Ints
    matched_iou: Floats
    false_positive: Ints
    evaluated: Ints


def localise(
    detections: Detections,
    truth: SplitTruth,
    pairs: Pairs,
    iou: float,
    keep: Bools | None = None,
) -> Localisation:
    """Match detections to scored specimens at one IoU threshold, whatever their species.

    Parameters
    ----------
    detections : Detections
        Detections of one split.
    truth : SplitTruth
        Annotations of the split.
    pairs : Pairs
        All pairs with an IoU of at least ``iou``.
    iou : float
        IoU threshold in (0, 1]; a pair matches if its IoU is >= ``iou``.
    keep : (n_truth,) bool, optional
        The annotations to evaluate, by default all.

    Returns
    -------
    Localisation

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1. Per image, in order of descending score (file order
    on ties), each detection matches the unmatched scored specimen with the highest IoU, the first
    in file order on equal IoU. An unmatched detection that has IoU >= ``iou`` with a crowd region
    is ignored. All other unmatched detections are false positives. Unlike in COCO matching, the
    overlap with a crowd region is the plain IoU.
    """
    reach = pairs.iou >= iou
    n_truth = len(truth.image)
    kept = np.ones(n_truth, np.bool_) if keep is None else keep
    scored = pairs.subset(reach & ~pairs.crowd)
    match = greedy_match(
        scored,
        scored.iou,
        detections.rank,
        detections.image,
        np.zeros(len(detections), np.int64),
        np.where(kept, 0, -1),
        truth.crowd,
        np.array([iou]),
        np.zeros((1, n_truth), np.bool_),
        last_on_ties=False,
    )
    gt_matches = match.gt_matches[0, 0]
    matched_truth = np.flatnonzero(gt_matches >= 0)
    true_positive = gt_matches[matched_truth].astype(np.int64)
    is_tp = np.zeros(len(detections), np.bool_)
    is_tp[true_positive] = True
    truth_of = np.zeros(len(detections), np.int64)
    truth_of[true_positive] = matched_truth
    true_positive = detections.by_image[is_tp[detections.by_image]]
    matched_truth = truth_of[true_positive]
    on_crowd = np.zeros(len(detections), np.bool_)
    on_crowd[pairs.detection[reach & pairs.crowd & kept[pairs.truth]]] = True
    false_positive = np.flatnonzero(~is_tp & ~on_crowd)
    evaluated = detections.by_image[(is_tp | ~on_crowd)[detections.by_image]]
    pair_key = scored.detection * n_truth + scored.truth
    of_match = true_positive * n_truth + pairs.twin_of[matched_truth]
    matched_iou = scored.iou[np.searchsorted(pair_key, of_match)]
    # sides shorter than the rounding of their coordinates can give an infinite IoU
    matched_iou = np.where(np.isfinite(matched_iou), matched_iou, 1.0)
    return Localisation(iou, true_positive, matched_truth, matched_iou, false_positive, evaluated)
