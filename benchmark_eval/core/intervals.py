"""Confidence intervals: their type, the reasons for not giving one, and the interval over seeds.

Sums are exact (``math.fsum``), so results depend neither on the order of the models nor on the
processor. Undefined values are ignored; ``n`` counts the defined ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist

import msgspec

from benchmark_eval.core.numbers import ROUNDING

LEVEL = 0.95
"""Nominal coverage of all intervals."""
MIN_SEEDS = 3
"""Fewest seeds that permit a verdict."""
MIN_SPECIES = 3
"""Fewest species that permit an interval over species."""
UNIT = (0.0, 1.0)
"""The range of an AP, a recall or any other share."""
DIFFERENCE = (-1.0, 1.0)
"""The range of a difference of two of them."""


class Covers(StrEnum):
    """The sources of randomness that an interval covers."""

    RETRAINING = "retraining"
    """Another seed: another draw of training images and another training run."""
    SPECIES = "species"
    """Other species of the same kind; one model."""
    BOTH = "species and retraining"


class Reason(StrEnum):
    """Why there is no interval, or why nothing is concluded from it."""

    NO_VALUES = "no defined value"
    BY_CONSTRUCTION = "fixed by construction"
    ONE_SEED = "only one seed"
    FEW_SEEDS = "fewer than 3 seeds"
    NO_COMMON_SEEDS = "fewer than 3 seeds in common"
    SPECIES_ONLY = "retraining is not covered"
    FEW_SPECIES = "fewer than 3 species"
    SPECIES_LEFT_OUT = "more than 10 % of the species left out"
    IDENTICAL_RUNS = "seeds with the same prediction file"
    OTHER_OPTIONS = "evaluated with other options"
    NO_VARIATION = "no variation"
    AT_BOUND = "exactly 0 or 1"
    FEW_IMAGES = "fewer than 10 images"
    FEW_EFFECTIVE_SPECIES = "fewer than 10 effective species"
    SHARE_FOLLOWS_SIZE = "the share depends on the number of specimens"
    DENOMINATOR_NEAR_ZERO = "the interval of the denominator includes 0"
    SMALL_GAIN = "the gain from all images is below 0.1"
    LOW_IN_DISTRIBUTION = "the in-distribution mean is below 0.2"
    ZERO_IN_FIELD = "the field mean is 0"
    NONE_OBSERVED = "none observed"
    NONE_EXPECTED = "none expected by chance"
    ONE_SPECIES_DECIDES = "0 without one of the species"
    FEW_BUDGETS = "fewer than 2 budgets"
    NO_COMMON_COSTS = "no common range of costs"
    ANY_DENSITY = "the density of the images may differ"
    NOT_COMPARED = "a share that is not compared"
    LOW_STRATA_COVERAGE = "the shared density strata hold less than 80 % of the near specimens"
    ALL_IMAGES = "not reached with all images"
    NO_CEILING = "no positive ceiling"


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its 95 % confidence interval, or the reason why it has none.

    ``low`` and ``high`` are None exactly if ``no_interval`` is set; ``no_verdict`` is set whenever
    nothing may be concluded, so also without an interval. ``se`` is the standard error on the
    scale of ``mean``, and ``df`` its degrees of freedom. ``n_species`` is None for an interval
    over seeds alone; ``n_left_out`` counts the species that lack a value in a used seed.
    """

    mean: float | None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    df: float | None = None
    covers: Covers
    n_species: int | None = None
    n_seeds: int
    n_left_out: int = 0
    no_interval: Reason | None = None
    no_verdict: Reason | None = None


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


@lru_cache(maxsize=4096)
def t_quantile(degrees: float) -> float:
    """The two-sided quantile of Student's t at ``LEVEL``; ``degrees`` need not be whole.

    Not from scipy, whose import would take a tenth of the time of an evaluation. The relative
    error is below 1e-11 (tests compare with scipy).
    """
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    terms = (  # Cornish-Fisher expansion
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    t = math.fsum(term / degrees**power for power, term in enumerate(terms))
    if degrees > 1000:
        return t
    for _ in range(100):  # Newton's method for log(tail) as a function of log(t)
        tail = _t_tail(t, degrees)
        step = math.log(tail / (1 - LEVEL)) * tail / (2 * t * _t_density(t, degrees))
        t *= math.exp(step)
        if abs(step) < 1e-14:
            break
    return t


def _t_density(t: float, degrees: float) -> float:
    """Density of Student's t."""
    a = degrees / 2
    scale = math.lgamma(a + 0.5) - math.lgamma(a) - math.log(math.pi * degrees) / 2
    return math.exp(scale - (a + 0.5) * math.log1p(t * t / degrees))


def _t_tail(t: float, degrees: float) -> float:
    """P(|T| > t) of Student's t, by Lentz's method for the regularised incomplete beta function."""
    a, b, x = degrees / 2, 0.5, degrees / (degrees + t * t)
    upper = x > (a + 1) / (a + b + 2)
    if upper:
        a, b, x = b, a, t * t / (degrees + t * t)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 1000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + numerator * d)
            c = 1.0 + numerator / c
            value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    part = math.exp(front) * value / a
    return 1.0 - part if upper else part


def t_degrees(quantile: float) -> float:
    """The degrees of freedom whose two-sided quantile at ``LEVEL`` is ``quantile``."""
    from scipy.special import stdtridf

    return float(stdtridf((1 + LEVEL) / 2, quantile))


def t_probability(statistic: float, degrees: float) -> float:
    """The two-sided p-value of a t statistic."""
    from scipy.special import stdtr

    return min(1.0, 2.0 * float(stdtr(degrees, -abs(statistic))))


def logit(share: float) -> float:
    """log(p / (1 - p)) of a share in (0, 1)."""
    return math.log(share) - math.log1p(-share)


def expit(value: float) -> float:
    """The share with this logit, without overflow."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    return math.exp(value) / (1.0 + math.exp(value))


def cut(value: float, bounds: tuple[float, float] | None) -> float:
    """``value`` cut to the range of its metric; None: no range."""
    return value if bounds is None else max(bounds[0], min(bounds[1], value))


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
    half = t_quantile(n - 1) * std / math.sqrt(n)
    return Estimate(mean, std, n, mean - half, mean + half)


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of all defined ``values``; None if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def seed_interval(
    values: Iterable[float | None], bounds: tuple[float, float] | None = UNIT
) -> Interval:
    """Student's t interval of a mean over seeds, cut to the metric's range.

    Parameters
    ----------
    values
        One value per seed, in the metric's unit; None where it is undefined.
    bounds
        The metric's range; None if it has none.

    Returns
    -------
    Interval
        Covers retraining. No interval for fewer than two seeds, and none if all seeds agree (an
        interval of zero width would look certain). Never a verdict for fewer than three seeds.

    Examples
    --------
    >>> round(seed_interval([0.50, 0.54, 0.58]).se, 4)
    0.0231
    >>> print(seed_interval([0.5]).no_interval)
    only one seed
    """
    plain = estimate(values)
    found = Interval(mean=plain.mean, covers=Covers.RETRAINING, n_seeds=plain.n)
    if plain.mean is None or plain.std is None:
        return without_interval(found, Reason.ONE_SEED if plain.n else Reason.NO_VALUES)
    if plain.std <= ROUNDING * abs(plain.mean):
        at_bound = bounds is not None and plain.mean in bounds
        return without_interval(found, Reason.AT_BOUND if at_bound else Reason.NO_VARIATION)
    se = plain.std / math.sqrt(plain.n)
    half = t_quantile(plain.n - 1) * se
    return msgspec.structs.replace(
        found,
        low=cut(plain.mean - half, bounds),
        high=cut(plain.mean + half, bounds),
        se=se,
        df=float(plain.n - 1),
        no_verdict=Reason.FEW_SEEDS if plain.n < MIN_SEEDS else None,
    )


def without_interval(found: Interval, reason: Reason) -> Interval:
    """The estimate alone, with the reason why it has no interval and permits no verdict."""
    return msgspec.structs.replace(
        found, low=None, high=None, se=None, df=None, no_interval=reason, no_verdict=reason
    )
