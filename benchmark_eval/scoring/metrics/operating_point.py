"""What a user gets who keeps only boxes of at least some confidence."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.numbers import share
from benchmark_eval.results.schema import OperatingCurve, OperatingPoint, OperatingPointAt
from benchmark_eval.scoring.detections import Detections, first_of_run
from benchmark_eval.scoring.split_data import SplitData


def operating_point(data: SplitData) -> OperatingPoint:
    """Precision, recall, F1, species recall and false alarms at cuts of confidence (ours).

    The localisation matching serves every cut: as better detections choose first, dropping the
    worse ones changes no match. The best F1 is sought over all scores that occur; on a tie the
    highest confidence wins.
    """
    cuts = _Thresholds(data)
    grid = np.arange(101) / 100
    curve = [cuts.at(float(c)) for c in grid]
    return OperatingPoint(
        best_F1=cuts.best(),
        at_25=cuts.at(0.25),
        at_50=cuts.at(0.5),
        curve=OperatingCurve(
            confidence=grid.tolist(),
            precision=[p.precision for p in curve],
            recall=[p.recall for p in curve],
            F1=[p.F1 for p in curve],
            species_recall=[p.species_recall for p in curve],
            false_positives_per_image=[p.false_positives_per_image for p in curve],
        ),
    )


def _scores_of(rows: Ints, detections: Detections) -> Floats:
    """Scores of some detections, ascending."""
    wanted = np.zeros(len(detections), np.bool_)
    wanted[rows] = True
    order = detections.best_first[::-1]
    return detections.score[order[wanted[order]]]


class _Thresholds:
    """Scores ascending, with how many of each kind stand at or above each."""

    def __init__(self, data: SplitData) -> None:
        local = data.local
        self.judged = _scores_of(local.judged, data.detections)
        self.hits = _scores_of(local.true_positive, data.detections)
        self.right = _scores_of(local.true_positive[data.agreement.species], data.detections)
        self.n_gt = data.truth.n_scored
        self.n_images = len(data.truth.image_ids)

    def _above(self, scores: Floats, cut: Floats) -> Ints:
        return len(scores) - np.searchsorted(scores, cut, side="left")

    def at(self, confidence: float) -> OperatingPointAt:
        kept, hits, right = (
            int(self._above(scores, np.array(confidence)))
            for scores in (self.judged, self.hits, self.right)
        )
        return OperatingPointAt(
            confidence=confidence,
            n_detections=kept,
            precision=share(hits, kept),
            recall=share(hits, self.n_gt),
            F1=share(2 * hits, kept + self.n_gt) if self.n_gt else None,
            species_recall=share(right, self.n_gt),
            false_positives_per_image=share(kept - hits, self.n_images),
        )

    def best(self) -> OperatingPointAt:
        cuts = self.judged[first_of_run(self.judged)][::-1]
        if not len(cuts) or not self.n_gt:
            return OperatingPointAt(
                confidence=None,
                n_detections=0,
                precision=None,
                recall=None,
                F1=None,
                species_recall=None,
                false_positives_per_image=None,
            )
        f1 = 2 * self._above(self.hits, cuts) / (self._above(self.judged, cuts) + self.n_gt)
        return self.at(float(cuts[int(np.argmax(f1))]))
