"""The images and specimens that each regime needs for a fraction of the result with all images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import REGIMES
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE
from benchmark_eval.sweep.budget_curves import CostOfLevel, costs_of_levels
from benchmark_eval.sweep.comparison_rows import units_of
from benchmark_eval.sweep.conditions import trains_on_all
from benchmark_eval.sweep.species_tables import distinct_models
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.tables import ABOVE, BELOW, BudgetRow, PlanningRow

_SPLIT = {metric.name: metric.split for metric in CURVE_METRICS}


def planning_rows(
    groups: Mapping[Condition, Sequence[ModelResult]], budgets: Sequence[BudgetRow]
) -> list[PlanningRow]:
    """The cost of fractions of the ceiling, for every curve with a known cost.

    Parameters
    ----------
    groups
        The models of each condition, in table order.
    budgets
        The costs of the conditions.

    Returns
    -------
    list of PlanningRow
        For the headline metrics in images, in specimens and, with prices, in their currency. The
        ceiling are the distinct runs of all regimes of the architecture that train on every image.
        Of budgets with equal costs, the first counts.
    """
    rows: list[PlanningRow] = []
    for architecture in dict.fromkeys(condition.architecture for condition in groups):
        own = {c: models for c, models in groups.items() if c.architecture == architecture}
        everything = [
            model
            for condition, models in own.items()
            if trains_on_all(condition)
            for model in models
        ]
        for name in HEADLINE:
            split = _SPLIT[name] or ""
            ceiling = [m.values[name] for m in distinct_models(everything, split)]
            for regime in [r for r in REGIMES if any(c.regime == r for c in own)]:
                for unit in units_of(budgets):
                    points: dict[float, list[float | None]] = {}
                    for row in budgets:
                        cost = getattr(row, unit)
                        if (row.architecture, row.regime) == (architecture, regime) and cost:
                            runs = distinct_models(own[row.condition], split)
                            points.setdefault(cost, [m.values[name] for m in runs])
                    costs = sorted(points)
                    found = costs_of_levels(costs, [points[cost] for cost in costs], ceiling)
                    rows += [
                        _row(architecture, regime, name, split, unit, costs, each)
                        for each in found
                        if costs
                    ]
    return rows


def _row(
    architecture: str,
    regime: str,
    metric: str,
    split: str,
    unit: str,
    costs: Sequence[float],
    found: CostOfLevel,
) -> PlanningRow:
    def side(below: bool, above: bool) -> str:
        return BELOW if below else ABOVE if above else ""

    return PlanningRow(
        architecture=architecture,
        regime=regime,
        metric=metric,
        split=split,
        unit=unit.removeprefix("n_"),
        fraction=found.fraction,
        target=found.target,
        smallest=costs[0],
        largest=costs[-1],
        cost=found.cost,
        cost_beyond=side(found.cost_below, found.cost_above),
        ci95_low=found.low,
        low_beyond=side(found.low_below, found.low_above),
        ci95_high=found.high,
        high_beyond=side(found.high_below, found.high_above),
        reason=found.reason,
    )
