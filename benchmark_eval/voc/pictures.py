"""Images with their hits, misses and false alarms drawn in, and an animation of them."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted
from benchmark_eval.voc.rule import FALSE_POSITIVE, TRUE_POSITIVE
from benchmark_eval.voc.scoring import Matches
from benchmark_eval.voc.text import Boxes, Progress

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp"})
LONGEST_SIDE = 1600
"""Larger images are drawn this large (px)."""
LEAST_SIDE = 640
"""Smaller images are enlarged until their longer side has this (px), so labels can be read."""
FRAME_SIDE = 640
"""The animation fits into a square of this side (px)."""
MOST_FRAMES = 100
"""An animation shows this many images, evenly picked, at the most: it is held in memory."""
FRAME_MS = 1000


class Style(NamedTuple):
    """How one kind of box is drawn; the dash is a second sign beside the colour."""

    label: str
    color: str
    dash: int  # length of a dash in line widths, 0 for a solid line
    ink: str  # colour of text on ``color``


# Okabe and Ito's palette: told apart under every common colour blindness
HIT = Style("hit", "#56B4E9", 0, "black")
MISS = Style("miss", "#F0E442", 4, "black")
FALSE_ALARM = Style("false alarm", "#D55E00", 0, "white")
DIFFICULT = Style("difficult, not scored", "#FFFFFF", 2, "black")
HIT_OBJECT = HIT._replace(label="its object", dash=4)

LONGEST_LABEL = 50
Point = tuple[int, int]


class Mark(NamedTuple):
    """One box to draw: corners in px of the image, what it is, and its label."""

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

    With ``animate`` also ``folder``/animation.gif. Returns notes for the reader. Raises
    InputError with every image that cannot be read, UsageError if there is no such folder.
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
        notes.append(f"not in the image folder: {counted(n_without, 'image')} of the ground truth")
    if n_outside:
        notes.append(
            "objects that reach out of their image (is it the right one, in full size?): "
            f"{n_outside:,}"
        )
    if animate:
        picked = frames
        if len(frames) > MOST_FRAMES:
            places = np.linspace(0, len(frames) - 1, MOST_FRAMES).round().astype(int)
            picked = [frames[place] for place in places.tolist()]
            notes.append(f"the animation shows {MOST_FRAMES} of {len(frames):,} images")
        _animate(picked, folder / "animation.gif")
    return notes


def _find_images(folder: Path, names: Sequence[str]) -> tuple[dict[int, Path], list[Problem]]:
    """The image file of each name, by its place in ``names``; names without one are left out."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        raise UsageError(f"{folder}: found {reason}; expected a folder of images") from fault
    by_name: dict[str, list[Path]] = {}
    for path in files:
        if path.is_file():
            by_name.setdefault(path.stem, []).append(path)
    found = {place: by_name[name] for place, name in enumerate(names) if name in by_name}
    problems = [
        Problem("two-images", str(paths[0]), f"{paths[1].name} beside it", "one image of a name")
        for paths in found.values()
        if len(paths) > 1
    ]
    if not found:
        wanted = f"images named like the ground-truth files, {names[0]}.jpg for example"
        problems.append(Problem("no-image", str(folder), "none that has ground truth", wanted))
    return {place: paths[0] for place, paths in found.items()}, problems


def _open(path: Path) -> Image.Image | Problem:
    """The picture as it is meant to be seen, in RGB and in the size it is drawn in."""
    try:
        with warnings.catch_warnings(), Image.open(path) as file:
            warnings.simplefilter("ignore")  # odd metadata, a large scan: neither is a fault
            return _rgb(ImageOps.exif_transpose(file))
    except Exception as fault:  # decoders raise whatever their library raises
        found = f"a file that cannot be read as an image ({str(fault) or type(fault).__name__})"
        return Problem("image", str(path), found, "a whole image")


def _rgb(picture: Image.Image) -> Image.Image:
    """8-bit RGB; deeper grey is stretched from its darkest to its brightest pixel."""
    if picture.mode in {"I", "F"} or picture.mode.startswith("I;"):
        grey = np.nan_to_num(np.asarray(picture, dtype=np.float64), posinf=0, neginf=0)
        low, high = float(grey.min()), float(grey.max())
        stretched = (grey - low) * (255 / (high - low)) if high > low else grey * 0
        picture = Image.fromarray(stretched.round().astype(np.uint8))
    return picture.convert("RGB")


def _outside(truth: Boxes, image: int, size: tuple[int, int]) -> int:
    """How many objects reach out of an image by more than the pixel that rounding may cost."""
    corners = truth.corners[slice(*np.searchsorted(truth.image, [image, image + 1]))]
    return int(np.sum((corners[:, :2].min(1) < -1) | (corners[:, 2:] > np.add(size, 1)).any(1)))


def marks(matches: Matches, image: int, draw_confidence: float) -> list[Mark]:
    """What to draw in one image, in the order of drawing.

    Detections below ``draw_confidence`` are left out as if they had not been made: by the rule
    they change no verdict above it, so an object that only they hit is a miss.
    """
    truth, found = matches.ground_truth, matches.detections
    objects = np.arange(*np.searchsorted(truth.image, [image, image + 1]))
    rows = np.arange(*np.searchsorted(found.image, [image, image + 1]))
    rows = rows[found.confidence[rows] >= draw_confidence]
    rows = rows[np.argsort(found.confidence[rows], kind="stable")]  # the surest on top
    right = rows[matches.verdict[rows] == TRUE_POSITIVE]
    hit = set(matches.nearest[right].tolist())
    wrong = rows[matches.verdict[rows] == FALSE_POSITIVE]
    drawn = [_detection(FALSE_ALARM, found, row) for row in wrong.tolist()]
    for row in objects.tolist():
        if truth.difficult[row]:
            drawn.append(_mark(DIFFICULT, truth, row))
        elif row not in hit:
            drawn.append(_mark(MISS, truth, row))
        else:
            drawn.append(_mark(HIT_OBJECT, truth, row)._replace(label=""))
    return drawn + [_detection(HIT, found, row) for row in right.tolist()]


def _mark(style: Style, boxes: Boxes, row: int) -> Mark:
    left, top, right, bottom = boxes.corners[row].tolist()
    return Mark(style, (left, top, right, bottom), boxes.classes[boxes.label[row]])


def _detection(style: Style, boxes: Boxes, row: int) -> Mark:
    mark = _mark(style, boxes, row)
    return mark._replace(label=f"{mark.label} {boxes.confidence[row]:.2f}")


def draw(
    picture: Image.Image, boxes: Iterable[Mark], name: str, draw_confidence: float
) -> Image.Image:
    """A copy of the picture with the boxes, and a caption that counts and explains them."""
    boxes = list(boxes)
    longest = max(picture.size)
    scale = min(LONGEST_SIDE, max(longest, LEAST_SIDE)) / longest
    width, height = (max(1, round(side * scale)) for side in picture.size)
    size = max(13, round(max(width, height) / 60))
    font = _font(size)
    caption = _caption(boxes, name, draw_confidence, font)
    sheet = Image.new("RGB", (max(width, caption.width), height + caption.height), "white")
    area = picture.resize((width, height), Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(area)
    line = max(3, round(max(width, height) / 300))
    for box in boxes:
        corners = [round(min(max(c * scale, -line), LONGEST_SIDE + line)) for c in box.corners]
        _outline(pen, corners, box.style, line)
    for box in boxes:
        if box.label:
            _label(pen, box, scale, font, area.size)
    sheet.paste(area, (0, 0))
    sheet.paste(caption, (0, height))
    return sheet


def _outline(pen: ImageDraw.ImageDraw, corners: Sequence[int], style: Style, line: int) -> None:
    """A rectangle over a dark edge, so that it shows on any background."""
    left, top, right, bottom = corners
    for a, b in (
        ((left, top), (right, top)),
        ((left, bottom), (right, bottom)),
        ((left, top), (left, bottom)),
        ((right, top), (right, bottom)),
    ):
        pen.line((a, b), "black", line + 2)
        for start, stop in _dashes(a, b, style.dash * line):
            pen.line((start, stop), style.color, line)


def _dashes(a: Point, b: Point, dash: int) -> Iterator[tuple[Point, Point]]:
    """The drawn pieces of a horizontal or vertical line, all of it if ``dash`` is 0."""
    length = max(b[0] - a[0], b[1] - a[1])
    step = (int(b[0] > a[0]), int(b[1] > a[1]))
    if not dash:
        yield a, b
        return
    for begin in range(0, length + 1, 2 * dash):
        end = min(begin + dash, length)
        yield (
            (a[0] + step[0] * begin, a[1] + step[1] * begin),
            (a[0] + step[0] * end, a[1] + step[1] * end),
        )


def _label(
    pen: ImageDraw.ImageDraw,
    box: Mark,
    scale: float,
    font: ImageFont.FreeTypeFont,
    area: tuple[int, int],
) -> None:
    """The label above the box, or inside where the picture ends."""
    text = _shortened(box.label)
    wide, high = round(pen.textlength(text, font)) + 6, round(font.size * 1.3)
    x = min(max(box.corners[0] * scale, 0), max(area[0] - wide, 0))
    y = box.corners[1] * scale
    y = min(max(y - high if y >= high else y, 0), max(area[1] - high, 0))
    pen.rectangle((x, y, x + wide, y + high), box.style.color)
    pen.text((x + 3, y + high / 2), text, box.style.ink, font, anchor="lm")


def _caption(
    boxes: Sequence[Mark], name: str, draw_confidence: float, font: ImageFont.FreeTypeFont
) -> Image.Image:
    """A strip with the name of the image, and how many boxes of each kind are drawn how."""
    counts = Counter(box.style for box in boxes)
    entries = [(style, f"{style.label}: {counts[style]:,}") for style in (HIT, MISS, FALSE_ALARM)]
    if counts[HIT]:
        entries.insert(1, (HIT_OBJECT, HIT_OBJECT.label))
    if counts[DIFFICULT]:
        entries.append((DIFFICULT, f"{DIFFICULT.label}: {counts[DIFFICULT]:,}"))
    size = round(font.size)
    swatch, gap = 2 * size, round(0.6 * size)
    widths = [swatch + gap + round(font.getlength(text)) + 2 * gap for _, text in entries]
    title = f"{_shortened(name)}   (confidence ≥ {draw_confidence:g})"
    width = max(LEAST_SIDE, sum(widths), round(font.getlength(title)) + 2 * gap)
    strip = Image.new("RGB", (width, 3 * size + 10), "white")
    pen = ImageDraw.Draw(strip)
    middle = round(5 + 2.25 * size)
    pen.text((gap, 5 + 0.75 * size), title, "black", font, anchor="lm")
    x = gap
    for (style, text), taken in zip(entries, widths, strict=True):
        _outline(pen, (x, middle - size // 2, x + swatch, middle + size // 2), style, 3)
        pen.text((x + swatch + gap, middle), text, "black", font, anchor="lm")
        x += taken
    return strip


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """The face of the plots: it comes with matplotlib, whatever the machine has installed."""
    import matplotlib as mpl

    return ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)


def _animate(pictures: Sequence[Path], path: Path) -> None:
    """The drawn pictures one after the other, each fitted into the same frame."""
    frames = []
    for picture in pictures:
        with Image.open(picture) as drawn:
            frames.append(ImageOps.contain(drawn, (FRAME_SIDE, FRAME_SIDE)))
    size = (max(frame.width for frame in frames), max(frame.height for frame in frames))
    # the quickest way to 256 colours: Pillow's own choice takes ten times as long
    fitted = [
        ImageOps.pad(frame, size, color="white").quantize(method=Image.Quantize.FASTOCTREE)
        for frame in frames
    ]
    fitted[0].save(
        path, save_all=True, append_images=fitted[1:], duration=FRAME_MS, loop=0, disposal=1
    )
