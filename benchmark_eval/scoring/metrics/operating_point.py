"""Operating points: precision and recall at a confidence threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints, first_of_run
from benchmark_eval.core.numbers import share
from benchmark_eval.results.schema import (
    OperatingCurve,
    OperatingPoint,
    OperatingPointAt,
    OperatingThreshold,
)
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.split_data import SplitData


def operating_point(data: SplitData, scores: SortedScores) -> OperatingPoint:
    """Precision, recall, F1, species recall and false positives at confidence thresholds.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    scores : SortedScores
        The scores of its detections.

    Returns
    -------
    OperatingPoint
        At the threshold of the best F1, at 0.25 and 0.50, and the curve over 0.00, 0.01, ..., 1.00.
        Precision is None without detections, recall and F1 None without scored specimens.

    Notes
    -----
    Ours. Detections with a score >= the threshold are kept. The localisation matching serves
    every threshold: higher scores match first, so removing lower ones changes no match. The best
    F1 is searched over all scores that occur; on ties the highest threshold wins.
    """
    thresholds = _Thresholds(data, scores)
    grid = np.arange(101) / 100
    curve = [thresholds.at(float(c)) for c in grid]
    return OperatingPoint(
        best_F1=thresholds.best(),
        at_25=thresholds.at(0.25),
        at_50=thresholds.at(0.5),
        curve=OperatingCurve(
            confidence=grid.tolist(),
            precision=[p.precision for p in curve],
            recall=[p.recall for p in curve],
            F1=[p.F1 for p in curve],
            species_recall=[p.species_recall for p in curve],
            false_positives_per_image=[p.false_positives_per_image for p in curve],
        ),
    )


def given_threshold(confidence: float | None) -> OperatingThreshold:
    """The operating threshold that the user gave; without one, undefined unless iid_test is scored.

    ``threshold_of`` determines it on iid_test.
    """
    if confidence is not None:
        return OperatingThreshold(confidence=float(confidence), source="operating_confidence")
    return OperatingThreshold(confidence=None, source="undefined: iid_test was not scored")


def threshold_of(best: OperatingPointAt) -> OperatingThreshold:
    """The operating threshold of a model: that of the best F1 on iid_test."""
    if best.confidence is None:
        reason = "undefined: no detection or no scored specimen on iid_test"
        return OperatingThreshold(confidence=None, source=reason)
    return OperatingThreshold(confidence=best.confidence, source="best F1 on iid_test")


def _scores_of(rows: Ints, detections: Detections) -> Floats:
    """Scores of the detections ``rows``, ascending."""
    selected = np.zeros(len(detections), np.bool_)
    selected[rows] = True
    order = detections.best_first[::-1]
    return detections.score[order[selected[order]]]


@dataclass(frozen=True, slots=True)
class SortedScores:
    """Ascending scores of evaluated detections, true positives and correct identifications."""

    evaluated: Floats
    true_positive: Floats
    correct: Floats


def sorted_scores(data: SplitData) -> SortedScores:
    """The scores of a split's detections by outcome."""
    hits = data.local.true_positive
    return SortedScores(
        _scores_of(data.local.evaluated, data.detections),
        _scores_of(hits, data.detections),
        _scores_of(hits[data.agreement.species], data.detections),
    )


class _Thresholds:
    """Operating points of one model on one split."""

    def __init__(self, data: SplitData, scores: SortedScores) -> None:
        self.evaluated = scores.evaluated
        self.true_positive = scores.true_positive
        self.correct = scores.correct
        self.n_gt = data.truth.n_scored
        self.n_images = len(data.truth.image_ids)

    def _kept(self, scores: Floats, threshold: Floats) -> Ints:
        """Number of scores at or above each threshold."""
        return len(scores) - np.searchsorted(scores, threshold, side="left")

    def at(self, confidence: float) -> OperatingPointAt:
        """The operating point at one threshold."""
        kept, tp, correct = (
            int(self._kept(scores, np.array(confidence)))
            for scores in (self.evaluated, self.true_positive, self.correct)
        )
        return OperatingPointAt(
            confidence=confidence,
            n_detections=kept,
            precision=share(tp, kept),
            recall=share(tp, self.n_gt),
            F1=share(2 * tp, kept + self.n_gt) if self.n_gt else None,
            species_recall=share(correct, self.n_gt),
            false_positives_per_image=share(kept - tp, self.n_images),
        )

    def best(self) -> OperatingPointAt:
        """The operating point with the highest F1."""
        thresholds = self.evaluated[first_of_run(self.evaluated)][::-1]
        if not len(thresholds) or not self.n_gt:
            return OperatingPointAt(
                confidence=None,
                n_detections=0,
                precision=None,
                recall=None,
                F1=None,
                species_recall=None,
                false_positives_per_image=None,
            )
        n_tp, n_kept = (self._kept(s, thresholds) for s in (self.true_positive, self.evaluated))
        f1 = 2 * n_tp / (n_kept + self.n_gt)
        return self.at(float(thresholds[int(np.argmax(f1))]))
