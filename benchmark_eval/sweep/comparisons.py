"""Verdicts on differences between estimates."""

from __future__ import annotations

from typing import Literal

from benchmark_eval.core.intervals import Estimate

Verdict = Literal["above", "below", "overlap", "no interval", "undefined"]


def compare(left: Estimate, right: Estimate) -> Verdict:
    """Where ``left`` lies against ``right`` as far as their intervals tell.

    "overlap" when the intervals share a value, "no interval" when a side has fewer than two
    seeds, "undefined" when a side has none.
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
    """Where an estimate lies against a number that has no error."""
    return compare(value, Estimate(fixed, 0.0, 0, fixed, fixed))
