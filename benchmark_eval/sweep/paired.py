"""Comparisons of two models' conditions, paired by species and seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.crossed import (
    CrossedTable,
    SeedVariance,
    crossed_interval,
    crossed_table,
)
from benchmark_eval.core.intervals import DIFFERENCE, Interval
from benchmark_eval.sweep.verdicts import Question, judge

MIN_SHARING = 3
"""Fewest comparisons of a question whose variances over seeds are pooled."""


def compare_pairs(
    pairs: Sequence[tuple[Floats, Floats]], bounds: tuple[float, float] | None = DIFFERENCE
) -> Question:
    """The verdicts on all comparisons of a question.

    Parameters
    ----------
    pairs
        (A, B) of each comparison, both (species, seeds): the same species in the same order, and
        seeds that trained on the same subset in the same column. NaN where a value is undefined;
        a column of NaN is a missing seed and leaves the pair.
    bounds
        The range of the differences A - B.

    Returns
    -------
    Question
        The interval of each mean difference covers species and retraining
        (``core.crossed.crossed_interval``), with the variance over seeds shared by the question.
    """
    return judge(difference_intervals([crossed_table(a, b) for a, b in pairs], bounds))


def difference_intervals(
    tables: Sequence[CrossedTable], bounds: tuple[float, float] | None = DIFFERENCE
) -> list[Interval]:
    """The intervals of the differences of one question, which share their variance over seeds."""
    shared = shared_seed_variance(tables)
    return [crossed_interval(table, bounds, shared) for table in tables]


def shared_seed_variance(tables: Sequence[CrossedTable]) -> SeedVariance | None:
    """The mean variance over seeds of the comparisons of a question, and the sum of their df.

    Two degrees of freedom per comparison are few; the comparisons of a question are of one kind.
    None for fewer than three comparisons with at least two seeds and species. In tables of
    unequal numbers of species, the variances of the means are averaged, not the mean squares.
    """
    known = [
        (table.ms_seed / table.n_species, table.n_seeds - 1)
        for table in tables
        if table.ms_seed is not None and table.ms_residual is not None
    ]
    if len(known) < MIN_SHARING:
        return None
    df = sum(each for _, each in known)
    return SeedVariance(math.fsum(variance * each for variance, each in known) / df, float(df))


def probability_higher(a: Floats, b: Floats) -> float | None:
    """The fraction of species on which A is higher than B, ties counted as half: descriptive.

    ``a`` and ``b`` are (species, seeds); a species counts by its mean over the seeds where both
    are defined. None if there is none. No p-value belongs to it: species that share a training
    run are not independent.
    """
    difference = a - b
    rows = [[v for v in row if not math.isnan(v)] for row in difference.tolist()]
    means = [math.fsum(row) / len(row) for row in rows if row]
    if not means:
        return None
    return math.fsum(1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m in means) / len(means)


def wins(a: Sequence[float | None], b: Sequence[float | None]) -> tuple[int, int]:
    """In how many conditions A has the higher mean, and the number of conditions: descriptive.

    ``a`` and ``b`` are the means of both sides, condition by condition; None where undefined.
    Ties count as no win.
    """
    both = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return sum(x > y for x, y in both), len(both)


def complete_cells(candidates: Floats) -> tuple[Floats, int]:
    """The seeds that all candidates have, and the species with a value in all of them.

    ``candidates`` is (candidates, species, seeds), NaN where undefined. Returns the complete
    table and the number of species left out.
    """
    defined = ~np.isnan(candidates)
    seeds = defined.any(axis=1).all(axis=0)
    whole = defined[:, :, seeds].all(axis=(0, 2)) if seeds.any() else np.zeros(0, bool)
    if not seeds.any():
        return candidates[:, :0, :0], candidates.shape[1]
    return candidates[:, whole][:, :, seeds], int((~whole).sum())
