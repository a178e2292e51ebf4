"""Corrections for many tests, and the studentised range."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmark_eval.sweep.multiple import holm
from benchmark_eval.sweep.studentized_range import range_probability, range_quantile

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def test_holm_by_hand():
    # 4 x 0.01, 3 x 0.02, 2 x 0.03 (not below the one before), 1 x 0.5
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(P_VALUES)
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    # rejected at a level if Bonferroni rejects every subset that holds the hypothesis
    n = len(p_values)
    subsets = [s for size in range(1, n + 1) for s in combinations(range(n), size)]
    for i, adjusted in enumerate(holm(p_values)):
        closed = max(min(1.0, len(s) * min(p_values[j] for j in s)) for s in subsets if i in s)
        assert adjusted == pytest.approx(closed, abs=1e-12)


@pytest.mark.parametrize(
    ("n_means", "df", "printed"),
    # a table of the studentised range, upper 5 %
    [(2, 10, 3.151), (3, 10, 3.877), (4, 20, 3.958), (6, 12, 4.750), (10, 60, 4.646)],
)
def test_printed_quantiles(n_means, df, printed):
    assert range_quantile(n_means, df) == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize(
    ("n_means", "df"), [(2, 2.0), (3, 4.0), (3, 2.5), (6, 10.3), (20, 13.0), (51, 150.0)]
)
def test_quantiles_equal_those_of_scipy(n_means, df):
    expected = stats.studentized_range.ppf(0.95, n_means, df)
    assert range_quantile(n_means, df) == pytest.approx(expected, rel=3e-5)


def test_probabilities_equal_those_of_simulated_ranges():
    values = np.random.default_rng(5).standard_normal((200_000, 4))
    expected = np.mean(np.ptp(values, axis=1) <= 3.0)
    assert range_probability(3.0, 4, 1e9) == pytest.approx(expected, abs=0.004)


@pytest.mark.parametrize(("n_means", "df"), [(1, 5.0), (3, 0.5), (3, float("nan"))])
def test_impossible_ranges_are_refused(n_means, df):
    with pytest.raises(ValueError, match="degrees of freedom"):
        range_quantile(n_means, df)
