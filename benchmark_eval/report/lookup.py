"""Access to the rows of the tables that a plot or a sentence shows. Computes no statistic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmark_eval.core.intervals import Estimate
from benchmark_eval.inputs.manifest import ONE_ARCHITECTURE, Condition, budget_text
from benchmark_eval.results.registry import CURVE_METRICS, CurveMetric
from benchmark_eval.sweep.tables import Aggregated, OperatingRow

BY_NAME: dict[str, CurveMetric] = {metric.name: metric for metric in CURVE_METRICS}

_LONGEST = 32

REGIME_AXIS = {
    "global_uniform": "k: images per species",
    "incremental_natural": "p: fraction of each species' images",
    "incremental_uniform_targets": "k: images per target species",
}
"""Axis label of a regime's budget."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: an estimate at each budget, and the seeds behind it.

    ``points`` and ``dots`` are (position on the budget axis, estimate or value).
    """

    key: str
    points: tuple[tuple[int, Estimate], ...]
    dots: tuple[tuple[int, float], ...]


class Lookup:
    """The tables by architecture, regime and budget."""

    def __init__(self, table: Aggregated) -> None:
        self.table = table
        self.architectures = table.architectures
        self.budgets: dict[str, list[str]] = {}
        for condition in sorted(
            {row.condition for row in table.learning_curves},
            key=lambda condition: (condition.regime_order, condition.value),
        ):
            budgets = self.budgets.setdefault(condition.regime, [])
            if condition.k_or_p not in budgets:
                budgets.append(condition.k_or_p)

    @property
    def regimes(self) -> list[str]:
        """The regimes that the sweep has, in table order."""
        return list(self.budgets)

    @property
    def several(self) -> bool:
        """Whether to name architectures: false if the manifest has no such column."""
        return self.architectures != [ONE_ARCHITECTURE]

    def label(self, architecture: str) -> str:
        """An architecture's name for a legend."""
        return architecture if self.several else "all models"

    def short(self, architecture: str) -> str:
        """The label, truncated to fit a plot."""
        text = self.label(architecture)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def series(self, architecture: str, regime: str, metric: str) -> Series:
        """One curve metric over a regime's budgets."""
        at = {budget: i for i, budget in enumerate(self.budgets[regime])}
        dots = [
            (at[model.k_or_p], value)
            for model in self.table.models
            if model.architecture == architecture
            and model.regime == regime
            and (value := model.values[metric]) is not None
        ]
        points = [
            (at[row.k_or_p], row.metrics[metric])
            for row in self.table.conditions(architecture, regime)
            if row.metrics[metric].n
        ]
        return Series(f"{architecture}|{regime}|{metric}", tuple(points), tuple(dots))

    def seeds(self, metrics: Iterable[str], architecture: str | None = None) -> int:
        """The largest n of any estimate of these metrics, that of a complete point."""
        names = list(metrics)
        return max(
            (
                row.metrics[name].n
                for row in self.table.learning_curves
                if architecture in (None, row.architecture)
                for name in names
            ),
            default=0,
        )

    def counted(self, architecture: str, metrics: Sequence[str]) -> str:
        """The short label, with n if the architecture has fewer seeds than others."""
        own = self.seeds(metrics, architecture)
        text = self.short(architecture)
        return text if own == self.seeds(metrics) else f"{text} (n={own})"


def label(condition: Condition) -> str:
    """``global_uniform k=5``: a condition without its architecture."""
    return f"{condition.regime} {budget_text(condition.regime, condition.k_or_p)}"


def best_threshold(table: Aggregated, architecture: str) -> OperatingRow | None:
    """The confidence threshold with the highest mean F1 on iid_test, the lowest on ties.

    Considers only thresholds at which every seed has an F1; None if there is none.
    """
    rows = [
        (row.metrics["F1"].mean or 0.0, -row.confidence, row)
        for row in table.operating_curves
        if (row.architecture, row.split) == (architecture, "iid_test")
        and row.metrics["F1"].mean is not None
        and row.metrics["F1"].n >= row.metrics["recall"].n
    ]
    return max(rows, key=lambda item: item[:2])[2] if rows else None
