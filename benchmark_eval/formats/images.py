"""Which images there are: file names to ids, sizes, and how EXIF turns them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.formats.options import Frame
from benchmark_eval.formats.table import UNKNOWN, Images, snap_px, stem_of
from benchmark_eval.protocol import ANNOTATIONS

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".gif")
_EXIF_ORIENTATION = 0x0112


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: float | None = None
    height: float | None = None


class _Coco(msgspec.Struct):
    images: list[_Image]


def read_images(path: str | Path) -> Images:
    """The images of a COCO file. InputError where it cannot be read or an image has no name."""
    path = Path(path)
    try:
        coco = msgspec.json.decode(read_input(path).removeprefix(b"\xef\xbb\xbf"), type=_Coco)
    except OSError as error:
        raise InputError([unreadable(path, error, "a COCO file")]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        wanted = "COCO images with id and file_name"
        raise InputError([Problem("not-coco", str(path), str(error), wanted)]) from None
    problems = [
        Problem("two-images", str(path), f"two images called {name!r}", "each file name once")
        for name in _repeated(image.file_name for image in coco.images)
    ]
    if problems:
        raise InputError(problems)
    return images_of(
        [i.file_name for i in coco.images],
        [i.id for i in coco.images],
        [(i.width or 0.0, i.height or 0.0) for i in coco.images],
    )


def images_of(
    names: Sequence[str],
    ids: Sequence[int] | None = None,
    sizes: Sequence[tuple[float, float]] | None = None,
) -> Images:
    """Images from their file names; ids and sizes are unknown where they are not given."""
    n = len(names)
    table = np.full((n, 2), np.nan)
    for row, (width, height) in enumerate(sizes or ()):
        if width > 0 and height > 0:
            table[row] = width, height
    known = np.full(n, UNKNOWN, np.int64) if ids is None else np.array(ids, np.int64)
    return Images(tuple(names), known.reshape(n), table)


def split_images(benchmark_dir: str | Path, split: str) -> Images:
    """The images of a split of the benchmark."""
    return read_images(Path(benchmark_dir) / ANNOTATIONS / f"{split}.json")


def build_image_lookup(benchmark_dir: str | Path, split: str) -> dict[int, Path]:
    """Image id -> path of the image file, for every image of a split, in the file's order."""
    folder = Path(benchmark_dir) / "detection" / "images" / split
    images = split_images(benchmark_dir, split)
    return {
        number: folder / name
        for number, name in zip(images.ids.tolist(), images.names, strict=True)
    }


def folder_images(folder: str | Path) -> Images:
    """The image files of a folder and those below it, by name; ids and sizes are unknown.

    InputError where there is no such folder or no image in it.
    """
    folder = Path(folder)
    names = sorted(
        (Path(where) / name).relative_to(folder).as_posix()
        for where, _, files in os.walk(folder)
        for name in files
        if Path(name).suffix.lower() in SUFFIXES and not name.startswith(".")
    )
    if not names:
        found = "no image file" if folder.is_dir() else "no such folder"
        raise InputError([Problem("no-images", str(folder), found, "a folder of images")])
    return images_of(names)


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return list(twice)


class Lookup:
    """Finds images by what a format calls them: full name, last part of the path, or stem."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self._full = {name: row for row, name in enumerate(images.names)}
        self._base: dict[str, list[int]] = {}
        self._stem: dict[str, list[int]] = {}
        self._number: dict[int, list[int]] = {}
        for row, name in enumerate(images.names):
            stem = stem_of(name)
            self._base.setdefault(PurePosixPath(name).name, []).append(row)
            self._stem.setdefault(stem, []).append(row)
            if stem.isdecimal():
                self._number.setdefault(int(stem), []).append(row)
        self._id = {n: row for row, n in enumerate(images.ids.tolist()) if n != UNKNOWN}

    def find(self, key: str) -> list[int]:
        """Rows of the images that a name may mean: one, none or several."""
        if key in self._full:
            return [self._full[key]]
        base = PurePosixPath(key.replace("\\", "/")).name
        # "a.b" may be the stem of a.b.jpg, or a name with the suffix ".b" that is not there
        return self._base.get(base) or self._stem.get(base) or []

    def find_id(self, number: int) -> list[int]:
        """Row of the image with this id."""
        return [self._id[number]] if number in self._id else []

    def find_number(self, number: int) -> list[int]:
        """Rows of the images whose stem is this number, whatever zeros lead it."""
        return self._number.get(number, [])


@dataclass(frozen=True, slots=True)
class Turn:
    """How boxes of a source come to lie as the images of the benchmark do.

    ``sizes`` is width and height of each image as the source saw it. ``orientation`` is the EXIF
    number of a turn from stored to upright to apply, its negative for the way back, 0 for none.
    """

    sizes: Floats
    orientation: Ints


@dataclass(frozen=True, slots=True)
class Looked:
    """What image files say: width and height in px as stored, EXIF orientation (1: none)."""

    stored: Floats
    orientation: Ints


def look_at_files(images: Images, folder: str | Path, problems: Problems) -> Looked:
    """Read size and EXIF orientation of every image's file, a few hundred bytes each."""
    from PIL import Image, UnidentifiedImageError

    folder = Path(folder)
    by_name: dict[str, Path] = {}
    by_stem: dict[str, list[Path]] = {}
    for where, _, files in os.walk(folder):
        for name in sorted(files):
            path = Path(where) / name
            by_name[path.relative_to(folder).as_posix()] = path
            by_stem.setdefault(path.stem, []).append(path)
    stored = np.full((len(images), 2), np.nan)
    orientation = np.ones(len(images), np.int64)
    for row, name in enumerate(images.names):
        stems = by_stem.get(stem_of(name), [])
        found_at = by_name.get(name) or (stems[0] if len(stems) == 1 else None)
        if found_at is None:
            found = f"{len(stems)} files" if stems else "no file"
            problems.add("image-file", found, f"one file in {folder}", record=f"image {name!r}")
            continue
        try:
            with Image.open(found_at) as picture:
                stored[row] = picture.size
                orientation[row] = picture.getexif().get(_EXIF_ORIENTATION, 1)
        except (OSError, UnidentifiedImageError, ValueError, SyntaxError) as error:
            problems.add("image-file", str(error)[:200], "an image", record=f"image {name!r}")
    orientation[(orientation < 1) | (orientation > 8)] = 1
    return Looked(stored, orientation)


def upright(looked: Looked) -> Floats:
    """Width and height of each image as it is shown."""
    across = looked.orientation >= 5
    return np.where(across[:, None], looked.stored[:, ::-1], looked.stored)


def settle_frames(
    images: Images, looked: Looked, frame: Frame | None, to_frame: Frame | None, problems: Problems
) -> tuple[Images, Turn]:
    """Sizes of all images, and how boxes given in ``frame`` are turned into theirs.

    ``images.sizes`` say by themselves how most images lie; ``to_frame`` is needed where they do
    not (a turn by 180 degrees, a mirror, a square). Where no image is turned both do not matter.
    """
    shown = upright(looked)
    turned = looked.orientation != 1
    given: Bools = np.logical_not(np.isnan(images.sizes).any(axis=1))
    is_stored: Bools = (images.sizes == looked.stored).all(axis=1)
    is_shown: Bools = (images.sizes == shown).all(axis=1)
    seen = ~np.isnan(looked.stored).any(axis=1)
    for row in np.flatnonzero(given & seen & ~is_stored & ~is_shown).tolist():
        problems.add(
            "image-size",
            f"{_size(images.sizes[row])} px in the annotations, {_size(looked.stored[row])} px in "
            "the file",
            "one size",
            record=f"image {images.names[row]!r}",
            cause="resized images, or those of another split",
        )
    if turned.any() and frame is None:
        first = images.names[int(np.flatnonzero(turned)[0])]
        problems.add(
            "exif-rotation",
            f"{int(turned.sum())} images that EXIF turns ({first!r} first)",
            "how the source saw them: --frame upright or --frame stored",
            cause="OpenCV and Ultralytics turn images upright, PIL.Image.open does not",
        )
    open_question = turned & given & is_stored & is_shown
    if to_frame is None and open_question.any():
        first = images.names[int(np.flatnonzero(open_question)[0])]
        problems.add(
            "exif-rotation",
            f"{int(open_question.sum())} turned images whose size does not tell how the boxes of "
            f"the benchmark lie on them ({first!r} first)",
            "how the annotations see them: --to-frame upright or --to-frame stored",
        )
    source_shown = np.full(len(images), frame == "upright")
    told_shown = source_shown if to_frame is None else np.full(len(images), to_frame == "upright")
    # a size that fits one way only tells by itself; where there is none, boxes stay as they are
    target_shown: Bools = np.where(given & (is_stored != is_shown), is_shown, told_shown)
    sizes = np.where(target_shown[:, None], shown, looked.stored)
    orientation = np.where(turned & (source_shown != target_shown), looked.orientation, 0)
    return replace(images, sizes=np.where(given[:, None], images.sizes, sizes)), Turn(
        np.where(source_shown[:, None], shown, looked.stored),
        np.where(target_shown, orientation, -orientation),
    )


def turn_corners(corners: Floats, orientation: Ints, sizes: Floats) -> Floats:
    """Corners turned from stored to upright by an EXIF number, or back by its negative.

    ``sizes`` is width and height of each box's image before the turn, in px.
    """
    # the way back is the same turn, but for the two quarter turns, which undo each other
    number = np.abs(orientation)
    number = np.where(orientation == -6, 8, np.where(orientation == -8, 6, number))
    width, height = sizes[:, 0], sizes[:, 1]
    left, top, right, bottom = corners.T
    flipped_x = np.isin(number, (2, 3, 7, 8))
    flipped_y = np.isin(number, (3, 4, 6, 7))
    x1, x2 = np.where(flipped_x, width - right, left), np.where(flipped_x, width - left, right)
    y1, y2 = np.where(flipped_y, height - bottom, top), np.where(flipped_y, height - top, bottom)
    across = number >= 5
    out = np.stack(
        [
            np.where(across, y1, x1),
            np.where(across, x1, y1),
            np.where(across, y2, x2),
            np.where(across, x2, y2),
        ],
        axis=1,
    )
    return snap_px(out, np.concatenate([sizes, sizes], axis=1).max(axis=1, keepdims=True))


def _size(size: Floats) -> str:
    return f"{size[0]:g} x {size[1]:g}"
