"""Comparisons of two models' conditions, paired by species and seed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

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

Key = TypeVar("Key", bound=Hashable)

MIN_SHARING = 3
"""Fewest comparisons of a question whose variances over seeds are pooled."""


def compare_pairs(
    tables: Mapping[Key, Floats],
    pairs: Sequence[tuple[Key, Key]],
    bounds: tuple[float, float] | None = DIFFERENCE,
) -> Question:
    """The verdicts on all comparisons of a question.

    Parameters
    ----------
    tables
        (species, seeds) of each candidate, such as an architecture or a budget: the same species
        in the same order, and seeds that trained on the same subset in the same column. NaN where
        a value is undefined; a column of NaN is a missing seed and leaves its pairs.
    pairs
        The keys (A, B) of each comparison.
    bounds
        The range of the differences A - B.

    Returns
    -------
    Question
        The interval of each mean difference covers species and retraining
        (``core.crossed.crossed_interval``), with the variance over seeds shared by the question
        (``shared_seed_variance``).
    """
    reduced = [crossed_table(tables[a], tables[b]) for a, b in pairs]
    return judge(difference_intervals(reduced, pairs, bounds))


def difference_intervals(
    tables: Sequence[CrossedTable],
    pairs: Sequence[tuple[Key, Key]],
    bounds: tuple[float, float] | None = DIFFERENCE,
) -> list[Interval]:
    """The intervals of the differences of one question; ``pairs`` names the sides of each."""
    shared = shared_seed_variance(tables, pairs)
    return [crossed_interval(table, bounds, shared) for table in tables]


def shared_seed_variance(
    tables: Sequence[CrossedTable], pairs: Sequence[tuple[Key, Key]]
) -> SeedVariance | None:
    """The mean variance over seeds of the comparisons of a question, and its degrees of freedom.

    Two degrees of freedom per comparison are few; the comparisons of a question are of one kind.
    None for fewer than three comparisons with at least two seeds and species. In tables of
    unequal numbers of species, the variances of the means are averaged, not the mean squares.

    Notes
    -----
    Comparisons that share a side are not independent: 15 pairs of 6 candidates hold 5 contrasts.
    With G the Gram matrix of the contrasts, the degrees of freedom are (R - 1) tr(G)^2 / |G|^2
    (Satterthwaite), which is (R - 1) times the number of comparisons if none share a side.
    """
    known = [
        (table.ms_seed / table.n_species, table.n_seeds - 1, pair)
        for table, pair in zip(tables, pairs, strict=True)
        if table.ms_seed is not None and table.ms_residual is not None
    ]
    if len(known) < MIN_SHARING:
        return None
    n = len(known)
    mean_df = sum(df for _, df, _ in known) / n
    squares = _squared_overlaps([pair for _, _, pair in known])
    variance = math.fsum(variance for variance, _, _ in known) / n
    return SeedVariance(variance, mean_df * (2 * n) ** 2 / squares)


def _squared_overlaps(pairs: Sequence[tuple[Key, Key]]) -> int:
    """|G|^2, the sum of the squared inner products of all pairs of contrasts.

    The Gram matrix C C' of the contrasts has the same norm as C' C, whose diagonal counts the
    contrasts of each side, and whose other entries those between two sides.
    """
    sides = Counter(side for pair in pairs for side in pair)
    between = Counter(frozenset(pair) for pair in pairs)
    return sum(n * n for n in sides.values()) + 2 * sum(n * n for n in between.values())


def probability_higher(a: Floats, b: Floats) -> float | None:
    """The fraction of species on which A is higher than B, ties counted as half: descriptive.

    ``a`` and ``b`` are (species, seeds of A) and (species, seeds of B); a species counts by its
    mean over the seeds of each side where it is defined. None if there is no such species. No
    p-value belongs to it: species that share a training run are not independent.
    """
    means = [
        (math.fsum(left) / len(left)) - (math.fsum(right) / len(right))
        for left, right in (
            [[v for v in row if not math.isnan(v)] for row in rows]
            for rows in zip(a.tolist(), b.tolist(), strict=True)
        )
        if left and right
    ]
    if not means:
        return None
    return math.fsum(1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m in means) / len(means)


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


def largest_group(candidates: Floats, min_seeds: int) -> list[int]:
    """The rows of the largest group of candidates with at least ``min_seeds`` seeds in common.

    ``candidates`` is (candidates, species, seeds), NaN where undefined. The group holds more than
    half of the candidates, otherwise it is empty. Of equally large ones, that with more seeds in
    common counts, then the first.
    """
    has = np.asarray((~np.isnan(candidates)).any(axis=1))
    distinct = list(dict.fromkeys(map(tuple, has.tolist())))
    shared = dict.fromkeys(
        tuple(a and b for a, b in zip(one, other, strict=True))
        for one in distinct
        for other in distinct
    )
    best: list[int] = []
    most = (len(candidates) // 2, 0)
    for seeds in shared:
        if sum(seeds) < min_seeds:
            continue
        rows = np.flatnonzero(has[:, list(seeds)].all(axis=1)).tolist()
        if 2 * len(rows) > len(candidates) and (len(rows), sum(seeds)) > most:
            best, most = rows, (len(rows), sum(seeds))
    return best
