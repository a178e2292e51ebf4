"""Named random streams.

A stream depends only on the seed and its name, never on earlier draws, so that adding a model,
species or split does not change any other.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: str) -> np.random.Generator:
    """The generator for ``name`` and ``seed``: the same on every machine and in every process."""
    digest = hashlib.sha256("\x1f".join(name).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
