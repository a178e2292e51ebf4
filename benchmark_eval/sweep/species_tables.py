"""Species x seeds: the values of every scored species of a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.results.registry import CURVE_METRICS
from benchmark_eval.sweep.summaries import SPECIES_KEYS, ModelResult, SplitSpecies

PREDICTIONS = "predictions/"
"""Prefix of prediction files in a summary's ``provenance.inputs``."""


def _ap(key: str) -> Callable[[SplitSpecies], Floats]:
    at = SPECIES_KEYS.index(key)
    return lambda species: species.values[at]


def detection_recall(species: SplitSpecies) -> Floats:
    """Found specimens over annotated specimens of each species, whatever their predicted name."""
    found: Floats = species.values[SPECIES_KEYS.index("n_matched_tp")]
    share: Floats = found / species.values[SPECIES_KEYS.index("n_gt")]
    return share


SPECIES_MEANS: Mapping[str, Callable[[SplitSpecies], Floats]] = {
    metric.name: _ap("AP_50" if metric.path[-1] == "joint_AP_50" else metric.path[-1])
    for metric in CURVE_METRICS
    if metric.split not in (None, "semantic_ood")
    and (
        (metric.metric.block == "coco" and metric.path[-1] in SPECIES_KEYS)
        or metric.path[-1] == "joint_AP_50"
    )
}
"""The curve metrics that are means over species, with the function that gives each species' value.

On unseen species such an AP is 0 by construction, so they have none.
"""


def scored_species(models: Sequence[ModelResult], split: str) -> Ints:
    """The category ids that any of the models scores on a split, ascending."""
    found = {n for model in models if split in model.species for n in model.species[split].ids}
    return np.array(sorted(found), np.int64)


def distinct_models(models: Sequence[ModelResult], split: str) -> list[ModelResult]:
    """The models that count on a split: of identical prediction files, the first."""
    held: dict[str, ModelResult] = {}
    for model in models:
        digest = model.provenance.inputs.get(f"{PREDICTIONS}{split}", model.entry.model_name)
        held.setdefault(digest, model)
    return list(held.values())


def species_by_seed(
    models: Sequence[ModelResult],
    split: str,
    value: Callable[[SplitSpecies], Floats],
    species: Ints,
    seeds: Sequence[int],
) -> Floats:
    """The table (species, seeds) of one condition on a split; NaN where there is no value.

    Parameters
    ----------
    models
        The models of the condition, at most one per seed.
    split
        A test split.
    value
        The value of each scored species of a model, (species,).
    species
        Category ids of the rows, ascending.
    seeds
        Seeds of the columns. A column without a model is NaN.
    """
    table = np.full((len(species), len(seeds)), np.nan)
    column = {seed: at for at, seed in enumerate(seeds)}
    for model in models:
        scores = model.species.get(split)
        at = column.get(model.entry.seed)
        if scores is not None and at is not None and len(scores.ids):
            table[np.searchsorted(species, scores.ids), at] = value(scores)
    return table
