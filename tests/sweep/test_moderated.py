"""Intervals over seeds that borrow strength from the other rows."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from benchmark_eval.core.intervals import DIFFERENCE, UNIT, Reason, estimate, seed_interval
from benchmark_eval.sweep.moderated import fit_prior, retraining_intervals, trigamma_inverse


def table(rows=20, seeds=3, seed=0, spread=0.15, noise=0.5):
    rng = np.random.default_rng(seed)
    at = np.linspace(-2, 2, rows)
    sd = spread * np.exp(-0.3 * at + noise * rng.standard_normal(rows))
    values = 1 / (1 + np.exp(-(at[:, None] + sd[:, None] * rng.standard_normal((rows, seeds)))))
    return values.tolist()


def independent(rows):
    """The same intervals by numpy and scipy, written from the papers."""
    y = np.array(rows)
    n, d = y.shape[1], y.shape[1] - 1
    m = y.mean(axis=1)
    v = y.var(axis=1, ddof=1) / (m * (1 - m)) ** 2
    x = special.logit(m)
    e = np.log(v) - special.digamma(d / 2) + np.log(d / 2)
    trend = np.polyval(np.polyfit(x, e, 2), x)
    df = len(x) - 3
    spread = ((e - trend) ** 2).sum() / df * (1 + np.sqrt(2 / df)) - special.polygamma(1, d / 2)
    if spread > 0:
        half = optimize.brentq(lambda z: special.polygamma(1, z) - spread, 1e-3, 1e6)
        d0, prior = 2 * half, np.exp(trend + special.digamma(half) - np.log(half))
        posterior = (d0 * prior + d * v) / (d0 + d)
    else:
        d0, posterior = np.inf, np.exp(trend)
    t = stats.t.ppf(0.975, min(d0 + d, d * len(x)))
    half = t * np.sqrt(posterior / n)
    return special.expit(x - half), special.expit(x + half), d0


@pytest.mark.parametrize(("seeds", "noise"), [(2, 0.5), (3, 0.5), (3, 1.0), (5, 0.8), (3, 0.0)])
def test_intervals_equal_those_of_numpy_and_scipy(seeds, noise):
    rows = table(seeds=seeds, noise=noise)
    low, high, _ = independent(rows)
    found = retraining_intervals(rows)
    assert [each.low for each in found] == pytest.approx(low, abs=1e-9)
    assert [each.high for each in found] == pytest.approx(high, abs=1e-9)
    assert [each.mean for each in found] == [estimate(row).mean for row in rows]


def test_rows_that_vary_like_chance_have_infinite_prior_degrees_of_freedom():
    # every row has the same variance of logit AP: their estimates differ less than by chance
    rows = []
    for at in np.linspace(-2, 2, 20):
        m = 1 / (1 + math.exp(-at))
        step = 0.1 * m * (1 - m)
        rows.append([m - step, m, m + step])
    prior = fit_prior([estimate(row) for row in rows], 3)
    assert math.isinf(prior.df)
    found = retraining_intervals(rows)
    # 20 rows of 2 degrees of freedom
    assert {each.df for each in found} == {40.0}


def test_a_trend_is_not_extrapolated():
    rows = table(rows=20)
    extreme = [0.9999, 0.9999, 0.9999 + 1e-16]  # seeds agree: not in the fit, but has an interval
    found = retraining_intervals([*rows, extreme])[-1]
    prior = fit_prior([estimate(row) for row in rows], 3)
    assert prior.variance(9.2) == prior.variance(prior.highest)
    assert prior.variance(-50.0) == prior.variance(prior.lowest)
    assert found.low < 0.9999 < found.high


def test_fewer_than_15_rows_get_student_t():
    rows = table(rows=14)
    assert retraining_intervals(rows) == [seed_interval(row) for row in rows]
    # rows with one seed do not count
    rows += [[0.5]] * 5
    assert retraining_intervals(rows) == [seed_interval(row) for row in rows]
    rows = table(rows=15)
    assert retraining_intervals(rows) != [seed_interval(row) for row in rows]


def test_too_few_rows_with_variation_get_student_t():
    rows = [*table(rows=9), *([[0.0, 0.0, 0.0]] * 10)]
    found = retraining_intervals(rows)
    assert found == [seed_interval(row) for row in rows]


def test_other_metrics_get_student_t():
    rows = table()
    plain = [seed_interval(row) for row in rows]
    assert retraining_intervals(rows, n_specimens=79) == plain
    assert retraining_intervals(rows, n_specimens=80) != plain
    assert retraining_intervals(rows, bounds=DIFFERENCE) == [
        seed_interval(row, DIFFERENCE) for row in rows
    ]
    assert retraining_intervals(rows, bounds=None) == [seed_interval(row, None) for row in rows]


def test_rows_with_another_number_of_seeds_get_student_t_and_do_not_matter():
    rows = table()
    found = retraining_intervals([*rows, [0.4, 0.5], [0.6]])
    assert found[: len(rows)] == retraining_intervals(rows)
    assert found[-2] == seed_interval([0.4, 0.5])
    assert found[-1].no_interval == Reason.ONE_SEED


def test_rows_at_a_bound_have_no_interval_and_do_not_matter():
    rows = table()
    found = retraining_intervals([*rows, [0.0] * 3, [1.0] * 3, [None] * 3])
    assert found[: len(rows)] == retraining_intervals(rows)
    reasons = [each.no_interval for each in found[-3:]]
    assert reasons == [Reason.AT_BOUND, Reason.AT_BOUND, Reason.NO_VALUES]


def test_a_metric_that_is_fixed_by_construction_has_no_interval():
    found = retraining_intervals(table(), by_construction=True)
    assert {each.no_interval for each in found} == {Reason.BY_CONSTRUCTION}
    assert {each.no_verdict for each in found} == {Reason.BY_CONSTRUCTION}


def test_intervals_stay_in_the_range_and_two_seeds_permit_no_verdict():
    rows = table(seeds=2, spread=2.0)
    for each in retraining_intervals(rows, UNIT):
        assert 0 < each.low < each.mean < each.high < 1
        assert each.no_verdict == Reason.FEW_SEEDS


def test_an_empty_table():
    assert retraining_intervals([]) == []


@pytest.mark.parametrize("value", [1e-8, 1e-3, 0.1, 0.7, 1.0, 5.0, 1e3, 1e9])
def test_trigamma_inverse(value):
    found = special.polygamma(1, trigamma_inverse(value))
    assert found == pytest.approx(value, rel=1e-3 if value > 1e7 else 1e-6)


def test_trigamma_inverse_of_known_values():
    assert trigamma_inverse(math.pi**2 / 6) == pytest.approx(1.0, abs=1e-9)
    assert trigamma_inverse(math.pi**2 / 2) == pytest.approx(0.5, abs=1e-9)
