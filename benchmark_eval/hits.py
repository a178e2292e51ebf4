"""The per-hit table: one row a detection that took a scored specimen."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark_eval.benchmark import Categories
from benchmark_eval.columns import Bools, Floats, Ints
from benchmark_eval.metrics.split import SplitData


@dataclass(frozen=True, slots=True)
class HitTable:
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


def hit_table(data: SplitData) -> HitTable:
    """The hits of a split's localisation matching."""
    local = data.local
    return HitTable(
        split=data.truth.name,
        categories=data.categories,
        image_id=data.truth.image_ids[data.detections.image[local.hit]],
        score=data.detections.score[local.hit],
        iou=local.hit_iou,
        named=data.hit_named,
        true=data.hit_true,
        correct_species=data.agreement.species,
        correct_genus=data.agreement.genus,
    )
