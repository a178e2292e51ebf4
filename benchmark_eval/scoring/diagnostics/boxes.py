"""Warnings about boxes: another split, another layout, normalised or resized coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints, rows_of_ids
from benchmark_eval.core.text import counted, percent
from benchmark_eval.inputs.predictions import rows_of_images
from benchmark_eval.scoring.diagnostics.evidence import (
    FIT_IOU,
    MIN_FRACTION,
    MIN_GAINED,
    MIN_GAINED_PER_LOST,
    Evidence,
    explains,
    numbered,
)

OUTSIDE_FRACTION = 0.05
"""Smallest fraction of boxes outside their image at which a warning fires. Detectors clip boxes to
the image or overshoot by a pixel or two."""
MIN_TURNED = 4
"""Fewest images at which half of those without a fit must fit after turning; ``MIN_GAINED`` if
fewer than half do."""
MIN_TURNED_OUTSIDE = 3
"""Fewest images with boxes beyond them that fit with width and height swapped, at which images are
taken to be turned, if half of their best detections fit a specimen after turning ..."""
MIN_TURNED_OUTSIDE_ALONE = 5
"""... or at this number in any case."""
PAST = 0.05
"""Part of the longer side by which a box must exceed its image for that."""
MAX_NORMALISED = 2.0
"""Largest coordinate in px at which coordinates are taken to be normalised."""
RESIZED_SAMPLE = 100
"""Number of best detections, evenly spread over the images, used to find the likeliest image
size."""
LENGTHS = (320, 416, 448, 512, 576, 608, 640, 672, 704, 736, 768, 800, 832, 896, 960, 1024, 1152,
           1280, 1333, 1536, 1600, 1920, 2048)  # fmt: skip
"""Common side lengths in px of detector input images."""
SHORT_AND_LONG = (800, 1333)
"""Common resizing: the shortest side, and the maximum of the longest side, in px."""


def other_split(evidence: Evidence) -> Iterator[str]:
    """Predictions of another split: valid because the image ids of every split start at 1."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.many_misfits:
        return
    for name, other in evidence.benchmark.splits.items():
        if name == evidence.truth.name:
            continue
        fits = evidence.fits_in(other)
        # boxes that fit nothing at all (such as those of a resized image) fit others by chance
        if explains(fits, as_is) and fits.sum() >= MIN_FRACTION * len(best):
            yield (
                f"{int(fits.sum()):,} of the best detections of {counted(len(best), 'image')} fit "
                f"a specimen of {name} with the same image id, {int(as_is.sum()):,} fit one of "
                f"{evidence.truth.name}: likely the predictions of {name}"
            )


def image_positions(evidence: Evidence) -> Iterator[str]:
    """Image ids that are positions in a list of images, numbers of file names, or shifted."""
    best, as_is, truth = evidence.best, evidence.fits, evidence.truth
    if not evidence.many_misfits:
        return
    ids = truth.image_ids[best.image]
    orders = {"in ascending order of their ids": np.arange(len(truth.image_ids))}
    if (np.diff(truth.file_order) < 0).any():
        orders["in the order of the annotation file"] = truth.file_order
    if (np.diff(truth.name_order) < 0).any():
        orders["in the order of their file names"] = truth.name_order
    listed = "positions in a list of images instead of image ids"
    readings = [
        (numbered(ids, rows, first), f"if image_id numbers the images {order} from {first}", listed)
        for order, rows in orders.items()
        for first in (0, 1)
    ]
    for by, words in ((1, "added to"), (-1, "subtracted from")):
        changed = f"if 1 is {words} every image_id"
        readings.append((rows_of_images(ids + by, truth), changed, listed))
    words = "if image_id is the number in the file name"
    named = "numbers of file names (7 for 007.jpg) instead of image ids"
    readings.append((_rows_of_numbers(ids, truth.name_number), words, named))
    fits = [evidence.fits_on(image) for image, _, _ in readings]
    most = max(range(len(fits)), key=lambda i: int(fits[i].sum()))
    _, words, likely = readings[most]
    if explains(fits[most], as_is) and fits[most].sum() >= MIN_FRACTION * len(best):
        yield (
            f"{int(as_is.sum()):,} of the best detections of {counted(len(best), 'image')} fit a "
            f"specimen as written, {int(fits[most].sum()):,} {words}: likely {likely}"
        )


def _rows_of_numbers(numbers: Ints, of_names: Ints) -> Ints:
    """The image whose file name is each number; -1 if there is none, or more than one."""
    values, first, count = np.unique(of_names, return_index=True, return_counts=True)
    unique = (count == 1) & (values >= 0)
    values, first = values[unique], first[unique]
    at = rows_of_ids(values, numbers)
    return np.where(at >= 0, first[at], -1) if len(first) else at


def _scale_and_layout(boxes: Floats, size: Floats, layout: str, *, normalised: bool) -> Floats:
    """Convert boxes of another layout, in px or normalised, to [x, y, w, h] in px."""
    if normalised:
        boxes = boxes * np.tile(size, 2)
    if layout == "corners":
        return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    if layout == "centre":
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    return boxes[:, [1, 0, 3, 2]] if layout == "swapped" else boxes


LAYOUTS = {
    "corners": "corners [x1, y1, x2, y2] written as [x, y, w, h]",
    "centre": "centres [cx, cy, w, h] written as [x, y, w, h]",
    "swapped": "[y, x, h, w] written as [x, y, w, h]",
}


def box_layout(evidence: Evidence) -> Iterator[str]:
    """Boxes that fit specimens if their four numbers are read in another layout."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.many_misfits:
        return
    size = evidence.truth.sizes[best.image]
    for layout, mistake in LAYOUTS.items():
        fits = evidence.fits_as(_scale_and_layout(best.boxes, size, layout, normalised=False))
        if explains(fits, as_is):
            yield (
                f"{int(as_is.sum()):,} of the best detections of {counted(len(best), 'image')} fit "
                f"a specimen as written, {int(fits.sum()):,} in another layout: likely {mistake}"
            )


def normalised(evidence: Evidence) -> Iterator[str]:
    """Normalised coordinates (0-1) instead of pixels."""
    boxes, best = evidence.predictions.boxes, evidence.best
    reach = float(boxes.max(initial=0.0))
    largest = float(np.nanmax(evidence.truth.sizes, initial=0.0))
    if not len(boxes) or reach > MAX_NORMALISED or largest < 10 * MAX_NORMALISED:
        return
    text = (
        f"no coordinate exceeds {reach:g} px in images of up to {largest:g} px: "
        "likely normalised coordinates (0-1) instead of pixels"
    )
    size = evidence.truth.sizes[best.image]
    fits = {
        layout: evidence.fits_as(_scale_and_layout(best.boxes, size, layout, normalised=True))
        for layout in ("", *LAYOUTS)
    }
    layout = max(fits, key=lambda name: int(fits[name].sum()))
    if layout and explains(fits[layout], fits[""]):
        text += f", and {LAYOUTS[layout]}"
    yield text


def _resized_boxes(boxes: Floats, size: Floats, way: str, length: float) -> Floats:
    """Scale boxes from px of the resized image back to px of the original.

    ``way`` is "longest" (the longest side became ``length``), "shortest" (the shortest side, see
    ``SHORT_AND_LONG``), "stretched" (both sides), "padded" (the longest side, centred in a
    square) or "factor" (all images by the same factor).
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
    "padded": "resized to a longest side of {0:g} px and centred in a square",
    "factor": "scaled {2} by a factor of {1:.3g}",
}


def resized(evidence: Evidence) -> Iterator[str]:
    """Boxes in pixels of the image resized for the detector, not scaled back."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.many_misfits:
        return
    size = evidence.truth.sizes[best.image]
    far = best.boxes[:, :2] + best.boxes[:, 2:]
    reach = float(far.max(initial=0.0))
    larger = int(np.count_nonzero(size.max(axis=1) > 1.1 * reach))
    with np.errstate(invalid="ignore"):
        all_short = bool((1.1 * far <= size).all())
    if reach <= MAX_NORMALISED or (larger < MIN_FRACTION * len(best) and not all_short):
        return  # coordinates cover the images
    way, length = _likeliest_size(evidence, reach)
    if not way:
        return
    fits = evidence.fits_as(_resized_boxes(best.boxes, size, way, length))
    if explains(fits, as_is) and fits.sum() >= MIN_FRACTION * len(best):
        how = "down" if length >= 1 else "up"
        resizing = RESIZED[way].format(length, max(length, 1 / length), how)
        yield (
            f"{int(as_is.sum()):,} of the best detections of {counted(len(best), 'image')} fit a "
            f"specimen as written, {int(fits.sum()):,} in pixels of an image "
            f"{resizing}; the largest coordinate is {reach:g} px in images of up to "
            f"{np.nanmax(size):g} px: likely boxes of the resized image, not scaled back"
        )


def _likeliest_size(evidence: Evidence, reach: float) -> tuple[str, float]:
    """The resizing (way, length) under which a sample of best detections fits specimens best.

    ("", 0) if fewer fit than half of what a warning needs.
    """
    best, truth = evidence.best, evidence.sampled_truth
    sample = np.linspace(0, len(best) - 1, min(len(best), RESIZED_SAMPLE)).astype(np.int64)
    image, boxes = best.image[sample], best.boxes[sample]
    size = evidence.truth.sizes[image]
    # every pair of a best detection and a specimen of its image
    start = np.searchsorted(truth.image, image)
    count = np.searchsorted(truth.image, image, side="right") - start
    row = np.repeat(np.arange(len(sample)), count)
    at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - start, count)
    specimen = truth.boxes[at]
    area = specimen[:, 2] * specimen[:, 3]

    # coordinates cannot exceed the resized image
    lengths = [float(n) for n in LENGTHS if reach <= 1.02 * n + 1]
    tried = [(way, n) for n in lengths for way in ("longest", "stretched", "padded")]
    tried.append(("shortest", float(SHORT_AND_LONG[0])))
    alone = count[row] == 1
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.sqrt(area / (boxes[row, 2] * boxes[row, 3]))[alone]
        side = size[row].max(axis=1)[alone] / factor
    usable = np.isfinite(side) & (side > 0) & np.isfinite(factor)
    if usable.any():
        measured = float(np.round(np.median(side[usable])))
        tried += [("longest", measured), ("factor", float(np.median(factor[usable])))]

    least, most, likeliest = 0.5 * MIN_FRACTION * len(sample), 0.0, ("", 0.0)
    for way, length in tried:
        read = _resized_boxes(boxes, size, way, length)[row]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            near = np.maximum(read[:, :2], specimen[:, :2])
            far = np.minimum(read[:, :2] + read[:, 2:], specimen[:, :2] + specimen[:, 2:])
            shared = np.maximum(far - near, 0).prod(axis=1)
            iou = shared / (read[:, 2] * read[:, 3] + area - shared)
        fit = np.zeros(len(sample))
        np.maximum.at(fit, row, np.where(iou >= FIT_IOU, iou, 0.0))
        if np.count_nonzero(fit) > least and fit.sum() > most:
            most, likeliest = float(fit.sum()), (way, length)
    return likeliest


def turned(evidence: Evidence) -> Iterator[str]:
    """Boxes of some images that belong to the image turned by 90 degrees, as by EXIF.

    Only images whose best detection fits nothing as written are compared, one by one, because
    cameras turn some images and not others. Mirrored boxes show how many would fit by chance.
    """
    best = evidence.best
    size = evidence.truth.sizes[best.image]
    with np.errstate(invalid="ignore"):
        tested = ~evidence.fits & (np.abs(size[:, 0] - size[:, 1]) > 0)
    if np.count_nonzero(tested) < MIN_TURNED_OUTSIDE:
        return
    read = {way: tested & evidence.fits_as(_turned_boxes(best.boxes, size, way)) for way in WAYS}
    fits = read["clockwise"] | read["anticlockwise"]
    by_chance = read["mirrored"] | read["flipped"]
    past, fits_turned = _past_their_image(evidence)
    n, n_chance = int(fits.sum()), int(by_chance.sum())
    if not fits_turned.any() and not n:
        return
    n_past, n_elsewhere = int(fits_turned.sum()), int((past & ~fits_turned).sum())
    of_past = fits_turned[best.image] & tested
    # of boxes that fit nothing, half never fit by chance after turning
    enough = MIN_TURNED if 2 * n >= np.count_nonzero(tested) else MIN_GAINED
    enough_fit = n >= max(enough, MIN_GAINED_PER_LOST * n_chance)
    enough_past = n_past >= max(MIN_TURNED_OUTSIDE, MIN_GAINED_PER_LOST * n_elsewhere)
    n_past_fit = int((fits & of_past).sum())
    half_fit = 2 * n_past_fit >= max(int(of_past.sum()), MIN_TURNED_OUTSIDE)
    enough_past &= half_fit or n_past >= MIN_TURNED_OUTSIDE_ALONE
    if enough_fit or enough_past:
        found = []
        if n:
            found.append(
                f"the best detections of {counted(n, 'image')} fit a specimen only if the image is "
                "turned by 90 degrees"
            )
        if n_past:
            found.append(
                f"{counted(n_past, 'image')} with boxes beyond the image, all of which fit with "
                "width and height swapped"
            )
        text = "; ".join(found)
        yield (
            f"{text}: likely boxes in another EXIF orientation than the annotations (the image "
            "loader applied or ignored it; convert them with --images-dir and --frame)"
        )


WAYS = ("clockwise", "anticlockwise", "mirrored", "flipped")


def _turned_boxes(boxes: Floats, size: Floats, way: str) -> Floats:
    """Boxes [x, y, w, h] of an image before it was turned or mirrored to have this ``size``."""
    x, y, w, h = boxes.T
    width, height = size.T
    columns = {
        "clockwise": (width - y - h, x, h, w),
        "anticlockwise": (y, height - x - w, h, w),
        "mirrored": (width - x - w, y, w, h),
        "flipped": (x, height - y - h, w, h),
    }
    return np.stack(columns[way], axis=1)


def _past_their_image(evidence: Evidence) -> tuple[Bools, Bools]:
    """Images with boxes beyond them, and those of these whose boxes fit with swapped sides."""
    image, boxes = evidence.everything.image, evidence.everything.boxes
    sizes = evidence.truth.sizes
    slack, past_by = (part * sizes.max(axis=1, initial=0.0) + 1 for part in (0.01, PAST))
    reach = np.zeros_like(sizes)
    low = np.zeros(len(sizes))
    for side in (0, 1):
        np.maximum.at(reach[:, side], image, boxes[:, side] + boxes[:, 2 + side])
        np.minimum.at(low, image, boxes[:, side])
    with np.errstate(invalid="ignore"):
        past: Bools = np.logical_or((reach > sizes + past_by[:, None]).any(axis=1), low < -past_by)
        inside = (reach <= sizes[:, ::-1] + slack[:, None]).all(axis=1) & (low >= -slack)
    return past, past & inside


def outside(evidence: Evidence) -> Iterator[str]:
    """Many boxes that extend outside their image."""
    detections = evidence.predictions
    count = int(evidence.outside_image.sum())
    if count and count >= OUTSIDE_FRACTION * len(detections):
        boxes = detections.boxes
        row = int(np.flatnonzero(evidence.outside_image)[0])
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
            f"{percent(count, len(detections))} of boxes extend outside their "
            f"{size[0]:g}x{size[1]:g} image ({where}): likely {cause}"
        )
