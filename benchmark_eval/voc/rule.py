"""The rule of PASCAL VOC 2012 on columns: which detection is right, the curve, AP, miss rate.

Sources: Everingham et al., "The Pascal Visual Object Classes Challenge: A Retrospective"
(2015), and the VOC 2012 development kit, for matching and AP; Dollar et al., "Pedestrian
Detection: An Evaluation of the State of the Art" (2012), for the log-average miss rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRUE_POSITIVE: Final = 1
FALSE_POSITIVE: Final = -1
NOT_COUNTED: Final = 0
"""The verdict on a detection; one on a difficult object is not counted."""

FALSE_POSITIVES_PER_IMAGE: Final = tuple(
    float(Decimal(10) ** (Decimal(k) / 4 - 2)) for k in range(9)
)
"""Nine points from 0.01 to 1, evenly spaced on a logarithmic axis."""
LEAST_MISS_RATE: Final = Decimal("1e-10")
"""Stands for a miss rate of 0, which has no logarithm."""

PAIRS_AT_ONCE = 1 << 20
"""Pairs of detection and object that are held in memory together."""


def iou(a: Floats, b: Floats, side: float) -> Floats:
    """Row-wise intersection over union of two n x 4 arrays of corners.

    A box is ``right - left + side`` wide: ``side`` is 1 where corners are the first and last
    pixel (VOC) and 0 where they are points on a continuous plane. Two boxes without area: 0.
    """
    width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0]) + side
    height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1]) + side
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    area_a = (a[:, 2] - a[:, 0] + side) * (a[:, 3] - a[:, 1] + side)
    area_b = (b[:, 2] - b[:, 0] + side) * (b[:, 3] - b[:, 1] + side)
    union = area_a + area_b - shared
    share: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return share


def nearest_objects(
    group: Ints, corners: Floats, object_group: Ints, object_corners: Floats, side: float
) -> tuple[Ints, Floats]:
    """For each detection the object of its group that it overlaps most, and that IoU.

    A group is one class in one image. Of equal overlaps the first object counts. -1 and 0.0
    where the detection overlaps no object of its group.
    """
    nearest = np.full(len(group), -1, dtype=np.int64)
    overlap = np.zeros(len(group))
    order = np.argsort(object_group, kind="stable")
    sorted_group = object_group[order]
    first = np.searchsorted(sorted_group, group, side="left")
    count = np.searchsorted(sorted_group, group, side="right") - first
    rows = np.flatnonzero(count)
    pairs_before = np.concatenate(([0], np.cumsum(count[rows])))
    start = 0
    while start < len(rows):
        limit = pairs_before[start] + PAIRS_AT_ONCE
        stop = max(start + 1, int(np.searchsorted(pairs_before, limit, side="right")) - 1)
        block = rows[start:stop]
        offset = pairs_before[start:stop] - pairs_before[start]
        sizes = count[block]
        owner = np.repeat(np.arange(len(block)), sizes)
        candidate = order[np.arange(len(owner)) - offset[owner] + first[block][owner]]
        value = iou(corners[block][owner], object_corners[candidate], side)
        best = np.maximum.reduceat(value, offset)
        at_best = np.flatnonzero(value == best[owner])
        first_best = at_best[np.diff(owner[at_best], prepend=-1) > 0]
        chosen = candidate[first_best]
        nearest[block] = np.where(best > 0, chosen, -1)
        overlap[block] = best
        start = stop
    return nearest, overlap


def judge(
    nearest: Ints, overlap: Floats, threshold: Floats, order: Ints, difficult: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """The verdict on each detection, taken in ``order``.

    A detection whose overlap reaches its ``threshold`` is a true positive if it is the first one
    on its object, else a false positive: there is no next best object. One on a ``difficult``
    object is not counted, however many there are.
    """
    verdict = np.full(len(nearest), FALSE_POSITIVE, dtype=np.int8)
    reached = order[(nearest[order] >= 0) & (overlap[order] >= threshold[order])]
    on_difficult = difficult[nearest[reached]]
    verdict[reached[on_difficult]] = NOT_COUNTED
    reached = reached[~on_difficult]
    _, first = np.unique(nearest[reached], return_index=True)
    verdict[reached[first]] = TRUE_POSITIVE
    return verdict


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall after each counted detection, by descending confidence.

    ``envelope`` is the highest precision at this recall or any higher one.
    """

    confidence: Floats
    recall: Floats
    precision: Floats
    envelope: Floats


def curve(verdict: NDArray[np.int8], confidence: Floats, n_objects: int) -> Curve:
    """The curve of one class from its verdicts in order; ``n_objects`` > 0 without difficult."""
    counted = verdict != NOT_COUNTED
    right = verdict[counted] == TRUE_POSITIVE
    found = np.cumsum(right)
    precision = found / np.arange(1, len(found) + 1)
    return Curve(
        confidence=confidence[counted],
        recall=found / n_objects,
        precision=precision,
        envelope=np.maximum.accumulate(precision[::-1])[::-1],
    )


def average_precision(points: Curve, n_objects: int) -> float:
    """The exact area under the envelope: recall rises by 1 / ``n_objects`` at each hit."""
    rises = np.diff(points.recall, prepend=0.0) > 0
    return math.fsum(points.envelope[rises].tolist()) / n_objects


def log_average_miss_rate(verdict: NDArray[np.int8], n_objects: int, n_images: int) -> float:
    """Geometric mean of the miss rates at nine counts of false positives an image.

    At each it is the miss rate of the last detection in order that stays within the count, or 1
    if none does. Computed in decimals, because the last bit of a float's power depends on the
    processor.
    """
    found = np.concatenate(([0], np.cumsum(verdict == TRUE_POSITIVE)))
    alarms = np.concatenate(([0], np.cumsum(verdict == FALSE_POSITIVE))) / n_images
    last = np.searchsorted(alarms, FALSE_POSITIVES_PER_IMAGE, side="right") - 1
    with localcontext(Context(prec=30)):
        product = Decimal(1)
        for missed in (n_objects - found[last]).tolist():
            product *= max(Decimal(missed) / n_objects, LEAST_MISS_RATE)
        return float(product ** (Decimal(1) / len(last)))
