"""Head, medium and tail species: a quarter, a half and a quarter by training images."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Ints

TIERS = ("head", "medium", "tail")
MIN_SPECIES = 4
"""Smallest number of species that can be split into quarters."""


def tiers(n_images: Ints) -> list[str]:
    """The tier of each species by its number of training images.

    Ties keep the order of the species. With n species, rank <= n/4 is tail, rank > 3n/4 is head,
    the rest medium.

    Examples
    --------
    >>> import numpy as np
    >>> tiers(np.array([5, 1, 40, 9]))
    ['medium', 'tail', 'head', 'medium']
    """
    n = len(n_images)
    rank = np.empty(n, np.int64)
    rank[np.argsort(n_images, kind="stable")] = np.arange(1, n + 1)
    return [
        "tail" if place <= n * 0.25 else "head" if place > n * 0.75 else "medium"
        for place in rank.tolist()
    ]
