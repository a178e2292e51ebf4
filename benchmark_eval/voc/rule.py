"""PASCAL VOC 2012 on columns: matching, precision-recall curve, AP and miss rate.

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
"""Verdicts on detections; a detection of a difficult object is not counted."""

FALSE_POSITIVES_PER_IMAGE: Final = tuple(
    float(Decimal(10) ** (Decimal(k) / 4 - 2)) for k in range(9)
)
"""Nine reference points from 0.01 to 1, evenly spaced on a logarithmic axis."""
MIN_MISS_RATE: Final = Decimal("1e-10")
"""Replaces a miss rate of 0, whose logarithm is undefined."""

MAX_PAIRS = 1 << 20
"""Maximum number of detection-object pairs in memory at a time."""


def iou(a: Floats, b: Floats, side: float) -> Floats:
    """Row-wise intersection over union of two (n, 4) arrays of corners.

    A box is ``right - left + side`` wide: ``side`` is 1 if corners are the first and last pixel
    (VOC) and 0 if they are points on a continuous plane. The IoU is 0 if the union has no area.
    """
    width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0]) + side
    height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1]) + side
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    area_a = (a[:, 2] - a[:, 0] + side) * (a[:, 3] - a[:, 1] + side)
    area_b = (b[:, 2] - b[:, 0] + side) * (b[:, 3] - b[:, 1] + side)
    union = area_a + area_b - shared
    ratio: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return ratio


def nearest_objects(
    group: Ints, corners: Floats, object_group: Ints, object_corners: Floats, side: float
) -> tuple[Ints, Floats]:
    """For each detection, the object of its group with the highest IoU, and this IoU.

    A group is one class in one image. On equal IoU, the first object is taken. The result is -1
    and 0.0 if the detection overlaps no object of its group.
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
        limit = pairs_before[start] + MAX_PAIRS
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
    """The verdict on each detection, processed in ``order``.

    A detection whose IoU is at least its ``threshold`` is a true positive if it is the first on its
    object, otherwise a false positive; the next best object is not considered. All detections on
    a ``difficult`` object are not counted.
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

    ``envelope`` is the maximum precision at this or any higher recall.
    """

    confidence: Floats
    recall: Floats
    precision: Floats
    envelope: Floats


def curve(verdict: NDArray[np.int8], confidence: Floats, n_objects: int) -> Curve:
    """The curve of one class from its verdicts in order; ``n_objects`` excludes difficult ones."""
    counted = verdict != NOT_COUNTED
    n_tp = np.cumsum(verdict[counted] == TRUE_POSITIVE)
    precision = n_tp / np.arange(1, len(n_tp) + 1)
    return Curve(
        confidence=confidence[counted],
        recall=n_tp / n_objects,
        precision=precision,
        envelope=np.maximum.accumulate(precision[::-1])[::-1],
    )


def average_precision(points: Curve, n_objects: int) -> float:
    """Area under the envelope; recall increases by 1 / ``n_objects`` per true positive."""
    is_tp = np.diff(points.recall, prepend=0.0) > 0
    return math.fsum(points.envelope[is_tp].tolist()) / n_objects


def log_average_miss_rate(verdict: NDArray[np.int8], n_objects: int, n_images: int) -> float:
    """Geometric mean of the miss rates at nine reference points of false positives per image.

    The miss rate at a reference point is that of the last detection, in order, that does not
    exceed it, or 1 if there is none. Computed with decimals, because the last bit of a power of
    floats depends on the processor.
    """
    n_tp = np.concatenate(([0], np.cumsum(verdict == TRUE_POSITIVE)))
    fp_per_image = np.concatenate(([0], np.cumsum(verdict == FALSE_POSITIVE))) / n_images
    last = np.searchsorted(fp_per_image, FALSE_POSITIVES_PER_IMAGE, side="right") - 1
    with localcontext(Context(prec=30)):
        product = Decimal(1)
        for missed in (n_objects - n_tp[last]).tolist():
            product *= max(Decimal(missed) / n_objects, MIN_MISS_RATE)
        return float(product ** (Decimal(1) / len(last)))
