"""Draws the crops of cases and the whole images around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

from benchmark_eval.core.drawing import Style, outline
from benchmark_eval.core.image_files import (
    EXPECTED,
    as_rgb,
    exif_orientation,
    open_image,
    unreadable_image,
)
from benchmark_eval.core.problems import Problem
from benchmark_eval.formats.images import annotated_frame
from benchmark_eval.gallery.cases import Box, Role

CROP_SIDE = 384
"""Largest width and height of a crop (px)."""
WHOLE_SIDE = 1024
"""The same of a whole image."""
SMALLEST_CROP = 120
"""Smallest side of the region that a crop shows (px of the image)."""
SURROUNDINGS = 1.8
"""Side of a crop in longer sides of what it shows."""
QUALITY = 85
_FILTER = Image.Resampling.BILINEAR  # averages when it reduces; twice as fast as bicubic

# Okabe and Ito's palette; the dash distinguishes the kinds without it
STYLES: dict[Role, Style] = {
    "other": Style("other annotations of the image", "#FFFFFF", 2, "black"),
    "detection": Style("detection", "#D55E00", 0, "white"),
    "matched": Style("detection that had already matched the specimen", "#F0E442", 2, "black"),
    "specimen": Style("annotated specimen", "#56B4E9", 4, "black"),
}
"""Style of each kind of box, in drawing order: a dashed box leaves one below it visible."""


@dataclass(frozen=True, slots=True)
class Crop:
    """A crop to write to ``file``: the region around some boxes, with ``boxes`` drawn."""

    file: Path
    boxes: tuple[Box, ...]
    around: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that is drawn of one image file: crops, and the whole image with all their boxes.

    ``annotated`` is the annotated width and height in px, NaN if unknown.
    """

    path: Path
    record: str
    annotated: tuple[float, float]
    whole: Path
    crops: tuple[Crop, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Result of a sheet: the sizes (px) of its crops, or the problem of the image."""

    sizes: tuple[tuple[int, int], ...] = ()
    problem: Problem | None = None


def draw_sheets(
    sheets: Sequence[Sheet], jobs: int | None, progress: Callable[[int, int], None] | None
) -> list[Drawn]:
    """Draw all sheets, in several processes; the files do not depend on ``jobs``."""
    workers = min(jobs or os.cpu_count() or 1, len(sheets))
    if workers <= 1:
        return _collected(map(draw_sheet, sheets), len(sheets), progress)
    with ProcessPoolExecutor(workers) as pool:
        return _collected(pool.map(draw_sheet, sheets), len(sheets), progress)


def _collected(
    results: Iterable[Drawn], total: int, progress: Callable[[int, int], None] | None
) -> list[Drawn]:
    found = []
    for done, drawn in enumerate(results, start=1):
        found.append(drawn)
        if progress is not None:
            progress(done, total)
    return found


def draw_sheet(sheet: Sheet) -> Drawn:
    """Draw the crops and the whole image of one file."""
    try:
        with open_image(sheet.path) as file:
            stored = file.size
            orientation = exif_orientation(file) or 1
            frame = annotated_frame(sheet.annotated, stored, orientation)
            if frame is None:
                return Drawn(problem=_other_size(sheet, stored))
            size = stored[::-1] if frame == "upright" and orientation >= 5 else stored
            regions = [region(crop.around, size) for crop in sheet.crops]
            _decode_reduced(file, regions, size)
            picture: Image.Image = file
            picture.load()
            if frame == "upright" and orientation > 1:
                picture = ImageOps.exif_transpose(picture)
            if picture.mode != "RGB":
                picture = as_rgb(picture)
    except Exception as error:  # decoders raise exceptions of any type
        found, cause = unreadable_image(sheet.path, error)
        problem = Problem("image-file", str(sheet.path), found, EXPECTED, sheet.record, cause=cause)
        return Drawn(problem=problem)
    scale = picture.width / size[0]  # below 1 if the file was decoded at a reduced size
    sizes = []
    for crop, (left, top, side_x, side_y) in zip(sheet.crops, regions, strict=True):
        factor = CROP_SIDE / max(side_x, side_y)
        target = max(1, round(side_x * factor)), max(1, round(side_y * factor))
        window = tuple(c * scale for c in (left, top, left + side_x, top + side_y))
        small = picture.resize(target, _FILTER, _inside(window, picture.size), 1.5)
        _draw_boxes(small, crop.boxes, (left, top), factor, 3)
        _save(small, crop.file)
        sizes.append(target)
    factor = min(1.0, WHOLE_SIDE / max(size))
    target = max(1, round(size[0] * factor)), max(1, round(size[1] * factor))
    whole = picture.resize(target, _FILTER, reducing_gap=1.5)
    boxes = dict.fromkeys(box for crop in sheet.crops for box in crop.boxes)
    case_boxes = {box.xywh for box in boxes if box.role != "other"}
    shown = [box for box in boxes if box.role != "other" or box.xywh not in case_boxes]
    _draw_boxes(whole, shown, (0.0, 0.0), factor, 2)
    _save(whole, sheet.whole)
    return Drawn(tuple(sizes))


def _other_size(sheet: Sheet, stored: tuple[int, int]) -> Problem:
    width, height = sheet.annotated
    return Problem(
        "image-size",
        str(sheet.path),
        f"{stored[0]} x {stored[1]} px in the file",
        f"{width:g} x {height:g} px, as in the annotations",
        sheet.record,
        cause="a resized image, or an image of another data set",
    )


def region(boxes: Sequence[Box], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, width and height (px) of the region of an image that a crop shows.

    A square around the boxes, with surroundings, moved and cut to be inside the image.
    """
    left = min(box.xywh[0] for box in boxes)
    top = min(box.xywh[1] for box in boxes)
    right = max(box.xywh[0] + box.xywh[2] for box in boxes)
    bottom = max(box.xywh[1] + box.xywh[3] for box in boxes)
    side = max(SMALLEST_CROP, SURROUNDINGS * max(right - left, bottom - top))
    place = []
    for low, high, limit in ((left, right, size[0]), (top, bottom, size[1])):
        reach = min(side, float(limit))
        place.append((min(max((low + high - reach) / 2, 0.0), limit - reach), reach))
    return place[0][0], place[1][0], place[0][1], place[1][1]


def _decode_reduced(
    file: Image.Image,
    regions: Sequence[tuple[float, float, float, float]],
    size: tuple[int, int],
) -> None:
    """Let a JPEG be decoded at 1/2, 1/4 or 1/8 of its size if all that is drawn is that small."""
    needed = [CROP_SIDE / max(width, height) for _, _, width, height in regions]
    scale = max([*needed, WHOLE_SIDE / max(size)])
    if file.format == "JPEG" and scale < 1:
        file.draft("RGB", (round(file.size[0] * scale), round(file.size[1] * scale)))


def _inside(window: tuple[float, ...], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """A window without what rounding moved out of the picture; at least a pixel in size."""
    left, top = min(window[0], size[0] - 1.0), min(window[1], size[1] - 1.0)
    right, bottom = max(window[2], left + 1.0), max(window[3], top + 1.0)
    return left, top, min(right, size[0]), min(bottom, size[1])


def _draw_boxes(
    picture: Image.Image,
    boxes: Iterable[Box],
    origin: tuple[float, float],
    factor: float,
    line: int,
) -> None:
    pen = ImageDraw.Draw(picture)
    boxes = list(boxes)
    for role, style in STYLES.items():
        for box in boxes:
            if box.role != role:
                continue
            x, y, w, h = box.xywh
            corners = (x, y, x + w, y + h)
            moved = [
                round(min(max((corner - start) * factor, -9.0), most + 9.0))
                for corner, start, most in zip(corners, origin * 2, picture.size * 2, strict=True)
            ]
            outline(pen, moved, style, line if role != "other" else 2, open_gaps=True)


def _save(picture: Image.Image, path: Path) -> None:
    try:
        picture.save(path, "JPEG", quality=QUALITY)
    except OSError as error:
        error.filename = str(path)  # "no space left on device" names no file
        raise
