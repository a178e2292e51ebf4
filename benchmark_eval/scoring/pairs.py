"""Overlapping pairs of detections and ground truth: one IoU pass per split.

``find_pairs`` lists all pairs. ``find_matching_pairs`` lists those that a matching depends on: one
pair for all annotations with the same box, and the best crowd regions of a detection. Their number
then grows with the detections, not with the product of detections and annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints, first_of_run, record_hashes
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.detections import Detections

PAIRS_AT_ONCE = 250_000
"""Candidate pairs per chunk; bounds the memory of the IoU pass."""
MAX_COORDINATE = 1e12
"""Largest coordinate in px at which float64 resolves differences below 0.001 px."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a detection and a ground truth box of the same image.

    All columns except ``twin_of`` have one row per pair, sorted by detection, then by ground truth
    in file order.

    Attributes
    ----------
    detection : (n_pairs,) int
        Row of the detection in ``Detections``.
    truth : (n_pairs,) int
        Row of the annotation in ``SplitTruth``.
    iou : (n_pairs,) float
        Intersection over union.
    overlap : (n_pairs,) float
        The overlap COCO compares with a threshold: the IoU, or for a crowd region the
        intersection over the area of the detection.
    crowd : (n_pairs,) bool
        Whether the annotation is a crowd region.
    twin_of : (n_truth,) int
        The row of the annotation whose pairs stand for those of each annotation: its own row, or
        the first annotation of the image with the same box.
    """

    detection: Ints
    truth: Ints
    iou: Floats
    overlap: Floats
    crowd: Bools
    twin_of: Ints

    def subset(self, keep: Bools) -> Pairs:
        """The pairs where ``keep`` is true."""
        return Pairs(
            self.detection[keep],
            self.truth[keep],
            self.iou[keep],
            self.overlap[keep],
            self.crowd[keep],
            self.twin_of,
        )


def find_pairs(detections: Detections, truth: SplitTruth, min_iou: float) -> Pairs:
    """Find all pairs of a detection and a ground truth box that overlap enough to match.

    Parameters
    ----------
    detections : Detections
        Detections of one split; boxes (n, 4) as x, y, w, h in px.
    truth : SplitTruth
        Annotations of the split, crowd regions included.
    min_iou : float
        Smallest IoU of interest, in (0, 1].

    Returns
    -------
    Pairs
        Every pair with IoU > 0 and IoU >= ``min_iou``. For crowd regions also every pair whose
        intersection over detection area is >= ``min_iou``.

    Notes
    -----
    The arithmetic and its order are those of ``bbIou`` in pycocotools (``maskApi.c``), so the
    values are equal to the last bit. Only detections whose box centre is close enough to reach
    ``min_iou`` are measured (see ``CandidateSearch``).
    """
    return _find(detections, truth, min_iou, np.arange(len(truth.image)), None)


def find_matching_pairs(
    detections: Detections, truth: SplitTruth, min_iou: float, crowd_group: Ints | None = None
) -> Pairs:
    """Find the pairs that decide every matching, in memory linear in the number of detections.

    Parameters
    ----------
    detections, truth, min_iou
        As for ``find_pairs``.
    crowd_group : (n_truth,) int, optional
        Crowd regions of one group are never evaluated apart from each other, except by category.
        By default all are one group.

    Returns
    -------
    Pairs
        Of the pairs of ``find_pairs``, those with the first of several specimens with the same
        box (``twin_of`` names it), and for each detection those with the crowd regions of highest
        overlap and of highest IoU in each group, and of highest overlap in its own category. On
        ties in overlap the last in file order, as in COCO.
    """
    group = np.zeros(len(truth.image), np.int64) if crowd_group is None else crowd_group
    return _find(detections, truth, min_iou, _twins(truth), group)


def _twins(truth: SplitTruth) -> Ints:
    """First annotation of the same image with the same box; crowd regions are their own."""
    twin_of = np.arange(len(truth.image))
    rows = np.flatnonzero(~truth.crowd)
    columns = [truth.image[rows], *truth.boxes[rows].T]
    hashes = record_hashes(columns)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    if not (hashes[1:] == hashes[:-1]).any():
        return twin_of
    differs = np.zeros(len(order), np.bool_)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[order[1:]] != column[order[:-1]]
    first = order[np.flatnonzero(differs)]
    twin_of[rows[order]] = rows[first[np.cumsum(differs) - 1]]
    return twin_of


def _find(
    detections: Detections, truth: SplitTruth, min_iou: float, twin_of: Ints, group: Ints | None
) -> Pairs:
    """The pairs with annotations that are their own twin; with ``group``, only the best crowd."""
    own = twin_of == np.arange(len(twin_of))
    parts = [
        _pairs_of(detections, truth, np.flatnonzero(~truth.crowd & own), min_iou, None),
        _pairs_of(detections, truth, np.flatnonzero(truth.crowd), min_iou, group, crowd=True),
    ]
    detection, row, iou, overlap, crowd = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    # one key for both columns; it is nearly sorted already, so a stable sort is fast
    order = np.argsort(detection * len(truth.image) + row, kind="stable")
    return Pairs(detection[order], row[order], iou[order], overlap[order], crowd[order], twin_of)


def _best_crowd(
    detections: Detections,
    truth: SplitTruth,
    group: Ints,
    measured: tuple[Ints, Ints, Floats, Floats],
) -> tuple[Ints, Ints, Floats, Floats]:
    """The pairs with crowd regions on which a matching can depend, of all pairs of detections."""
    detection, row, iou, overlap = measured
    keep = np.zeros(len(detection), np.bool_)

    def mark(rows: Ints) -> None:
        keep[rows[_last_largest(detection[rows], row[rows], overlap[rows])]] = True

    of_pair = group[row]
    for number in np.unique(of_pair).tolist():
        rows = np.flatnonzero(of_pair == number)
        mark(rows)
        keep[rows[_last_largest(detection[rows], row[rows], iou[rows])]] = True
    mark(np.flatnonzero(detections.category[detection] == truth.category[row]))
    return detection[keep], row[keep], iou[keep], overlap[keep]


def _last_largest(detection: Ints, row: Ints, value: Floats) -> Ints:
    """Position of the largest value of each detection, of equal ones that of the largest row."""
    if not len(detection):
        return detection
    first = np.flatnonzero(first_of_run(detection))
    length = np.diff(np.r_[first, len(detection)])
    largest = np.repeat(np.maximum.reduceat(value, first), length)
    candidate = np.where(value == largest, row, -1)
    return np.flatnonzero(candidate == np.repeat(np.maximum.reduceat(candidate, first), length))


def _pairs_of(
    detections: Detections,
    truth: SplitTruth,
    rows: Ints,
    min_iou: float,
    group: Ints | None,
    *,
    crowd: bool = False,
) -> tuple[Ints, Ints, Floats, Floats, Bools]:
    """Pairs with the ground truth ``rows``, which are all scored or all crowd."""
    if not len(rows):
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    centre = centres(truth.boxes[rows])
    order = np.lexsort((centre[:, 0], truth.image[rows]))
    rows, centre = rows[order], centre[order]
    search = CandidateSearch(detections.boxes, truth.boxes[rows], centre, min_iou, crowd=crowd)
    low, high = search.windows(detections.image, truth.image[rows], len(truth.image_ids))
    count = high - low
    ends = np.cumsum(count)
    chunks: list[tuple[Ints, Ints, Floats, Floats]] = []
    start = 0
    while start < len(count):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")), start + 1)
        if ends[stop - 1] > done:
            detection, at, iou, overlap = search.measure(start, low[start:stop], count[start:stop])
            measured = detection, rows[at], iou, overlap
            # a chunk holds all pairs of its detections
            chunks.append(
                measured if group is None else _best_crowd(detections, truth, group, measured)
            )
        start = stop
    if not chunks:
        none = np.empty(0, np.int64), np.empty(0)
        return none[0], none[0], none[1], none[1], np.empty(0, np.bool_)
    detection, row, iou, overlap = (np.concatenate([c[i] for c in chunks]) for i in range(4))
    return detection, row, iou, overlap, np.full(len(detection), crowd)


def centres(boxes: Floats) -> Floats:
    """Centres of boxes, (n, 2) as x, y in px."""
    return boxes[:, :2] + boxes[:, 2:] / 2


def _max_abs(boxes: Floats) -> float:
    """Largest absolute value, 0 if empty."""
    return max(float(boxes.max(initial=0.0)), -float(boxes.min(initial=0.0)))


def _too_thin(boxes: Floats) -> Bools:
    """Boxes with a side so short, relative to their coordinates, that rounding distorts it.

    The IoU of such a box can be any number, in pycocotools too.
    """
    limit: Any = 1e7 * np.spacing(_max_abs(boxes))
    if limit > 1e-3:
        limit = 1e7 * np.spacing(np.abs(boxes).max(axis=1))
    thin: Bools = np.minimum(boxes[:, 2], boxes[:, 3]) < limit
    return thin


class CandidateSearch:
    """Search for the ground truth that can reach ``min_iou`` with each detection.

    IoU >= t requires that the intersection spans at least the fraction t of either width. Boxes
    of widths w and v whose centres are a distance d apart share at most (w + v) / 2 - d, so d is
    at most w (1 - t), or w (1 - t) / 2t if t < 0.5. The same holds for heights. Crowd regions
    can have any size relative to the detection; there d is less than (w + v) / 2, with v the width
    of the widest region of the image.
    """

    def __init__(
        self, boxes: Floats, true: Floats, true_centre: Floats, min_iou: float, *, crowd: bool
    ) -> None:
        self.boxes, self.true, self.true_centre = boxes, true, true_centre
        self.min_iou, self.crowd = min_iou, crowd
        self.area = boxes[:, 2] * boxes[:, 3]
        self.true_area = true[:, 2] * true[:, 3]
        self.max_abs = _max_abs(true)
        # with larger coordinates rounding exceeds the slack; with a smaller min_iou the bound
        # exceeds any image (and overflows), so nothing would be skipped
        self.bounded = min_iou >= 1e-9 and self.max_abs < MAX_COORDINATE
        if self.bounded:
            size = boxes[:, 2:]
            slack = (1e-3 + 1e-6 * size) / min_iou
            self.centre = centres(boxes)
            part = 0.5 if crowd else max(1 - min_iou, (1 - min_iou) / (2 * min_iou))
            self.max_distance = size * part + slack
            self.max_distance[_too_thin(boxes)] = np.inf

    def windows(self, image: Ints, truth_image: Ints, n_images: int) -> tuple[Ints, Ints]:
        """Start and stop of each detection's candidates in ground truth sorted by image, centre x.

        ``image`` holds the image row of each detection, ``truth_image`` that of each annotation.
        """
        first = np.searchsorted(truth_image, np.arange(n_images + 1))
        low, high = first[image], first[image + 1]
        if self.bounded and self.crowd:
            largest = np.zeros((n_images, 2))
            np.maximum.at(largest, truth_image, self.true[:, 2:])
            self.max_distance += largest[image] / 2
        # images are laid out along one axis, `stride` apart, so one search serves all of them
        stride = 4 * self.max_abs + 4
        if not self.bounded or stride * n_images > MAX_COORDINATE:
            return low, high
        line = truth_image * stride + self.true_centre[:, 0]
        ends = 2 * self.max_abs + 1  # every ground truth centre lies within
        begin = np.clip(self.centre[:, 0] - self.max_distance[:, 0], -ends, ends)
        end = np.clip(self.centre[:, 0] + self.max_distance[:, 0], -ends, ends)
        left = np.searchsorted(line, image * stride + begin, side="left")
        right = np.searchsorted(line, image * stride + end, side="right")
        low = np.maximum(low, left)
        return low, np.maximum(low, np.minimum(high, right))

    def measure(self, start: int, low: Ints, count: Ints) -> tuple[Ints, Ints, Floats, Floats]:
        """Pairs of detections ``start, start + 1, ...`` with the candidates that they overlap."""
        detection = np.repeat(np.arange(start, start + len(count)), count)
        at = np.arange(len(detection)) + np.repeat(low - (np.cumsum(count) - count), count)
        if self.bounded:
            distance = np.abs(self.centre[detection, 1] - self.true_centre[at, 1])
            near = distance <= self.max_distance[detection, 1]
            detection, at = detection[near], at[near]
        x, y, w, h = self.boxes[detection].T
        true_x, true_y, true_w, true_h = self.true[at].T
        width = np.minimum(w + x, true_w + true_x) - np.maximum(x, true_x)
        height = np.minimum(h + y, true_h + true_y) - np.maximum(y, true_y)
        inter = np.maximum(width, 0) * np.maximum(height, 0)
        area = self.area[detection]
        # intersection and areas can all underflow to 0: no overlap
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = inter / (area + self.true_area[at] - inter)
            overlap = inter / area if self.crowd else iou
        keep = (iou >= self.min_iou) & (iou > 0)
        if self.crowd:
            keep |= overlap >= self.min_iou
        return detection[keep], at[keep], iou[keep], overlap[keep]
