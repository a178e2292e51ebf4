"""Species x seeds: the values of every scored species of a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.results.registry import CURVE_METRICS
from benchmark_eval.sweep.summaries import SPECIES_KEYS, ModelResult, SplitSpecies

PREDICTIONS = "predictions/"
"""Prefix of prediction files in a summary's ``provenance.inputs``."""


def species_ap(key: str) -> Callable[[SplitSpecies], Floats]:
    """The function that gives a value of ``SPECIES_KEYS`` for each species."""
    at = SPECIES_KEYS.index(key)
    return lambda species: species.values[at]


def _share(key: str) -> Callable[[SplitSpecies], Floats]:
    count, n_gt = SPECIES_KEYS.index(key), SPECIES_KEYS.index("n_gt")
    return lambda species: species.values[count] / species.values[n_gt]


detection_recall = _share("n_matched_tp")
"""Found specimens over annotated specimens of each species, whatever their predicted name."""
species_recall = _share("n_correct_species")
"""Correctly identified specimens over annotated specimens of each species."""


SPECIES_MEANS: Mapping[str, Callable[[SplitSpecies], Floats]] = {
    metric.name: species_ap("AP_50" if metric.path[-1] == "joint_AP_50" else metric.path[-1])
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


def distinct_models(models: Sequence[ModelResult], *splits: str) -> list[ModelResult]:
    """The models that count on some splits: of identical prediction files, the first."""
    held: dict[tuple[str, ...], ModelResult] = {}
    for model in models:
        inputs, own = model.provenance.inputs, model.entry.model_name
        digests = tuple(inputs.get(f"{PREDICTIONS}{split}", own) for split in splits)
        held.setdefault(digests, model)
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
