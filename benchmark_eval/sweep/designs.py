"""One training set under several names, and one training run under several.

k = all of global_uniform and p = 1 of incremental_natural draw every image; k = 1 and a small p
draw one image of each species; targets at a k that no target species exceeds are k = all. Such
conditions are one design: a curve or a question must not count it twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.sweep.conditions import trains_on_all
from benchmark_eval.training.regimes import n_drawn

Key = TypeVar("Key", bound=Hashable)


def drawn_images(
    conditions: Sequence[tuple[str, str]], n_images: Ints, is_target: Bools
) -> dict[tuple[str, str], tuple[int, ...]]:
    """The number of images that each (regime, k_or_p) draws of each species.

    ``n_images`` and ``is_target`` are (species,): the species' distinct training images, and
    whether it is a target species (``training.regimes.n_drawn``).
    """
    return {
        (regime, k_or_p): tuple(n_drawn(regime, k_or_p, n_images, is_target).tolist())
        for regime, k_or_p in conditions
    }


def first_names(
    conditions: Sequence[Condition], benchmark: Benchmark
) -> dict[tuple[str, str], tuple[str, str]]:
    """The first (regime, k_or_p) with the same design as each one; itself without train.json."""
    keys = list(dict.fromkeys((c.regime, c.k_or_p) for c in sorted(conditions, key=regime_order)))
    if "train" not in benchmark.splits:
        return {key: key for key in keys}
    categories = benchmark.categories
    n_images = np.maximum(categories.n_train_images, 0)
    is_target: Bools = np.array([bool(band) for band in categories.target_band], np.bool_)
    held: dict[tuple[int, ...], tuple[str, str]] = {}
    drawn = drawn_images(keys, n_images, is_target)
    return {key: held.setdefault(drawn[key], key) for key in keys}


def all_images(conditions: Sequence[Condition], benchmark: Benchmark) -> dict[Condition, bool]:
    """Whether each condition trains on every image, by its own name or by its design."""
    first = first_names(conditions, benchmark)
    full = {first[c.regime, c.k_or_p] for c in conditions if trains_on_all(c)}
    if "train" in benchmark.splits:
        categories = benchmark.categories
        is_target: Bools = np.array([bool(band) for band in categories.target_band], np.bool_)
        n_images = np.maximum(categories.n_train_images, 0)
        every = tuple(n_images.tolist())
        drawn = drawn_images(list(first), n_images, is_target)
        full |= {first[key] for key, found in drawn.items() if found == every}
    return {c: first[c.regime, c.k_or_p] in full for c in conditions}


def regime_order(condition: Condition) -> tuple[int, float]:
    """Sorts conditions by regime and budget, whatever their architecture."""
    return condition.regime_order, condition.value
