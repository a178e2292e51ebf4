"""The simulated models of the benchmark's 17 training conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmark_eval.training.regimes import GRID, SEEDS, condition_name

ARCHITECTURES = ("alder", "birch", "cedar")
"""Named after trees, so that none is mistaken for a real detector."""


@dataclass(frozen=True, slots=True)
class Model:
    """One simulated model: a row of the manifest."""

    architecture: str
    regime: str
    k_or_p: str
    seed: int

    @property
    def name(self) -> str:
        """For example ``alder_gu_k5_s0``, ``birch_in_p010_s2`` (p = 0.10), ``cedar_iut_k0_s1``."""
        return f"{self.architecture}_{condition_name(self.regime, self.k_or_p)}_s{self.seed}"


SINGLE = Model("alder", "global_uniform", "all", 0)
"""The only model without ``sweep``."""


def sweep_models() -> Iterator[Model]:
    """The 3 x 17 x 3 models in manifest order."""
    for architecture in ARCHITECTURES:
        for regime, k_or_p in GRID:
            for seed in SEEDS:
                yield Model(architecture, regime, k_or_p, seed)
