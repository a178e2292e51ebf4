"""Verdicts on estimates, and how many of them are expected to be false."""

import pytest

from benchmark_eval.core.intervals import estimate as over_seeds
from benchmark_eval.sweep.comparisons import Judged, compare, compare_to, expected_false, judge


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ([0.5, 0.5], [0.4, 0.4], "above"),
        ([0.4, 0.4], [0.5, 0.5], "below"),
        ([0.5, 0.5], [0.5, 0.5], "overlap"),
        ([0.4, 0.6], [0.5, 0.5], "overlap"),
        ([0.9], [0.1, 0.1], "no interval"),
        ([0.9], [], "undefined"),
    ],
)
def test_means_differ_only_if_intervals_do_not_overlap(left, right, verdict):
    assert compare(over_seeds(left), over_seeds(right)) == verdict


def test_an_estimate_against_a_fixed_number():
    assert compare_to(over_seeds([0.1, 0.11]), 0.0) == "above"
    assert compare_to(over_seeds([-0.1, 0.1]), 0.0) == "overlap"


def test_a_judged_estimate_keeps_its_value():
    value = over_seeds([0.3, 0.31])
    assert judge(value) == Judged(value, "above")
    assert judge(value, 0.5).verdict == "below"


def test_expected_false_verdicts():
    assert expected_false(0, 0) == 0.0
    # 200 x 0.5 % and 40 x 5 %
    assert expected_false(200, 40) == pytest.approx(3.0)
