"""One split's predictions beside its ground truth, as the warnings look at them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import Benchmark, SplitTruth
from benchmark_eval.inputs.predictions import Predictions, rows_of_images
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.pairs import find_pairs

SAMPLE = 2_000
"""Best boxes (one an image, evenly over the images) that the other readings are tried on."""
OVERLAP = 0.5
"""IoU from which a box counts as fitting a specimen."""
ENOUGH = 10
"""Boxes that are right only under another reading before it is believed ..."""
TIMES = 5
"""... and how many times those that are right only as the file stands."""
FEW = 0.1
"""Share of best boxes that fit nothing below which no other reading is tried; also the share that
must fit as another split's or a resized image's before that is believed."""


@dataclass(frozen=True)
class Evidence:
    """One split's predictions beside its ground truth, and what several warnings look at."""

    predictions: Predictions
    truth: SplitTruth
    benchmark: Benchmark

    @cached_property
    def beyond(self) -> Bools:
        """One a detection: whether it ends more than 1 % and 1 px outside its image."""
        image, boxes = self.predictions.image, self.predictions.boxes
        slack = 0.01 * self.truth.sizes + 1
        far = np.zeros(len(image), np.bool_)
        for side in (0, 1):
            start = boxes[:, side]
            with np.errstate(invalid="ignore"):
                far |= start + boxes[:, 2 + side] > (self.truth.sizes + slack)[:, side][image]
                far |= start < -slack[:, side][image]
        return far

    @cached_property
    def best(self) -> Detections:
        """The best box of each image that holds a specimen, left-out categories included."""
        kept, left = self.predictions, self.predictions.out_of_vocabulary
        image, score = joined(kept.image, left.image), joined(kept.score, left.score)
        highest = np.full(len(self.truth.image_ids), -1.0)
        np.maximum.at(highest, image, score)
        highest[np.bincount(self.truth.image, minlength=len(highest)) == 0] = -1.0
        top = np.flatnonzero(score == highest[image])
        order = top[np.unique(image[top], return_index=True)[1]]
        order = order[np.linspace(0, len(order) - 1, min(len(order), SAMPLE)).astype(np.int64)]
        category, boxes = joined(kept.category, left.category), joined(kept.boxes, left.boxes)
        return ready(image[order], category[order], boxes[order], score[order])

    @cached_property
    def sampled_truth(self) -> SplitTruth:
        """The ground truth of the images of ``best`` alone."""
        return on_images(self.truth, self.best.image)

    @cached_property
    def best_pairs(self) -> tuple[Ints, Ints]:
        """Rows of ``best`` and of ``sampled_truth`` that overlap."""
        pairs = find_pairs(self.best, self.sampled_truth, OVERLAP)
        fit = pairs.iou >= OVERLAP
        return pairs.detection[fit], pairs.truth[fit]

    @cached_property
    def fits(self) -> Bools:
        """Which of the best boxes fit a specimen (crowd is specimens too) as they stand."""
        fits = np.zeros(len(self.best), np.bool_)
        fits[self.best_pairs[0]] = True
        return fits

    @property
    def open_to_doubt(self) -> bool:
        """Whether so many best boxes fit nothing that another reading is worth a look."""
        return int(np.count_nonzero(~self.fits)) >= max(ENOUGH, FEW * len(self.fits))

    def fits_as(self, boxes: Floats) -> Bools:
        """Which best boxes fit a specimen when their coordinates are read as ``boxes``."""
        known = np.isfinite(boxes[:, 0]) & np.isfinite(boxes[:, 1])
        known &= (boxes[:, 2] > 0) & (boxes[:, 3] > 0)
        return self._fits_of(known, boxes, self.best.image, self.sampled_truth)

    def fits_in(self, other: SplitTruth) -> Bools:
        """Which best boxes fit a specimen of another split, on the image of the same id."""
        image = rows_of_images(self.truth.image_ids[self.best.image], other)
        return self._fits_of(image >= 0, self.best.boxes, image, on_images(other, image))

    def _fits_of(self, keep: Bools, boxes: Floats, image: Ints, truth: SplitTruth) -> Bools:
        read = ready(image[keep], self.best.category[keep], boxes[keep], self.best.score[keep])
        pairs = find_pairs(read, truth, OVERLAP)
        fits = np.zeros(len(boxes), np.bool_)
        fits[np.flatnonzero(keep)[pairs.detection[pairs.iou >= OVERLAP]]] = True
        return fits


def ready(image: Ints, category: Ints, boxes: Floats, score: Floats) -> Detections:
    """Boxes as ``find_pairs`` takes them; their order by score is not needed for that."""
    none = np.zeros(len(image), np.int64)
    area = boxes[:, 2] * boxes[:, 3]
    return Detections(image, category, boxes, area, score, none, none, none, none)


def joined(kept: Any, left: Any) -> Any:
    """Two columns as one, without a copy where the second is empty."""
    return np.concatenate([kept, left]) if len(left) else kept


def explains(otherwise: Bools, as_is: Bools) -> bool:
    """Whether a reading is right where the file as it stands is not, and hardly ever the reverse.

    Sound files of bad models have few of the first and more of the second.
    """
    gained = int(np.count_nonzero(otherwise & ~as_is))
    lost = int(np.count_nonzero(as_is & ~otherwise))
    return gained >= ENOUGH and gained >= TIMES * lost


def on_images(truth: SplitTruth, images: Ints) -> SplitTruth:
    """The annotations on ``images`` (rows of ``image_ids``; -1 is none)."""
    wanted = np.zeros(len(truth.image_ids), np.bool_)
    wanted[images[images >= 0]] = True
    keep = wanted[truth.image]
    columns = ("image", "category", "boxes", "area", "crowd")
    return replace(truth, **{name: getattr(truth, name)[keep] for name in columns})
