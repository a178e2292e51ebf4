"""Intervals over seeds that borrow strength from the other rows of their table.

Three seeds say little about their own standard deviation. A table of many conditions says much
about the usual one, which changes smoothly with the level of the metric. The moderated interval
combines both, as is done for thousands of genes measured on a few samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from benchmark_eval.core.intervals import (
    MIN_SEEDS,
    UNIT,
    Estimate,
    Interval,
    Reason,
    estimate,
    expit,
    logit,
    seed_interval,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING

MIN_ROWS = 15
"""Fewest rows of a table, with at least two seeds each, that permit moderation."""
MIN_FITTED = 10
"""Fewest rows that the trend is fitted to: a row enters if its seeds differ."""
MIN_SPECIMENS = 80
"""Fewest specimens behind a share that permit moderation; fewer make it discrete."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The usual variance over seeds of logit(mean), and the degrees of freedom it is worth.

    log variance = c0 + c1 u + c2 (u^2 - a - b u) with u = logit(mean) - centre; logits outside
    [lowest, highest] take the value at that end. ``df`` is infinite if the rows differ no more
    than chance makes them. ``df_total`` is the sum of the rows' own degrees of freedom.
    """

    coefficients: tuple[float, float, float]
    centre: float
    basis: tuple[float, float]
    lowest: float
    highest: float
    df: float
    df_total: int

    def variance(self, at: float) -> float:
        """The prior variance of a row whose mean has the logit ``at``."""
        u = max(self.lowest, min(self.highest, at)) - self.centre
        c0, c1, c2 = self.coefficients
        a, b = self.basis
        return math.exp(c0 + c1 * u + c2 * (u * u - a - b * u))


def retraining_intervals(
    rows: Sequence[Sequence[float | None]],
    bounds: tuple[float, float] | None = UNIT,
    n_specimens: int | None = None,
    by_construction: bool = False,
) -> list[Interval]:
    """The interval over seeds of every row of a table of one metric.

    Parameters
    ----------
    rows
        The values of each condition, one per seed; None where undefined. Every condition of the
        table, before equal training sets are pooled; of runs with identical predictions only one.
    bounds
        The metric's range; None if it has none. Only a metric in [0, 1] is moderated.
    n_specimens
        The specimens that a share is counted on; None: not a share of specimens.
    by_construction
        The metric is constant whatever the model does: no interval.

    Returns
    -------
    list of Interval
        One per row, in order; each covers retraining. Moderated if the table has at least 15 rows
        with two or more seeds and the share at least 80 specimens: expit(logit m +- t sqrt(v / n))
        with the posterior variance v = (d0 v0(m) + d s^2 / (m (1 - m))^2) / (d0 + d), d = n - 1
        and min(d0 + d, sum of d) degrees of freedom. Otherwise, and in rows whose number of seeds
        is not the most common one, Student's t (``seed_interval``). None at a mean of exactly 0
        or 1.

    Notes
    -----
    Smyth (2004), "Linear models and empirical Bayes methods for assessing differential
    expression in microarray experiments"; the prior is fitted like limma's ``fitFDist`` with a
    covariate (``fit_prior``).
    """
    plain = [seed_interval(row, bounds) for row in rows]
    if by_construction:
        return [without_interval(row, Reason.BY_CONSTRUCTION) for row in plain]
    estimates = [estimate(row) for row in rows]
    several = [e for e in estimates if e.n >= 2]
    small = n_specimens is not None and n_specimens < MIN_SPECIMENS
    if bounds != UNIT or small or len(several) < MIN_ROWS:
        return plain
    counts = Counter(e.n for e in several)
    usual = max(counts, key=lambda n: (counts[n], n))
    prior = fit_prior([e for e in several if e.n == usual], usual)
    if prior is None:
        return plain
    return [
        _moderated(interval, e, prior) if e.n == usual else interval
        for interval, e in zip(plain, estimates, strict=True)
    ]


def _moderated(plain: Interval, value: Estimate, prior: Prior) -> Interval:
    mean, std, n = value.mean, value.std, value.n
    if mean is None or std is None or not 0.0 < mean < 1.0:
        return plain
    slope, d = mean * (1.0 - mean), n - 1
    own, at = (std / slope) ** 2, logit(mean)
    usual = prior.variance(at)
    posterior = usual if math.isinf(prior.df) else (prior.df * usual + d * own) / (prior.df + d)
    se, df = math.sqrt(posterior / n), min(prior.df + d, float(prior.df_total))
    half = t_quantile(df) * se
    return replace(
        plain,
        low=expit(at - half),
        high=expit(at + half),
        se=slope * se,
        df=df,
        no_interval=None,
        no_verdict=Reason.FEW_SEEDS if n < MIN_SEEDS else None,
    )


def fit_prior(rows: Sequence[Estimate], n_seeds: int) -> Prior | None:
    """Fit the prior of the variances to rows of ``n_seeds`` seeds each.

    Rows whose seeds agree and those with a mean of 0 or 1 stay out of the fit. None if fewer than
    10 rows remain.

    Notes
    -----
    With e = log v - digamma(d / 2) + log(d / 2), the prior is a least-squares quadratic of e on
    logit m, and trigamma(d0 / 2) is the residual variance plus one standard error of it minus
    trigamma(d / 2); if that is not positive, d0 is infinite. Smyth (2004), section 6.2, and
    ``fitFDist`` of limma, which do not add the standard error: with 15 rows whose variances
    differ, their intervals cover 0.92 instead of 0.93.
    """
    from scipy.special import polygamma, psi

    d = n_seeds - 1
    shift = math.log(d / 2) - float(psi(d / 2))
    x, y = [], []
    for row in rows:
        if row.mean is None or row.std is None or not 0.0 < row.mean < 1.0:
            continue
        if row.std > ROUNDING * row.mean:
            x.append(logit(row.mean))
            y.append(2.0 * math.log(row.std / (row.mean * (1.0 - row.mean))) + shift)
    if len(x) < MIN_FITTED:
        return None
    curve = _quadratic(x, y)
    # a spread of the rows that is too small by chance would make every interval too narrow
    upper = curve.residual_variance * (1.0 + math.sqrt(2.0 / curve.df))
    excess = upper - float(polygamma(1, d / 2))
    c0, c1, c2 = curve.coefficients
    if excess > 0:
        df = 2.0 * trigamma_inverse(excess)
        c0 += float(psi(df / 2)) - math.log(df / 2)
    else:
        df = math.inf
    return Prior((c0, c1, c2), curve.centre, curve.basis, min(x), max(x), df, d * len(x))


@dataclass(frozen=True, slots=True)
class _Quadratic:
    """A least-squares parabola in orthogonal polynomials, as in ``Prior``."""

    coefficients: tuple[float, float, float]
    centre: float
    basis: tuple[float, float]
    residual_variance: float
    df: int


def _quadratic(x: Sequence[float], y: Sequence[float]) -> _Quadratic:
    """Closed-form least squares; a constant or a line if x has one or two distinct values."""
    n = len(x)
    centre = math.fsum(x) / n
    u = [value - centre for value in x]
    uu = math.fsum(value * value for value in u)
    a, b = uu / n, math.fsum(value**3 for value in u) / uu if uu > 0 else 0.0
    w = [value * value - a - b * value for value in u]
    ww = math.fsum(value * value for value in w)
    c0 = math.fsum(y) / n
    # sums of squares below these are rounding errors
    has_slope = uu > ROUNDING * n * (1.0 + centre * centre)
    has_curve = has_slope and ww > ROUNDING * n * a * a
    c1 = math.fsum(p * q for p, q in zip(u, y, strict=True)) / uu if has_slope else 0.0
    c2 = math.fsum(p * q for p, q in zip(w, y, strict=True)) / ww if has_curve else 0.0
    rest = math.fsum((q - c0 - c1 * p - c2 * r) ** 2 for p, q, r in zip(u, y, w, strict=True))
    df = n - 1 - has_slope - has_curve
    return _Quadratic((c0, c1, c2), centre, (a, b), rest / df, df)


def trigamma_inverse(value: float) -> float:
    """The x > 0 with trigamma(x) = ``value`` > 0, by Newton's method.

    Notes
    -----
    Smyth (2004), appendix: Newton's method on 1 / trigamma, which is convex and nearly linear, so
    that it converges from 0.5 + 1 / ``value`` without overshooting.

    Examples
    --------
    >>> round(trigamma_inverse(1.6449340668482264), 12)
    1.0
    """
    from scipy.special import polygamma

    if value > 1e7:
        return 1.0 / math.sqrt(value)
    if value < 1e-6:
        return 1.0 / value
    x = 0.5 + 1.0 / value
    for _ in range(50):
        at = float(polygamma(1, x))
        step = at * (1.0 - at / value) / float(polygamma(2, x))
        x += step
        if -step < 1e-8 * x:
            break
    return x
