"""Missing seeds of a sweep: models without a result, and cells that the manifest lacks."""

from __future__ import annotations

from collections.abc import Iterable

from benchmark_eval.inputs.manifest import Condition, Manifest, ModelEntry
from benchmark_eval.sweep.tables import MissingSeed


def missing_seeds(manifest: Manifest, missing: Iterable[ModelEntry]) -> list[MissingSeed]:
    """Every cell (architecture, condition, seed) without a result, in table order.

    Cells are those of the full grid of the manifest: every architecture with every condition and
    seed that occurs in it.
    """
    without = {(entry.condition, entry.seed): entry.model_name for entry in missing}
    listed = {(entry.condition, entry.seed) for entry in manifest.models}
    architectures = sorted({entry.architecture for entry in manifest.models})
    budgets = sorted({(c.regime_order, c.value, c.k_or_p) for c, _ in listed})
    seeds = sorted({seed for _, seed in listed})
    cells = [
        (Condition(architecture, *budget), seed)
        for architecture in architectures
        for budget in budgets
        for seed in seeds
    ]
    return [
        MissingSeed(
            architecture=condition.architecture,
            regime=condition.regime,
            k_or_p=condition.k_or_p,
            seed=seed,
            model=without.get((condition, seed), ""),
        )
        for condition, seed in cells
        if (condition, seed) in without or (condition, seed) not in listed
    ]


def by_condition(missing: Iterable[MissingSeed]) -> dict[Condition, list[MissingSeed]]:
    """Missing seeds grouped by condition, in order of appearance."""
    groups: dict[Condition, list[MissingSeed]] = {}
    for item in missing:
        groups.setdefault(item.condition, []).append(item)
    return groups
