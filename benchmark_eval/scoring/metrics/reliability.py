"""Reliability: confidence against observed fractions in bins of equal size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.results.schema import Reliability, ReliabilityBins, ReliabilityOf
from benchmark_eval.scoring.error_types import is_class_agnostic
from benchmark_eval.scoring.split_data import SplitData

BINS = 10


def reliability(data: SplitData, threshold: float | None) -> Reliability:
    """Reliability of the confidence as the probability of three events.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    threshold : float or None
        The operating threshold; None if undefined.

    Returns
    -------
    Reliability
        For each event the bins over all detections, and over those with a score >= ``threshold``
        (None without one).

    Notes
    -----
    Ours; the bins are those of ``sklearn.calibration.calibration_curve(strategy="quantile")``.
    Over the true and false positives of the localisation matching (``detected``,
    ``detected_and_identified``) or over the true positives (``identified``); detections ignored on
    crowd regions do not count.
    """
    score = data.detections.score
    hit = data.is_tp
    right = np.zeros(len(score), np.bool_)
    right[data.local.true_positive[data.agreement.species]] = True
    selected = np.zeros(len(score), np.bool_)
    selected[data.local.evaluated] = True
    ascending = data.detections.best_first[::-1]
    evaluated, hits = ascending[selected[ascending]], ascending[hit[ascending]]

    def event(rows: Ints, happened: Bools) -> ReliabilityOf:
        scores, outcome = score[rows], happened[rows]
        operating = None
        if threshold is not None:
            first = int(np.searchsorted(scores, threshold, side="left"))
            operating = equal_mass_bins(scores[first:], outcome[first:])
        return ReliabilityOf(all=equal_mass_bins(scores, outcome), operating=operating)

    named: dict[str, Any] = {}
    if not is_class_agnostic(data.truth.name):
        named = {
            "identified": event(hits, right),
            "detected_and_identified": event(evaluated, right),
        }
    return Reliability(detected=event(evaluated, hit), **named)


def equal_mass_bins(scores: Floats, happened: Bools, n_bins: int = BINS) -> ReliabilityBins:
    """Observed fraction and mean confidence in bins between quantiles of the scores.

    Parameters
    ----------
    scores : (n,) float
        Confidences, ascending.
    happened : (n,) bool
        Whether the event occurred.
    n_bins : int, default 10
        Number of bins. Tied scores share a bin, so some bins can be empty; these are omitted.

    Returns
    -------
    ReliabilityBins
        ``ECE_equal_mass`` is the mean absolute difference between mean confidence and observed
        fraction, weighted by the number of detections; None without detections.
    """
    n = len(scores)
    if not n:
        return ReliabilityBins(
            n_detections=0,
            ECE_equal_mass=None,
            edges=[],
            n_in_bin=[],
            mean_confidence=[],
            observed=[],
        )
    edges = np.quantile(scores, np.linspace(0, 1, n_bins + 1))
    # a score on an inner edge belongs to the bin below it, as in scikit-learn
    bounds = np.r_[0, np.searchsorted(scores, edges[1:-1], side="right"), n]
    count = np.diff(bounds)
    which = np.repeat(np.arange(n_bins), count)
    filled = count > 0
    count = count[filled]
    confidence = np.bincount(which, weights=scores, minlength=n_bins)[filled] / count
    observed = np.bincount(which, weights=happened, minlength=n_bins)[filled] / count
    return ReliabilityBins(
        n_detections=n,
        ECE_equal_mass=math.fsum((count / n * np.abs(confidence - observed)).tolist()),
        edges=edges.tolist(),
        n_in_bin=count.tolist(),
        mean_confidence=confidence.tolist(),
        observed=observed.tolist(),
    )
