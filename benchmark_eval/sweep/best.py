"""The best condition of each architecture, and its best confidence threshold."""

from __future__ import annotations

from collections.abc import Mapping

from benchmark_eval.core.intervals import Estimate
from benchmark_eval.sweep.conditions import best_conditions
from benchmark_eval.sweep.tables import Aggregated, CurveRow, OperatingRow

__all__ = ["best_conditions", "best_threshold", "defined_at_best", "largest"]


def defined_at_best(best: Mapping[str, CurveRow], *metrics: str) -> dict[str, CurveRow]:
    """The best conditions where every one of ``metrics`` is defined."""
    return {
        architecture: row
        for architecture, row in best.items()
        if all(row.metrics[metric].n for metric in metrics)
    }


def best_threshold(table: Aggregated, architecture: str) -> OperatingRow | None:
    """The confidence threshold with the highest mean F1 on iid_test, the lowest on ties.

    Considers only thresholds at which every seed has an F1; None if there is none.
    """
    best: OperatingRow | None = None
    for row in table.operating_curves:
        if (row.architecture, row.split) != (architecture, "iid_test"):
            continue
        f1 = row.metrics["F1"]
        if f1.mean is None or f1.n < row.metrics["recall"].n:
            continue
        if best is None or f1.mean > _or_low(best.metrics["F1"]):
            best = row
    return best


def largest(estimates: Mapping[str, Estimate]) -> str:
    """The key with the largest mean, the first on ties; an undefined mean is the smallest."""
    return max(estimates, key=lambda key: _or_low(estimates[key]))


def _or_low(value: Estimate) -> float:
    return float("-inf") if value.mean is None else value.mean
