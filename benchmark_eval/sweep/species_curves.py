"""Every species at every condition, means over tiers, and what is kept on field photographs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import DIFFERENCE, UNIT, mean_of, seed_interval
from benchmark_eval.core.retention import retention
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import SPECIES_SPLITS, TEST_SPLITS
from benchmark_eval.sweep.species_tables import (
    detection_recall,
    distinct_models,
    scored_species,
    species_ap,
    species_by_seed,
    species_recall,
)
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import RetentionRow, SpeciesCurveRow, TierRow
from benchmark_eval.training.tiers import MIN_SPECIES, TIERS, tiers

Groups = Mapping[Condition, Sequence[ModelResult]]

_VALUES = {
    "AP_50_95": species_ap("AP_50_95"),
    "AP_50": species_ap("AP_50"),
    "detection_recall": detection_recall,
    "species_recall": species_recall,
}


def _everyone(groups: Groups) -> list[ModelResult]:
    return [model for models in groups.values() for model in models]


def _seeds(models: Sequence[ModelResult]) -> list[int]:
    return [model.entry.seed for model in models]


def species_curve_rows(groups: Groups, benchmark: Benchmark) -> list[SpeciesCurveRow]:
    """The results of every scored species at every condition with a model.

    Seeds with the same prediction file on a split count once.
    """
    everyone, rows = _everyone(groups), []
    names = dict(zip(benchmark.categories.ids.tolist(), benchmark.categories.names, strict=True))
    for split in [name for name in TEST_SPLITS if name in benchmark.splits]:
        species = scored_species(everyone, split)
        n_scored = benchmark.splits[split].scored_per_category(len(benchmark.categories.ids))
        sizes = n_scored[benchmark.categories.rows_of(species)].tolist()
        for condition, models in groups.items():
            if models:
                rows += list(_curve(condition, models, split, species, sizes, names))
    order = {condition: at for at, condition in enumerate(groups)}
    return sorted(rows, key=lambda row: order[row.condition])


def _curve(
    condition: Condition,
    models: Sequence[ModelResult],
    split: str,
    species: Ints,
    sizes: Sequence[int],
    names: Mapping[int, str],
) -> Iterator[SpeciesCurveRow]:
    counted = distinct_models(models, split)
    tables = {
        key: [
            [None if math.isnan(value) else value for value in row]
            for row in species_by_seed(counted, split, of, species, _seeds(counted)).tolist()
        ]
        for key, of in _VALUES.items()
    }
    is_known = split in SPECIES_SPLITS
    for at, (number, size) in enumerate(zip(species.tolist(), sizes, strict=True)):
        ap = seed_interval(tables["AP_50_95"][at], UNIT) if is_known else None
        yield SpeciesCurveRow(
            architecture=condition.architecture,
            regime=condition.regime,
            k_or_p=condition.k_or_p,
            split=split,
            category_id=number,
            species=names[number],
            n_specimens=size,
            n_seeds=sum(value is not None for value in tables["detection_recall"][at]),
            AP_50_95=ap.mean if ap else None,
            AP_50_95_ci95_retraining_low=ap.low if ap else None,
            AP_50_95_ci95_retraining_high=ap.high if ap else None,
            AP_50=mean_of(tables["AP_50"][at]) if is_known else None,
            detection_recall=mean_of(tables["detection_recall"][at]),
            species_recall=mean_of(tables["species_recall"][at]) if is_known else None,
        )


def species_tiers(species: Ints, benchmark: Benchmark) -> list[str]:
    """The tier of each of these species; empty without training images, or of too few species."""
    images = benchmark.categories.n_train_images[benchmark.categories.rows_of(species)]
    ranked = images > 0
    if benchmark.train is None or int(ranked.sum()) < MIN_SPECIES:
        return [""] * len(species)
    found = iter(tiers(images[ranked]))
    return [next(found) if some else "" for some in ranked.tolist()]


def tier_rows(groups: Groups, benchmark: Benchmark) -> list[TierRow]:
    """The mean AP of each tier of species at every condition; none without train.json."""
    everyone, rows = _everyone(groups), []
    categories = benchmark.categories
    scored = {split: scored_species(everyone, split) for split in SPECIES_SPLITS}
    tier_of = {s: np.array(species_tiers(scored[s], benchmark), np.str_) for s in SPECIES_SPLITS}
    for condition, models in groups.items():
        for split in SPECIES_SPLITS:
            species, of_species = scored[split], tier_of[split]
            counted = distinct_models(models, split)
            for tier in [name for name in TIERS if models and name in of_species]:
                inside = species[of_species == tier]
                images = categories.n_train_images[categories.rows_of(inside)]
                for key in ("AP_50_95", "AP_50"):
                    table = _table(counted, split, key, species)[of_species == tier]
                    found = crossed_interval(crossed_table(table), UNIT)
                    rows.append(
                        TierRow(
                            architecture=condition.architecture,
                            regime=condition.regime,
                            k_or_p=condition.k_or_p,
                            split=split,
                            tier=tier,
                            metric=key,
                            min_train_images=int(images.min()),
                            max_train_images=int(images.max()),
                            n_species=found.n_species or 0,
                            n_seeds=found.n_seeds,
                            n_left_out=found.n_left_out,
                            mean=found.mean,
                            ci95_low=found.low,
                            ci95_high=found.high,
                            covers=found.covers,
                            reason=found.no_interval,
                        )
                    )
    return rows


def _table(models: Sequence[ModelResult], split: str, key: str, species: Ints) -> Floats:
    return species_by_seed(models, split, _VALUES[key], species, _seeds(models))


def retention_rows(groups: Groups) -> list[RetentionRow]:
    """What is left on field photographs, over the species that both splits score."""
    in_distribution, field = SPECIES_SPLITS
    everyone, rows = _everyone(groups), []
    sides = [scored_species(everyone, split) for split in SPECIES_SPLITS]
    shared = [np.isin(side, other) for side, other in zip(sides, sides[::-1], strict=True)]
    for condition, models in groups.items():
        counted = distinct_models(models, *SPECIES_SPLITS)
        if not all(split in model.species for model in counted for split in SPECIES_SPLITS):
            continue
        for key in _VALUES if counted else ():
            inside = _table(counted, in_distribution, key, sides[0])[shared[0]]
            outside = _table(counted, field, key, sides[1])[shared[1]]
            gap = crossed_interval(crossed_table(inside, outside), DIFFERENCE)
            left = retention(outside, inside)
            complete = ~(np.isnan(inside) | np.isnan(outside)).any(axis=1)
            rows.append(
                RetentionRow(
                    architecture=condition.architecture,
                    regime=condition.regime,
                    k_or_p=condition.k_or_p,
                    metric=key,
                    n_species=gap.n_species or 0,
                    n_seeds=gap.n_seeds,
                    in_distribution=_mean(inside[complete]),
                    field=_mean(outside[complete]),
                    gap=gap.mean,
                    gap_ci95_low=gap.low,
                    gap_ci95_high=gap.high,
                    gap_covers=gap.covers,
                    gap_reason=gap.no_interval,
                    retention=left.mean,
                    retention_ci95_species_low=left.low,
                    retention_ci95_species_high=left.high,
                    retention_reason=left.no_interval,
                )
            )
    return rows


def _mean(table: Floats) -> float | None:
    return mean_of(table.ravel().tolist())
