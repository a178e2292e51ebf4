"""The specimens that a detection overlaps most, for detections that may match none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints, first_of_run
from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.pairs import PAIRS_AT_ONCE, CandidateSearch, centres


@dataclass(frozen=True, slots=True)
class Best:
    """The annotation that each detection overlaps most.

    ``iou`` is (n_detections,), 0 without one; ``truth`` is its row in ``SplitTruth``, -1 without
    one, and the first in file order on equal IoU.
    """

    iou: Floats
    truth: Codes

    @classmethod
    def none(cls, n_detections: int) -> Best:
        """No detection overlaps anything."""
        return cls(np.zeros(n_detections), np.full(n_detections, -1, np.int32))

    def update(self, detection: Ints, truth: Ints, iou: Floats) -> None:
        """Set the best of these pairs, sorted by detection, for the detections among them."""
        if not len(detection):
            return
        first = np.flatnonzero(first_of_run(detection))
        size = np.diff(np.r_[first, len(detection)])
        highest = np.maximum.reduceat(iou, first)
        row = np.where(iou == np.repeat(highest, size), truth, np.iinfo(np.int64).max)
        self.iou[detection[first]] = highest
        self.truth[detection[first]] = np.minimum.reduceat(row, first)


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Plain IoU of each detection with annotations of its own and of other species.

    ``same`` and ``other`` are over scored specimens, ``crowd`` over crowd regions; the latter two
    are None if there are none. An IoU below the limit of the search is 0.
    """

    same: Best
    other: Best | None
    crowd: Best | None


def find_overlaps(
    detections: Detections,
    truth: SplitTruth,
    rows: Ints,
    low: float,
    label: Ints | None,
    truth_label: Ints | None,
) -> Overlaps:
    """Find the annotations that each of the detections ``rows`` overlaps most.

    Parameters
    ----------
    detections : Detections
        Detections of one split; boxes (n, 4) as x, y, w, h in px.
    truth : SplitTruth
        Annotations of the split, crowd regions included.
    rows : (n_rows,) int
        The detections to search for, ascending. All others overlap nothing in the result.
    low : float
        Smallest IoU of interest, in (0, 1].
    label, truth_label : (n_detections,) and (n_truth,) int, or None
        Species of each detection and of each annotation; with None, all are of one species.

    Returns
    -------
    Overlaps

    Notes
    -----
    The IoU is that of ``find_pairs``, to the last bit. Only the best annotations are kept, and
    annotations with the same box and label are measured once, so memory does not grow with the
    number of pairs. The largest annotation of an image bounds the search: boxes of widths w and v
    that share at least low * w have centres at most (w + v) / 2 - low * w apart.
    """
    n = len(detections)
    has_crowd = bool(truth.crowd.any())
    found = Overlaps(
        Best.none(n),
        None if label is None else Best.none(n),
        Best.none(n) if has_crowd else None,
    )
    if not len(rows) or not len(truth.image):
        return found
    centre = centres(truth.boxes)
    order = _without_twins(truth, truth_label, np.lexsort((centre[:, 0], truth.image)), centre)
    image, boxes, n_images = detections.image[rows], detections.boxes[rows], len(truth.image_ids)
    search = CandidateSearch(boxes, truth.boxes[order], centre[order], low, crowd=False)
    if search.bounded:
        largest = np.zeros((n_images, 2))
        begin_image = np.flatnonzero(first_of_run(truth.image))  # annotations are grouped by image
        largest[truth.image[begin_image]] = np.maximum.reduceat(truth.boxes[:, 2:], begin_image)
        size = boxes[:, 2:]
        reach = (size + largest[image]) / 2 - low * size + (1e-3 + 1e-6 * size) / low
        limited = np.isfinite(search.max_distance)  # infinite for boxes that rounding distorts
        np.minimum(search.max_distance, reach, out=search.max_distance, where=limited)
    first, stop = search.windows(image, truth.image[order], n_images)
    count = stop - first
    ends = np.cumsum(count)
    begin = 0
    while begin < len(ends):
        done = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")), begin + 1)
        if ends[end - 1] > done:
            # a chunk holds all pairs of its detections
            at, place, iou, _ = search.measure(begin, first[begin:end], count[begin:end])
            detection, row = rows[at], order[place]
            if found.crowd is not None:
                crowd = truth.crowd[row]
                found.crowd.update(detection[crowd], row[crowd], iou[crowd])
                detection, row, iou = detection[~crowd], row[~crowd], iou[~crowd]
            if found.other is not None and label is not None and truth_label is not None:
                other = label[detection] != truth_label[row]
                found.other.update(detection[other], row[other], iou[other])
                detection, row, iou = detection[~other], row[~other], iou[~other]
            found.same.update(detection, row, iou)
        begin = end
    return found


def _without_twins(truth: SplitTruth, label: Ints | None, order: Ints, centre: Floats) -> Ints:
    """``order`` (by image and centre x) without repetitions of a box with the same label.

    Keeps the first in file order.
    """
    x, image = centre[order, 0], truth.image[order]
    if not ((x[1:] == x[:-1]) & (image[1:] == image[:-1])).any():
        return order
    columns = [*truth.boxes.T, truth.crowd, *([] if label is None else [label])]
    order = np.lexsort((*columns, centre[:, 0], truth.image))
    twin: Bools = np.ones(len(order), np.bool_)
    twin[:1] = False
    for column in (*columns, truth.image):
        twin[1:] &= column[order[1:]] == column[order[:-1]]
    return order[~twin]
