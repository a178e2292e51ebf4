"""Comparisons paired by species and seed, and the variance over seeds that they share."""

import math

import numpy as np
import pytest

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import DIFFERENCE, Reason
from benchmark_eval.sweep.paired import (
    compare_pairs,
    complete_cells,
    largest_group,
    probability_higher,
    shared_seed_variance,
)
from benchmark_eval.sweep.verdicts import Word

NAN = math.nan


def candidates(k, n=20, r=3, seed=0, shifts=()):
    rng = np.random.default_rng(seed)
    tables = {}
    ability = rng.uniform(0.2, 0.7, (n, 1))
    for i in range(k):
        noise = rng.normal(0, 0.03, (n, r)) + rng.normal(0, 0.01, (1, r))
        tables[i] = ability + noise + (shifts[i] if i < len(shifts) else 0.0)
    return tables


def test_a_planted_difference_is_found_and_none_where_there_is_none():
    tables = candidates(3, shifts=(0.15,))
    found = compare_pairs(tables, [(0, 1), (0, 2), (1, 2), (1, 0)])
    words = [verdict.word for verdict in found.verdicts]
    assert words == [Word.HIGHER, Word.HIGHER, Word.INCONCLUSIVE, Word.LOWER]
    assert found.n_tests == 4
    assert found.verdicts[0].interval.mean == pytest.approx((tables[0] - tables[1]).mean())


def test_up_to_two_comparisons_use_their_own_variance():
    tables = candidates(3)
    pairs = [(0, 1), (0, 2)]
    found = compare_pairs(tables, pairs)
    for verdict, (a, b) in zip(found.verdicts, pairs, strict=True):
        own = crossed_interval(crossed_table(tables[a], tables[b]), DIFFERENCE)
        assert verdict.interval == own


def test_three_comparisons_share_their_variance_by_hand():
    tables = candidates(6)
    pairs = [(0, 1), (2, 3), (4, 5)]
    reduced = [crossed_table(tables[a], tables[b]) for a, b in pairs]
    shared = shared_seed_variance(reduced, pairs)
    # no side is shared: 3 comparisons of 2 degrees of freedom each
    assert shared.df == pytest.approx(6.0)
    assert shared.variance == pytest.approx(sum(t.ms_seed for t in reduced) / 3 / 20)
    found = compare_pairs(tables, pairs)
    largest = max(range(3), key=lambda i: reduced[i].ms_seed)
    smallest = min(range(3), key=lambda i: reduced[i].ms_seed)
    own = [crossed_interval(each, DIFFERENCE).se for each in reduced]
    assert found.verdicts[largest].interval.se == pytest.approx(own[largest])
    assert found.verdicts[smallest].interval.se > own[smallest]


@pytest.mark.parametrize(
    ("pairs", "contrasts"),
    [
        # all pairs of k candidates hold k - 1 independent contrasts
        ([(a, b) for a in range(3) for b in range(a)], 2.0),
        ([(a, b) for a in range(6) for b in range(a)], 5.0),
        # each of four against one: Gram matrix 2 on the diagonal, 1 elsewhere: 8^2 / (16 + 12)
        ([(1, 0), (2, 0), (3, 0), (4, 0)], 64 / 28),
        # a chain of four steps: 2 on the diagonal, -1 beside it: 8^2 / (16 + 6)
        ([(1, 0), (2, 1), (3, 2), (4, 3)], 64 / 22),
    ],
)
def test_comparisons_that_share_a_side_have_fewer_degrees_of_freedom(pairs, contrasts):
    tables = candidates(6, r=4)
    reduced = [crossed_table(tables[a], tables[b]) for a, b in pairs]
    assert shared_seed_variance(reduced, pairs).df == pytest.approx(3 * contrasts)


def test_the_degrees_of_freedom_are_those_of_simulated_variances():
    # df = 2 mean^2 / variance of the mean squared difference of all pairs
    x = np.random.default_rng(3).standard_normal((40_000, 6, 3))
    pairs = [(a, b) for a in range(6) for b in range(a)]
    pooled = np.mean([(x[:, a] - x[:, b]).var(axis=1, ddof=1) for a, b in pairs], axis=0)
    assert 2 * pooled.mean() ** 2 / pooled.var() == pytest.approx(5 * 2, rel=0.05)


def test_comparisons_without_a_seed_variance_do_not_count_as_shared():
    tables = candidates(3, r=1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = compare_pairs(tables, pairs)
    assert {v.reason for v in found.verdicts} == {Reason.FEW_SEEDS}
    assert found.n_tests == 0


def test_equal_candidates_are_not_tested():
    tables = {0: np.full((5, 3), 0.4), 1: np.full((5, 3), 0.4)}
    (verdict,) = compare_pairs(tables, [(0, 1)]).verdicts
    assert (verdict.word, verdict.reason) == (Word.NOT_TESTED, Reason.NO_VARIATION)


def test_probability_higher():
    a = np.array([[0.5, 0.7], [0.2, 0.2], [0.1, 0.3], [0.9, NAN]])
    b = np.array([[0.4, 0.4], [0.2, 0.2], [0.3, 0.4], [0.1, 0.1]])
    # higher, equal, lower, higher on the defined seed
    assert probability_higher(a, b) == pytest.approx(2.5 / 4)
    assert probability_higher(np.full((2, 2), NAN), b[:2]) is None
    assert probability_higher(a[:, :1], b) == pytest.approx(2.5 / 4)  # other numbers of seeds


def test_complete_cells():
    table = np.arange(24.0).reshape(2, 3, 4)
    table[0, 1, 2] = NAN  # a species without a value in a used seed
    table[1, :, 3] = NAN  # a seed that one candidate lacks
    cells, n_left_out = complete_cells(table)
    assert cells.tolist() == [[[0, 1, 2], [8, 9, 10]], [[12, 13, 14], [20, 21, 22]]]
    assert n_left_out == 1
    assert complete_cells(np.full((2, 3, 4), NAN))[0].size == 0


def test_the_largest_group_with_seeds_in_common():
    table = np.ones((5, 2, 6))
    for row, seeds in enumerate(([0, 1, 2], [0, 1, 2, 3], [1, 2, 3], [0, 1, 2], [0, 1])):
        table[row, :, np.setdiff1d(np.arange(6), seeds)] = NAN
    assert largest_group(table, 3) == [0, 1, 3]
    assert largest_group(table, 2) == [0, 1, 2, 3]
    assert largest_group(table[[0, 2]], 3) == []  # no more than half of them
    assert largest_group(table[[1, 2]], 3) == [0, 1]
    assert largest_group(table[:0], 3) == []
