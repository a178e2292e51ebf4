"""The rows of the tables as a plot needs them: by architecture, regime and budget, with looks.

Computes no statistic.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from benchmark_eval.protocol import ALL
from benchmark_eval.report.looks import MOST_ARCHITECTURES, Look, architecture_looks
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.conditions import best_conditions
from benchmark_eval.sweep.tables import Aggregated, CurveRow, Limits, ModelRow, OperatingRow

REGIME_AXIS = {
    "global_uniform": "k: at most k images per species",
    "incremental_natural": "p: fraction of each species' images",
    "incremental_uniform_targets": "k: at most k images per target",
}
"""Axis label of a regime's budget."""
UNDEFINED = "Undefined for every model of this sweep."
ZERO = "0"

Span = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Point:
    """A mean at one position, and its intervals over retraining and over species and retraining."""

    x: float
    mean: float
    n: int
    retraining: Span = None
    species: Span = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: a point at each budget, and the seeds behind it as (position, value)."""

    key: str
    points: tuple[Point, ...]
    dots: tuple[tuple[float, float], ...] = ()

    def extent(self) -> list[float]:
        """Every number that a plot of the series must include."""
        values = [y for _, y in self.dots]
        for point in self.points:
            values += [point.mean, *(point.retraining or ()), *(point.species or ())]
        return values


class Budgets:
    """The budget axis of a regime: log2 of k or p, with 0 and "all" apart at its ends."""

    def __init__(self, names: Sequence[str]) -> None:
        numbers = [math.log2(float(name)) for name in names if name not in (ZERO, ALL)]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
        step = max(1.0, 0.16 * (high - low))
        self.at = {
            name: low - step
            if name == ZERO
            else high + step
            if name == ALL
            else math.log2(float(name))
            for name in names
        }
        self.apart = [x for name, x in self.at.items() if name in (ZERO, ALL) and numbers]
        ordered = sorted(self.at.values())
        self.spacing = min((b - a for a, b in pairwise(ordered)), default=1.0)

    @property
    def length(self) -> float:
        """The length of the axis."""
        low, high = self.limits
        return high - low

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of the axis; one or two budgets are centred."""
        low, high = min(self.at.values()), max(self.at.values())
        margin = max(0.5, 0.07 * (high - low), 1.5 - (high - low) / 2)
        return low - margin, high + margin


class View:
    """The tables of a sweep, indexed once for all plots."""

    def __init__(self, table: Aggregated) -> None:
        self.table = table
        self.look = Lookup(table)
        self.architectures = self.look.architectures
        self.regimes = self.look.regimes
        self._rows: dict[tuple[str, str], list[CurveRow]] = defaultdict(list)
        for row in table.learning_curves:
            self._rows[row.architecture, row.regime].append(row)
        self._models: dict[tuple[str, str], list[ModelRow]] = defaultdict(list)
        for model in table.models:
            self._models[model.architecture, model.regime].append(model)
        self.budgets = {regime: Budgets(self.look.budgets[regime]) for regime in self.regimes}
        self.splits: list[str] = list(table.inputs.options.get("splits", []))

    @cached_property
    def lead(self) -> str:
        """The first headline metric that is defined anywhere; it decides what is best."""
        return next((name for name in HEADLINE if self.seeds([name])), HEADLINE[0])

    @cached_property
    def best(self) -> dict[str, float | None]:
        """The mean of the ``lead`` metric at each architecture's best condition."""
        best = best_conditions(self.table.learning_curves)
        return {
            name: best[name].metrics[self.lead].mean if name in best else None
            for name in self.architectures
        }

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The look of each architecture with a colour of its own, with its short label."""
        found = architecture_looks(self.architectures, self.best)
        return {
            name: Look(self.look.short(name), look.color, look.marker)
            for name, look in found.items()
        }

    @property
    def shown(self) -> list[str]:
        """The architectures with a colour of their own, in table order."""
        return list(self.looks)

    @property
    def others(self) -> list[str]:
        """The architectures without one."""
        return [name for name in self.architectures if name not in self.looks]

    def others_note(self, what: str = "Only") -> str:
        """Which architectures a plot shows, if not all."""
        if not self.others:
            return ""
        return (
            f" {what} the {MOST_ARCHITECTURES} of {len(self.architectures)} architectures with the "
            f"highest {BY_NAME[self.lead].label} at their best condition."
        )

    @cached_property
    def chosen(self) -> dict[str, OperatingRow]:
        """A row of each architecture's best condition; none if AP is undefined everywhere."""
        return {row.architecture: row for row in reversed(self.table.operating_curves)}

    def models(self, architecture: str, regime: str) -> list[ModelRow]:
        """The models of an architecture in a regime."""
        return self._models[architecture, regime]

    def conditions(self, architecture: str, regime: str) -> list[CurveRow]:
        """The conditions of an architecture in a regime, by increasing budget."""
        return self._rows[architecture, regime]

    def series(self, architecture: str, regime: str, metric: str) -> Series:
        """One curve metric over a regime's budgets, without values fixed by construction."""
        at = self.budgets[regime].at
        points = [
            found
            for row in self.conditions(architecture, regime)
            if (found := point(row, metric, at[row.k_or_p])) is not None
        ]
        dots = [
            (at[model.k_or_p], value)
            for model in self.models(architecture, regime)
            if (value := model.values[metric]) is not None
        ]
        return Series(f"{architecture}|{regime}|{metric}", tuple(points), tuple(dots))

    def seeds(self, metrics: Iterable[str], architecture: str | None = None) -> int:
        """The largest n of any estimate of these metrics, that of a complete point."""
        return self.look.seeds(metrics, architecture)

    def why_undefined(self, metrics: Sequence[str]) -> str:
        """Why no model has any of these curve metrics."""
        gone = dict.fromkeys(
            split
            for name in metrics
            if (split := BY_NAME[name].split) is not None and split not in self.splits
        )
        if gone and len(gone) == len({BY_NAME[name].split for name in metrics}):
            return f"Not shown: {', '.join(gone)} was not evaluated."
        if all(BY_NAME[name].metric.block == "class_imbalance" for name in metrics):
            return "Not shown: tiers of species require train.json."
        return UNDEFINED


def point(row: CurveRow, metric: str, x: float) -> Point | None:
    """A curve metric of a condition; None if it is undefined or fixed by construction."""
    value = row.metrics[metric]
    if value.mean is None or metric in row.by_construction:
        return None
    both = row.species_retraining.get(metric)
    return Point(
        x, value.mean, value.n, span(row.retraining[metric]), None if both is None else span(both)
    )


def span(limits: Limits) -> Span:
    """The ends of an interval; None without one."""
    return None if limits.low is None or limits.high is None else (limits.low, limits.high)


def ends(low: float | None, high: float | None) -> Span:
    """The ends of an interval that has some width; None otherwise."""
    return None if low is None or high is None or low == high else (low, high)
