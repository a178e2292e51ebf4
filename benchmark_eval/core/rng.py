"""Random numbers by name: each thing that is drawn has its own stream.

A stream hangs on the seed and on the name of what is drawn with it, never on what was drawn
before, so that one more model, species or split changes no other.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: str) -> np.random.Generator:
    """The generator of ``name`` under ``seed`` (the same on every machine and in every process)."""
    digest = hashlib.sha256("\x1f".join(name).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
