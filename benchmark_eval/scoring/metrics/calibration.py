"""Calibration: agreement of confidence and precision."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.numbers import mean
from benchmark_eval.results.schema import Calibration
from benchmark_eval.scoring.split_data import SplitData

BINS = 10


def calibration(data: SplitData) -> Calibration:
    """Expected calibration error (ECE) over ten bins of confidence.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    Calibration
        ``ECE`` and ``mean_confidence`` are None without evaluated detections,
        ``accuracy_per_bin`` is None for an empty bin.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1. Over the true and false positives of the
    localisation matching; detections ignored on crowd regions do not count. Species is ignored.
    A bin includes its lower edge. The inner edges are ``linspace(0, 1, 11)[1:-1]``, of which the
    third, sixth and seventh are the next floats above 0.3, 0.6 and 0.7: these three scores are in
    the bin below. With bin b of n_b detections,
    ECE = sum over b of n_b / n * abs(mean confidence - fraction of true positives).
    """
    score = data.detections.score[data.local.evaluated]
    is_tp = data.is_tp[data.local.evaluated]
    inner = np.linspace(0, 1, BINS + 1)[1:-1]
    which = np.searchsorted(inner, score, side="right")
    count = np.bincount(which, minlength=BINS)
    accuracy: list[float | None] = [None] * BINS
    error = 0.0
    for b in np.flatnonzero(count).tolist():
        inside = which == b
        precision = float(np.count_nonzero(is_tp[inside])) / int(count[b])
        accuracy[b] = precision
        error += int(count[b]) / len(score) * abs(float(score[inside].mean()) - precision)
    return Calibration(
        ECE=error if len(score) else None,
        mean_confidence=mean(score),
        confidence_histogram=count.tolist(),
        accuracy_per_bin=accuracy,
        n_predictions=len(score),
    )
