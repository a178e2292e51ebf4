"""Everything the families of one split start from, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Ints
from benchmark_eval.inputs.benchmark import Categories, SplitTruth
from benchmark_eval.results.true_positives import HitTable
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.matching import Localisation
from benchmark_eval.scoring.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether named and true species agree at each rank, one row a hit.

    A rank that is blank equals nothing, not even another blank. Cumulative: a right species
    has a right genus, tribe and subfamily, where those are not blank.
    """

    species: Bools
    genus: Bools
    tribe: Bools
    subfamily: Bools

    def subset(self, keep: Bools) -> Agreement:
        """The rows where ``keep`` is true."""
        return Agreement(
            self.species[keep], self.genus[keep], self.tribe[keep], self.subfamily[keep]
        )


def agreement(categories: Categories, named: Ints, true: Ints) -> Agreement:
    """Agreement of category rows ``named`` and ``true``."""

    def equal(code: Codes) -> Bools:
        same: Bools = (code[named] == code[true]) & (code[true] >= 0)
        return same

    return Agreement(
        equal(categories.name_code),
        equal(categories.genus_code),
        equal(categories.tribe_code),
        equal(categories.subfamily_code),
    )


@dataclass(frozen=True, slots=True)
class SplitData:
    """One split of one model: columns, pairs, the localisation matching, agreement of its hits."""

    categories: Categories
    truth: SplitTruth
    detections: Detections
    pairs: Pairs
    local: Localisation
    agreement: Agreement

    @property
    def hit_true(self) -> Ints:
        """Row of ``Categories`` of each hit's true species."""
        return self.truth.category[self.local.hit_truth]

    @property
    def hit_named(self) -> Ints:
        """Row of ``Categories`` of the species that each hit was given."""
        return self.detections.category[self.local.hit]

    @property
    def is_hit(self) -> Bools:
        """One a detection: whether it is a hit."""
        hit = np.zeros(len(self.detections), np.bool_)
        hit[self.local.hit] = True
        return hit


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
