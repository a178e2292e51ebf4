"""Intervals over seeds, and the helpers that all intervals share."""

import doctest
import importlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from benchmark_eval.core.intervals import (
    UNIT,
    Covers,
    Reason,
    cut,
    estimate,
    expit,
    logit,
    seed_interval,
    t_degrees,
    t_probability,
    t_quantile,
)

DOCUMENTED = (
    "core.intervals",
    "core.crossed",
    "core.shares",
    "core.retention",
    "sweep.moderated",
    "sweep.multiple",
    "sweep.studentized_range",
    "sweep.budget_curves",
)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_in_the_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(f"benchmark_eval.{name}"))
    assert result.attempted
    assert not result.failed


def test_three_seeds_by_hand():
    # mean 0.54, standard deviation 0.04, t(0.975, 2) = 4.3026527
    found = seed_interval([0.50, 0.54, 0.58])
    half = 4.3026527 * 0.04 / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.54 - half, 0.54 + half), abs=1e-7)
    assert (found.covers, found.n_seeds, found.df) == (Covers.RETRAINING, 3, 2.0)
    assert found.no_interval is found.no_verdict is None


def test_the_interval_is_cut_to_the_range_of_the_metric():
    assert seed_interval([0.0, 0.1, 0.2]).low == 0.0
    assert seed_interval([0.8, 0.9, 1.0]).high == 1.0
    assert seed_interval([0.0, 0.1, 0.2], None).low < 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], Reason.NO_VALUES),
        ([None, None], Reason.NO_VALUES),
        ([0.4], Reason.ONE_SEED),
        ([0.4, None], Reason.ONE_SEED),
        ([0.0, 0.0, 0.0], Reason.AT_BOUND),
        ([1.0, 1.0], Reason.AT_BOUND),
        ([0.3, 0.3, 0.3], Reason.NO_VARIATION),
        ([0.1 + 0.2, 0.3, 0.3], Reason.NO_VARIATION),  # equal up to rounding
    ],
)
def test_without_an_interval_the_reason_says_why(values, reason):
    found = seed_interval(values)
    assert (found.low, found.high, found.se, found.df) == (None,) * 4
    assert found.no_interval == found.no_verdict == reason
    assert found.mean == estimate(values).mean


def test_two_seeds_have_an_interval_but_no_verdict():
    found = seed_interval([0.4, 0.5])
    assert found.low is not None
    assert (found.no_interval, found.no_verdict) == (None, Reason.FEW_SEEDS)


@given(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=8, unique=True))
def test_seed_intervals_equal_those_of_scipy(values):
    found = seed_interval(values, None)
    low, high = stats.t.interval(0.95, len(values) - 1, found.mean, stats.sem(values))
    if found.no_interval is None:
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-10)


@given(st.floats(1.0, 500.0), st.floats(-20.0, 20.0))
def test_quantiles_probabilities_and_degrees_agree(df, statistic):
    assert t_quantile(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-11)
    assert t_probability(statistic, df) == pytest.approx(2 * stats.t.sf(abs(statistic), df))
    assert t_degrees(t_quantile(df)) == pytest.approx(df, rel=1e-6)
    # the p-value is 0.05 exactly at the end of the interval
    assert t_probability(t_quantile(df), df) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("df", [0.3, 0.5, 1.0, 2.0, 4.0, 1000.0, 1000.01, 1e4, 1e9, float("inf")])
def test_quantiles_at_the_limits_of_their_methods(df):
    assert t_quantile(df) == pytest.approx(float(special.stdtrit(df, 0.975)), rel=1e-11)


def test_logits():
    assert logit(0.5) == 0.0
    assert logit(0.75) == pytest.approx(math.log(3))
    assert (expit(-800.0), expit(800.0)) == (0.0, 1.0)
    for share in (1e-9, 0.2, 0.999):
        assert expit(logit(share)) == pytest.approx(share, rel=1e-12)
    assert (cut(1.2, UNIT), cut(-0.1, UNIT), cut(5.0, None)) == (1.0, 0.0, 5.0)
