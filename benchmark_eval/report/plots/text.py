"""Numbers and verdicts as short texts in plots."""

from __future__ import annotations

from benchmark_eval.sweep.tables import ComparisonRow
from benchmark_eval.sweep.verdicts import Word

_SHORT = {Word.INCONCLUSIVE_AFTER_CORRECTION: "inconcl. (Holm)"}


def _rounded(value: float) -> float:
    """0 for what would be printed as minus 0."""
    return 0.0 if abs(value) < 0.005 else value


def number(value: float) -> str:
    """A fraction with two digits after the point and a true minus sign."""
    return f"{_rounded(value):.2f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{_rounded(value):+.2f}".replace("-", "\N{MINUS SIGN}")


def interval(low: float | None, high: float | None) -> str:
    """``[0.12, 0.34]``; blank without an interval."""
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"


def verdict_text(row: ComparisonRow) -> str:
    """``+0.10 [0.05, 0.15] higher``, or why there is no number."""
    if row.a_minus_b is None:
        return f"not compared: {row.reason}" if row.reason else "not compared"
    word = _SHORT.get(row.verdict, str(row.verdict))
    return f"{signed(row.a_minus_b)}{interval(row.ci95_low, row.ci95_high)} {word}"
