"""Pooled seeds of conditions that have the same training set under two names."""

from __future__ import annotations

from msgspec.structs import replace

from benchmark_eval.core.intervals import Estimate, estimate
from benchmark_eval.results.registry import CURVE_METRICS
from benchmark_eval.sweep.conditions import FULL_DATA, trains_on_all
from benchmark_eval.sweep.tables import Aggregated

__all__ = ["FULL_DATA", "pooled", "trains_on_all"]

_SPLIT = {metric.name: metric.split for metric in CURVE_METRICS}


def pooled(table: Aggregated, architecture: str, metric: str) -> Estimate | None:
    """A metric over the seeds of all regimes that train on every image.

    None unless both regimes have a defined value there, and None if their counted budgets differ,
    because the training sets then differ too. No interval if some of the seeds have the same
    prediction file.
    """
    rows = [
        row
        for row in table.learning_curves
        if row.architecture == architecture and trains_on_all(row.condition)
    ]
    conditions = {row.condition for row in rows}
    costs = {
        (row.n_images, row.n_specimens)
        for row in table.budget_curves
        if row.condition in conditions
    }
    if len(rows) < 2 or len(costs) > 1 or not all(row.metrics[metric].n for row in rows):
        return None
    models = [model for model in table.models if model.condition in conditions]
    value = estimate(model.values[metric] for model in models)
    names, split = {model.model for model in models}, _SPLIT[metric]
    copies = any(
        len(names.intersection(item.models)) > 1
        for item in table.identical
        if split is None or split in item.splits
    )
    return replace(value, ci95_low=None, ci95_high=None) if copies else value
