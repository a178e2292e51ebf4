"""The detections of a split in the orders that the matchings need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Detections:
    """The detections of a split in image order (file order within an image), ready to match.

    ``best_first`` lists the rows in the split-wide order in which COCO accumulates (descending
    score, then ascending image id, then file order); ``by_image`` image by image, best first.
    ``rank`` is a detection's 0-based place in its image by descending score (file order on
    ties), ``rank_in_category`` the same among its image's detections of its category.
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
    """Sort predictions by image and number them as COCO does."""
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

    numpy sorts 16-bit keys by radix, several times faster than 64-bit ones.
    """
    if len(keys) and int(keys.max()) < 2**16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")


def _best_first(score: Floats) -> Ints:
    """Stable descending order of scores in [0, 1], digit by digit of 16 bits.

    The bits of floats from 0 up, read as integers, ascend as the floats do.
    """
    bits = (score + 0.0).view(np.uint64)  # -0.0, equal to 0.0, becomes it
    ascending = np.float64(1.0).view(np.uint64) - bits
    order: Ints = np.arange(len(score))
    for shift in (0, 16, 32, 48):
        digit = (ascending >> np.uint64(shift)).astype(np.uint16)
        if (digit != digit[:1]).any():
            order = order[np.argsort(digit[order], kind="stable")]
    return order


def first_of_run(values: Ints | Floats) -> Bools:
    """True where a run of equal values begins."""
    first = np.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    return first


def place_in_run(group: Ints, order: Ints) -> Ints:
    """0-based place of each row within its group; ``order`` lists the rows group by group."""
    first = np.flatnonzero(first_of_run(group[order]))
    length = np.diff(np.r_[first, len(group)])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, length)
    return place
