"""Steps, equal budgets, the cost of a level, prices."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import DIFFERENCE, Reason
from benchmark_eval.sweep.budget_curves import (
    Curve,
    area_weights,
    costs_of_levels,
    equal_budget,
    equal_budgets,
    isotonic,
)
from benchmark_eval.sweep.paired import compare_pairs
from benchmark_eval.sweep.prices import Prices
from benchmark_eval.sweep.verdicts import Word

NAN = math.nan


def curve(costs, means, n=12, r=3, seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    ability = np.random.default_rng(99).uniform(-0.2, 0.2, (1, n, 1))
    values = np.array(means)[:, None, None] + ability + rng.normal(0, noise, (len(means), n, r))
    return Curve(tuple(costs), values)


def steps(data):
    budgets = dict(enumerate(data.values))
    return compare_pairs(budgets, [(after, before) for before, after in pairwise(budgets)])


def test_steps_are_paired_and_judged_together():
    found = steps(curve((100, 200, 800, 1600), (0.3, 0.5, 0.6, 0.6)))
    assert [v.word for v in found.verdicts] == [Word.HIGHER, Word.HIGHER, Word.INCONCLUSIVE]
    assert found.n_tests == 3


def test_area_by_hand():
    # A from 1 to 16 and B from 4 to 64 share 4 to 16, two of A's and two of B's doublings
    a, b = Curve((1, 4, 16), np.zeros((3, 3, 2))), Curve((4, 64), np.zeros((2, 3, 2)))
    a.values[:] = np.array([0.1, 0.3, 0.7])[:, None, None]
    b.values[:] = np.array([0.2, 0.6])[:, None, None]
    # A: (0.3 + 0.7) / 2; B rises from 0.2 at 4 to 0.4 at 16: 0.3
    found = equal_budget(a, b)
    assert found.interval.mean == pytest.approx(0.5 - 0.3)
    assert (found.low, found.high) == (4, 16)
    assert found.interval.no_interval == Reason.NO_VARIATION


@given(
    st.lists(st.floats(1, 1e4), min_size=2, max_size=6, unique=True),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_area_weights_equal_numerical_integration(costs, cuts):
    costs = sorted(costs)
    x = np.log(costs)
    ends = sorted(x[0] + cut * (x[-1] - x[0]) for cut in cuts)
    if ends[1] - ends[0] < 1e-3 or np.diff(x).min() < 1e-6:
        return
    weights = area_weights(costs, math.exp(ends[0]), math.exp(ends[1]))
    grid = np.linspace(*ends, 20_001)
    middle = (grid[1:] + grid[:-1]) / 2
    heights = np.random.default_rng(0).random(len(costs))
    expected = np.interp(middle, x, heights).mean()
    assert sum(w * h for w, h in zip(weights, heights, strict=True)) == pytest.approx(
        expected, abs=1e-4
    )
    assert sum(weights) == pytest.approx(1.0)


def test_a_planted_difference_at_equal_budget_is_found():
    a = curve((100, 400, 1600), (0.4, 0.5, 0.6), seed=1)
    b = curve((200, 800, 1600), (0.35, 0.45, 0.5), seed=2)
    found, question = equal_budgets({"a": a, "b": b}, [("a", "b")])
    assert question.verdicts[0].word == Word.HIGHER
    # (A at 200, 400, 1600: 0.45, 0.5, 0.6; B at 200, 800, 1600) over three doublings
    assert found[0].interval.mean == pytest.approx(
        (0.475 + 2 * 0.55 - 2 * 0.4 - 0.475) / 3, abs=0.02
    )
    assert found[0].interval == equal_budget(a, b).interval


def test_regimes_that_cannot_be_compared_say_why():
    one, low = curve((100,), (0.4,)), curve((1, 2), (0.1, 0.2))
    high = curve((2, 4), (0.1, 0.2))
    found, question = equal_budgets(
        {"one": one, "low": low, "high": high}, [("one", "low"), ("low", "high")]
    )
    assert [each.interval.no_interval for each in found] == [
        Reason.FEW_BUDGETS,
        Reason.NO_COMMON_COSTS,
    ]
    assert {each.low for each in found} == {None}
    assert question.n_tests == 0
    assert equal_budgets({}, []) == ([], question.__class__((), 0))


def test_budgets_outside_the_common_range_do_not_matter():
    a, b = curve((1, 4, 16), (0.1, 0.3, 0.7)), curve((4, 16), (0.2, 0.4), seed=3)
    before = equal_budget(a, b)
    a.values[0] = NAN
    assert equal_budget(a, b) == before


@pytest.mark.parametrize(
    ("costs", "shape"),
    [((1, 1), (2, 3, 3)), ((2, 1), (2, 3, 3)), ((0, 1), (2, 3, 3)), ((1,), (2, 3, 3))],
)
def test_impossible_curves_are_refused(costs, shape):
    with pytest.raises(ValueError, match="cost"):
        Curve(costs, np.zeros(shape))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5)), min_size=1, max_size=12))
def test_isotonic_regression_equals_that_of_scipy(points):
    values, weights = zip(*points, strict=True)
    expected = optimize.isotonic_regression(values, weights=weights).x
    assert isotonic(values, weights) == pytest.approx(list(expected), abs=1e-9)


def test_the_cost_of_a_level_by_hand():
    # means 0.1 to 0.4 at costs 1, 2, 4, 8; every budget has the variance 0.0002, df 4 in all
    means = [[m - 0.01, m + 0.01] for m in (0.1, 0.2, 0.3, 0.4)]
    (found,) = costs_of_levels((1, 2, 4, 8), means, [0.4, 0.4], (0.625,))
    # 0.625 x 0.4 = 0.25, halfway between 2 and 4
    assert found.target == pytest.approx(0.25)
    assert found.cost == pytest.approx(2**1.5)
    half = stats.t.ppf(0.975, 4) * math.sqrt(0.0002) * math.sqrt(1 / 2 + 0.625**2 / 2)
    assert found.low == pytest.approx(2 ** (1.5 - half / 0.1))
    assert found.high == pytest.approx(2 ** (1.5 + half / 0.1))
    assert found.reason is None


def test_ends_beyond_the_budgets_are_marked():
    means = [[m - 0.01, m + 0.01] for m in (0.3, 0.35, 0.4)]
    low, high = costs_of_levels((1, 2, 4), means, [0.5, 0.5, 0.52], (0.5, 0.95))
    # half of the ceiling is below the smallest budget, 95 % of it above the largest one
    assert (low.cost, low.cost_below, low.cost_above) == (None, True, False)
    assert (low.low, low.low_below) == (None, True)
    assert (high.cost, high.cost_below, high.cost_above) == (None, False, True)
    assert (high.high, high.high_above) == (None, True)


def test_a_level_at_a_budget_is_that_budget():
    means = [[0.1], [0.2], [0.4]]
    found = costs_of_levels((5, 50, 500), means, [0.4], (0.25, 0.5, 1.0))
    assert [each.cost for each in found] == [5, 50, 500]


@pytest.mark.parametrize(
    ("means", "ceiling", "reason"),
    [
        ([[0.1], [0.2], [0.3]], [0.3], Reason.ONE_SEED),
        ([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]], [0.3], Reason.NO_VARIATION),
        ([[0.1, 0.2], [None, None], []], [0.3], Reason.FEW_BUDGETS),
        ([[0.1, 0.2], [0.2, 0.3], [0.3, 0.2]], [], Reason.NO_CEILING),
        ([[0.1, 0.2], [0.2, 0.3], [0.3, 0.2]], [None], Reason.NO_CEILING),
        ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [0.0, 0.0], Reason.NO_CEILING),
    ],
)
def test_levels_without_an_interval_say_why(means, ceiling, reason):
    for found in costs_of_levels((1, 2, 4), means, ceiling):
        assert found.reason == reason
        assert (found.low, found.high, found.low_below, found.high_above) == (
            None,
            None,
            False,
            False,
        )


def test_a_falling_curve_is_made_monotone_first():
    # the dip at 4 is pooled with the budget before it
    means = [[0.1, 0.12], [0.34, 0.36], [0.24, 0.26], [0.39, 0.41]]
    (found,) = costs_of_levels((1, 2, 4, 8), means, [0.4, 0.4], (0.75,))
    assert found.cost == pytest.approx(2)
    assert found.low < 2
    assert found.high > 4


def test_steps_without_enough_seeds_are_not_tested():
    found = steps(curve((1, 2, 4), (0.1, 0.2, 0.3), r=2))
    assert {v.reason for v in found.verdicts} == {Reason.FEW_SEEDS}


def test_price():
    assert Prices(2.5, 0.1).of(100, 850) == pytest.approx(335.0)
    assert Prices(0, 0).of(100, 850) == 0


def test_the_interval_of_an_area_is_that_of_the_areas():
    a, b = curve((1, 2, 4), (0.1, 0.2, 0.3)), curve((1, 2, 4), (0.1, 0.2, 0.3), seed=5)
    d = [(v[0] + 2 * v[1] + v[2]) / 4 for v in (a.values, b.values)]
    expected = crossed_interval(crossed_table(*d), DIFFERENCE)
    found = equal_budget(a, b).interval
    assert (found.mean, found.low, found.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )
