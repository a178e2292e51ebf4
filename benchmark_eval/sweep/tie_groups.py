"""The candidates that cannot be told from the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.crossed import (
    MeanSquare,
    combine,
    crossed_interval,
    crossed_table,
    seeds_in_common,
    sum_of_squares,
    too_many_left_out,
)
from benchmark_eval.core.intervals import MIN_SPECIES, Reason
from benchmark_eval.core.numbers import ROUNDING
from benchmark_eval.sweep.paired import complete_cells
from benchmark_eval.sweep.studentized_range import range_quantile


@dataclass(frozen=True, slots=True)
class TieGroup:
    """The best candidate and those tied with it.

    ``order`` are the rows of the candidates by descending mean (first on equal means), ``means``
    the mean of each candidate in the order given, over the species and seeds used. ``tied`` are
    the rows of the tie group; the best one is always in it, and everyone is if ``reason`` says why
    nothing was tested. ``df`` and ``quantile`` are those of the studentised range.
    """

    order: tuple[int, ...]
    means: tuple[float, ...]
    tied: frozenset[int]
    n_species: int
    n_seeds: int
    n_left_out: int
    df: float | None
    quantile: float | None
    reason: Reason | None


def tie_group(candidates: Floats) -> TieGroup:
    """The tie group of the best of several candidates, on the same species and seeds.

    Parameters
    ----------
    candidates
        (candidates, species, seeds), higher is better; NaN where a value is undefined.

    Returns
    -------
    TieGroup
        A candidate leaves the group if (best mean - its mean) / SE exceeds q / sqrt(2), with q
        the 95 % quantile of the studentised range of all candidates. SE is that of the common
        variance, or of its own difference to the best if that is larger. Nothing is tested for
        fewer than three seeds or species, or with more than 10 % of the species left out.

    Notes
    -----
    Tukey's range test (1953), so that the best being picked after the fact is accounted for. In
    the table without species x seed means, the mean squares of candidate x species, candidate x
    seed and the residual, the first two with (k - 1)(S - 1) and (k - 1)(R - 1) degrees of freedom,
    are combined as in ``core.crossed.crossed_interval``.
    """
    if not len(candidates):
        return TieGroup((), (), frozenset(), 0, 0, 0, None, None, Reason.NO_VALUES)
    cells, n_left_out = complete_cells(candidates)
    seeds = seeds_in_common([~np.isnan(each).all(axis=0) for each in candidates])
    k, n, r = cells.shape
    everyone = frozenset(range(k))
    if not n or not r:
        why = Reason.NO_COMMON_SEEDS if seeds is Reason.NO_COMMON_SEEDS else Reason.NO_VALUES
        return TieGroup(tuple(range(k)), (), everyone, 0, 0, n_left_out, None, None, why)
    means = [math.fsum(x for row in table for x in row) / (n * r) for table in cells.tolist()]
    order = tuple(sorted(range(k), key=lambda i: -means[i]))

    untested = TieGroup(order, tuple(means), everyone, n, r, n_left_out, None, None, None)
    reason = _untestable(n, seeds, n_left_out)
    if k == 1 or reason is not None:
        return replace(untested, reason=None if k == 1 else reason)
    variance, df = _common_variance(cells)
    if variance <= (ROUNDING * float(abs(cells).max())) ** 2:
        return replace(untested, reason=Reason.NO_VARIATION)
    common = math.sqrt(2.0 * variance / (n * r))
    quantile = range_quantile(k, df)
    best = order[0]
    tied = {best}
    for other in order[1:]:
        own = crossed_interval(crossed_table(cells[best], cells[other]), None).se
        se = max(common, own or 0.0)
        if (means[best] - means[other]) / se <= quantile / math.sqrt(2.0):
            tied.add(other)
    return replace(untested, tied=frozenset(tied), df=df, quantile=quantile)


def _untestable(n_species: int, seeds: Reason | None, n_left_out: int) -> Reason | None:
    if n_species < MIN_SPECIES:
        return Reason.FEW_SPECIES
    if seeds is not None:
        return seeds
    if too_many_left_out(n_left_out, n_species):
        return Reason.SPECIES_LEFT_OUT
    return None


def _common_variance(cells: Floats) -> MeanSquare:
    """V of a complete (candidates, species, seeds) table and its degrees of freedom."""
    k, n, r = cells.shape
    # without the mean of each species and seed over the candidates
    totals = [[math.fsum(each) for each in seeds] for seeds in cells.transpose(1, 2, 0).tolist()]
    z = cells - np.array(totals) / k
    species = np.array([[math.fsum(row) for row in table] for table in z.tolist()]) / r
    seeds = np.array([[math.fsum(s) for s in t] for t in z.transpose(0, 2, 1).tolist()]) / n
    mean = np.array([math.fsum(row) for row in species.tolist()])[:, None] / n
    rest = (z - species[:, :, None]) - (seeds - mean)[:, None, :]
    free = k - 1
    return combine(
        MeanSquare(r * sum_of_squares(species - mean) / (free * (n - 1)), free * (n - 1)),
        MeanSquare(n * sum_of_squares(seeds - mean) / (free * (r - 1)), free * (r - 1)),
        sum_of_squares(rest) / (free * (n - 1) * (r - 1)),
    )
