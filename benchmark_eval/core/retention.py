"""Retention: what is left of the in-distribution performance elsewhere, as a ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Bools, Floats
from benchmark_eval.core.intervals import (
    MIN_SPECIES,
    Covers,
    Interval,
    Reason,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING

MIN_IN_DISTRIBUTION = 0.2
"""Smallest in-distribution mean of which a ratio is taken."""


def retention(elsewhere: Floats, in_distribution: Floats) -> Interval:
    """Sum elsewhere / sum in distribution over the shared species, with a jackknife interval.

    It stands beside every absolute gap, because a model that can do nothing has no gap.

    Parameters
    ----------
    elsewhere, in_distribution
        (species, seeds), the same species and models on both splits; NaN where undefined. A
        species counts by its means over the seeds where both are defined, and is left out without
        such a seed.

    Returns
    -------
    Interval
        Covers species, whatever the number of seeds. The interval is that of the log ratio, with
        the variance of the jackknife over species and S - 1 degrees of freedom; it can exceed 1.
        ``mean`` is None if the in-distribution mean is below 0.2. No interval for fewer than three
        species, for a field mean of 0, or if the ratio is 0 without one of the species. Never a
        verdict, as it does not cover retraining.

    Notes
    -----
    Tukey's jackknife, as in Efron (1982), "The Jackknife, the Bootstrap and Other Resampling
    Plans". ``se`` is the standard error of the log ratio times the ratio.

    Examples
    --------
    >>> import numpy as np
    >>> retention(np.array([[0.4], [0.3], [0.2]]), np.array([[0.8], [0.6], [0.4]])).mean
    0.5
    """
    both = ~(np.isnan(elsewhere) | np.isnan(in_distribution))
    a, b = _means(elsewhere, both), _means(in_distribution, both)
    n, n_left_out = len(a), int((~both.any(axis=1)).sum())
    found = Interval(
        mean=None,
        covers=Covers.SPECIES,
        n_species=n,
        n_seeds=int(both.any(axis=0).sum()),
        n_left_out=n_left_out,
    )
    if not n:
        return without_interval(found, Reason.NO_VALUES)
    if math.fsum(b) / n < MIN_IN_DISTRIBUTION:
        return without_interval(found, Reason.LOW_IN_DISTRIBUTION)
    return ratio_over_species(a, b, found, Reason.ZERO_IN_FIELD)


def ratio_over_species(
    above: Sequence[float], below: Sequence[float], found: Interval, zero: Reason
) -> Interval:
    """Sum ``above`` / sum ``below`` over species, with the jackknife interval of ``retention``.

    Parameters
    ----------
    above, below
        One value per species; the sum of ``below`` is positive.
    found
        The numbers of species and seeds.
    zero
        The reason for no interval if the ratio is 0.
    """
    whole_above, whole_below = math.fsum(above), math.fsum(below)
    ratio = whole_above / whole_below
    found = replace(found, mean=ratio)
    if len(above) < MIN_SPECIES:
        return without_interval(found, Reason.FEW_SPECIES)
    if whole_above <= ROUNDING:
        return without_interval(found, zero)
    omitted = [(whole_above - x, whole_below - y) for x, y in zip(above, below, strict=True)]
    if any(x <= ROUNDING or y <= ROUNDING for x, y in omitted):
        return without_interval(found, Reason.ONE_SPECIES_DECIDES)
    return _jackknife(found, ratio, [math.log(x) - math.log(y) for x, y in omitted])


def _jackknife(found: Interval, ratio: float, logs: list[float]) -> Interval:
    """The interval from the log ratios without each species."""
    n = len(logs)
    mean = math.fsum(logs) / n
    se = math.sqrt((n - 1) / n * math.fsum((value - mean) ** 2 for value in logs))
    if se <= ROUNDING:
        return without_interval(found, Reason.NO_VARIATION)
    half = t_quantile(n - 1) * se
    return replace(
        found,
        low=ratio * math.exp(-half),
        high=ratio * math.exp(half),
        se=ratio * se,
        df=float(n - 1),
        no_verdict=Reason.SPECIES_ONLY,
    )


def _means(values: Floats, defined: Bools) -> list[float]:
    """The mean of each species that has a defined seed."""
    rows = [row[some].tolist() for row, some in zip(values, defined, strict=True)]
    return [math.fsum(row) / len(row) for row in rows if row]
