"""The best condition of each architecture, and the conditions that train on every image."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.tables import CurveRow

FULL_DATA = {"global_uniform": "all", "incremental_natural": "1"}
"""``k_or_p`` of the condition that trains on every image, by regime."""


def best_conditions(curves: Sequence[CurveRow]) -> dict[str, CurveRow]:
    """The condition with the highest mean of a headline metric by architecture, first on ties.

    The metric is the first of ``HEADLINE`` that is defined anywhere in the sweep. An architecture
    without a defined mean of it is absent.
    """
    defined = (name for name in HEADLINE if any(row.metrics[name].n for row in curves))
    by = next(defined, HEADLINE[0])
    best: dict[str, CurveRow] = {}
    highest: dict[str, float] = {}
    for row in curves:
        mean = row.metrics[by].mean
        if mean is not None and mean > highest.get(row.architecture, float("-inf")):
            best[row.architecture], highest[row.architecture] = row, mean
    return best


def trains_on_all(condition: Condition) -> bool:
    """Whether a condition trains on every image."""
    return FULL_DATA.get(condition.regime) == condition.k_or_p
