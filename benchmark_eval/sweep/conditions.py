"""The best condition of each architecture, and the conditions that train on every image."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.tables import CurveRow

BEST_BY = HEADLINE[0]
"""The curve metric that decides which condition is best."""
FULL_DATA = {"global_uniform": "all", "incremental_natural": "1"}
"""``k_or_p`` of the condition that trains on every image, by regime."""


def best_conditions(curves: Sequence[CurveRow]) -> dict[str, CurveRow]:
    """The condition with the highest mean of ``BEST_BY`` by architecture, the first on ties.

    An architecture without a defined mean is absent.
    """
    best: dict[str, CurveRow] = {}
    highest: dict[str, float] = {}
    for row in curves:
        mean = row.metrics[BEST_BY].mean
        if mean is not None and mean > highest.get(row.architecture, float("-inf")):
            best[row.architecture], highest[row.architecture] = row, mean
    return best


def trains_on_all(condition: Condition) -> bool:
    """Whether a condition trains on every image."""
    return FULL_DATA.get(condition.regime) == condition.k_or_p
