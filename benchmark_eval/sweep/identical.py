"""Identical prediction files of several models, which are not independent seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from benchmark_eval.core.intervals import Estimate, Reason
from benchmark_eval.results.registry import CURVE_METRICS
from benchmark_eval.sweep.species_tables import PREDICTIONS
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.tables import Aggregated, IdenticalFiles, Limits

SPLIT_OF = {metric.name: metric.split for metric in CURVE_METRICS}


def identical_files(models: Sequence[ModelResult]) -> list[IdenticalFiles]:
    """Models with identical prediction files, by split; in table order."""
    by_file: dict[tuple[str, str], list[str]] = {}
    for model in models:
        for name, digest in model.provenance.inputs.items():
            if name.startswith(PREDICTIONS):
                split = name.removeprefix(PREDICTIONS)
                by_file.setdefault((split, digest), []).append(model.entry.model_name)
    splits: dict[tuple[str, ...], list[str]] = {}
    for (split, _), names in by_file.items():
        if len(names) > 1:
            splits.setdefault(tuple(names), []).append(split)
    return [IdenticalFiles(splits=shared, models=list(names)) for names, shared in splits.items()]


def shared_splits(files: Iterable[IdenticalFiles], models: Iterable[str]) -> list[str]:
    """The splits on which at least two of ``models`` have identical prediction files."""
    names = set(models)
    shared = [s for item in files if len(names & set(item.models)) > 1 for s in item.splits]
    return list(dict.fromkeys(shared))


def without_intervals_of_copies(table: Aggregated) -> Aggregated:
    """The tables without the intervals of conditions whose seeds share a prediction file.

    A metric of one split loses its interval if seeds share that split's file; a metric across
    splits, or of unknown split, if they share any.
    """
    copied = {row.condition: set(row.identical) for row in table.learning_curves if row.identical}
    if not copied:
        return table

    def cleared(row: Any, split: str | None, values: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """``values`` on a split, or (None) across splits."""
        splits = copied.get(row.condition, set())
        shared = bool(splits) if split is None else split in splits
        return {
            key: replace(value, ci95_low=None, ci95_high=None) if shared else value
            for key, value in values.items()
        }

    def metrics(row: Any, values: Mapping[str, Estimate]) -> dict[str, Estimate]:
        return {
            key: cleared(row, SPLIT_OF.get(key), {key: value})[key] for key, value in values.items()
        }

    def bounds(row: Any, values: Mapping[str, Limits]) -> dict[str, Limits]:
        splits = copied.get(row.condition, set())
        none = Limits(None, None, Reason.IDENTICAL_RUNS)
        return {
            key: none
            if (splits if (split := SPLIT_OF.get(key)) is None else split in splits)
            else value
            for key, value in values.items()
        }

    def estimates(row: Any) -> dict[str, Estimate]:
        named = {key: getattr(row, key) for key in row.__struct_fields__}
        return {key: value for key, value in named.items() if isinstance(value, Estimate)}

    return replace(
        table,
        learning_curves=[
            replace(
                row,
                metrics=metrics(row, row.metrics),
                differences=cleared(row, None, row.differences),
                retraining=bounds(row, row.retraining),
                species_retraining=bounds(row, row.species_retraining),
            )
            for row in table.learning_curves
        ],
        budget_curves=[
            replace(row, headline=metrics(row, row.headline)) for row in table.budget_curves
        ],
        target_species_curves=[
            replace(row, **cleared(row, row.split, estimates(row)))
            for row in table.target_species_curves
        ],
        target_vs_nontarget=[
            replace(row, **cleared(row, row.split, estimates(row)))
            for row in table.target_vs_nontarget
        ],
        density_curves=[
            replace(row, metrics=cleared(row, row.split, row.metrics))
            for row in table.density_curves
        ],
        operating_curves=[
            replace(row, metrics=cleared(row, row.split, row.metrics))
            for row in table.operating_curves
        ],
    )
