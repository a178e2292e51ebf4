"""Verdicts on differences between estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmark_eval.core.intervals import Estimate

Verdict = Literal["above", "below", "overlap", "no interval", "undefined"]

FALSE_OVER_MEANS, FALSE_OVER_DIFFERENCES = 0.005, 0.05
"""How often ``compare`` and ``compare_to`` report a difference although there is none, for three
seeds (``benchmarks/seed_intervals.py``)."""


def compare(left: Estimate, right: Estimate) -> Verdict:
    """Where ``left`` lies relative to ``right``, judged by whether their intervals overlap.

    "overlap" if the intervals share a value, "no interval" if a side has fewer than two
    independent seeds, "undefined" if a side has none.
    """
    if left.mean is None or right.mean is None:
        return "undefined"
    if (
        left.ci95_low is None
        or left.ci95_high is None
        or right.ci95_low is None
        or right.ci95_high is None
    ):
        return "no interval"
    if left.ci95_low > right.ci95_high:
        return "above"
    if left.ci95_high < right.ci95_low:
        return "below"
    return "overlap"


def compare_to(value: Estimate, fixed: float) -> Verdict:
    """Where an estimate lies relative to a fixed number."""
    return compare(value, Estimate(fixed, 0.0, 0, fixed, fixed))


@dataclass(frozen=True, slots=True)
class Judged:
    """An estimate and its verdict against a fixed number."""

    value: Estimate
    verdict: Verdict


def judge(value: Estimate, fixed: float = 0.0) -> Judged:
    """An estimate with its verdict against ``fixed``."""
    return Judged(value, compare_to(value, fixed))


def expected_false(n_means: int, n_differences: int) -> float:
    """Expected number of false verdicts if no difference exists, for three seeds.

    ``n_means`` are verdicts of ``compare``, ``n_differences`` those of ``compare_to``.
    """
    return n_means * FALSE_OVER_MEANS + n_differences * FALSE_OVER_DIFFERENCES
