"""Fractions, differences and correlations, which are undefined (None) if an operand is."""

from __future__ import annotations

import math

import numpy as np

from benchmark_eval.core.arrays import Floats

ROUNDING = 1e-12
"""Relative range below which values count as equal up to rounding."""


def mean(values: Floats) -> float | None:
    """Mean; None if there are no values."""
    return float(values.mean()) if len(values) else None


def share(part: int, whole: int) -> float | None:
    """``part / whole``; None if ``whole`` is 0."""
    return int(part) / int(whole) if whole else None


def difference(a: float | None, b: float | None) -> float | None:
    """``a - b``; None if either is None."""
    return None if a is None or b is None else a - b


def ratio(a: float | None, b: float | None) -> float | None:
    """``a / b``; None if either is None or ``b`` is 0."""
    return None if a is None or not b else a / b


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's r; None for fewer than three points or if a variable is constant up to rounding.

    Sums are exact (``math.fsum``): the result depends on neither order nor processor.
    """
    if len(x) < 3 or _constant(x) or _constant(y):
        return None
    dx = x - math.fsum(x) / len(x)
    dy = y - math.fsum(y) / len(y)
    spread = math.sqrt(math.fsum(dx * dx)) * math.sqrt(math.fsum(dy * dy))
    return max(-1.0, min(1.0, math.fsum(dx * dy) / spread)) if spread else None


def _constant(values: Floats) -> bool:
    """Whether values differ only by rounding: AP of a perfect species can be 1 or 1 - 2e-16."""
    return float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max())
