"""Intervals of a mean over species that cover other species and other seeds together.

A table of species x seeds has two random factors that cross: every seed is measured on the same
species. Its mean therefore varies with the draw of species, with the draw of seeds, and with what
is left of each cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Bools, Floats
from benchmark_eval.core.intervals import (
    MIN_SEEDS,
    MIN_SPECIES,
    Covers,
    Interval,
    Reason,
    cut,
    t_degrees,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING

MAX_LEFT_OUT = 0.1
"""Largest fraction of species without a value in a used seed that permits a verdict."""


@dataclass(frozen=True, slots=True)
class CrossedTable:
    """The mean and the mean squares of a complete table of species x seeds.

    ``ms_seed`` and ``ms_residual`` are None for one seed, ``ms_species`` for one species. Mean
    squares below ``zero`` are rounding errors.
    """

    mean: float | None
    ms_species: float | None
    ms_seed: float | None
    ms_residual: float | None
    n_species: int
    n_seeds: int
    n_left_out: int
    zero: float


@dataclass(frozen=True, slots=True)
class SeedVariance:
    """A variance over seeds that several tables share, and its degrees of freedom.

    It is MS_seed / S: the variance of the mean over S species.
    """

    variance: float
    df: float


def crossed_table(values: Floats, minus: Floats | None = None) -> CrossedTable:
    """Reduce a table, or the paired difference of two, to its mean squares.

    Parameters
    ----------
    values
        (species, seeds); NaN where a value is undefined. Only species that the split scores.
    minus
        (species, seeds), the same species and seeds: the second side of a paired difference.

    Returns
    -------
    CrossedTable
        Of the seeds with any value (on both sides), and of the species with a value in each of
        them; ``n_left_out`` counts the other species.
    """
    defined = ~np.isnan(values)
    size = _largest(values, defined)
    if minus is not None:
        if minus.shape != values.shape:
            raise ValueError(f"sides of shapes {values.shape} and {minus.shape}")
        right = ~np.isnan(minus)
        size = max(size, _largest(minus, right))
        # a seed that one side lacks leaves the pair; a species that one side lacks is left out
        used = defined.any(axis=0) & right.any(axis=0)
        values, defined = values - minus, defined & right
    else:
        used = defined.any(axis=0)
    values, defined = values[:, used], defined[:, used]
    complete = defined.all(axis=1) if used.any() else np.zeros(len(values), bool)
    return _reduce(values[complete], int((~complete).sum()), size)


def _largest(values: Floats, defined: Bools) -> float:
    return float(np.abs(values[defined]).max()) if defined.any() else 0.0


def _reduce(cells: Floats, n_left_out: int, size: float) -> CrossedTable:
    zero = (ROUNDING * size) ** 2
    n, r = cells.shape
    if not n or not r:
        return CrossedTable(None, None, None, None, 0, 0, n_left_out, zero)
    # exact sums; single operations of numpy are rounded alike everywhere
    species = np.array([math.fsum(row) for row in cells.tolist()]) / r
    mean = math.fsum(species.tolist()) / n
    ms_species = ms_seed = ms_residual = None
    if n > 1:
        ms_species = r * sum_of_squares(species - mean) / (n - 1)
    if r > 1:
        seeds = np.array([math.fsum(column) for column in cells.T.tolist()]) / n
        ms_seed = n * sum_of_squares(seeds - mean) / (r - 1)
        if n > 1:
            rest = (cells - species[:, None]) - (seeds - mean)
            ms_residual = sum_of_squares(rest) / ((n - 1) * (r - 1))
    return CrossedTable(mean, ms_species, ms_seed, ms_residual, n, r, n_left_out, zero)


def sum_of_squares(values: Floats) -> float:
    """The exact sum of the squares of all values."""
    return math.fsum((values * values).ravel().tolist())


def crossed_interval(
    table: CrossedTable,
    bounds: tuple[float, float] | None,
    shared: SeedVariance | None = None,
) -> Interval:
    """The interval of a mean over species, over seeds and species together.

    With MS the mean squares of species, seeds and residual, S species and R seeds,
    V = max(MS_species + MS_seed - MS_residual, MS_species, MS_seed) and the interval is
    mean +- t sqrt(V / (S R)). t is the mean of the quantiles with S - 1 and R - 1 degrees of
    freedom, weighted by MS_species and MS_seed.

    Parameters
    ----------
    table
        From ``crossed_table``.
    bounds
        The range to which the interval is cut: ``UNIT``, ``DIFFERENCE`` or None.
    shared
        The variance over seeds that the comparisons of a question share; it replaces the table's
        own if that is smaller, and its degrees of freedom always.

    Returns
    -------
    Interval
        Covers species and retraining; of one seed, species only (V = MS_species, S - 1 degrees of
        freedom). No interval for fewer than three species or if V = 0. No verdict for fewer than
        three seeds, or if more than 10 % of the species are left out.

    Notes
    -----
    The quantile is Cochran's (1964), "Approximate significance levels of the Behrens-Fisher
    test". Satterthwaite's degrees of freedom were tried: where seeds vary most, which is usual for
    a paired difference, their interval covers 0.92 for three seeds and 0.88 for two, because a
    small MS_seed both narrows the interval and raises its degrees of freedom. Cochran's covers
    0.95 and is conservative where both variances matter. The two maxima keep V from falling below
    a variance that is certainly in it.

    ``df`` are the degrees of freedom whose quantile is t. P-values use them.

    Examples
    --------
    >>> import numpy as np
    >>> table = crossed_table(np.array([[0.2, 0.4], [0.4, 0.6], [0.9, 0.8]]))
    >>> crossed_interval(table, (0.0, 1.0)).no_verdict
    <Reason.FEW_SEEDS: 'fewer than 3 seeds'>
    """
    n, r = table.n_species, table.n_seeds
    found = Interval(
        mean=table.mean,
        covers=Covers.BOTH if r > 1 else Covers.SPECIES,
        n_species=n,
        n_seeds=r,
        n_left_out=table.n_left_out,
    )
    if table.mean is None:
        return without_interval(found, Reason.NO_VALUES)
    if n < MIN_SPECIES or table.ms_species is None:
        return without_interval(found, Reason.FEW_SPECIES)
    if table.ms_seed is None or table.ms_residual is None:
        variance, df = table.ms_species, float(n - 1)
    else:
        variance, df = combine(
            MeanSquare(table.ms_species, n - 1),
            _seed_term(table, table.ms_seed, shared),
            table.ms_residual,
        )
    if variance <= table.zero:
        return without_interval(found, Reason.NO_VARIATION)
    se = math.sqrt(variance / (n * r))
    half = t_quantile(df) * se
    return replace(
        found,
        low=cut(table.mean - half, bounds),
        high=cut(table.mean + half, bounds),
        se=se,
        df=df,
        no_verdict=no_verdict(table),
    )


def no_verdict(table: CrossedTable) -> Reason | None:
    """Why nothing may be concluded from a table that has an interval; None if something may."""
    if table.n_seeds < MIN_SEEDS:
        return Reason.FEW_SEEDS
    if table.n_left_out > MAX_LEFT_OUT * (table.n_species + table.n_left_out):
        return Reason.SPECIES_LEFT_OUT
    return None


class MeanSquare(NamedTuple):
    """A mean square and its degrees of freedom."""

    value: float
    df: float


def combine(species: MeanSquare, seed: MeanSquare, residual: float) -> MeanSquare:
    """V of ``crossed_interval``, and the degrees of freedom of its quantile."""
    variance = max(species.value + seed.value - residual, species.value, seed.value)
    total = species.value + seed.value
    if total <= 0:
        return MeanSquare(0.0, min(species.df, seed.df))
    quantile = (species.value * t_quantile(species.df) + seed.value * t_quantile(seed.df)) / total
    return MeanSquare(variance, t_degrees(quantile))


def _seed_term(table: CrossedTable, own: float, shared: SeedVariance | None) -> MeanSquare:
    if shared is None:
        return MeanSquare(own, table.n_seeds - 1)
    return MeanSquare(max(own, shared.variance * table.n_species), shared.df)
