"""The benchmark's 17 training conditions and the invented models that are trained under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CONDITIONS = (
    *(("global_uniform", k) for k in ("1", "5", "10", "25", "50", "all")),
    *(("incremental_natural", p) for p in ("0.01", "0.05", "0.10", "0.25", "0.50", "1.00")),
    *(("incremental_uniform_targets", k) for k in ("0", "1", "5", "10", "25")),
)
SEEDS = (0, 1, 2)
ARCHITECTURES = ("alder", "birch", "cedar")
"""Named after trees: no real detector is meant."""
_SHORT = {
    "global_uniform": "gu_k",
    "incremental_natural": "in_p",
    "incremental_uniform_targets": "iut_k",
}


@dataclass(frozen=True, slots=True)
class Model:
    """One invented trained model: a row of the manifest."""

    architecture: str
    regime: str
    k_or_p: str
    seed: int

    @property
    def name(self) -> str:
        """Such as ``alder_gu_k5_s0``, ``birch_in_p010_s2`` (p = 0.10) or ``cedar_iut_k0_s1``."""
        budget = self.k_or_p.replace(".", "")
        return f"{self.architecture}_{_SHORT[self.regime]}{budget}_s{self.seed}"


SINGLE = Model("alder", "global_uniform", "all", 0)
"""The model that is made when no sweep is asked for."""


def sweep_models() -> Iterator[Model]:
    """The 3 x 17 x 3 models in manifest order."""
    for architecture in ARCHITECTURES:
        for regime, k_or_p in CONDITIONS:
            for seed in SEEDS:
                yield Model(architecture, regime, k_or_p, seed)
