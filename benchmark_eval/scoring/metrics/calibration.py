"""Whether confidence means what it says."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.numbers import mean
from benchmark_eval.results.schema import Calibration
from benchmark_eval.scoring.split_data import SplitData

BINS = 10


def calibration(data: SplitData) -> Calibration:
    """Expected calibration error over ten bins of confidence (benchmark evaluator).

    Over hits and false positives; boxes on crowd regions are left out. A bin holds the scores
    from its lower edge (included) to its upper; ECE is the mean over boxes of the distance
    between the bin's mean confidence and its share of hits.
    """
    score = data.detections.score[data.local.judged]
    hit = data.is_tp[data.local.judged]
    inner = np.linspace(0, 1, BINS + 1)[1:-1]
    which = np.searchsorted(inner, score, side="right")
    count = np.bincount(which, minlength=BINS)
    shares: list[float | None] = [None] * BINS
    error = 0.0
    for b in np.flatnonzero(count).tolist():
        inside = which == b
        share_of_hits = float(np.count_nonzero(hit[inside])) / int(count[b])
        shares[b] = share_of_hits
        error += int(count[b]) / len(score) * abs(float(score[inside].mean()) - share_of_hits)
    return Calibration(
        ECE=error if len(score) else None,
        mean_confidence=mean(score),
        confidence_histogram=count.tolist(),
        accuracy_per_bin=shares,
        n_predictions=len(score),
    )
