"""Boxes as columns: the representation shared by all readers and writers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints

PixelRule = Literal["edges", "inclusive", "voc"]
"""Meaning of corner coordinates. ``edges``: edges of the box, width = right - left.
``inclusive``: first and last pixel, 0-based, width = right - left + 1. ``voc``: the same, 1-based.
"""


UNKNOWN = -1
"""The id of an image or class without one."""


@dataclass(frozen=True, slots=True)
class Images:
    """Images, including those without boxes.

    ``names`` are file names (stems if the format has no suffixes), ``ids`` are ids of the
    benchmark or a COCO file (``UNKNOWN`` if there is none), and ``sizes`` is (images, 2) width and
    height in px (NaN if unknown).
    """

    names: tuple[str, ...]
    ids: Ints
    sizes: Floats

    def __len__(self) -> int:
        return len(self.names)

    @property
    def stems(self) -> list[str]:
        """File names without folders and suffix, as used for one file per image."""
        return [stem_of(name) for name in self.names]


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes, in the order in which formats with class numbers number them.

    ``ids`` are category ids of the benchmark or a COCO file (``UNKNOWN`` if there is none).
    """

    names: tuple[str, ...]
    ids: Ints

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class BoxTable:
    """Boxes as columns, one row per box, in the order of the source.

    ``image`` and ``label`` are rows of ``images`` and ``classes``. ``corners`` is (boxes, 4) left,
    top, right, bottom and ``size`` is (boxes, 2) width, height, both in px between edges; keeping
    both makes round trips exact for either kind of format. ``score`` is NaN for ground truth.
    ``ignored`` marks specimens that are not scored: crowd in COCO, difficult in VOC.
    """

    images: Images
    classes: Classes
    image: Ints
    label: Ints
    corners: Floats
    size: Floats
    score: Floats
    ignored: Bools

    def __len__(self) -> int:
        return len(self.label)

    @property
    def scored(self) -> bool:
        """Whether there are boxes and all have a confidence."""
        return len(self) > 0 and not bool(np.isnan(self.score).any())

    @property
    def xywh(self) -> Floats:
        """(boxes, 4) left, top, width, height in px, as in COCO."""
        return np.concatenate([self.corners[:, :2], self.size], axis=1)

    def rows(self, keep: Bools) -> BoxTable:
        """Only the boxes where ``keep`` is true."""
        return BoxTable(
            self.images,
            self.classes,
            self.image[keep],
            self.label[keep],
            self.corners[keep],
            self.size[keep],
            self.score[keep],
            self.ignored[keep],
        )


def stem_of(name: str) -> str:
    """A file name without its folders and its last suffix."""
    return PurePosixPath(name.replace("\\", "/")).stem


def snap_px(values: Floats, reach: Floats) -> Floats:
    """Round values to nine decimals if they differ only by floating-point error.

    This makes 0.1 + 0.2 equal to 0.3, so that such coordinates survive any chain of conversions.
    Values that differ by more than the rounding error of numbers as large as ``reach`` are kept.
    """
    return _snap(values, 9, 8 * np.spacing(np.abs(reach)))


def _snap(values: Floats, decimals: int, tolerance: Floats | float) -> Floats:
    rounded = np.round(values, decimals)
    return np.where(np.abs(rounded - values) <= tolerance, rounded, values)


def corners_and_size(
    values: Floats, layout: str, pixels: PixelRule = "edges", sizes: Floats | None = None
) -> tuple[Floats, Floats]:
    """Corners and size in px from the box numbers of a format.

    ``layout``: ``corners`` (left, top, right, bottom by the pixel rule), ``xywh`` (left, top,
    width, height) or ``centre`` (centre x, y, width, height, normalised by ``sizes``, which has
    one row per box).
    """
    if layout == "xywh":
        size = values[:, 2:]
        far = values[:, :2] + size
        return np.concatenate([values[:, :2], snap_px(far, far)], axis=1), size
    if layout == "centre":
        assert sizes is not None
        half = values[:, 2:] / 2
        near = snap_px((values[:, :2] - half) * sizes, sizes)
        far = snap_px((values[:, :2] + half) * sizes, sizes)
        return np.concatenate([near, far], axis=1), snap_px(values[:, 2:] * sizes, sizes)
    corners = values - _shift(pixels)
    if pixels != "edges":
        corners = snap_px(corners, values)
    return corners, snap_px(corners[:, 2:] - corners[:, :2], corners[:, 2:])


def to_corners(boxes: BoxTable, pixels: PixelRule) -> Floats:
    """(boxes, 4) left, top, right, bottom by a pixel rule."""
    if pixels == "edges":
        return boxes.corners
    values = boxes.corners + _shift(pixels)
    return snap_px(values, values)


def to_normalised(boxes: BoxTable) -> Floats:
    """(boxes, 4) centre x, y, width and height, normalised by each image's size."""
    sizes = boxes.images.sizes[boxes.image]
    centre = (boxes.corners[:, :2] + boxes.corners[:, 2:]) / 2 / sizes
    exact = np.concatenate([centre, boxes.size / sizes], axis=1)
    # round to twelve decimals only if that gives back the same pixels
    short = _snap(exact, 12, 1e-14)
    corners, size = corners_and_size(short, "centre", sizes=sizes)
    same = (corners == boxes.corners).all(axis=1) & (size == boxes.size).all(axis=1)
    return np.where(same[:, None], short, exact)


def _shift(pixels: PixelRule) -> Floats:
    """Offset of a pixel rule from edges."""
    rules = {"edges": (0, 0, 0, 0), "inclusive": (0, 0, -1, -1), "voc": (1, 1, 0, 0)}
    return np.array(rules[pixels], np.float64)


def clip(corners: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Corners clipped to their images, and the remaining sizes."""
    limit = np.concatenate([sizes, sizes], axis=1)
    inside = np.clip(corners, 0.0, limit)
    return inside, snap_px(inside[:, 2:] - inside[:, :2], limit[:, :2])
