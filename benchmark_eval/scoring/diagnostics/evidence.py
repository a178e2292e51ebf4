"""Predictions of a split next to its ground truth: the evidence for warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import Benchmark, SplitTruth
from benchmark_eval.inputs.predictions import Predictions, rows_of_images
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.pairs import find_pairs

SAMPLE = 2_000
"""Largest number of best detections (one per image, evenly spread over the images) on which other
readings are tested."""
FIT_IOU = 0.5
"""Smallest IoU at which a detection fits a specimen."""
MIN_GAINED = 10
"""Detections that must be correct only under the other reading to accept it ..."""
MIN_GAINED_PER_LOST = 5
"""... and how many per detection that is correct only under the expected reading."""
MIN_FRACTION = 0.1
"""Fraction of best detections that must fit nothing before other readings are tested; also the
fraction that must fit as detections of another split or of a resized image."""


@dataclass(frozen=True)
class Evidence:
    """Predictions of a split, its ground truth, and what several warnings derive from them."""

    predictions: Predictions
    truth: SplitTruth
    benchmark: Benchmark

    @cached_property
    def everything(self) -> Predictions:
        """All detections in file order, out-of-vocabulary ones included."""
        return self.predictions.with_out_of_vocabulary()

    @cached_property
    def outside_image(self) -> Bools:
        """Whether each detection extends more than 1 % + 1 px outside its image."""
        image, boxes = self.predictions.image, self.predictions.boxes
        slack = 0.01 * self.truth.sizes + 1
        outside = np.zeros(len(image), np.bool_)
        for side in (0, 1):
            start = boxes[:, side]
            with np.errstate(invalid="ignore"):
                outside |= start + boxes[:, 2 + side] > (self.truth.sizes + slack)[:, side][image]
                outside |= start < -slack[:, side][image]
        return outside

    @cached_property
    def best(self) -> Detections:
        """Best detection of each image with a specimen, out-of-vocabulary ones included."""
        image, score = self.everything.image, self.everything.score
        highest = np.full(len(self.truth.image_ids), -1.0)
        np.maximum.at(highest, image, score)
        highest[np.bincount(self.truth.image, minlength=len(highest)) == 0] = -1.0
        top = np.flatnonzero(score == highest[image])
        order = top[np.unique(image[top], return_index=True)[1]]
        order = order[np.linspace(0, len(order) - 1, min(len(order), SAMPLE)).astype(np.int64)]
        category, boxes = self.everything.category, self.everything.boxes
        return ready(image[order], category[order], boxes[order], score[order])

    @cached_property
    def sampled_truth(self) -> SplitTruth:
        """Ground truth of the images of ``best``."""
        return on_images(self.truth, self.best.image)

    @cached_property
    def best_pairs(self) -> tuple[Ints, Ints]:
        """Rows of ``best`` and of ``sampled_truth`` that fit each other."""
        pairs = find_pairs(self.best, self.sampled_truth, FIT_IOU)
        fit = pairs.iou >= FIT_IOU
        return pairs.detection[fit], pairs.truth[fit]

    @cached_property
    def fits(self) -> Bools:
        """Whether each best detection fits a specimen, crowd included, as written."""
        fits = np.zeros(len(self.best), np.bool_)
        fits[self.best_pairs[0]] = True
        return fits

    @property
    def many_misfits(self) -> bool:
        """Whether enough best detections fit nothing to test other readings."""
        n_misfits = int(np.count_nonzero(~self.fits))
        return n_misfits >= max(MIN_GAINED, MIN_FRACTION * len(self.fits))

    def fits_as(self, boxes: Floats) -> Bools:
        """Whether each best detection fits a specimen if its coordinates are ``boxes``."""
        known = np.isfinite(boxes[:, 0]) & np.isfinite(boxes[:, 1])
        known &= (boxes[:, 2] > 0) & (boxes[:, 3] > 0)
        return self._fits_of(known, boxes, self.best.image, self.sampled_truth)

    def fits_on(self, image: Ints) -> Bools:
        """Whether each best detection fits a specimen of another image (row; -1: of none)."""
        return self._fits_of(image >= 0, self.best.boxes, image, on_images(self.truth, image))

    def fits_in(self, other: SplitTruth) -> Bools:
        """Whether each best detection fits a specimen of another split under the same image id."""
        image = rows_of_images(self.truth.image_ids[self.best.image], other)
        return self._fits_of(image >= 0, self.best.boxes, image, on_images(other, image))

    def _fits_of(self, keep: Bools, boxes: Floats, image: Ints, truth: SplitTruth) -> Bools:
        """Whether each box of ``keep`` fits annotations of ``truth``; False for the others."""
        read = ready(image[keep], self.best.category[keep], boxes[keep], self.best.score[keep])
        pairs = find_pairs(read, truth, FIT_IOU)
        fits = np.zeros(len(boxes), np.bool_)
        fits[np.flatnonzero(keep)[pairs.detection[pairs.iou >= FIT_IOU]]] = True
        return fits


def ready(image: Ints, category: Ints, boxes: Floats, score: Floats) -> Detections:
    """Boxes as ``find_pairs`` expects them, which needs no order by score."""
    none = np.zeros(len(image), np.int64)
    area = boxes[:, 2] * boxes[:, 3]
    return Detections(image, category, boxes, area, score, none, none, none, none)


def numbered(ids: Ints, rows: Ints, first: int) -> Ints:
    """The row that each id means if ids number ``rows`` from ``first``; -1 outside."""
    inside = (ids >= first) & (ids - first < len(rows))
    return np.where(inside, rows[np.where(inside, ids - first, 0)], -1)


def explains(otherwise: Bools, as_is: Bools) -> bool:
    """Whether another reading is often correct where the expected one is not, rarely the reverse.

    Valid files of bad models have few cases of the first and more of the second.
    """
    gained = int(np.count_nonzero(otherwise & ~as_is))
    lost = int(np.count_nonzero(as_is & ~otherwise))
    return gained >= MIN_GAINED and gained >= MIN_GAINED_PER_LOST * lost


def on_images(truth: SplitTruth, images: Ints) -> SplitTruth:
    """The annotations on ``images`` (rows of ``image_ids``; -1 is ignored)."""
    selected = np.zeros(len(truth.image_ids), np.bool_)
    selected[images[images >= 0]] = True
    keep = selected[truth.image]
    columns = ("image", "category", "boxes", "area", "crowd")
    return replace(truth, **{name: getattr(truth, name)[keep] for name in columns})
