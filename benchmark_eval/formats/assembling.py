"""From what a format's file says to checked boxes: the part that all readers share."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.json_values import show
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats.classes import resolve_classes
from benchmark_eval.formats.images import Lookup, Turn, images_of, turn_corners
from benchmark_eval.formats.options import ClassNames, Options, Outside
from benchmark_eval.formats.table import UNKNOWN, BoxTable, Images, clip, corners_and_size
from benchmark_eval.voc.text import FARTHEST

Layout = Literal["corners", "xywh", "centre"]

OUTSIDE_PX = 1.0
"""A box may leave its image by as much: rounding, or the last pixel's edge."""
_LOOKS_LIKE_SHARES = 1.5
"""No coordinate in px stays below it in more than a few boxes, no share lies beyond it."""
_ENOUGH = 10
_SMALL_IMAGE = 16


@dataclass(slots=True)
class Parsed:
    """What a reader found: images and classes still as its file calls them.

    A reader calls ``image`` for each image and ``add`` for each box. ``layout`` says what the four
    numbers of a box are. ``one_file_each`` marks formats with a file for each image, ``numbers``
    what whole numbers in place of a file name are: ids, or stems whose zeros are lost.
    """

    layout: Layout
    one_file_each: bool = False
    numbers: Literal["ids", "stems"] = "ids"
    first_class: int | None = None
    beside: ClassNames | None = None
    class_ids: Mapping[str, int] | None = None
    image_ids: list[int] | None = None
    record_word: str = "record"
    sizes: dict[int, tuple[float, float]] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)
    image_rows: dict[str | int, int] = field(default_factory=dict)
    class_rows: dict[str | int, int] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    class_places: list[str] = field(default_factory=list)
    _places: array[int] = field(default_factory=lambda: array("q"))
    _numbers: array[float] = field(default_factory=lambda: array("d"))

    def image(self, key: str | int, where: str = "") -> int:
        """The row of an image; ``where`` is how messages call its file."""
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
        """A box on the image of that row; ``record`` is its line or its place in the file."""
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
        """How a message calls a box: ``a.txt, line 3`` or ``record 3``."""
        where = self.where[image]
        return f"{where or self.record_word} {record}"


def assemble(
    parsed: Parsed, options: Options, problems: Problems, turn: Turn | None = None
) -> BoxTable | None:
    """BoxTable on known images with known classes, checked; None where problems were added.

    ``turn`` is how images lie that EXIF turns (``benchmark_eval.formats.images``), a row an image
    of ``options.images``.
    """
    before = len(problems)
    raw = _Raw(parsed, problems)
    counts = np.bincount(raw.label, minlength=len(parsed.class_rows)).tolist()
    classes, class_rows = resolve_classes(
        list(parsed.class_rows),
        counts,
        parsed.class_places,
        options,
        problems,
        beside=parsed.beside,
        first_class=parsed.first_class,
        ids=parsed.class_ids,
    )
    images, image_rows = _resolve_images(parsed, options, problems)
    image: Ints = image_rows[raw.image] if len(raw) else raw.image
    label: Ints = class_rows[raw.label] if len(raw) else raw.label
    sizes = np.full((len(raw), 2), np.nan)
    known = image >= 0
    sizes[known] = (images.sizes if turn is None else turn.sizes)[image[known]]
    raw.check_scores()
    raw.check_numbers()
    if parsed.layout == "centre":
        _check_known(image[known & np.isnan(sizes).any(axis=1)], images, problems)
    if len(problems) > before:
        return None
    corners, size = corners_and_size(raw.values, parsed.layout, options.pixels, sizes)
    if parsed.layout != "centre":
        _check_pixels(corners, sizes, problems)
    keep = raw.inside(corners, size, sizes, options.outside)
    if len(problems) > before:
        return None
    if turn is not None and turn.orientation.any():
        number = turn.orientation[image]
        corners[:] = turn_corners(corners, number, sizes)
        across = np.abs(number) >= 5
        size[across] = size[across][:, ::-1]
    boxes = BoxTable(images, classes, image, label, corners, size, raw.score, raw.ignored)
    return boxes if keep.all() else boxes.rows(keep)


class _Raw:
    """The boxes of a source as columns, numbers as the file has them, and their checks."""

    def __init__(self, parsed: Parsed, problems: Problems) -> None:
        self.parsed = parsed
        self.problems = problems
        columns = parsed.columns()
        self.image, self.label, self.record, self.ignored, self.values, self.score = columns

    def __len__(self) -> int:
        return len(self.label)

    def tell(
        self, bad: Bools, kind: str, wanted: str, *, field: str = "box", cause: str = ""
    ) -> None:
        """A fault for each marked box."""
        for row in np.flatnonzero(bad).tolist():
            numbers = [round(v, 9) for v in self.values[row].tolist()]
            found = show(self.score[row].item() if field == "confidence" else numbers)
            where = self.parsed.record(int(self.image[row]), int(self.record[row]))
            self.problems.add(kind, found, wanted, record=where, field=field, cause=cause)

    def check_scores(self) -> None:
        """Confidences from 0 to 1, for all boxes or for none."""
        score: Floats = self.score
        none = np.isnan(score)
        if none.any() and not none.all():
            wanted = "a confidence for all boxes or for none"
            self.tell(none, "no-confidence", wanted, field="confidence")
        out: Bools = ~none & ~((score >= 0) & (score <= 1))
        high = float(score[out].max()) if out.any() else 0.0
        cause = "percent instead of shares" if 1 < high <= 100 else "logits, or an unbounded score"
        self.tell(out, "confidence", "a confidence from 0 to 1", field="confidence", cause=cause)

    def check_numbers(self) -> None:
        """Box numbers that can be a box of the layout."""
        values, layout = self.values, self.parsed.layout
        # false for NaN too
        finite: Bools = np.logical_and.reduce(np.abs(values) <= FARTHEST, axis=1)
        self.tell(~finite, "bad-box", f"four finite numbers, none beyond {FARTHEST:g}")
        first, second = values[:, :2], values[:, 2:]
        if layout == "corners":
            self.tell(
                finite & (second < first).any(axis=1),
                "swapped-corners",
                "left <= right and top <= bottom",
                cause="corners swapped, or width and height instead of right and bottom",
            )
            return
        self.tell(
            finite & (second < 0).any(axis=1),
            "negative-size",
            "width and height >= 0",
            cause="corners in the wrong order",
        )
        if layout == "centre":
            self.tell(
                finite & (np.abs(values) > _LOOKS_LIKE_SHARES).any(axis=1),
                "pixel-coordinates",
                "centre, width and height as shares of the image's size, from 0 to 1",
                cause="pixels instead of shares",
            )

    def inside(self, corners: Floats, size: Floats, sizes: Floats, outside: Outside) -> Bools:
        """Which boxes stay; those that leave their image are told, clipped in place, or kept."""
        keep = np.ones(len(self), np.bool_)
        # nothing is beyond an unknown size
        over = np.maximum(-corners[:, :2], corners[:, 2:] - sizes).max(axis=1, initial=-np.inf)
        if outside == "error":
            self.tell(
                over > OUTSIDE_PX,
                "outside",
                "a box inside its image",
                cause="sizes or image of something else; if the model just does not clip its "
                "boxes: --outside clip",
            )
        elif outside == "clip":
            out = over > 0
            corners[out], size[out] = clip(corners[out], sizes[out])
            keep[out & (size <= 0).any(axis=1)] = False
            gone, cut = int((~keep).sum()), int((keep & (over > OUTSIDE_PX)).sum())
            self.parsed.passed_over["boxes wholly outside their image"] += gone
            self.parsed.passed_over["parts of boxes outside their image, clipped"] += cut
        return keep


def _check_pixels(corners: Floats, sizes: Floats, problems: Problems) -> None:
    """A fault where all coordinates look like shares of the image's size."""
    if len(corners) < _ENOUGH or not (sizes.max(initial=0) > _SMALL_IMAGE):
        return
    farthest = float(np.abs(corners).max())
    if 0 < farthest <= _LOOKS_LIKE_SHARES:
        problems.add(
            "normalised-coordinates",
            f"{len(corners)} boxes, none beyond {farthest:g} px",
            "coordinates in px",
            cause="shares of the image's size? they have to be multiplied by it first",
        )


def _check_known(rows: Ints, images: Images, problems: Problems) -> None:
    for row in np.unique(rows).tolist():
        problems.add(
            "image-size",
            "no width and height",
            "the size of every image with boxes",
            record=f"image {images.names[row]!r}",
            cause="shares of an unknown size: give --images-dir, where the sizes are read",
        )


def _resolve_images(parsed: Parsed, options: Options, problems: Problems) -> tuple[Images, Ints]:
    """The images, and the row among them of each image of the source (-1: a fault was added)."""
    keys = list(parsed.image_rows)
    if options.images is None:
        ids = parsed.image_ids or [k if isinstance(k, int) else UNKNOWN for k in keys]
        names = [str(key) for key in keys]
        sizes = [parsed.sizes.get(row, (0.0, 0.0)) for row in range(len(keys))]
        if parsed.one_file_each:
            _tell_repeats(names, problems)
        return images_of(names, ids, sizes), np.arange(len(keys))
    lookup = Lookup(options.images)
    rows = np.full(len(keys), -1, np.int64)
    taken: dict[int, str | int] = {}
    for at, key in enumerate(keys):
        if isinstance(key, str):
            found = lookup.find(key)
        else:
            found = lookup.find_id(key) if parsed.numbers == "ids" else lookup.find_number(key)
        where = f"image {key!r}"
        if len(found) > 1:
            may_be = ", ".join(options.images.names[row] for row in found[:3])
            what = f"{len(found)} images it may be: {may_be}"
            problems.add("two-images", what, "one", record=where)
        elif not found:
            cause = _unknown_image(key, lookup, parsed)
            problems.add("unknown-image", "no such image", "an image of the split", record=where,
                       cause=cause)  # fmt: skip
        elif found[0] in taken:
            other = f"{taken[found[0]]!r} and {key!r} for {options.images.names[found[0]]!r}"
            problems.add("two-images", other, "one entry an image", record=where)
        else:
            rows[at] = found[0]
            taken[found[0]] = key
    _compare_sizes(parsed, options.images, rows, problems)
    if parsed.one_file_each and not options.missing_is_empty:
        for row in sorted(set(range(len(options.images))) - taken.keys()):
            problems.add(
                "missing-file",
                "no file",
                "a file for each image of the split",
                record=f"image {options.images.names[row]!r}",
                cause="an unfinished run; or, where no file means no detection as Ultralytics "
                "does: --missing-is-empty",
            )
    return options.images, rows


def _tell_repeats(names: list[str], problems: Problems) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            problems.add("two-images", f"{count} files for {name!r}", "one file an image")


def _unknown_image(key: str | int, lookup: Lookup, parsed: Parsed) -> str:
    """The likely reason why an image is not there."""
    if isinstance(key, int):
        if parsed.numbers == "stems" and lookup.find_id(key):
            return "it is an image id; Ultralytics writes the file's name: read it as coco-results"
        if parsed.numbers == "ids" and lookup.find_number(key):
            return "it is a file's name without zeros, as Ultralytics writes it: ultralytics-json"
    elif key.isdecimal() and lookup.find_id(int(key)):
        return "it is an image id, not a file name"
    return "files of another split or another benchmark"


def _compare_sizes(parsed: Parsed, images: Images, rows: Ints, problems: Problems) -> None:
    """A fault where the source gives an image another size than the benchmark."""
    for at, (width, height) in parsed.sizes.items():
        row = int(rows[at])
        if row < 0 or np.isnan(images.sizes[row]).any():
            continue
        wide, high = images.sizes[row].tolist()
        if (width, height) != (wide, high):
            across = (width, height) == (high, wide)
            problems.add(
                "image-size",
                f"{width:g} x {height:g} px",
                f"{wide:g} x {high:g} px as in the benchmark",
                record=f"image {images.names[row]!r}",
                cause="turned by EXIF: give --images-dir and --frame" if across else
                "boxes of a resized image",
            )  # fmt: skip
