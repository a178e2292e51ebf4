"""Whether rare species are served as well as abundant ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark_eval.core.numbers import pearson
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.results.schema import ClassImbalance, SpeciesScore

MIN_SPECIES = 4
"""Fewer species cannot be split into quarters."""


def class_imbalance(
    benchmark: Benchmark, split: str, per_species: dict[str, SpeciesScore]
) -> ClassImbalance:
    """Mean AP of the head, medium and tail species by training images, gap and correlation.

    Over scored species with training images, ranked by distinct training images, ties by
    category id: rank <= n/4 is tail, > 3n/4 head (benchmark evaluator, but for unscored species
    and for ties; see docs/deviations.md).
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
    rank = np.empty(n, np.int64)
    rank[np.argsort(images, kind="stable")] = np.arange(1, n + 1)
    tail, head = rank <= n * 0.25, rank > n * 0.75
    found: dict[str, Any] = {"n_species_evaluated": n}
    for tier, inside in (("head", head), ("medium", ~tail & ~head), ("tail", tail)):
        found[f"{tier}_n_species"] = int(inside.sum())
        found[f"{tier}_AP_50"] = float(ap_50[inside].mean())
        found[f"{tier}_AP_50_95"] = float(ap_50_95[inside].mean())
        found[f"{tier}_min_train_imgs"] = int(images[inside].min())
        found[f"{tier}_max_train_imgs"] = int(images[inside].max())
    for key, ap in (("AP_50", ap_50), ("AP_50_95", ap_50_95)):
        found[f"head_minus_tail_{key}"] = found[f"head_{key}"] - found[f"tail_{key}"]
        found[f"{key}_train_count_correlation"] = pearson(images.astype(np.float64), ap)
    return ClassImbalance(**found)
