"""The best condition of each architecture, and the conditions that train on every image."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.core.intervals import MIN_SEEDS
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.tables import CurveRow

FULL_DATA = {"global_uniform": "all", "incremental_natural": "1"}
"""``k_or_p`` of the condition that trains on every image, by regime."""


def best_conditions(curves: Sequence[CurveRow]) -> dict[str, CurveRow]:
    """The condition with the highest mean of a headline metric by architecture, first on ties.

    The metric is the first of ``HEADLINE`` that is defined anywhere in the sweep. An architecture
    without a defined mean of it is absent. Conditions with fewer than three seeds count only if
    the architecture has no others: the highest of many single runs is a lucky one.
    """
    defined = (name for name in HEADLINE if any(row.metrics[name].n for row in curves))
    by = next(defined, HEADLINE[0])
    best: dict[str, CurveRow] = {}
    highest: dict[str, tuple[bool, float]] = {}
    for row in curves:
        found = row.metrics[by]
        if found.mean is None:
            continue
        level = (found.n >= MIN_SEEDS, found.mean)
        if row.architecture not in best or level > highest[row.architecture]:
            best[row.architecture], highest[row.architecture] = row, level
    return best


def trains_on_all(condition: Condition) -> bool:
    """Whether a condition trains on every image."""
    return FULL_DATA.get(condition.regime) == condition.k_or_p
