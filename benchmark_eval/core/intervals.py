"""Mean, standard deviation and confidence interval of one number over seeds.

Sums are exact (``math.fsum``), so results depend neither on the order of the models nor on the
processor. Undefined values are ignored; ``n`` counts the defined ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import msgspec

LEVEL = 0.95
"""Nominal coverage of all intervals over seeds."""


class Estimate(msgspec.Struct, frozen=True):
    """The mean over the ``n`` seeds with a defined value.

    ``mean`` is None for n = 0; ``std`` (ddof 1) and the interval are None for n < 2. The interval
    is Student's t over seeds and is not clipped to the metric's range.
    """

    mean: float | None
    std: float | None
    n: int
    ci95_low: float | None
    ci95_high: float | None


UNDEFINED = Estimate(None, None, 0, None, None)


@cache
def _t_quantile(degrees: int) -> float:
    """The two-sided quantile of Student's t at ``LEVEL``."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def estimate(values: Iterable[float | None]) -> Estimate:
    """The estimate from all defined ``values``."""
    defined = [value for value in values if value is not None]
    n = len(defined)
    if n == 0:
        return UNDEFINED
    mean = math.fsum(defined) / n
    if n == 1:
        return Estimate(mean, None, 1, None, None)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in defined) / (n - 1))
    half = _t_quantile(n - 1) * std / math.sqrt(n)
    return Estimate(mean, std, n, mean - half, mean + half)


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of all defined ``values``; None if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None
