"""The images and specimens that each regime needs for a fraction of the result with all images."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from benchmark_eval.core.intervals import Reason
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import REGIMES
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE
from benchmark_eval.sweep.budget_curves import CostOfLevel, costs_of_levels
from benchmark_eval.sweep.comparison_rows import units_of
from benchmark_eval.sweep.designs import all_images
from benchmark_eval.sweep.species_tables import distinct_models
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.tables import ABOVE, BELOW, BudgetRow, PlanningRow

_SPLIT = {metric.name: metric.split for metric in CURVE_METRICS}


def planning_rows(
    groups: Mapping[Condition, Sequence[ModelResult]],
    benchmark: Benchmark,
    budgets: Sequence[BudgetRow],
) -> list[PlanningRow]:
    """The cost of fractions of the ceiling, for every curve with a known cost.

    Parameters
    ----------
    groups
        The models of each condition, in table order.
    benchmark
        For the conditions that draw every image under another name.
    budgets
        The costs of the conditions.

    Returns
    -------
    list of PlanningRow
        For the headline metrics in images, in specimens and, with prices, in their currency. The
        ceiling are the distinct runs of all regimes of the architecture that train on every image,
        also under another name, such as targets at a k that no target exceeds. Of budgets with
        equal costs, the first counts. Nothing lies beyond every image: a cost or an end above the
        largest budget of such a regime is empty, with a reason.
    """
    on_all = all_images(list(groups), benchmark)
    rows: list[PlanningRow] = []
    for architecture in dict.fromkeys(condition.architecture for condition in groups):
        own = {c: models for c, models in groups.items() if c.architecture == architecture}
        everything = [
            model for condition, models in own.items() if on_all[condition] for model in models
        ]
        for name in HEADLINE:
            split = _SPLIT[name] or ""
            ceiling = [m.values[name] for m in distinct_models(everything, split)]
            for regime in [r for r in REGIMES if any(c.regime == r for c in own)]:
                for unit in units_of(budgets):
                    points: dict[float, list[float | None]] = {}
                    whole: set[float] = set()
                    for row in budgets:
                        cost = getattr(row, unit)
                        if (row.architecture, row.regime) == (architecture, regime) and cost:
                            if on_all[row.condition]:
                                whole.add(cost)
                            runs = distinct_models(own[row.condition], split)
                            points.setdefault(cost, [m.values[name] for m in runs])
                    costs = sorted(points)
                    found = costs_of_levels(costs, [points[cost] for cost in costs], ceiling)
                    rows += [
                        _row(architecture, regime, (name, split, unit), costs, each, whole)
                        for each in found
                        if costs
                    ]
    return rows


def _row(
    architecture: str,
    regime: str,
    place: tuple[str, str, str],
    costs: Sequence[float],
    found: CostOfLevel,
    whole: Collection[float],
) -> PlanningRow:
    metric, split, unit = place
    reason = found.reason
    if costs[-1] in whole and (found.cost_above or found.low_above or found.high_above):
        reason = reason or Reason.ALL_IMAGES
        found = replace(found, cost_above=False, low_above=False, high_above=False)

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
        reason=reason,
    )
