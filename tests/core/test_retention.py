"""What is left of the in-distribution performance, as a ratio."""

import math

import numpy as np
import pytest

from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.core.retention import retention


def one_seed(*values):
    return np.array(values)[:, None]


def test_three_species_by_hand():
    # 0.9 / 1.8; without each species 0.5 / 1.0, 0.8 / 1.4 and 0.5 / 1.2
    found = retention(one_seed(0.4, 0.1, 0.4), one_seed(0.8, 0.4, 0.6))
    logs = [math.log(0.5 / 1.0), math.log(0.8 / 1.4), math.log(0.5 / 1.2)]
    se = math.sqrt(2 / 3 * sum((x - sum(logs) / 3) ** 2 for x in logs))
    assert found.mean == pytest.approx(0.5)
    assert found.se == pytest.approx(0.5 * se)
    assert found.low == pytest.approx(0.5 * math.exp(-4.3026527 * se), rel=1e-6)
    assert found.high == pytest.approx(0.5 * math.exp(4.3026527 * se), rel=1e-6)
    assert (found.covers, found.no_verdict) == (Covers.SPECIES, Reason.SPECIES_ONLY)


@pytest.mark.parametrize(
    ("field", "base", "mean", "reason"),
    [
        ([], [], None, Reason.NO_VALUES),
        ([math.nan] * 3, [0.5] * 3, None, Reason.NO_VALUES),
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.19], None, Reason.LOW_IN_DISTRIBUTION),
        ([0.0, 0.0, 0.0], [0.5, 0.5, 0.5], 0.0, Reason.ZERO_IN_FIELD),
        ([0.3, 0.2], [0.5, 0.5], 0.5, Reason.FEW_SPECIES),
        ([0.3, 0.0, 0.0], [0.5, 0.5, 0.5], 0.2, Reason.ONE_SPECIES_DECIDES),
        ([0.1, 0.2, 0.4], [0.2, 0.4, 0.8], 0.5, Reason.NO_VARIATION),
    ],
)
def test_without_an_interval_the_reason_says_why(field, base, mean, reason):
    found = retention(one_seed(*field), one_seed(*base))
    assert found.mean == (mean if mean is None else pytest.approx(mean))
    assert (found.low, found.no_interval, found.no_verdict) == (None, reason, reason)


def test_species_of_one_split_only_are_left_out():
    found = retention(one_seed(0.4, math.nan, 0.1, 0.4), one_seed(0.8, 0.9, 0.4, 0.6))
    assert (found.n_species, found.n_left_out) == (3, 1)
    assert found.mean == pytest.approx(0.5)


def test_species_count_by_their_means_over_the_seeds_of_both_splits():
    field = np.array([[0.3, 0.5], [0.1, math.nan], [0.4, 0.4]])
    base = np.array([[0.7, 0.9], [0.4, 0.9], [0.6, 0.6]])
    found = retention(field, base)
    expected = retention(one_seed(0.4, 0.1, 0.4), one_seed(0.8, 0.4, 0.6))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.n_seeds, expected.n_seeds) == (2, 1)
