"""Validation shared by all readers: from parsed records to a checked ``BoxTable``."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.json_values import show
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.text import counted
from benchmark_eval.formats.classes import Convention, resolve_classes
from benchmark_eval.formats.images import Lookup, Reorientation, images_of, reorient_corners
from benchmark_eval.formats.options import ImageNumbers, Options, Outside
from benchmark_eval.formats.table import UNKNOWN, BoxTable, Images, clip, corners_and_size
from benchmark_eval.voc.text import MAX_COORDINATE

Layout = Literal["corners", "xywh", "centre"]

OUTSIDE_PX = 1.0
"""Tolerance for boxes that extend beyond their image: rounding, or the last pixel's edge."""
_MAX_NORMALISED = 1.5
"""Upper bound on normalised coordinates; pixel coordinates exceed it in all but a few boxes."""
_MIN_BOXES = 10
_SMALL_IMAGE = 16
_NEAR = 0.1
"""Largest part of the shorter side by which boxes of a detector exceed their image ..."""
_MOST = 0.9
"""... and the part of boxes outside that a likely cause must explain."""
_CANONICAL = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(slots=True)
class Parsed:
    """Records of a source; images and classes are named as in the file.

    A reader calls ``image`` for each image and ``add`` for each box. ``layout`` is the meaning of
    the four numbers of a box. ``one_file_each`` marks formats with one file per image.
    ``image_numbers`` is the meaning of an integer in place of a file name: the image's id, or the
    number in its file name; None if the format does not define it. With ``text_numbers``, text such
    as ``7`` may be such a number, too. ``convention`` is what the
    format defines about class numbers. ``skipped`` counts content that the reader does not convert;
    ``notes`` are the assumptions made.
    """

    layout: Layout
    one_file_each: bool = False
    image_numbers: ImageNumbers | None = "ids"
    text_numbers: bool = False
    convention: Convention = field(default_factory=Convention)
    image_ids: list[int] | None = None
    record_word: str = "record"
    sizes: dict[int, tuple[float, float]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    image_rows: dict[str | int, int] = field(default_factory=dict)
    class_rows: dict[str | int, int] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    class_places: list[str] = field(default_factory=list)
    _places: array[int] = field(default_factory=lambda: array("q"))
    _numbers: array[float] = field(default_factory=lambda: array("d"))

    def image(self, key: str | int, where: str = "") -> int:
        """The row of an image; ``where`` names its file in messages."""
        row = self.image_rows.get(key)
        if row is None:
            row = self.image_rows[key] = len(self.image_rows)
            self.where.append(where)
        return row

    def add(
        self,
        image: int,
        label: str | int,
        box: tuple[float, float, float, float],
        score: float = np.nan,
        *,
        record: int,
        ignored: bool = False,
    ) -> None:
        """Add a box on the image of that row; ``record`` is its line or its index in the file."""
        row = self.class_rows.get(label)
        if row is None:
            row = self.class_rows[label] = len(self.class_rows)
            self.class_places.append(self.record(image, record))
        self._places.extend((image, row, record, ignored))
        self._numbers.extend((*box, score))

    def columns(self) -> tuple[Ints, Ints, Ints, Bools, Floats, Floats]:
        """Image, label, record, ignored, box numbers and score of every box."""
        places = np.array(self._places, np.int64).reshape(-1, 4)
        numbers = np.array(self._numbers, np.float64).reshape(-1, 5)
        image, label, record = places[:, 0].copy(), places[:, 1].copy(), places[:, 2].copy()
        return image, label, record, places[:, 3] == 1, numbers[:, :4].copy(), numbers[:, 4].copy()

    def record(self, image: int, record: int) -> str:
        """Name of a box in messages: ``a.txt line 3`` or ``record 3``."""
        where = self.where[image]
        return f"{where or self.record_word} {record}"


def assemble(
    parsed: Parsed, options: Options, problems: Problems, reorientation: Reorientation | None = None
) -> BoxTable | None:
    """Checked boxes on known images with known classes; None if problems were added.

    ``reorientation`` has one row per image of ``options.images``.
    """
    before = len(problems)
    raw = _Raw(parsed, problems)
    counts = np.bincount(raw.label, minlength=len(parsed.class_rows)).tolist()
    classes, class_rows, note = resolve_classes(
        list(parsed.class_rows), counts, parsed.class_places, options, problems, parsed.convention
    )
    parsed.notes += [note] if note else []
    images, image_rows = _resolve_images(parsed, options, problems)
    image: Ints = image_rows[raw.image] if len(raw) else raw.image
    label: Ints = class_rows[raw.label] if len(raw) else raw.label
    sizes = np.full((len(raw), 2), np.nan)
    known = image >= 0
    sizes[known] = (images.sizes if reorientation is None else reorientation.sizes)[image[known]]
    raw.check_scores()
    raw.check_numbers()
    if parsed.layout == "centre":
        _check_sizes_known(image[known & np.isnan(sizes).any(axis=1)], images, problems)
    if len(problems) > before:
        return None
    corners, size = corners_and_size(raw.values, parsed.layout, options.pixels, sizes)
    if parsed.layout != "centre":
        _check_pixels(corners, sizes, problems)
    keep = raw.inside(corners, size, sizes, options.outside)
    if len(problems) > before:
        return None
    if reorientation is not None and reorientation.orientation.any():
        number = reorientation.orientation[image]
        corners[:] = reorient_corners(corners, number, sizes)
        swapped = np.abs(number) >= 5
        size[swapped] = size[swapped][:, ::-1]
    boxes = BoxTable(images, classes, image, label, corners, size, raw.score, raw.ignored)
    return boxes if keep.all() else boxes.rows(keep)


class _Raw:
    """The boxes of a source as columns, with the numbers of the file, and their checks."""

    def __init__(self, parsed: Parsed, problems: Problems) -> None:
        self.parsed = parsed
        self.problems = problems
        columns = parsed.columns()
        self.image, self.label, self.record, self.ignored, self.values, self.score = columns

    def __len__(self) -> int:
        return len(self.label)

    def report(
        self, bad: Bools, kind: str, expected: str, *, field: str = "box", cause: str = ""
    ) -> None:
        """Add one problem for each box that is True in ``bad``."""
        for row in np.flatnonzero(bad).tolist():
            numbers = [round(v, 9) for v in self.values[row].tolist()]
            found = show(self.score[row].item() if field == "confidence" else numbers)
            where = self.parsed.record(int(self.image[row]), int(self.record[row]))
            self.problems.add(kind, found, expected, record=where, field=field, cause=cause)

    def check_scores(self) -> None:
        """Report confidences outside [0, 1], and boxes without one if others have one."""
        score: Floats = self.score
        none = np.isnan(score)
        if none.any() and not none.all():
            expected = "a confidence for all boxes or for none"
            self.report(none, "no-confidence", expected, field="confidence")
        out: Bools = ~none & ~((score >= 0) & (score <= 1))
        high = float(score[out].max()) if out.any() else 0.0
        cause = "percentages" if 1 < high <= 100 else "logits or another unbounded score"
        expected = "a number in [0, 1]"
        self.report(out, "confidence", expected, field="confidence", cause=cause)

    def check_numbers(self) -> None:
        """Report numbers that do not form a box of the layout."""
        values, layout = self.values, self.parsed.layout
        # false for NaN too
        finite: Bools = np.logical_and.reduce(np.abs(values) <= MAX_COORDINATE, axis=1)
        expected = f"four finite numbers in [-{MAX_COORDINATE:g}, {MAX_COORDINATE:g}]"
        self.report(~finite, "bad-box", expected)
        first, second = values[:, :2], values[:, 2:]
        if layout == "corners":
            self.report(
                finite & (second < first).any(axis=1),
                "swapped-corners",
                "left <= right and top <= bottom",
                cause="swapped corners, or width and height instead of right and bottom",
            )
            return
        self.report(
            finite & (second < 0).any(axis=1),
            "negative-size",
            "width and height >= 0",
            cause="corners in the wrong order",
        )
        if layout == "centre":
            self.report(
                finite & (np.abs(values) > _MAX_NORMALISED).any(axis=1),
                "pixel-coordinates",
                "normalised centre, width and height (0-1)",
                cause="pixels instead of normalised coordinates",
            )

    def inside(self, corners: Floats, size: Floats, sizes: Floats, outside: Outside) -> Bools:
        """Which boxes to keep; boxes beyond their image are reported, clipped in place, or kept."""
        keep = np.ones(len(self), np.bool_)
        # NaN where the image size is unknown, so never above the tolerance
        over = np.maximum(-corners[:, :2], corners[:, 2:] - sizes).max(axis=1, initial=-np.inf)
        if outside == "error":
            self.report(
                over > OUTSIDE_PX,
                "outside",
                "a box inside its image",
                cause=_outside_cause(corners, sizes, over),
            )
        elif outside == "clip":
            out = over > 0
            corners[out], size[out] = clip(corners[out], sizes[out])
            keep[out & (size <= 0).any(axis=1)] = False
            dropped, clipped = int((~keep).sum()), int((keep & (over > OUTSIDE_PX)).sum())
            self.parsed.skipped["boxes entirely outside their image"] += dropped
            self.parsed.skipped["parts of boxes outside their image (clipped)"] += clipped
        return keep


def _outside_cause(corners: Floats, sizes: Floats, over: Floats) -> str:
    """The likely cause of boxes that extend ``over`` px beyond their image.

    Clipping is the cure only for boxes that are mostly inside; it would hide any other mistake.
    """
    out = over > OUTSIDE_PX
    corners, sizes, over = corners[out], sizes[out], over[out]
    if not len(over):
        return ""
    near = over <= _NEAR * sizes.min(axis=1)
    if near.mean() >= _MOST:
        return "a model that does not clip its boxes; --outside clip clips them"
    past_turned = np.maximum(-corners[:, :2], corners[:, 2:] - sizes[:, ::-1]).max(axis=1)
    turned: Bools = np.logical_and(past_turned <= OUTSIDE_PX, sizes[:, 0] != sizes[:, 1])
    if (turned | near).mean() >= _MOST:
        return (
            "they fit with width and height swapped: the boxes of an image in another EXIF "
            "orientation; use --images-dir and --frame"
        )
    return "boxes of another or a resized image, or corners in place of width and height"


def _check_pixels(corners: Floats, sizes: Floats, problems: Problems) -> None:
    """Report boxes whose coordinates all look normalised."""
    if len(corners) < _MIN_BOXES or not (sizes.max(initial=0) > _SMALL_IMAGE):
        return
    farthest = float(np.abs(corners).max())
    if 0 < farthest <= _MAX_NORMALISED:
        problems.add(
            "normalised-coordinates",
            f"{len(corners):,} boxes with coordinates up to {farthest:g}",
            "pixel coordinates",
            cause="probably normalised coordinates; multiply them by the image size",
        )


def _check_sizes_known(rows: Ints, images: Images, problems: Problems) -> None:
    for row in np.unique(rows).tolist():
        problems.add(
            "image-size",
            "no width and height",
            "width and height of every image with boxes",
            record=f"image {images.names[row]!r}",
            cause="normalised coordinates require image sizes; use --images-dir to read them",
        )


def _resolve_images(parsed: Parsed, options: Options, problems: Problems) -> tuple[Images, Ints]:
    """The images, and the row of each image of the source (-1: a problem was added)."""
    keys = list(parsed.image_rows)
    if options.images is None:
        ids = parsed.image_ids or [k if isinstance(k, int) else UNKNOWN for k in keys]
        names = [str(key) for key in keys]
        sizes = [parsed.sizes.get(row, (0.0, 0.0)) for row in range(len(keys))]
        _report_duplicates(names, "files" if parsed.one_file_each else "images", problems)
        return images_of(names, ids, sizes), np.arange(len(keys))
    rows = np.full(len(keys), -1, np.int64)
    taken: dict[int, str | int] = {}
    before = len(problems)
    finder = _ImageFinder(keys, parsed, options, problems)
    if len(problems) > before:
        return options.images, rows
    for at, key in enumerate(keys):
        found = finder.find(key)
        where = f"image {key!r}"
        if len(found) > 1:
            candidates = ", ".join(options.images.names[row] for row in found[:3])
            what = f"{len(found)} matching images: {candidates}"
            problems.add("two-images", what, "exactly one matching image", record=where)
        elif not found:
            cause = _unknown_image(key, finder)
            problems.add("unknown-image", "no matching image", "an image of the split",
                         record=where, cause=cause)  # fmt: skip
        elif found[0] in taken:
            both = f"{taken[found[0]]!r} and {key!r} for {options.images.names[found[0]]!r}"
            problems.add("two-images", both, "one entry per image", record=where)
        else:
            rows[at] = found[0]
            taken[found[0]] = key
    if finder.lookup.n_renamed:
        n = counted(finder.lookup.n_renamed, "image name")
        parsed.notes.append(f"{n} of a Roboflow export, matched by the original names")
    _compare_sizes(parsed, options.images, rows, problems)
    if parsed.one_file_each and not options.missing_is_empty:
        for row in sorted(set(range(len(options.images))) - taken.keys()):
            problems.add(
                "missing-file",
                "no file",
                "one file per image of the split",
                record=f"image {options.images.names[row]!r}",
                cause="an unfinished run; if no file means no detections (Ultralytics), use "
                "--missing-is-empty",
            )
    return options.images, rows


_NUMBERS_ARE = {
    "ids": "image numbers are ids of the annotation file",
    "names": "image numbers are those of file names",
}


class _ImageFinder:
    """Finds the image of each key of a source: a file name, an id, or the number in a file name."""

    def __init__(
        self, keys: Sequence[str | int], parsed: Parsed, options: Options, problems: Problems
    ) -> None:
        assert options.images is not None
        self.lookup = Lookup(options.images)
        self.numbers: dict[str | int, int] = {}
        for key in keys:
            if isinstance(key, int):
                self.numbers[key] = key
            elif parsed.text_numbers and _CANONICAL.fullmatch(key):
                self.numbers[key] = int(key)
        self.meaning: ImageNumbers | None = options.image_numbers
        if self.numbers and self.meaning is None:
            self.meaning = self._inferred(parsed, options, problems)
        if self.numbers and self.meaning is not None:
            parsed.notes.append(_NUMBERS_ARE[self.meaning])

    def find(self, key: str | int) -> list[int]:
        """Rows of the images of a key."""
        if key not in self.numbers:
            return self.lookup.find(str(key))
        return self._by_id(key) if self.meaning == "ids" else self._by_name(key)

    def _by_id(self, key: str | int) -> list[int]:
        return self.lookup.find_id(self.numbers[key])

    def _by_name(self, key: str | int) -> list[int]:
        found = self.lookup.find(key) if isinstance(key, str) else []
        return found or self.lookup.find_number(self.numbers[key])

    def _inferred(
        self, parsed: Parsed, options: Options, problems: Problems
    ) -> ImageNumbers | None:
        """The meaning of image numbers; None and a problem if both fit different images."""
        images = self.lookup.images
        rows = {key: (self._by_id(key), self._by_name(key)) for key in self.numbers}
        differs = next((key for key, (by_id, by_name) in rows.items() if by_id != by_name), None)
        fit_ids = all(by_id for by_id, _ in rows.values())
        fit_names = all(by_name for _, by_name in rows.values())
        defined = parsed.image_numbers
        if differs is None or fit_ids != fit_names or not fit_ids:
            if defined is None and fit_ids != fit_names:
                return "ids" if fit_ids else "names"
            return defined or "names"
        by_id, by_name = (images.names[found[0]] for found in rows[differs])
        if defined is not None and not options.guessed:
            other = by_name if defined == "ids" else by_id
            parsed.notes.append(
                f"image numbers also fit the other reading ({differs} is {other!r}); "
                "--image-numbers decides"
            )
            return defined
        problems.add(
            "two-readings",
            f"{counted(len(rows), 'image number')}, which may be ids ({differs} is {by_id!r}) or "
            f"numbers in file names ({differs} is {by_name!r})",
            "one reading: --image-numbers ids or --image-numbers names",
            field="image_id",
        )
        return None


def _report_duplicates(names: list[str], what: str, problems: Problems) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            problems.add("two-images", f"{count} {what} named {name!r}", "unique names of images")


def _unknown_image(key: str | int, finder: _ImageFinder) -> str:
    """Likely cause of an unknown image."""
    lookup = finder.lookup
    if key in finder.numbers:
        number = finder.numbers[key]
        if finder.meaning == "names" and lookup.find_id(number):
            return (
                "an image id; Ultralytics writes file names, so use --from coco-results or "
                "--image-numbers ids"
            )
        if finder.meaning == "ids" and lookup.find_number(number):
            return (
                "a file name without leading zeros, as written by Ultralytics; use --from "
                "ultralytics-json or --image-numbers names"
            )
    elif str(key).isdecimal() and lookup.find_id(int(key)):
        return "an image id, not a file name"
    return "files of another split or another benchmark"


def _compare_sizes(parsed: Parsed, images: Images, rows: Ints, problems: Problems) -> None:
    """Report images whose size in the source differs from the benchmark's."""
    for at, (width, height) in parsed.sizes.items():
        row = int(rows[at])
        if row < 0 or np.isnan(images.sizes[row]).any():
            continue
        wide, high = images.sizes[row].tolist()
        if (width, height) != (wide, high):
            swapped = (width, height) == (high, wide)
            problems.add(
                "image-size",
                f"{width:g} x {height:g} px",
                f"{wide:g} x {high:g} px, the size in the benchmark",
                record=f"image {images.names[row]!r}",
                cause="EXIF orientation; use --images-dir and --frame" if swapped else
                "boxes of a resized image",
            )  # fmt: skip
