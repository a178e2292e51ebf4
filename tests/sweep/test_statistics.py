"""Means, standard deviations and intervals over seeds, against values computed by hand."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_eval.core.intervals import UNDEFINED, estimate, mean_of


def test_three_seeds():
    e = estimate([0.50, 0.54, 0.58])
    assert e.n == 3
    assert e.mean == pytest.approx(0.54, abs=1e-15)
    assert e.std == pytest.approx(0.04, abs=1e-15)
    # t(0.975, 2) = 4.302652729749464
    assert e.ci95_low == pytest.approx(0.54 - 4.302652729749464 * 0.04 / math.sqrt(3), abs=1e-12)
    assert e.ci95_high == pytest.approx(0.54 + 4.302652729749464 * 0.04 / math.sqrt(3), abs=1e-12)


def test_one_seed_has_a_mean_only():
    e = estimate([0.5])
    assert (e.mean, e.std, e.n, e.ci95_low, e.ci95_high) == (0.5, None, 1, None, None)


def test_undefined_values_are_excluded_from_mean_and_n():
    e = estimate([0.2, None, 0.4])
    assert (e.n, e.mean) == (2, pytest.approx(0.3))
    assert e.std == pytest.approx(0.1414, abs=5e-5)
    assert estimate([0.6, 0.8, None]).mean == pytest.approx(0.7)
    assert estimate([None, None]) == estimate([]) == UNDEFINED


def test_zero_is_a_value():
    assert estimate([0.0, 0.0]).n == 2
    assert estimate([0.0]).mean == 0.0


def test_plain_means_skip_undefined_values():
    assert mean_of([0.2, None]) == 0.2
    assert mean_of([None]) is None


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.randoms())
def test_the_mean_does_not_depend_on_the_order_of_seeds(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    e = estimate(values)
    assert e == estimate(shuffled)
    assert e.mean == pytest.approx(statistics.fmean(values), abs=1e-15)
    assert e.std == pytest.approx(statistics.stdev(values), abs=1e-12)
    assert e.ci95_low <= e.mean <= e.ci95_high
