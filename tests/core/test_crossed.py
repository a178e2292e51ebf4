"""Intervals of a mean over species that cover species and seeds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmark_eval.core.crossed import (
    SeedVariance,
    crossed_interval,
    crossed_table,
    unpaired_interval,
)
from benchmark_eval.core.intervals import DIFFERENCE, UNIT, Covers, Reason

NAN = math.nan
# species means 0.3, 0.5, 0.85; seed means 0.5, 0.6; mean 0.55
TABLE = np.array([[0.2, 0.4], [0.4, 0.6], [0.9, 0.8]])


def test_mean_squares_by_hand():
    table = crossed_table(TABLE)
    assert table.mean == pytest.approx(0.55)
    # 2 (0.25^2 + 0.05^2 + 0.30^2) / 2
    assert table.ms_species == pytest.approx(0.155)
    # 3 (0.05^2 + 0.05^2) / 1
    assert table.ms_seed == pytest.approx(0.015)
    # residuals +-0.05, +-0.05, +-0.1: 0.03 / (2 x 1)
    assert table.ms_residual == pytest.approx(0.015)


def test_interval_by_hand():
    # V = 0.155 + 0.015 - 0.015; t = (0.155 x 4.302653 + 0.015 x 12.706205) / 0.170 = 5.044142
    found = crossed_interval(crossed_table(TABLE), None)
    half = 5.044142 * math.sqrt(0.155 / 6)
    assert found.se == pytest.approx(math.sqrt(0.155 / 6))
    assert (found.low, found.high) == pytest.approx((0.55 - half, 0.55 + half), abs=1e-6)
    assert stats.t.ppf(0.975, found.df) == pytest.approx(5.044142, abs=1e-6)
    assert (found.covers, found.n_species, found.n_seeds) == (Covers.BOTH, 3, 2)
    # two seeds: an interval, but no verdict
    assert (found.no_interval, found.no_verdict) == (None, Reason.FEW_SEEDS)
    cut = crossed_interval(crossed_table(TABLE), UNIT)
    assert (cut.low, cut.high) == (0.0, 1.0)


def test_a_shared_seed_variance_replaces_a_smaller_one_and_its_df():
    # MS_seed = max(0.015, 0.02 x 3) = 0.06: V = 0.155 + 0.06 - 0.015 = 0.2
    found = crossed_interval(crossed_table(TABLE), None, SeedVariance(0.02, 6.0))
    quantile = (0.155 * stats.t.ppf(0.975, 2) + 0.06 * stats.t.ppf(0.975, 6)) / 0.215
    assert found.se == pytest.approx(math.sqrt(0.2 / 6))
    assert (found.high - found.mean) / found.se == pytest.approx(quantile)
    # a larger own variance stays, with the degrees of freedom of the shared one
    found = crossed_interval(crossed_table(TABLE), None, SeedVariance(0.0, 6.0))
    quantile = (0.155 * stats.t.ppf(0.975, 2) + 0.015 * stats.t.ppf(0.975, 6)) / 0.170
    assert (found.high - found.mean) / found.se == pytest.approx(quantile)


@given(
    arrays(np.float64, st.tuples(st.integers(3, 9), st.integers(2, 5)), elements=st.floats(0, 1))
)
@settings(deadline=None)
def test_mean_squares_equal_those_of_least_squares(values):
    n, r = values.shape
    species, seeds = np.kron(np.eye(n), np.ones((r, 1))), np.kron(np.ones((n, 1)), np.eye(r))

    def rest(*designs):
        design = np.hstack([np.ones((n * r, 1)), *designs])
        fitted = design @ np.linalg.lstsq(design, values.ravel(), rcond=None)[0]
        return ((values.ravel() - fitted) ** 2).sum()

    table = crossed_table(values)
    total, both = rest(), rest(species, seeds)
    assert table.ms_species == pytest.approx((total - rest(species)) / (n - 1), abs=1e-9)
    assert table.ms_seed == pytest.approx((total - rest(seeds)) / (r - 1), abs=1e-9)
    assert table.ms_residual == pytest.approx(both / ((n - 1) * (r - 1)), abs=1e-9)


@given(
    arrays(np.float64, st.tuples(st.integers(3, 9), st.integers(1, 5)), elements=st.floats(0, 1)),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_the_order_of_species_and_seeds_does_not_matter(values, random):
    species, seeds = list(range(values.shape[0])), list(range(values.shape[1]))
    random.shuffle(species)
    random.shuffle(seeds)
    one = crossed_interval(crossed_table(values), UNIT)
    other = crossed_interval(crossed_table(values[species][:, seeds]), UNIT)
    assert one.no_interval == other.no_interval
    if one.low is not None:
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)
        assert one.low <= one.mean <= one.high


def test_one_seed_covers_species_only():
    values = np.array([[0.2], [0.4], [0.9], [0.5]])
    found = crossed_interval(crossed_table(values), None)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values.ravel()))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.covers, found.no_verdict) == (Covers.SPECIES, Reason.FEW_SEEDS)


def test_a_paired_difference_is_that_of_the_cells():
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 3)), rng.random((5, 3))
    assert crossed_table(a, b).ms_seed == crossed_table(a - b).ms_seed
    found = crossed_interval(crossed_table(a, b), DIFFERENCE)
    assert found.no_verdict is None
    assert found.mean == pytest.approx(a.mean() - b.mean())


def test_a_missing_seed_leaves_the_pair_and_an_incomplete_species_is_left_out():
    a = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.3, NAN, 0.5], [0.9, 0.7, 0.8]])
    b = np.array([[0.1, NAN, 0.1], [0.2, NAN, 0.2], [0.3, NAN, 0.1], [0.1, NAN, 0.4]])
    table = crossed_table(a, b)
    # seed 1 is missing on one side; all species have the other two
    assert (table.n_seeds, table.n_species, table.n_left_out) == (2, 4, 0)
    alone = crossed_table(a)
    assert (alone.n_seeds, alone.n_species, alone.n_left_out) == (3, 3, 1)
    assert alone.mean == pytest.approx(a[[0, 1, 3]].mean())


def test_more_than_a_tenth_of_the_species_left_out_permits_no_verdict():
    rng = np.random.default_rng(1)
    for n, reason in ((10, None), (9, Reason.SPECIES_LEFT_OUT)):
        values = rng.random((n, 3))
        values[0, 1] = NAN
        found = crossed_interval(crossed_table(values), UNIT)
        assert (found.n_left_out, found.no_verdict, found.no_interval) == (1, reason, None)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros((0, 3)), Reason.NO_VALUES),
        (np.zeros((4, 0)), Reason.NO_VALUES),
        (np.full((4, 3), NAN), Reason.NO_VALUES),
        (np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.9]]), Reason.FEW_SPECIES),
        (np.array([[0.1, 0.2, 0.3]]), Reason.FEW_SPECIES),
        (np.zeros((5, 3)), Reason.NO_VARIATION),
        (np.ones((5, 3)), Reason.NO_VARIATION),
        (np.full((5, 3), 0.1) + np.array([0.2, 0.2, 0.2]), Reason.NO_VARIATION),
        (np.full((5, 1), 0.3), Reason.NO_VARIATION),
    ],
)
def test_without_an_interval_the_reason_says_why(values, reason):
    found = crossed_interval(crossed_table(values), UNIT)
    assert (found.low, found.high, found.se) == (None, None, None)
    assert found.no_interval == found.no_verdict == reason


def test_a_difference_that_is_constant_up_to_rounding_has_no_interval():
    a = np.array([[0.3, 0.1, 0.7], [0.9, 0.2, 0.4], [0.6, 0.8, 0.5]])
    found = crossed_interval(crossed_table(a, a - 0.1), DIFFERENCE)
    assert found.no_interval == Reason.NO_VARIATION
    assert found.mean == pytest.approx(0.1)


def test_sides_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="shapes"):
        crossed_table(np.zeros((3, 2)), np.zeros((4, 2)))


def test_unpaired_seeds_by_hand():
    a = np.array([[0.2, 0.4], [0.4, 0.6], [0.9, 0.8]])
    b = np.array([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3], [0.5, 0.7, 0.6]])
    # species differ by 0.1, 0.1, 0.25: mean 0.15, variance 0.0075
    # A: MS_seed 0.015, MS_residual 0.015 (as above); B: seed means 11/30, 13/30, 12/30,
    # MS_seed = 3 x 0.002222 / 2 = 0.003333
    found = unpaired_interval(a, b, None)
    assert found.mean == pytest.approx(0.15)
    species, seed_a, seed_b = 0.0075 / 3, 0.015 / 6, 0.0033333333 / 9
    other = crossed_table(b)
    assert other.ms_seed == pytest.approx(0.0033333333)
    residual = 0.015 / 6 + other.ms_residual / 9
    seeds = seed_a + seed_b
    variance = max(species + seeds - residual, species, seeds)
    assert found.se**2 == pytest.approx(variance)
    t2, t1 = stats.t.ppf(0.975, 2), stats.t.ppf(0.975, 1)
    quantile = (species * t2 + seed_a * t1 + seed_b * t2) / (species + seeds)
    assert (found.high - found.mean) / found.se == pytest.approx(quantile)
    assert (found.n_seeds, found.no_verdict) == (2, Reason.FEW_SEEDS)


def test_unpaired_seeds_in_any_order():
    rng = np.random.default_rng(3)
    a, b = rng.random((8, 3)), rng.random((8, 4))
    one, other = unpaired_interval(a, b), unpaired_interval(b[:, ::-1], a[:, ::-1])
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.no_verdict is None


def test_two_single_models_get_the_interval_over_species():
    a, b = np.array([[0.2], [0.5], [0.9]]), np.array([[0.1], [0.5], [0.5]])
    found = unpaired_interval(a, b)
    assert found == crossed_interval(crossed_table(a, b), DIFFERENCE)
    assert (found.covers, found.no_verdict) == (Covers.SPECIES, Reason.FEW_SEEDS)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (np.zeros((0, 3)), np.zeros((0, 2)), Reason.NO_VALUES),
        (np.zeros((4, 0)), np.zeros((4, 2)), Reason.NO_VALUES),
        (np.full((4, 3), NAN), np.zeros((4, 2)), Reason.NO_VALUES),
        (np.random.default_rng(0).random((2, 3)), np.zeros((2, 3)), Reason.FEW_SPECIES),
        (np.ones((4, 3)), np.zeros((4, 2)), Reason.NO_VARIATION),
        (np.full((4, 3), 0.1 + 0.2), np.full((4, 2), 0.1), Reason.NO_VARIATION),
    ],
)
def test_unpaired_sides_without_an_interval_say_why(a, b, reason):
    found = unpaired_interval(a, b)
    assert (found.low, found.no_interval, found.no_verdict) == (None, reason, reason)


def test_unpaired_sides_leave_out_incomplete_species():
    rng = np.random.default_rng(4)
    a, b = rng.random((9, 3)), rng.random((9, 3))
    a[0, 1] = NAN
    found = unpaired_interval(a, b)
    assert (found.n_species, found.n_left_out) == (8, 1)
    assert found.no_verdict == Reason.SPECIES_LEFT_OUT
    with pytest.raises(ValueError, match="species"):
        unpaired_interval(a, b[:5])
