"""Reliability: confidence against observed fractions in bins of equal size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.results.schema import Reliability, ReliabilityBins, ReliabilityOf
from benchmark_eval.scoring.error_types import is_class_agnostic
from benchmark_eval.scoring.metrics.operating_point import SortedScores

BINS = 10


def reliability(split: str, scores: SortedScores, threshold: float | None) -> Reliability:
    """Reliability of the confidence as the probability of three events.

    Parameters
    ----------
    split : str
        Name of the split.
    scores : SortedScores
        The scores of its detections by outcome.
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

    def event(of: Floats, happened: Floats) -> ReliabilityOf:
        operating = None
        if threshold is not None:
            operating = equal_mass_bins(_from(of, threshold), _from(happened, threshold))
        return ReliabilityOf(all=equal_mass_bins(of, happened), operating=operating)

    named: dict[str, Any] = {}
    if not is_class_agnostic(split):
        named = {
            "identified": event(scores.true_positive, scores.correct),
            "detected_and_identified": event(scores.evaluated, scores.correct),
        }
    return Reliability(detected=event(scores.evaluated, scores.true_positive), **named)


def _from(scores: Floats, threshold: float) -> Floats:
    """The ascending scores at and above a threshold."""
    return scores[int(np.searchsorted(scores, threshold, side="left")) :]


def equal_mass_bins(scores: Floats, happened: Floats, n_bins: int = BINS) -> ReliabilityBins:
    """Observed fraction and mean confidence in bins between quantiles of the scores.

    Parameters
    ----------
    scores : (n,) float
        Confidences, ascending.
    happened : (n_happened,) float
        The scores for which the event occurred, ascending.
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
    edges = _quantiles(scores, n_bins)
    # a score on an inner edge belongs to the bin below it, as in scikit-learn

    def per_bin(ascending: Floats) -> Ints:
        inner = np.searchsorted(ascending, edges[1:-1], side="right")
        per: Ints = np.diff(np.r_[0, inner, len(ascending)])
        return per

    count = per_bin(scores)
    total = np.bincount(np.repeat(np.arange(n_bins), count), weights=scores, minlength=n_bins)
    filled = count > 0
    confidence = total[filled] / count[filled]
    observed = per_bin(happened)[filled] / count[filled]
    count = count[filled]
    return ReliabilityBins(
        n_detections=n,
        ECE_equal_mass=math.fsum((count / n * np.abs(confidence - observed)).tolist()),
        edges=edges.tolist(),
        n_in_bin=count.tolist(),
        mean_confidence=confidence.tolist(),
        observed=observed.tolist(),
    )


def _quantiles(ascending: Floats, n_bins: int) -> Floats:
    """``numpy.quantile`` (linear) at 0, 1 / n_bins, ..., 1, without sorting again."""
    place = np.linspace(0, 1, n_bins + 1) * (len(ascending) - 1)
    below = np.floor(place).astype(np.int64)
    low, high = ascending[below], ascending[np.minimum(below + 1, len(ascending) - 1)]
    part, step = place - below, high - low
    # both forms are exact at their end, as in numpy
    return np.where(part < 0.5, low + step * part, high - step * (1 - part))
