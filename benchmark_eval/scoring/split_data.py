"""Input shared by all metric families of a split, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Codes, Ints
from benchmark_eval.inputs.benchmark import Categories, SplitTruth
from benchmark_eval.results.true_positives import TruePositiveTable
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.matching import Localisation
from benchmark_eval.scoring.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether predicted and true species agree at each rank, one row per true positive.

    A blank rank agrees with nothing, not even with another blank. Agreement is cumulative: the
    correct species has the correct genus, tribe and subfamily, unless these are blank.
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


def agreement(categories: Categories, predicted: Ints, true: Ints) -> Agreement:
    """Compare predicted and true species (rows of ``categories``) at every rank."""

    def equal(code: Codes) -> Bools:
        same: Bools = (code[predicted] == code[true]) & (code[true] >= 0)
        return same

    return Agreement(
        equal(categories.name_code),
        equal(categories.genus_code),
        equal(categories.tribe_code),
        equal(categories.subfamily_code),
    )


def band_of_annotations(categories: Categories, truth: SplitTruth) -> NDArray[np.str_]:
    """Distance band of each annotation; blank if it has none or the split does not list it."""
    listed = np.zeros(len(categories.ids) + 1, np.bool_)
    listed[truth.listed] = True
    of_annotation: NDArray[np.str_] = np.where(listed, [*categories.distance_band, ""], "")[
        truth.category
    ]
    return of_annotation


@dataclass(frozen=True, slots=True)
class SplitData:
    """One model on one split: detections, pairs, localisation matching, taxonomic agreement."""

    categories: Categories
    truth: SplitTruth
    detections: Detections
    pairs: Pairs
    local: Localisation
    agreement: Agreement

    @property
    def gt_category(self) -> Ints:
        """Row of ``Categories`` of the true species of each true positive."""
        return self.truth.category[self.local.matched_truth]

    @property
    def pred_category(self) -> Ints:
        """Row of ``Categories`` of the predicted species of each true positive."""
        return self.detections.category[self.local.true_positive]

    @property
    def is_tp(self) -> Bools:
        """Whether each detection is a true positive."""
        is_tp = np.zeros(len(self.detections), np.bool_)
        is_tp[self.local.true_positive] = True
        return is_tp


def true_positive_table(data: SplitData) -> TruePositiveTable:
    """The true positives of the localisation matching, as columns for detections.csv."""
    local = data.local
    return TruePositiveTable(
        split=data.truth.name,
        categories=data.categories,
        image_id=data.truth.image_ids[data.detections.image[local.true_positive]],
        score=data.detections.score[local.true_positive],
        iou=local.matched_iou,
        predicted=data.pred_category,
        true=data.gt_category,
        correct_species=data.agreement.species,
        correct_genus=data.agreement.genus,
    )
