"""Images annotated with true positives, missed objects and false positives; an animation."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from benchmark_eval.core.drawing import Style, outline
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.fonts import fallback_for, plot_font
from benchmark_eval.core.image_files import (
    EXPECTED,
    SUFFIXES,
    as_rgb,
    open_image,
    unreadable_image,
)
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted
from benchmark_eval.voc.rule import FALSE_POSITIVE, TRUE_POSITIVE
from benchmark_eval.voc.scoring import Matches
from benchmark_eval.voc.text import Boxes, Progress, image_name

MAX_SIDE = 1600
"""Larger images are reduced to this size (px)."""
MIN_SIDE = 640
"""Smaller images are enlarged to this size (px) of the longer side, to keep labels legible."""
FRAME_SIDE = 640
"""Maximum width and height of the animation (px)."""
MAX_FRAMES = 100
"""Maximum number of images in an animation, evenly selected, because it is held in memory."""
FRAME_MS = 1000


# Okabe and Ito's palette, distinguishable with common colour vision deficiencies
TRUE_POSITIVE_STYLE = Style("true positive", "#56B4E9", 0, "black")
MISSED_STYLE = Style("missed", "#F0E442", 4, "black")
FALSE_POSITIVE_STYLE = Style("false positive", "#D55E00", 0, "white")
DIFFICULT_STYLE = Style("difficult", "#FFFFFF", 2, "black")
DETECTED_OBJECT_STYLE = TRUE_POSITIVE_STYLE._replace(label="detected object", dash=4)

MAX_LABEL = 50


class Mark(NamedTuple):
    """One box to draw: style, corners in px of the image, and label."""

    style: Style
    corners: tuple[float, float, float, float]
    label: str


def draw_pictures(
    matches: Matches,
    image_dir: Path,
    folder: Path,
    animate: bool,
    draw_confidence: float,
    progress: Progress | None = None,
) -> list[str]:
    """Draw every image of ``image_dir`` that has ground truth into ``folder``/images.

    With ``animate``, also write ``folder``/animation.gif. Returns notes. Raises InputError with
    every unreadable image, and UsageError if ``image_dir`` does not exist.
    """
    images, problems = _find_images(image_dir, matches.ground_truth.images)
    target = folder / "images"
    target.mkdir()
    frames: list[Path] = []
    n_outside = 0
    for done, (index, path) in enumerate(images.items(), start=1):
        picture = _open(path)
        if isinstance(picture, Problem):
            problems.append(picture)
        elif not problems:
            name = matches.ground_truth.images[index]
            n_outside += _outside(matches.ground_truth, index, picture.size)
            drawn = draw(picture, marks(matches, index, draw_confidence), name, draw_confidence)
            frames.append(target / f"{name}.jpg")
            drawn.save(frames[-1], quality=90)
        if progress:
            progress("draw images", done, len(images))
    if problems:
        raise InputError(problems)
    notes = []
    n_without = len(matches.ground_truth.images) - len(images)
    if n_without:
        notes.append(
            f"{counted(n_without, 'image')} of the ground truth missing from the image folder"
        )
    if n_outside:
        notes.append(
            f"{counted(n_outside, 'object')} outside the image bounds (check that the images "
            "belong to the ground truth and have their original size)"
        )
    if animate:
        picked = frames
        if len(frames) > MAX_FRAMES:
            rows = np.linspace(0, len(frames) - 1, MAX_FRAMES).round().astype(int)
            picked = [frames[row] for row in rows.tolist()]
            notes.append(f"the animation shows {MAX_FRAMES} of {len(frames):,} images")
        _animate(picked, folder / "animation.gif")
    return notes


def _find_images(folder: Path, names: Sequence[str]) -> tuple[dict[int, Path], list[Problem]]:
    """The image file of each name, by index in ``names``; names without a file are omitted."""
    try:
        files = [path for path in listed(folder) if path.suffix.lower() in SUFFIXES]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{folder}: found {reason}; expected a folder of images") from error
    by_name: dict[str, list[Path]] = {}
    for path in files:
        if path.is_file():
            by_name.setdefault(image_name(path), []).append(path)
    found = {index: by_name[name] for index, name in enumerate(names) if name in by_name}
    problems = [
        Problem(
            "two-images",
            str(paths[0]),
            f"another image of this name, {paths[1].name}",
            "one image per name",
        )
        for paths in found.values()
        if len(paths) > 1
    ]
    if not found:
        expected = f"images named after the ground-truth files, such as {names[0]}.jpg"
        problems.append(Problem("no-image", str(folder), "no image with ground truth", expected))
    return {index: paths[0] for index, paths in found.items()}, problems


def _open(path: Path) -> Image.Image | Problem:
    """The image in RGB with its EXIF orientation applied."""
    try:
        with open_image(path) as file:
            return as_rgb(ImageOps.exif_transpose(file))
    except Exception as error:  # decoders raise exceptions of any type
        found, cause = unreadable_image(path, error)
        return Problem("image", str(path), found, EXPECTED, cause=cause)


def _outside(truth: Boxes, image: int, size: tuple[int, int]) -> int:
    """Number of objects outside an image by more than one pixel (tolerance for rounding)."""
    corners = truth.corners[slice(*np.searchsorted(truth.image, [image, image + 1]))]
    return int(np.sum((corners[:, :2].min(1) < -1) | (corners[:, 2:] > np.add(size, 1)).any(1)))


def marks(matches: Matches, image: int, draw_confidence: float) -> list[Mark]:
    """The boxes to draw in one image, in drawing order.

    Detections below ``draw_confidence`` are excluded; an object detected only by them is drawn as
    missed. They do not affect the verdicts on other detections.
    """
    truth, detections = matches.ground_truth, matches.detections
    objects = np.arange(*np.searchsorted(truth.image, [image, image + 1]))
    rows = np.arange(*np.searchsorted(detections.image, [image, image + 1]))
    rows = rows[detections.confidence[rows] >= draw_confidence]
    rows = rows[np.argsort(detections.confidence[rows], kind="stable")]  # highest on top
    true = rows[matches.verdict[rows] == TRUE_POSITIVE]
    detected = set(matches.nearest[true].tolist())
    false = rows[matches.verdict[rows] == FALSE_POSITIVE]
    drawn = [_detection(FALSE_POSITIVE_STYLE, detections, row) for row in false.tolist()]
    for row in objects.tolist():
        if truth.difficult[row]:
            drawn.append(_mark(DIFFICULT_STYLE, truth, row))
        elif row not in detected:
            drawn.append(_mark(MISSED_STYLE, truth, row))
        else:
            drawn.append(_mark(DETECTED_OBJECT_STYLE, truth, row)._replace(label=""))
    return drawn + [_detection(TRUE_POSITIVE_STYLE, detections, row) for row in true.tolist()]


def _mark(style: Style, boxes: Boxes, row: int) -> Mark:
    left, top, right, bottom = boxes.corners[row].tolist()
    return Mark(style, (left, top, right, bottom), boxes.classes[boxes.label[row]])


def _detection(style: Style, boxes: Boxes, row: int) -> Mark:
    mark = _mark(style, boxes, row)
    return mark._replace(label=f"{mark.label} {boxes.confidence[row]:.2f}")


def draw(
    picture: Image.Image, boxes: Iterable[Mark], name: str, draw_confidence: float
) -> Image.Image:
    """A copy of the picture with the boxes, and a caption with their counts and a legend."""
    boxes = list(boxes)
    longest = max(picture.size)
    scale = min(MAX_SIDE, max(longest, MIN_SIDE)) / longest
    width, height = (max(1, round(side * scale)) for side in picture.size)
    size = max(13, round(max(width, height) / 60))
    font = _font(size)
    caption = _caption(boxes, name, draw_confidence, font)
    sheet = Image.new("RGB", (max(width, caption.width), height + caption.height), "white")
    area = picture.resize((width, height), Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(area)
    line = max(3, round(max(width, height) / 300))
    for box in boxes:
        corners = [round(min(max(c * scale, -line), MAX_SIDE + line)) for c in box.corners]
        outline(pen, corners, box.style, line)
    for box in boxes:
        if box.label:
            _label(pen, box, scale, font, area.size)
    sheet.paste(area, (0, 0))
    sheet.paste(caption, (0, height))
    return sheet


def _label(
    pen: ImageDraw.ImageDraw,
    box: Mark,
    scale: float,
    font: ImageFont.FreeTypeFont,
    area: tuple[int, int],
) -> None:
    """The label above the box, or inside it at the top edge of the picture."""
    text = _shortened(box.label)
    font = _font(round(font.size), text)
    wide, high = round(pen.textlength(text, font)) + 6, round(font.size * 1.3)
    x = min(max(box.corners[0] * scale, 0), max(area[0] - wide, 0))
    y = box.corners[1] * scale
    y = min(max(y - high if y >= high else y, 0), max(area[1] - high, 0))
    pen.rectangle((x, y, x + wide, y + high), box.style.color)
    pen.text((x + 3, y + high / 2), text, box.style.ink, font, anchor="lm")


def _caption(
    boxes: Sequence[Mark], name: str, draw_confidence: float, font: ImageFont.FreeTypeFont
) -> Image.Image:
    """A strip with the name of the image, and a legend with the number of boxes of each kind."""
    counts = Counter(box.style for box in boxes)
    entries = [
        (style, f"{style.label}: {counts[style]:,}")
        for style in (TRUE_POSITIVE_STYLE, MISSED_STYLE, FALSE_POSITIVE_STYLE)
    ]
    if counts[TRUE_POSITIVE_STYLE]:
        entries.insert(1, (DETECTED_OBJECT_STYLE, DETECTED_OBJECT_STYLE.label))
    if counts[DIFFICULT_STYLE]:
        entries.append((DIFFICULT_STYLE, f"{DIFFICULT_STYLE.label}: {counts[DIFFICULT_STYLE]:,}"))
    size = round(font.size)
    swatch, gap = 2 * size, round(0.6 * size)
    widths = [swatch + gap + round(font.getlength(text)) + 2 * gap for _, text in entries]
    title = f"{_shortened(name)}   (confidence ≥ {draw_confidence:g})"
    title_font = _font(size, title)
    width = max(MIN_SIDE, sum(widths), round(title_font.getlength(title)) + 2 * gap)
    strip = Image.new("RGB", (width, 3 * size + 10), "white")
    pen = ImageDraw.Draw(strip)
    middle = round(5 + 2.25 * size)
    pen.text((gap, 5 + 0.75 * size), title, "black", title_font, anchor="lm")
    x = gap
    for (style, text), width_used in zip(entries, widths, strict=True):
        outline(pen, (x, middle - size // 2, x + swatch, middle + size // 2), style, 3)
        pen.text((x + swatch + gap, middle), text, "black", font, anchor="lm")
        x += width_used
    return strip


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _font(size: int, text: str = "") -> ImageFont.FreeTypeFont:
    """The font of the plots, or an installed one with the characters of a text that it lacks."""
    files = fallback_for([text]).files
    return _loaded(files[0] if files else plot_font(), size)


@functools.cache
def _loaded(file: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(file, size)


def _animate(pictures: Sequence[Path], path: Path) -> None:
    """Write the pictures as an animation, each fitted into the same frame."""
    frames = []
    for picture in pictures:
        with open_image(picture) as drawn:
            frames.append(ImageOps.contain(drawn, (FRAME_SIDE, FRAME_SIDE)))
    size = (max(frame.width for frame in frames), max(frame.height for frame in frames))
    # FASTOCTREE is ten times as fast as Pillow's default
    fitted = [
        ImageOps.pad(frame, size, color="white").quantize(method=Image.Quantize.FASTOCTREE)
        for frame in frames
    ]
    fitted[0].save(
        path, save_all=True, append_images=fitted[1:], duration=FRAME_MS, loop=0, disposal=1
    )
