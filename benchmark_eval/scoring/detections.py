"""Detections of a split, sorted in the orders that matching and AP need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Floats, Ints, first_of_run
from benchmark_eval.inputs.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Detections:
    """Detections of a split, sorted by image, in file order within an image.

    Attributes
    ----------
    image, category : (n,) int
        Row of ``SplitTruth.image_ids`` and of ``Categories``.
    boxes : (n, 4) float
        x, y, w, h in px.
    area : (n,) float
        w * h in px².
    score : (n,) float
        Confidence in [0, 1].
    best_first : (n,) int
        Rows by descending score, then image id, then file order: the order in which COCO
        accumulates precision and recall over a split.
    by_image : (n,) int
        Rows by image, then descending score (file order on ties).
    rank : (n,) int
        0-based rank of each detection in its image by descending score (file order on ties).
    rank_in_category : (n,) int
        The same among the detections of its image and category.
    """

    image: Ints
    category: Ints
    boxes: Floats
    area: Floats
    score: Floats
    best_first: Ints
    by_image: Ints
    rank: Ints
    rank_in_category: Ints

    def __len__(self) -> int:
        return len(self.score)


def order_detections(predictions: Predictions, n_categories: int) -> Detections:
    """Sort predictions by image and rank them by score, as COCO does."""
    image, category = predictions.image, predictions.category
    boxes, score = predictions.boxes, predictions.score
    if (image[1:] < image[:-1]).any():
        order = stable_order(image)
        image, category, boxes, score = image[order], category[order], boxes[order], score[order]
    best_first = _best_first(score)
    by_image = best_first[stable_order(image[best_first])]
    by_category = by_image[stable_order(category[by_image])]
    by_category = by_category[stable_order(image[by_category])]
    return Detections(
        image=image,
        category=category,
        boxes=boxes,
        area=boxes[:, 2] * boxes[:, 3],
        score=score,
        best_first=best_first,
        by_image=by_image,
        rank=place_in_run(image, by_image),
        rank_in_category=place_in_run(image * (n_categories + 1) + category, by_category),
    )


def stable_order(keys: Ints) -> Ints:
    """Stable ascending order of small non-negative integers.

    numpy sorts 16-bit keys with radix sort, which is several times faster than for 64-bit keys.
    """
    if len(keys) and int(keys.max()) < 2**16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")


def _best_first(score: Floats) -> Ints:
    """Stable descending order of scores in [0, 1], by radix sort on 16-bit digits.

    Non-negative floats sort in the same order as their bit patterns read as integers.
    """
    bits = (score + 0.0).view(np.uint64)  # -0.0 becomes 0.0, which it equals
    ascending = np.float64(1.0).view(np.uint64) - bits
    order: Ints = np.arange(len(score))
    for shift in (0, 16, 32, 48):
        digit = (ascending >> np.uint64(shift)).astype(np.uint16)
        if (digit != digit[:1]).any():
            order = order[np.argsort(digit[order], kind="stable")]
    return order


def place_in_run(group: Ints, order: Ints) -> Ints:
    """0-based position of each row in its group; ``order`` lists the rows group by group."""
    first = np.flatnonzero(first_of_run(group[order]))
    length = np.diff(np.r_[first, len(group)])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, length)
    return place
