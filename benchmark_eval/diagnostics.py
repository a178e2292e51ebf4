"""What a reader should know about a prediction file before believing its numbers.

Warnings name a likely mistake and its evidence; notes state facts.
"""

from __future__ import annotations

import numpy as np

from benchmark_eval.coco import CAPS
from benchmark_eval.metrics.split import SplitData
from benchmark_eval.predictions import Predictions

OUTSIDE_SHARE = 0.05
"""Share of boxes beyond their image from which the format of the boxes is doubted."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 box``, ``1,200 boxes``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def warnings_of(predictions: Predictions, data: SplitData) -> list[str]:
    """Likely mistakes of one split's predictions, most serious first; none on sound ones."""
    dropped = [
        f"{counted(count, 'invalid record')} dropped: {reason}"
        for reason, count in predictions.dropped.items()
    ]
    return dropped + _outside(data)


def _outside(data: SplitData) -> list[str]:
    """Boxes that end outside their image: corners given where a width and height belong."""
    boxes = data.detections.boxes
    size = data.truth.sizes[data.detections.image]
    end = boxes[:, :2] + boxes[:, 2:]
    with np.errstate(invalid="ignore"):
        beyond = (end > size * 1.01 + 1).any(axis=1)
        beyond |= (boxes[:, :2] < -0.01 * size - 1).any(axis=1)
    count = int(beyond.sum())
    if not len(boxes) or count < OUTSIDE_SHARE * len(boxes):
        return []
    worst = int(np.flatnonzero(beyond)[0])
    side = 0 if end[worst, 0] > size[worst, 0] else 1
    width, height = size[worst]
    return [
        f"{100 * count / len(boxes):.0f} % of boxes end outside their {width:g}x{height:g} image "
        f"({'xy'[side]}+{'wh'[side]}={end[worst, side]:g}): likely corners [x1, y1, x2, y2] "
        "given as [x, y, w, h], or pixels of a resized image"
    ]


def notes_of(predictions: Predictions, data: SplitData) -> list[str]:
    """Facts about one split's predictions that shape how its numbers read."""
    n_images = len(data.truth.image_ids)
    per_image = np.bincount(data.detections.image, minlength=n_images)
    without = int(np.count_nonzero(per_image == 0))
    beyond = np.maximum(per_image - CAPS[-1], 0)
    notes = []
    if predictions.n_left_out:
        # the benchmark's evaluator drops these too, before every metric family
        notes.append(
            f"{counted(predictions.n_left_out, 'prediction')} left out: the category is in the "
            f"benchmark but not among those that {data.truth.name} lists"
        )
    if without:
        notes.append(f"{without:,} of {counted(n_images, 'image')} without a prediction")
    if beyond.any():
        notes.append(
            f"{counted(int(np.count_nonzero(beyond)), 'image')} with more than {CAPS[-1]} boxes: "
            f"{counted(int(beyond.sum()), 'box', 'boxes')} beyond COCO's cap "
            "in class-agnostic AP and AR"
        )
    return notes
