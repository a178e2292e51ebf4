"""The words for what a comparison shows. Tables, sentences and figures take them from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmark_eval.core.intervals import Interval, Reason, t_probability
from benchmark_eval.sweep.multiple import holm

ALPHA = 0.05
"""Largest probability of a false verdict in a question."""


class Word(StrEnum):
    """What a comparison of A with B shows: A is ..."""

    HIGHER = "higher"
    LOWER = "lower"
    INCONCLUSIVE = "inconclusive"
    INCONCLUSIVE_AFTER_CORRECTION = "inconclusive after correction"
    """The plain 95 % interval excludes 0, but Holm's adjusted p-value is not below 0.05."""
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a difference, and what it rests on.

    ``interval`` is the plain 95 % interval. ``p`` is two-sided; ``p_holm`` is adjusted for the
    tests of the question. Both and ``reason`` are None where they do not apply: p-values of a
    difference that was not tested, the reason of one that was.
    """

    word: Word
    interval: Interval
    p: float | None
    p_holm: float | None
    reason: Reason | None

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})" if self.reason else str(self.word)


@dataclass(frozen=True, slots=True)
class Question:
    """One metric, one split, one list of comparisons: the verdicts in the list's order."""

    verdicts: tuple[Verdict, ...]
    n_tests: int


def probability(interval: Interval) -> float | None:
    """The two-sided p-value of a difference of 0, from a t interval that is not transformed.

    None without an interval.
    """
    if interval.mean is None or interval.se is None or interval.df is None:
        return None
    return t_probability(interval.mean / interval.se, interval.df)


def judge(intervals: Sequence[Interval]) -> Question:
    """The verdicts on the differences of one question, with Holm's correction.

    Parameters
    ----------
    intervals
        The intervals of the differences, on their own scale. Those with ``no_verdict`` are not
        tested and do not count as tests.

    Returns
    -------
    Question
        Higher or lower: Holm's adjusted p-value is below 0.05. The simulated rate of questions
        without any true difference that have such a verdict is in docs/statistics.md.
    """
    values = [None if each.no_verdict else probability(each) for each in intervals]
    tested = [p for p in values if p is not None]
    adjusted = iter(holm(tested))
    verdicts = []
    for each, p in zip(intervals, values, strict=True):
        p_holm = None if p is None else next(adjusted)
        verdicts.append(Verdict(_word(each, p, p_holm), each, p, p_holm, each.no_verdict))
    return Question(tuple(verdicts), len(tested))


def _word(interval: Interval, p: float | None, p_holm: float | None) -> Word:
    if p is None or p_holm is None or interval.mean is None:
        return Word.NOT_TESTED
    if p_holm < ALPHA:
        return Word.HIGHER if interval.mean > 0 else Word.LOWER
    return Word.INCONCLUSIVE_AFTER_CORRECTION if p < ALPHA else Word.INCONCLUSIVE
