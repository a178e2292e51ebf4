"""Warnings about boxes: another split, another layout, resized images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.text import counted, percent
from benchmark_eval.scoring.diagnostics.evidence import FEW, OVERLAP, Evidence, explains

OUTSIDE_SHARE = 0.05
"""Share of boxes beyond their image from which the format of the boxes is doubted; detectors clip
their boxes to the image, or overshoot by a pixel or two."""
TINY = 2.0
"""No box reaches beyond this many px from the corner: coordinates are shares of the image."""
RESIZED_SAMPLE = 100
"""Best boxes, evenly over the images, by which the likeliest size is picked."""
LENGTHS = (320, 416, 448, 512, 576, 608, 640, 672, 704, 736, 768, 800, 832, 896, 960, 1024, 1152,
           1280, 1333, 1536, 1600, 1920, 2048)  # fmt: skip
"""Lengths of a side in px that images are resized to for a detector."""
SHORT_AND_LONG = (800, 1333)
"""A short side, and the longest that a long one may have, that images are resized to."""


def other_split(evidence: Evidence) -> Iterator[str]:
    """Image ids of every split start at 1, so that another split's file reads without a fault."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    for name, other in evidence.benchmark.splits.items():
        if name == evidence.truth.name:
            continue
        there = evidence.fits_in(other)
        # boxes that fit nothing anywhere (in pixels of another size) fit a few others by chance
        if explains(there, as_is) and there.sum() >= FEW * len(best):
            yield (
                f"{int(there.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
                f"specimen of {name} under the same image id, {int(as_is.sum()):,} one of "
                f"{evidence.truth.name}: likely the predictions of {name}"
            )


def _scale_and_layout(boxes: Floats, size: Floats, layout: str, *, shares: bool) -> Floats:
    """Boxes [x, y, w, h] in px of what is written in another layout, in px or in shares."""
    if shares:
        boxes = boxes * np.tile(size, 2)
    if layout == "corners":
        return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    if layout == "centre":
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    return boxes[:, [1, 0, 3, 2]] if layout == "swapped" else boxes


LAYOUTS = {
    "corners": "corners [x1, y1, x2, y2] given as [x, y, w, h]",
    "centre": "centres [cx, cy, w, h] given as [x, y, w, h]",
    "swapped": "[y, x, h, w] given as [x, y, w, h]",
}


def box_layout(evidence: Evidence) -> Iterator[str]:
    """Boxes that fit specimens once their four numbers are read in another layout."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    size = evidence.truth.sizes[best.image]
    for layout, mistake in LAYOUTS.items():
        fits = evidence.fits_as(_scale_and_layout(best.boxes, size, layout, shares=False))
        if explains(fits, as_is):
            yield (
                f"{int(as_is.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
                f"specimen as they stand, {int(fits.sum()):,} when read otherwise: likely {mistake}"
            )


def normalised(evidence: Evidence) -> Iterator[str]:
    """Coordinates from 0 to 1 in images of many pixels."""
    boxes, best = evidence.predictions.boxes, evidence.best
    reach = float(boxes.max(initial=0.0))
    largest = float(np.nanmax(evidence.truth.sizes, initial=0.0))
    if not len(boxes) or reach > TINY or largest < 10 * TINY:
        return
    text = (
        f"no box reaches beyond {reach:g} px, in images of up to {largest:g} px: "
        "likely coordinates given as shares of the image instead of pixels"
    )
    size = evidence.truth.sizes[best.image]
    fits = {
        layout: evidence.fits_as(_scale_and_layout(best.boxes, size, layout, shares=True))
        for layout in ("", *LAYOUTS)
    }
    layout = max(fits, key=lambda name: int(fits[name].sum()))
    if layout and explains(fits[layout], fits[""]):
        text += f", and {LAYOUTS[layout]}"
    yield text


def _resized_boxes(boxes: Floats, size: Floats, way: str, length: float) -> Floats:
    """Boxes in px of an image, of those in px of the image after resizing.

    ``way`` is "longest" (its longest side has ``length``), "shortest" (its shortest, within
    ``SHORT_AND_LONG``), "stretched" (both sides have it), "padded" (as longest, in the middle of a
    square) or "factor" (every image by the same).
    """
    long, short = size.max(axis=1, keepdims=True), size.min(axis=1, keepdims=True)
    pad = np.zeros_like(boxes)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if way == "stretched":
            scale = np.tile(size / length, 2)
        elif way == "factor":
            scale = np.full_like(long, length)
        elif way == "shortest":
            scale = np.maximum(short / length, long / SHORT_AND_LONG[1])
        else:
            scale = long / length
        if way == "padded":
            pad[:, :2] = (length - size / scale) / 2
        read: Floats = (boxes - pad) * scale
    return read


RESIZED = {
    "longest": "resized to a longest side of {0:g} px",
    "shortest": "resized to a shortest side of {0:g} px and a longest of at most "
    f"{SHORT_AND_LONG[1]} px",
    "stretched": "stretched to {0:g}x{0:g} px",
    "padded": "resized to a longest side of {0:g} px in the middle of a square",
    "factor": "made {2} by a factor of {1:.3g}",
}


def resized(evidence: Evidence) -> Iterator[str]:
    """Boxes in pixels of the image as it was resized for the detector."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    size = evidence.truth.sizes[best.image]
    far = best.boxes[:, :2] + best.boxes[:, 2:]
    reach = float(far.max(initial=0.0))
    larger = int(np.count_nonzero(size.max(axis=1) > 1.1 * reach))
    with np.errstate(invalid="ignore"):
        all_short = bool((1.1 * far <= size).all())
    if reach <= TINY or (larger < FEW * len(best) and not all_short):
        return  # boxes reach as far as the images do
    way, length = _likeliest_size(evidence, reach)
    if not way:
        return
    fits = evidence.fits_as(_resized_boxes(best.boxes, size, way, length))
    if explains(fits, as_is) and fits.sum() >= FEW * len(best):
        how = "smaller" if length >= 1 else "larger"
        told = RESIZED[way].format(length, max(length, 1 / length), how)
        yield (
            f"{int(as_is.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
            f"specimen as they stand, {int(fits.sum()):,} when read as pixels of an image "
            f"{told}; the best boxes reach {reach:g} px, in images of up to "
            f"{np.nanmax(size):g} px: likely boxes of the resized image, not scaled back"
        )


def _likeliest_size(evidence: Evidence, reach: float) -> tuple[str, float]:
    """The way of resizing, and its length, under which a few best boxes fit specimens best.

    No way where those that fit are fewer than half of what a warning takes.
    """
    best, truth = evidence.best, evidence.sampled_truth
    few = np.linspace(0, len(best) - 1, min(len(best), RESIZED_SAMPLE)).astype(np.int64)
    image, boxes = best.image[few], best.boxes[few]
    size = evidence.truth.sizes[image]
    # every pair of a best box and a specimen of its image
    start = np.searchsorted(truth.image, image)
    count = np.searchsorted(truth.image, image, side="right") - start
    row = np.repeat(np.arange(len(few)), count)
    at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - start, count)
    specimen = truth.boxes[at]
    area = specimen[:, 2] * specimen[:, 3]

    # a box cannot reach beyond the image that it is in
    lengths = [float(n) for n in LENGTHS if reach <= 1.02 * n + 1]
    tried = [(way, n) for n in lengths for way in ("longest", "stretched", "padded")]
    tried.append(("shortest", float(SHORT_AND_LONG[0])))
    alone = count[row] == 1
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.sqrt(area / (boxes[row, 2] * boxes[row, 3]))[alone]
        side = size[row].max(axis=1)[alone] / factor
    known = np.isfinite(side) & (side > 0) & np.isfinite(factor)
    if known.any():
        measured = float(np.round(np.median(side[known])))
        tried += [("longest", measured), ("factor", float(np.median(factor[known])))]

    least, most, found = 0.5 * FEW * len(few), 0.0, ("", 0.0)
    for way, length in tried:
        read = _resized_boxes(boxes, size, way, length)[row]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            near = np.maximum(read[:, :2], specimen[:, :2])
            far = np.minimum(read[:, :2] + read[:, 2:], specimen[:, :2] + specimen[:, 2:])
            shared = np.maximum(far - near, 0).prod(axis=1)
            iou = shared / (read[:, 2] * read[:, 3] + area - shared)
        fit = np.zeros(len(few))
        np.maximum.at(fit, row, np.where(iou >= OVERLAP, iou, 0.0))
        if np.count_nonzero(fit) > least and fit.sum() > most:
            most, found = float(fit.sum()), (way, length)
    return found


def outside(evidence: Evidence) -> Iterator[str]:
    """Many boxes that end outside their image."""
    detections = evidence.predictions
    count = int(evidence.beyond.sum())
    if count and count >= OUTSIDE_SHARE * len(detections):
        boxes = detections.boxes
        row = int(np.flatnonzero(evidence.beyond)[0])
        size = evidence.truth.sizes[detections.image[row]]
        end = boxes[row, :2] + boxes[row, 2:]
        side = int(np.argmax(np.maximum(end - size, -boxes[row, :2])))
        where = (
            f"{'xy'[side]}+{'wh'[side]}={end[side]:g}"
            if end[side] - size[side] >= -boxes[row, side]
            else f"{'xy'[side]}={boxes[row, side]:g}"
        )
        cause = "pixels of an image of another size"
        if (boxes[:, 2:] >= boxes[:, :2]).all() and (boxes >= 0).all():
            cause = f"{LAYOUTS['corners']}, or {cause}"
        yield (
            f"{percent(count, len(detections))} of boxes end outside their "
            f"{size[0]:g}x{size[1]:g} image ({where}): likely {cause}"
        )
