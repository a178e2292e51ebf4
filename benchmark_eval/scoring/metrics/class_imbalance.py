"""Class imbalance: AP of species with many and with few training images."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark_eval.core.numbers import pearson
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.results.schema import ClassImbalance, SpeciesScore
from benchmark_eval.training.tiers import MIN_SPECIES, TIERS, tiers


def class_imbalance(
    benchmark: Benchmark, split: str, per_species: dict[str, SpeciesScore]
) -> ClassImbalance:
    """Mean AP of head, medium and tail species by training images, their gap, a correlation.

    Parameters
    ----------
    benchmark : Benchmark
        Supplies the number of training images of each species.
    split : str
        Name of the split.
    per_species : dict of str to SpeciesScore
        AP of each listed species, by category id.

    Returns
    -------
    ClassImbalance
        Empty without training annotations; only ``n_species_evaluated`` below four species.
        Correlations are None if AP or the numbers of images are constant.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1, except for unscored species and ties (deviations 2
    and 3 in docs/deviations.md). Scored species with training images are ranked by their number
    of distinct training images, ties by category id. With n species, rank <= n/4 is tail,
    rank > 3n/4 is head, the rest medium. Correlations are Pearson's r over species.
    """
    train = benchmark.train
    if train is None or not len(train.image) or not per_species:
        return ClassImbalance()
    categories = benchmark.categories
    rows = benchmark.split(split).listed
    scored = np.array(
        [per_species[str(i)].AP_50 is not None for i in categories.ids[rows]], np.bool_
    )
    rows = rows[scored & (categories.n_train_images[rows] > 0)]
    n = len(rows)
    if n < MIN_SPECIES:
        return ClassImbalance(n_species_evaluated=n)
    images = categories.n_train_images[rows]
    scores = [per_species[str(i)] for i in categories.ids[rows]]
    ap_50 = np.array([s.AP_50 for s in scores], np.float64)
    ap_50_95 = np.array([s.AP_50_95 for s in scores], np.float64)
    of_species = np.array(tiers(images))
    values: dict[str, Any] = {"n_species_evaluated": n}
    for tier in TIERS:
        inside = of_species == tier
        values[f"{tier}_n_species"] = int(inside.sum())
        values[f"{tier}_AP_50"] = float(ap_50[inside].mean())
        values[f"{tier}_AP_50_95"] = float(ap_50_95[inside].mean())
        values[f"{tier}_min_train_imgs"] = int(images[inside].min())
        values[f"{tier}_max_train_imgs"] = int(images[inside].max())
    for key, ap in (("AP_50", ap_50), ("AP_50_95", ap_50_95)):
        values[f"head_minus_tail_{key}"] = values[f"head_{key}"] - values[f"tail_{key}"]
        values[f"{key}_train_count_correlation"] = pearson(images.astype(np.float64), ap)
    return ClassImbalance(**values)
