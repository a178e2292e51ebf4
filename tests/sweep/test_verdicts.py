"""The words for what a comparison shows."""

import pytest

from benchmark_eval.core.intervals import Covers, Interval, Reason, t_quantile
from benchmark_eval.sweep.verdicts import Word, judge, probability


def interval(mean, se=1.0, df=30.0, reason=None):
    half = t_quantile(df) * se
    return Interval(
        mean=mean,
        low=mean - half,
        high=mean + half,
        se=se,
        df=df,
        covers=Covers.BOTH,
        n_seeds=3,
        no_verdict=reason,
    )


def words(*intervals):
    return [verdict.word for verdict in judge(intervals).verdicts]


def test_one_comparison():
    assert words(interval(3.0)) == [Word.HIGHER]
    assert words(interval(-3.0)) == [Word.LOWER]
    assert words(interval(1.0)) == [Word.INCONCLUSIVE]
    # with one test, the verdict is whether the interval excludes 0
    edge = t_quantile(30.0)
    assert words(interval(edge * 1.001)) == [Word.HIGHER]
    assert words(interval(edge * 0.999)) == [Word.INCONCLUSIVE]


def test_an_interval_without_0_can_be_inconclusive_after_correction():
    # p = 0.04 alone; among three tests it must be below 0.05 / 3
    first = interval(2.15)
    assert probability(first) == pytest.approx(0.0397, abs=1e-4)
    found = judge([first, interval(0.1), interval(0.2)])
    assert found.verdicts[0].word == Word.INCONCLUSIVE_AFTER_CORRECTION
    assert first.low > 0
    assert found.verdicts[0].p_holm == pytest.approx(3 * found.verdicts[0].p)
    assert found.n_tests == 3


def test_untested_differences_do_not_count_as_tests():
    untested = interval(9.0, reason=Reason.FEW_SEEDS)
    found = judge([interval(2.15), untested, untested])
    assert found.n_tests == 1
    assert [v.word for v in found.verdicts] == [Word.HIGHER, Word.NOT_TESTED, Word.NOT_TESTED]
    assert str(found.verdicts[0]) == "higher"
    assert str(found.verdicts[1]) == "not tested (fewer than 3 seeds)"
    assert found.verdicts[1].p is None


def test_a_difference_without_an_interval_is_not_tested():
    nothing = Interval(
        mean=0.1,
        covers=Covers.BOTH,
        n_seeds=3,
        no_interval=Reason.NO_VARIATION,
        no_verdict=Reason.NO_VARIATION,
    )
    found = judge([nothing])
    assert (found.n_tests, str(found.verdicts[0])) == (0, "not tested (no variation)")
    assert probability(nothing) is None


def test_a_question_without_comparisons():
    assert judge([]).verdicts == ()
    assert judge([]).n_tests == 0
