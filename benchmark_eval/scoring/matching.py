"""Greedy matching of detections to ground truth, and the localisation matching.

``greedy_match`` is the only matching algorithm. COCO matching (``coco.match_coco``) and the
localisation matching (``localise``) call it with different rules. It considers overlapping pairs
only. A detection with a single candidate that no ambiguous detection overlaps needs no loop: the
specimen goes to the first detection that reaches the threshold. All other detections are matched
in rounds: in round ``r``, the ``r``-th detection of every image chooses, for all images,
thresholds and area ranges at once.
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
"""Number of ambiguous pairs that are sorted into rounds at a time."""
ROUNDS_AT_ONCE = 64
"""Number of rounds between two passes that drop pairs that can no longer match."""
MatchedRows = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Match:
    """Result of a matching, for every threshold and area range.

    Attributes
    ----------
    gt_matches : (n_thresholds, n_areas, n_truth) int
        Row of the detection matched to each annotation, -1 if unmatched. Always -1 for crowd
        regions, which can match any number of detections.
    crowd_matched : list of lists of (n,) int
        ``crowd_matched[t][a]`` holds the rows of detections matched to a crowd region.
    """

    gt_matches: MatchedRows
    crowd_matched: list[list[Ints]]


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
        Detections of one group compete with each other, for example those of one image.
    n_truth : int
        Number of annotations.
    thresholds : (n_thresholds,) float
        Ascending. A pair matches if its overlap is >= the threshold.
    ignored : (n_areas, n_truth) bool
        Annotations to match only if no other one reaches the threshold (COCO: crowd regions and
        annotations outside the area range).
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
    n_areas = len(ignored)
    gt_matches = np.full((len(thresholds), n_areas, n_truth), -1, np.int32)
    crowd_matched: list[list[list[Ints]]] = [[[] for _ in range(n_areas)] for _ in thresholds]
    n_choices = np.bincount(pairs.detection, minlength=1)
    contested = np.zeros(n_truth, np.bool_)
    contested[pairs.truth[n_choices[pairs.detection] > 1]] = True
    ambiguous = contested[pairs.truth]

    # each of these has one candidate, which goes to the first detection that reaches the threshold
    easy = np.flatnonzero(~ambiguous)
    easy = easy[stable_order(rank[pairs.detection[easy]])]
    easy = easy[stable_order(pairs.truth[easy])]
    for t, threshold in enumerate(thresholds):
        easy = easy[overlap[easy] >= threshold]
        on_crowd = pairs.crowd[easy]
        solo = easy[~on_crowd]
        best = solo[first_of_run(pairs.truth[solo])]
        gt_matches[t][:, pairs.truth[best]] = pairs.detection[best]
        if on_crowd.any():
            for a in range(n_areas):
                crowd_matched[t][a].append(pairs.detection[easy[on_crowd]])

    rounds = _Rounds(
        pairs, overlap, thresholds, ignored, gt_matches, crowd_matched, last_on_ties=last_on_ties
    )
    rounds.match(np.flatnonzero(ambiguous), rank, group)
    none = np.empty(0, np.int64)
    return Match(gt_matches, [[np.concatenate([none, *a]) for a in row] for row in crowd_matched])


class _Rounds:
    """Matches ambiguous pairs in rounds; fills ``gt_matches`` and ``crowd_matched`` in place."""

    def __init__(
        self,
        pairs: Pairs,
        overlap: Floats,
        thresholds: Floats,
        ignored: Bools,
        gt_matches: MatchedRows,
        crowd_matched: list[list[list[Ints]]],
        *,
        last_on_ties: bool,
    ) -> None:
        self.pairs, self.overlap = pairs, overlap
        self.thresholds, self.ignored = thresholds, ignored
        self.gt_matches, self.crowd_matched = gt_matches, crowd_matched
        self.last_on_ties = last_on_ties

    def match(self, rows: Ints, rank: Ints, group: Ints) -> None:
        """Match the detections of the pairs ``rows``, those of a group one after another.

        Works through the ranks in blocks. Before each block, and every ``ROUNDS_AT_ONCE`` rounds,
        pairs that can no longer match are dropped, so that many detections on few annotations
        take few rounds.
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
            while len(block := block[self._can_match(block)]):
                block = self._some_rounds(block, rank, group)

    def _some_rounds(self, rows: Ints, rank: Ints, group: Ints) -> Ints:
        """Run the first rounds on the pairs ``rows``; return the pairs of later rounds."""
        detection = self.pairs.detection[rows]
        rivals = np.unique(detection)
        order = np.lexsort((rank[rivals], group[rivals]))
        turn = place_in_run(group[rivals], order)[np.searchsorted(rivals, detection)]
        # stable: within a detection the pairs stay in file order of the ground truth
        order = np.argsort(turn, kind="stable")
        rows, turn = rows[order], turn[order]
        n_rounds = min(int(turn[-1]) + 1, ROUNDS_AT_ONCE)
        limits = np.searchsorted(turn, np.arange(n_rounds + 1)).tolist()
        for begin, end in itertools.pairwise(limits):
            self._round(rows[begin:end])
        return np.sort(rows[limits[-1] :])

    def _can_match(self, rows: Ints) -> Bools:
        """Whether the ground truth of each pair is still free at a threshold the pair reaches."""
        limit = np.where(self.gt_matches < 0, self.thresholds[:, None, None], np.inf)
        lowest = limit.min(axis=(0, 1))
        return np.asarray(self.overlap[rows] >= lowest[self.pairs.truth[rows]])

    def _round(self, rows: Ints) -> None:
        """Match one detection of every group; ``rows`` are the pairs of these detections."""
        pairs = self.pairs
        truth, detection, on_crowd = pairs.truth[rows], pairs.detection[rows], pairs.crowd[rows]
        overlap = self.overlap[rows]
        new = np.flatnonzero(first_of_run(detection))
        size = np.diff(np.r_[new, len(rows)])
        free = (self.gt_matches[:, :, truth] < 0) | on_crowd
        free &= overlap >= self.thresholds[:, None, None]
        ignored = self.ignored[:, truth]
        value = np.where(free, overlap, -1.0)
        best_scored = np.maximum.reduceat(np.where(ignored, -1.0, value), new, axis=2)
        best_ignored = np.maximum.reduceat(np.where(ignored, value, -1.0), new, axis=2)
        use_ignored = best_scored < 0
        best = np.where(use_ignored, best_ignored, best_scored)
        chosen = (value == np.repeat(best, size, axis=2)) & (value >= 0)
        chosen &= ignored == np.repeat(use_ignored, size, axis=2)
        place = np.arange(len(rows))
        if self.last_on_ties:
            pick = np.maximum.reduceat(np.where(chosen, place, -1), new, axis=2)
            matched = pick >= 0
        else:
            pick = np.minimum.reduceat(np.where(chosen, place, len(rows)), new, axis=2)
            matched = pick < len(rows)
        t, a, n = np.nonzero(matched)
        picked = pick[t, a, n]
        crowded = on_crowd[picked]
        t_free, a_free, picked_free = t[~crowded], a[~crowded], picked[~crowded]
        self.gt_matches[t_free, a_free, truth[picked_free]] = detection[picked_free]
        for i in np.flatnonzero(crowded):
            self.crowd_matched[t[i]][a[i]].append(detection[picked[i : i + 1]])


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


def localise(detections: Detections, truth: SplitTruth, pairs: Pairs, iou: float) -> Localisation:
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
    on_crowd[pairs.detection[reach & pairs.crowd]] = True
    false_positive = np.flatnonzero(~is_tp & ~on_crowd)
    evaluated = detections.by_image[(is_tp | ~on_crowd)[detections.by_image]]
    pair_key = scored.detection * n_truth + scored.truth
    matched_iou = scored.iou[np.searchsorted(pair_key, true_positive * n_truth + matched_truth)]
    # sides shorter than the rounding of their coordinates can give an infinite IoU
    matched_iou = np.where(np.isfinite(matched_iou), matched_iou, 1.0)
    return Localisation(iou, true_positive, matched_truth, matched_iou, false_positive, evaluated)
