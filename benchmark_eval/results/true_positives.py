"""The table behind detections.csv: one row per true positive."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import Categories


@dataclass(frozen=True, slots=True)
class TruePositiveTable:
    """True positives of one split as columns, by image id, then descending score.

    ``predicted`` and ``true`` are rows of ``categories``: the predicted and the true species.
    """

    split: str
    categories: Categories
    image_id: Ints
    score: Floats
    iou: Floats
    predicted: Ints
    true: Ints
    correct_species: Bools
    correct_genus: Bools

    def __len__(self) -> int:
        return len(self.score)
