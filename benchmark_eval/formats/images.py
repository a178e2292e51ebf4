"""Images: names, ids, sizes and EXIF orientation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.image_files import (
    EXPECTED,
    SUFFIXES,
    exif_orientation,
    open_image,
    unreadable_image,
)
from benchmark_eval.core.json_values import syntax_cause
from benchmark_eval.core.listing import walked
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import absent, read_input, unreadable
from benchmark_eval.core.text import counted, nfc
from benchmark_eval.formats.options import Frame
from benchmark_eval.formats.table import UNKNOWN, Images, snap_px, stem_of
from benchmark_eval.protocol import ANNOTATIONS, IMAGES

_MOST_DIGITS = 19
"""Longer numbers in file names are not integers of 64 bits."""


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: float | None = None
    height: float | None = None


class _Coco(msgspec.Struct):
    images: list[_Image]


def read_images(path: str | Path) -> Images:
    """The images of a COCO file. Raises InputError if the file is unreadable or invalid."""
    path = Path(path)
    try:
        data = read_input(path).removeprefix(b"\xef\xbb\xbf")
        coco = msgspec.json.decode(data, type=_Coco)
    except OSError as error:
        raise InputError([unreadable(path, error, "a COCO file")]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        cause = syntax_cause(data)
        expected = "COCO images with id and file_name"
        raise InputError(
            [Problem("not-coco", str(path), str(error), expected, cause=cause)]
        ) from None
    problems = [
        Problem("two-images", str(path), f"two images named {name!r}", "unique file names")
        for name in _duplicates(image.file_name for image in coco.images)
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
    """Images from file names; ids and sizes that are not given are unknown."""
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
    """Map image ids of a split to paths of image files, in the order of the annotation file."""
    folder = Path(benchmark_dir) / IMAGES / split
    images = split_images(benchmark_dir, split)
    return {
        number: folder / name
        for number, name in zip(images.ids.tolist(), images.names, strict=True)
    }


def folder_images(folder: str | Path) -> Images:
    """The image files of a folder and its subfolders; ids and sizes are unknown.

    Raises InputError if the folder does not exist or contains no image.
    """
    folder = Path(folder)
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in walked(folder)
        if path.suffix.lower() in SUFFIXES
    )
    if not names:
        found = "no image file" if folder.is_dir() else absent(folder, "not an existing folder")
        raise InputError([Problem("no-images", str(folder), found, "a folder of images")])
    return images_of(names)


def _duplicates(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    duplicates: dict[str, None] = {}
    for name in names:
        if name in seen:
            duplicates[name] = None
        seen.add(name)
    return list(duplicates)


_ROBOFLOW = re.compile(r"(?P<stem>.+)_(?P<suffix>[A-Za-z]{3,4})\.rf\.[0-9A-Za-z]+(?:\.[A-Za-z]+)?")
"""Names that Roboflow gives to images: ``a.jpg`` becomes ``a_jpg.rf.<digest>.jpg``."""


class Lookup:
    """Look up images by full name, file name without folders, or stem.

    Composed and decomposed characters (NFC, NFD) are equal, and names of a Roboflow export are
    those of the original images; ``n_renamed`` counts them.
    """

    def __init__(self, images: Images) -> None:
        self.images = images
        self.n_renamed = 0
        self._full: dict[str, int] = {}
        self._bare: dict[str, list[int]] = {}
        self._base: dict[str, list[int]] = {}
        self._stem: dict[str, list[int]] = {}
        self._number: dict[int, list[int]] = {}
        for row, name in enumerate(map(nfc, images.names)):
            stem = stem_of(name)
            self._full[name] = row
            self._bare.setdefault(_without_suffix(name), []).append(row)
            self._base.setdefault(PurePosixPath(name).name, []).append(row)
            self._stem.setdefault(stem, []).append(row)
            if stem.isascii() and stem.isdigit() and len(stem) < _MOST_DIGITS:
                self._number.setdefault(int(stem), []).append(row)
        self._id = {n: row for row, n in enumerate(images.ids.tolist()) if n != UNKNOWN}

    def find(self, key: str) -> list[int]:
        """Rows of all images that match a name: none, one or several."""
        key = nfc(key).replace("\\", "/")
        found = self._find(key)
        if not found and (made := _ROBOFLOW.fullmatch(PurePosixPath(key).name)):
            found = self._find(f"{made['stem']}.{made['suffix']}") or self._find(made["stem"])
            self.n_renamed += bool(found)
        return found

    def _find(self, key: str) -> list[int]:
        if key in self._full:
            return [self._full[key]]
        if "/" in key and key in self._bare:
            return self._bare[key]
        base = PurePosixPath(key).name
        # "a.b" is the stem of a.b.jpg or a file name with the suffix ".b"
        return self._base.get(base) or self._stem.get(base) or []

    def find_id(self, number: int) -> list[int]:
        """Row of the image with this id."""
        return [self._id[number]] if number in self._id else []

    def find_number(self, number: int) -> list[int]:
        """Rows of the images whose stem is this number, with any leading zeros."""
        return self._number.get(number, [])


def _without_suffix(name: str) -> str:
    path = PurePosixPath(name)
    return path.with_suffix("").as_posix() if path.name else name


@dataclass(frozen=True, slots=True)
class Reorientation:
    """Transformation of each image from the frame of the source to that of the benchmark.

    ``sizes`` is the width and height of each image in the frame of the source. ``orientation`` is
    the EXIF orientation to apply (stored to upright), its negative for the inverse, 0 for none.
    """

    sizes: Floats
    orientation: Ints


@dataclass(frozen=True, slots=True)
class ImageHeaders:
    """Width and height in px as stored, and EXIF orientation (1: none) of image files.

    ``n_invalid`` counts the files whose orientation is not valid; like image viewers, we ignore it.
    """

    stored: Floats
    orientation: Ints
    n_invalid: int


class ImageFiles:
    """The files of a folder and its subfolders, to be found by name or stem."""

    def __init__(self, folder: str | Path) -> None:
        self._by_name: dict[str, Path] = {}
        self._by_stem: dict[str, list[tuple[str, Path]]] = {}
        for path in walked(folder):
            place = PurePosixPath(nfc(path.relative_to(folder).as_posix()))
            self._by_name[place.as_posix()] = path
            self._by_stem.setdefault(place.stem, []).append((place.parent.as_posix(), path))

    def find(self, name: str) -> list[Path]:
        """The file of this relative name, or else all files of this stem, in any subfolder."""
        name = nfc(name)
        if name in self._by_name:
            return [self._by_name[name]]
        return [path for _, path in self._by_stem.get(stem_of(name), [])]

    def find_in(self, folders: Sequence[str], name: str) -> list[Path]:
        """The file of this name or stem in the first of ``folders`` that has one.

        ``folders`` are relative, "." is the folder itself. Files elsewhere, which may be of
        another split, are not found, unless ``name`` is their relative name.
        """
        name = nfc(name)
        base = PurePosixPath(name).name
        for folder in folders:
            path = self._by_name.get(PurePosixPath(folder, base).as_posix())
            if path is not None:
                return [path]
        if name in self._by_name:
            return [self._by_name[name]]
        for folder in folders:
            stems = [path for home, path in self._by_stem.get(stem_of(base), []) if home == folder]
            if stems:
                return stems
        return []


def annotated_frame(
    size: tuple[float, float], stored: tuple[int, int], orientation: int
) -> Frame | None:
    """The frame of an image in which its annotated size and boxes are; None if neither fits.

    The rule of the benchmark's loader: that of the displayed image if its size fits, otherwise
    that of the stored pixels. An unknown size (NaN) counts as that of the displayed image.
    """
    upright = stored[::-1] if orientation >= 5 else stored
    if np.isnan(size).any() or size == upright:
        return "upright"
    return "stored" if size == stored else None


def read_image_headers(images: Images, folder: str | Path, problems: Problems) -> ImageHeaders:
    """Read size and EXIF orientation of every image file, without decoding pixels."""
    files = ImageFiles(folder)
    stored = np.full((len(images), 2), np.nan)
    orientation = np.ones(len(images), np.int64)
    for row, name in enumerate(images.names):
        paths = files.find(name)
        if len(paths) != 1:
            found = f"{len(paths)} files" if paths else "no file"
            problems.add("image-file", found, f"one file in {folder}", record=f"image {name!r}")
            continue
        try:
            with open_image(paths[0], decoded=False) as picture:
                stored[row] = picture.size
                orientation[row] = exif_orientation(picture) or 0
        except Exception as error:  # decoders raise exceptions of any type
            found, cause = unreadable_image(paths[0], error)
            problems.add("image-file", found, EXPECTED, record=f"image {name!r}", cause=cause)
    invalid = orientation == 0
    orientation[invalid] = 1
    return ImageHeaders(stored, orientation, int(invalid.sum()))


def upright_sizes(headers: ImageHeaders) -> Floats:
    """Width and height of each image as displayed."""
    swapped = headers.orientation >= 5
    return np.where(swapped[:, None], headers.stored[:, ::-1], headers.stored)


def resolve_frames(
    images: Images,
    headers: ImageHeaders,
    frame: Frame | None,
    to_frame: Frame | None,
    problems: Problems,
) -> tuple[Images, Reorientation]:
    """Sizes of all images, and how to transform boxes given in ``frame`` into their frame.

    ``images.sizes`` usually determine the target frame; ``to_frame`` is needed if they do not
    (rotation by 180 degrees, mirroring, square images). Neither is needed without EXIF
    orientations.
    """
    upright = upright_sizes(headers)
    oriented = headers.orientation != 1
    given: Bools = np.logical_not(np.isnan(images.sizes).any(axis=1))
    is_stored: Bools = (images.sizes == headers.stored).all(axis=1)
    is_upright: Bools = (images.sizes == upright).all(axis=1)
    readable = ~np.isnan(headers.stored).any(axis=1)
    for row in np.flatnonzero(given & readable & ~is_stored & ~is_upright).tolist():
        problems.add(
            "image-size",
            f"{_size(images.sizes[row])} px in the annotations, {_size(headers.stored[row])} px in "
            "the file",
            "equal sizes",
            record=f"image {images.names[row]!r}",
            cause="resized images, or images of another split",
        )
    if oriented.any() and frame is None:
        first = images.names[int(np.flatnonzero(oriented)[0])]
        problems.add(
            "exif-rotation",
            f"{counted(int(oriented.sum()), 'image')} with an EXIF orientation (first: {first!r})",
            "the frame of the source: --frame upright or --frame stored",
            cause="OpenCV and Ultralytics apply the EXIF orientation, PIL.Image.open does not",
        )
    ambiguous = oriented & given & is_stored & is_upright
    if to_frame is None and ambiguous.any():
        first = images.names[int(np.flatnonzero(ambiguous)[0])]
        problems.add(
            "exif-rotation",
            f"{counted(int(ambiguous.sum()), 'image')} with an EXIF orientation and the same size "
            f"in both frames (first: {first!r})",
            "the frame of the benchmark's annotations: --to-frame upright or --to-frame stored",
        )
    from_upright = np.full(len(images), frame == "upright")
    default = from_upright if to_frame is None else np.full(len(images), to_frame == "upright")
    # a size that fits only one frame determines it; without a size, boxes keep the source's frame
    to_upright: Bools = np.where(given & (is_stored != is_upright), is_upright, default)
    sizes = np.where(to_upright[:, None], upright, headers.stored)
    orientation = np.where(oriented & (from_upright != to_upright), headers.orientation, 0)
    return replace(images, sizes=np.where(given[:, None], images.sizes, sizes)), Reorientation(
        np.where(from_upright[:, None], upright, headers.stored),
        np.where(to_upright, orientation, -orientation),
    )


def reorient_corners(corners: Floats, orientation: Ints, sizes: Floats) -> Floats:
    """Transform corners from stored to upright by an EXIF orientation, or back by its negative.

    ``sizes`` is the width and height of each box's image before the transformation, in px.
    """
    # every orientation is its own inverse, except 6 and 8, which are inverses of each other
    number = np.abs(orientation)
    number = np.where(orientation == -6, 8, np.where(orientation == -8, 6, number))
    width, height = sizes[:, 0], sizes[:, 1]
    left, top, right, bottom = corners.T
    flipped_x = np.isin(number, (2, 3, 7, 8))
    flipped_y = np.isin(number, (3, 4, 6, 7))
    x1, x2 = np.where(flipped_x, width - right, left), np.where(flipped_x, width - left, right)
    y1, y2 = np.where(flipped_y, height - bottom, top), np.where(flipped_y, height - top, bottom)
    swapped = number >= 5
    out = np.stack(
        [
            np.where(swapped, y1, x1),
            np.where(swapped, x1, y1),
            np.where(swapped, y2, x2),
            np.where(swapped, x2, y2),
        ],
        axis=1,
    )
    return snap_px(out, np.concatenate([sizes, sizes], axis=1).max(axis=1, keepdims=True))


def _size(size: Floats) -> str:
    return f"{size[0]:g} x {size[1]:g}"
