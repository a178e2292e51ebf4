"""The three regimes: their conditions, and how many images each condition draws."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.protocol import ALL

GRID = (
    *(("global_uniform", k) for k in ("1", "5", "10", "25", "50", ALL)),
    *(("incremental_natural", p) for p in ("0.01", "0.05", "0.10", "0.25", "0.50", "1.00")),
    *(("incremental_uniform_targets", k) for k in ("0", "1", "5", "10", "25")),
)
"""The benchmark's 17 training conditions: (regime, k_or_p)."""
SEEDS = (0, 1, 2)
"""The seeds of each condition."""

_SHORT = {
    "global_uniform": "gu_k",
    "incremental_natural": "in_p",
    "incremental_uniform_targets": "iut_k",
}


def condition_name(regime: str, k_or_p: str) -> str:
    """A condition in file names: ``gu_k5``, ``gu_kall``, ``in_p010`` (p = 0.1), ``iut_k0``.

    p is written with at least two decimals and without the point, as in the benchmark's example
    manifest.
    """
    if regime == "incremental_natural":
        p = Decimal(k_or_p).normalize()
        decimals = max(2, -int(p.as_tuple().exponent))
        k_or_p = f"{p:.{decimals}f}".replace(".", "")
    return f"{_SHORT[regime]}{k_or_p}"


def n_drawn(regime: str, k_or_p: str, n_images: Ints, is_target: Bools) -> Ints:
    """The number of training images that each species contributes under a condition.

    ``n_images`` counts each species' distinct training images; 0 stays 0. global_uniform:
    min(k, n); incremental_natural: min(n, max(1, floor(p n + 0.5))) with p as an exact decimal;
    incremental_uniform_targets: min(k, n) for targets, all n for the others.
    """
    if regime == "incremental_natural":
        p, half = Fraction(k_or_p), Fraction(1, 2)
        counts = [min(n, max(1, math.floor(p * n + half))) for n in n_images.tolist()]
        return np.array(counts, np.int64).reshape(n_images.shape)
    if k_or_p == ALL:
        return n_images.copy()
    capped: Ints = np.minimum(n_images, int(k_or_p))
    if regime == "incremental_uniform_targets":
        return np.where(is_target, capped, n_images)
    return capped
