"""What images of target species bring them, and what they do to all others."""

import math

import numpy as np
import pytest

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import Reason
from benchmark_eval.sweep.target_gains import (
    Relation,
    changes_by_group,
    relations,
    share_closed,
    species_share_closed,
)
from benchmark_eval.sweep.verdicts import Word

NAN = math.nan


def test_relations():
    found = relations(
        genus=["Ips", "Ips", "Pityogenes", "Xyleborus", "", "Ips"],
        tribe=["Ipini", "Ipini", "Ipini", "Xyleborini", "", ""],
        is_target=[True, False, False, False, False, True],
    )
    assert found == [
        Relation.TARGET,
        Relation.CONGENER,
        Relation.SAME_TRIBE,
        Relation.REST,
        Relation.REST,  # blank ranks are shared with nobody
        Relation.TARGET,
    ]


def test_groups_that_pay_and_profit_are_found():
    rng = np.random.default_rng(0)
    zero = rng.uniform(0.3, 0.6, (15, 3))
    shift = np.repeat([-0.2, 0.0, 0.2], 5)[:, None]
    noise = [rng.normal(0, 0.02, (15, 3)) for _ in range(2)]
    at = {"5": zero + shift / 2 + noise[0], "25": zero + shift + noise[1]}
    group = [*["congener"] * 5, *["rest"] * 4, None, *["tribe"] * 5]
    keys, question = changes_by_group(at, zero, group)
    assert keys == [(k, g) for k in ("5", "25") for g in ("congener", "rest", "tribe")]
    words = [verdict.word for verdict in question.verdicts]
    assert words == [Word.LOWER, Word.INCONCLUSIVE, Word.HIGHER] * 2
    assert [v.interval.n_species for v in question.verdicts] == [5, 4, 5] * 2
    assert question.verdicts[0].interval.mean == pytest.approx((at["5"] - zero)[:5].mean())


def test_a_group_of_one_species_is_not_tested():
    zero = np.random.default_rng(1).random((4, 3))
    keys, question = changes_by_group({"1": zero + 0.1}, zero, ["near", "far", "far", "far"])
    assert keys == [("1", "near"), ("1", "far")]
    assert question.verdicts[0].reason == Reason.FEW_SPECIES
    # all far species rise by the same: no variation
    assert question.verdicts[1].reason == Reason.NO_VARIATION
    assert changes_by_group({}, zero, ["near"] * 4) == ([], question.__class__((), 0))


def test_share_closed_by_hand():
    zero = np.zeros((3, 2))
    some = np.array([[0.2, 0.3], [0.1, 0.2], [0.4, 0.4]])
    every = np.array([[0.5, 0.6], [0.4, 0.5], [0.7, 0.7]])
    # 1.6 / 3.4; the mean denominator is 3.4 / 6
    found = share_closed(some, zero, every)
    assert found.mean == pytest.approx(1.6 / 3.4)
    linear = (some - 1.6 / 3.4 * every) / (3.4 / 6)
    expected = crossed_interval(crossed_table(linear), None)
    assert (found.low, found.high) == pytest.approx(
        (found.mean + expected.low, found.mean + expected.high)
    )
    assert found.se == pytest.approx(expected.se)


def test_share_closed_without_a_clear_gap_is_undefined():
    zero = np.zeros((4, 3))
    every = np.array([[0.3, 0.2, 0.3], [-0.3, -0.2, -0.3], [0.1, 0.0, 0.1], [0.0, 0.1, 0.0]])
    found = share_closed(every / 2, zero, every)
    assert (found.mean, found.low, found.no_interval) == (None, None, Reason.DENOMINATOR_NEAR_ZERO)


@pytest.mark.parametrize(
    ("n", "r", "reason"),
    [(2, 3, Reason.FEW_SPECIES), (0, 3, Reason.NO_VALUES), (4, 0, Reason.NO_VALUES)],
)
def test_share_closed_of_too_little_says_why(n, r, reason):
    values = np.random.default_rng(0).random((n, r))
    found = share_closed(values / 2, np.zeros((n, r)), values)
    assert (found.mean, found.low, found.no_interval) == (None, None, reason)


def test_share_closed_uses_the_same_species_and_seeds_above_and_below():
    rng = np.random.default_rng(2)
    zero, every = np.zeros((5, 3)), rng.uniform(0.5, 0.9, (5, 3))
    some = every * rng.uniform(0.4, 0.6, (5, 3))
    some[0, 1] = NAN
    assert share_closed(some, zero, every) == share_closed(
        some, np.where(np.isnan(some), NAN, zero), np.where(np.isnan(some), NAN, every)
    )
    assert share_closed(some, zero, every).n_left_out == 1


def test_share_closed_of_each_species():
    zero = np.zeros((3, 2))
    some = np.array([[0.2, 0.4], [0.04, 0.05], [NAN, NAN]])
    every = np.array([[0.6, 0.6], [0.09, 0.1], [0.5, 0.5]])
    found = species_share_closed(some, zero, every)
    assert found[0] == (pytest.approx(0.5), None)
    assert found[1:] == [(None, Reason.SMALL_GAIN), (None, Reason.NO_VALUES)]
