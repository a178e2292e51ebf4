"""Pairs of detections and ground truth that overlap: one IoU pass per split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.detections import Detections

PAIRS_AT_ONCE = 250_000
"""Candidate pairs whose IoU is computed at a time; bounds the memory of the IoU pass."""
FARTHEST = 1e12
"""Coordinates in px below which a double holds them to a fraction of a thousandth."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Detection and ground truth boxes of one image that overlap enough to matter.

    Sorted by detection, then by ground truth in file order. ``iou`` is the plain IoU;
    ``overlap`` is what COCO compares: the IoU, or for a crowd region the intersection over the
    detection's area. ``crowd`` says which of the two a pair is.
    """

    detection: Ints
    truth: Ints
    iou: Floats
    overlap: Floats
    crowd: Bools

    def subset(self, keep: Bools) -> Pairs:
        """The pairs where ``keep`` is true."""
        return Pairs(
            self.detection[keep],
            self.truth[keep],
            self.iou[keep],
            self.overlap[keep],
            self.crowd[keep],
        )


def find_pairs(detections: Detections, truth: SplitTruth, floor: float) -> Pairs:
    """All pairs with IoU >= ``floor`` (and > 0), or on a crowd region with either measure so.

    Arithmetic and its order are those of pycocotools' ``bbIou``, so that the values are equal
    to the last bit.
    """
    parts = [
        _pairs_of(detections, truth, np.flatnonzero(~truth.crowd), floor, crowd=False),
        _pairs_of(detections, truth, np.flatnonzero(truth.crowd), floor, crowd=True),
    ]
    detection, at, iou, overlap, crowd = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    # within an image, ground truth is in file order; one key sorts by both, nearly sorted already
    order = np.argsort(detection * len(truth.image) + at, kind="stable")
    return Pairs(detection[order], at[order], iou[order], overlap[order], crowd[order])


def _pairs_of(
    detections: Detections, truth: SplitTruth, rows: Ints, floor: float, *, crowd: bool
) -> tuple[Ints, Ints, Floats, Floats, Bools]:
    """Pairs of all detections with the ground truth ``rows`` (one kind: scored or crowd)."""
    if not len(rows):
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    centre = _centres(truth.boxes[rows])
    order = np.lexsort((centre[:, 0], truth.image[rows]))
    rows, centre = rows[order], centre[order]
    near = _Near(detections.boxes, truth.boxes[rows], centre, floor, crowd=crowd)
    low, high = near.windows(detections.image, truth.image[rows], len(truth.image_ids))
    count = high - low
    ends = np.cumsum(count)
    found: list[tuple[Ints, Ints, Floats, Floats]] = []
    start = 0
    while start < len(count):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")), start + 1)
        if ends[stop - 1] > done:
            found.append(near.measure(start, low[start:stop], count[start:stop]))
        start = stop
    if not found:
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    detection, at, iou, overlap = (np.concatenate([f[i] for f in found]) for i in range(4))
    return detection, rows[at], iou, overlap, np.full(len(detection), crowd)


def _centres(boxes: Floats) -> Floats:
    """(boxes, 2) the centre of each box: x, y in px."""
    return boxes[:, :2] + boxes[:, 2:] / 2


def _farthest(boxes: Floats) -> float:
    """The largest absolute number in boxes."""
    return max(float(boxes.max(initial=0.0)), -float(boxes.min(initial=0.0)))


def _too_thin(boxes: Floats) -> Bools:
    """Boxes with a side so short, for where they lie, that its far end is rounded noticeably.

    An IoU that is computed from such an end (pycocotools' as ours) can be any number.
    """
    limit: Any = 1e7 * np.spacing(_farthest(boxes))
    if limit > 1e-3:
        limit = 1e7 * np.spacing(np.abs(boxes).max(axis=1))
    thin: Bools = np.minimum(boxes[:, 2], boxes[:, 3]) < limit
    return thin


class _Near:
    """Detections and ground truth of one kind, and how far apart their centres may lie.

    IoU >= t asks that the boxes share at least the fraction t of either width. With widths w
    and v, they share at most (w + v) / 2 - d, d being the distance of the centres; so d is at
    most w (1 - t), or w (1 - t) / 2t where t < 0.5. The same for heights. A crowd region may be
    of any size: there is no such bound.
    """

    def __init__(
        self, boxes: Floats, true: Floats, true_centre: Floats, floor: float, *, crowd: bool
    ) -> None:
        self.boxes, self.true, self.true_centre = boxes, true, true_centre
        self.floor, self.crowd = floor, crowd
        self.area = boxes[:, 2] * boxes[:, 3]
        self.true_area = true[:, 2] * true[:, 3]
        self.farthest = _farthest(true)
        # beyond this size sums lose the millihundredths of a pixel that the slack allows for, and
        # a floor so low that 1 / floor pixels are any image (or no number) leaves nothing out
        self.bounded = not crowd and floor >= 1e-9 and self.farthest < FARTHEST
        if self.bounded:
            size = boxes[:, 2:]
            slack = (1e-3 + 1e-6 * size) / floor
            self.centre = _centres(boxes)
            self.reach = size * max(1 - floor, (1 - floor) / (2 * floor)) + slack
            self.reach[_too_thin(boxes)] = np.inf

    def windows(self, image: Ints, truth_image: Ints, n_images: int) -> tuple[Ints, Ints]:
        """Range of ground truth (sorted by image, then centre) to measure each detection with.

        ``image`` is each detection's image, ``truth_image`` each ground truth's.
        """
        first = np.searchsorted(truth_image, np.arange(n_images + 1))
        low, high = first[image], first[image + 1]
        # images are laid side by side on one axis, `stride` apart, so that one search serves all
        stride = 4 * self.farthest + 4
        if not self.bounded or stride * n_images > FARTHEST:
            return low, high
        line = truth_image * stride + self.true_centre[:, 0]
        ends = 2 * self.farthest + 1  # no centre of ground truth lies beyond
        begin = np.clip(self.centre[:, 0] - self.reach[:, 0], -ends, ends)
        end = np.clip(self.centre[:, 0] + self.reach[:, 0], -ends, ends)
        left = np.searchsorted(line, image * stride + begin, side="left")
        right = np.searchsorted(line, image * stride + end, side="right")
        low = np.maximum(low, left)
        return low, np.maximum(low, np.minimum(high, right))

    def measure(self, start: int, low: Ints, count: Ints) -> tuple[Ints, Ints, Floats, Floats]:
        """IoU of detections ``start, start + 1, ...`` with their windows; pairs that reach it."""
        detection = np.repeat(np.arange(start, start + len(count)), count)
        at = np.arange(len(detection)) + np.repeat(low - (np.cumsum(count) - count), count)
        if self.bounded:
            distance = np.abs(self.centre[detection, 1] - self.true_centre[at, 1])
            near = distance <= self.reach[detection, 1]
            detection, at = detection[near], at[near]
        x, y, w, h = self.boxes[detection].T
        true_x, true_y, true_w, true_h = self.true[at].T
        width = np.minimum(w + x, true_w + true_x) - np.maximum(x, true_x)
        height = np.minimum(h + y, true_h + true_y) - np.maximum(y, true_y)
        inter = np.maximum(width, 0) * np.maximum(height, 0)
        area = self.area[detection]
        # an intersection can underflow to zero beside areas that do too: no overlap then
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = inter / (area + self.true_area[at] - inter)
            overlap = inter / area if self.crowd else iou
        keep = (iou >= self.floor) & (iou > 0)
        if self.crowd:
            keep |= overlap >= self.floor
        return detection[keep], at[keep], iou[keep], overlap[keep]
