"""Intervals of a mean over species that cover other species and other seeds together.

A table of species x seeds has two random factors that cross: every seed is measured on the same
species. Its mean therefore varies with the draw of species, with the draw of seeds, and with what
is left of each cell.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Bools, Floats
from benchmark_eval.core.intervals import (
    DIFFERENCE,
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
    squares below ``zero`` are rounding errors. ``seeds_differ``: both sides of a difference have
    three seeds or more, but fewer than three of them in common.
    """

    mean: float | None
    ms_species: float | None
    ms_seed: float | None
    ms_residual: float | None
    n_species: int
    n_seeds: int
    n_left_out: int
    zero: float
    seeds_differ: bool = False


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
    seeds_differ = False
    if minus is not None:
        if minus.shape != values.shape:
            raise ValueError(f"sides of shapes {values.shape} and {minus.shape}")
        right = ~np.isnan(minus)
        size = max(size, _largest(minus, right))
        # a seed that one side lacks leaves the pair; a species that one side lacks is left out
        sides = [np.asarray(side.any(axis=0)) for side in (defined, right)]
        used = np.asarray(sides[0] & sides[1])
        seeds_differ = seeds_in_common(sides) is Reason.NO_COMMON_SEEDS
        values, defined = values - minus, defined & right
    else:
        used = np.asarray(defined.any(axis=0))
    values, defined = values[:, used], defined[:, used]
    complete = defined.all(axis=1) if used.any() else np.zeros(len(values), bool)
    return dataclasses.replace(
        _reduce(values[complete], int((~complete).sum()), size), seeds_differ=seeds_differ
    )


def seeds_in_common(sides: Sequence[Bools]) -> Reason | None:
    """Why the seeds that all sides have, (seeds,) each, permit no verdict; None if they do."""
    if int(np.logical_and.reduce(sides).sum()) >= MIN_SEEDS:
        return None
    fewest = min(int(side.sum()) for side in sides)
    return Reason.NO_COMMON_SEEDS if fewest >= MIN_SEEDS else Reason.FEW_SEEDS


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

    ``df`` are the degrees of freedom whose 95 % quantile is t. P-values use them at all levels, so
    they are approximate; docs/statistics.md has the simulated rates of false verdicts.

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
        return without_interval(
            found, Reason.NO_COMMON_SEEDS if table.seeds_differ else Reason.NO_VALUES
        )
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
    doubt = Reason.NO_COMMON_SEEDS if table.seeds_differ else no_verdict(found)
    return _around(found, math.sqrt(variance / (n * r)), df, bounds, doubt)


def no_verdict(found: Interval) -> Reason | None:
    """Why nothing may be concluded from an interval over species; None if something may."""
    if found.n_seeds < MIN_SEEDS:
        return Reason.FEW_SEEDS
    if too_many_left_out(found.n_left_out, found.n_species or 0):
        return Reason.SPECIES_LEFT_OUT
    return None


def too_many_left_out(n_left_out: int, n_used: int) -> bool:
    """Whether more than 10 % of the species are left out."""
    return n_left_out / max(1, n_left_out + n_used) > MAX_LEFT_OUT


class MeanSquare(NamedTuple):
    """A mean square and its degrees of freedom."""

    value: float
    df: float


def combine(
    species: MeanSquare, seeds: MeanSquare | Sequence[MeanSquare], residual: float
) -> MeanSquare:
    """V of ``crossed_interval``, and the degrees of freedom of its quantile.

    Several terms of ``seeds`` are independent variances that add.
    """
    each = [seeds] if isinstance(seeds, MeanSquare) else list(seeds)
    over_seeds = math.fsum(term.value for term in each)
    total = species.value + over_seeds
    if total <= 0:
        return MeanSquare(0.0, species.df)
    quantile = math.fsum(term.value * t_quantile(term.df) for term in (species, *each)) / total
    variance = max(total - residual, species.value, over_seeds)
    return MeanSquare(variance, t_degrees(quantile))


def _seed_term(table: CrossedTable, own: float, shared: SeedVariance | None) -> MeanSquare:
    if shared is None:
        return MeanSquare(own, table.n_seeds - 1)
    return MeanSquare(max(own, shared.variance * table.n_species), shared.df)


def unpaired_interval(
    a: Floats, b: Floats, bounds: tuple[float, float] | None = DIFFERENCE
) -> Interval:
    """The difference A - B of two means over the same species whose seeds are not paired.

    For models of different training subsets: species are paired, and the variances over seeds of
    both sides add. It is ``crossed_interval`` otherwise.

    Parameters
    ----------
    a, b
        (species, seeds of A) and (species, seeds of B), the same species in the same order; NaN
        where undefined.
    bounds
        The range of the difference.

    Returns
    -------
    Interval
        Covers species and retraining; with one seed on a side, species only. ``n_seeds`` is that
        of the side with fewer. Reasons as in ``crossed_interval``.
    """
    if len(a) != len(b):
        raise ValueError(f"sides of {len(a)} and {len(b)} species")
    sides = [side[:, ~np.isnan(side).all(axis=0)] if len(side) else side for side in (a, b)]
    r = min(side.shape[1] for side in sides)
    complete = np.logical_and.reduce([~np.isnan(side).any(axis=1) for side in sides])
    left, right = (side[complete] for side in sides)
    n, n_left_out = int(complete.sum()) if r else 0, int((~complete).sum()) if r else len(a)
    found = Interval(
        mean=None,
        covers=Covers.BOTH if r > 1 else Covers.SPECIES,
        n_species=n,
        n_seeds=r,
        n_left_out=n_left_out,
    )
    if not n:
        return without_interval(found, Reason.NO_VALUES)
    means = [
        np.array([math.fsum(row) / len(row) for row in side.tolist()]) for side in (left, right)
    ]
    paired = _reduce((means[0] - means[1])[:, None], n_left_out, float(np.abs(means).max()))
    found = replace(found, mean=paired.mean)
    if paired.ms_species is None or n < MIN_SPECIES:
        return without_interval(found, Reason.FEW_SPECIES)
    over_species = MeanSquare(paired.ms_species / n, n - 1)
    variance = over_species
    if r > 1:
        seeds, residual = [], 0.0
        for side in (left, right):
            table = _reduce(side, 0, 0.0)
            cells = n * table.n_seeds
            seeds.append(MeanSquare((table.ms_seed or 0.0) / cells, table.n_seeds - 1))
            residual += (table.ms_residual or 0.0) / cells
        variance = combine(over_species, seeds, residual)
    if variance.value <= paired.zero:
        return without_interval(found, Reason.NO_VARIATION)
    return _around(found, math.sqrt(variance.value), variance.df, bounds, no_verdict(found))


def _around(
    found: Interval,
    se: float,
    df: float,
    bounds: tuple[float, float] | None,
    reason: Reason | None,
) -> Interval:
    mean, half = found.mean or 0.0, t_quantile(df) * se
    low, high = cut(mean - half, bounds), cut(mean + half, bounds)
    return replace(found, low=low, high=high, se=se, df=df, no_verdict=reason)
