"""The per-hit table: one row a detection that took a scored specimen."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import Categories


@dataclass(frozen=True, slots=True)
class TruePositiveTable:
    """Hits of one split as columns, ascending image id, then descending score.

    ``named`` and ``true`` are rows of ``categories``.
    """

    split: str
    categories: Categories
    image_id: Ints
    score: Floats
    iou: Floats
    named: Ints
    true: Ints
    correct_species: Bools
    correct_genus: Bools

    def __len__(self) -> int:
        return len(self.score)
