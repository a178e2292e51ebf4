"""Everything the families of one split start from, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Ints
from benchmark_eval.inputs.benchmark import Categories, SplitTruth
from benchmark_eval.results.true_positives import TruePositiveTable
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
    def gt_category(self) -> Ints:
        """Row of ``Categories`` of each hit's true species."""
        return self.truth.category[self.local.matched_truth]

    @property
    def pred_category(self) -> Ints:
        """Row of ``Categories`` of the species that each hit was given."""
        return self.detections.category[self.local.true_positive]

    @property
    def is_tp(self) -> Bools:
        """One a detection: whether it is a hit."""
        hit = np.zeros(len(self.detections), np.bool_)
        hit[self.local.true_positive] = True
        return hit


def true_positive_table(data: SplitData) -> TruePositiveTable:
    """The hits of a split's localisation matching."""
    local = data.local
    return TruePositiveTable(
        split=data.truth.name,
        categories=data.categories,
        image_id=data.truth.image_ids[data.detections.image[local.true_positive]],
        score=data.detections.score[local.true_positive],
        iou=local.matched_iou,
        named=data.pred_category,
        true=data.gt_category,
        correct_species=data.agreement.species,
        correct_genus=data.agreement.genus,
    )
