"""The benchmark's ground truth as columns.

``benchmark_reader`` reads it from a benchmark folder (COCO annotations of every split and the
taxonomy); ``benchmark_index`` stores it as one file that loads in milliseconds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints, rows_of_ids
from benchmark_eval.core.errors import UsageError
from benchmark_eval.protocol import ANNOTATIONS, KNOWN_SPLITS


def is_stray(file: str) -> bool:
    """Whether a file of the benchmark (relative path) is an annotation file of an unknown split."""
    path = PurePosixPath(file)
    return path.parent == PurePosixPath(ANNOTATIONS.as_posix()) and path.stem not in KNOWN_SPLITS


@dataclass(frozen=True, slots=True)
class Categories:
    """All categories of all split files, one per row, ascending by ``ids``.

    Code columns hold one small integer per distinct text (-1 for a blank one), so that agreement
    at a rank is a comparison of integers. ``n_train_images`` and
    ``n_train_objects`` are -1 for a species without a training annotation.
    """

    ids: Ints
    names: tuple[str, ...]
    name_code: Codes
    subfamily_code: Codes
    tribe_code: Codes
    genus_code: Codes
    genera: tuple[str, ...]
    distance_band: tuple[str, ...]
    target_band: tuple[str, ...]
    n_train_images: Ints
    n_train_objects: Ints

    def rows_of(self, ids: Ints) -> Ints:
        """Row of each category id; -1 if no split file lists the id."""
        return rows_of_ids(self.ids, ids)


@dataclass(frozen=True, slots=True)
class SplitTruth:
    """The ground truth of one split, annotations grouped by image, in file order within an image.

    ``image_ids`` ascend; ``sizes`` is (images, 2) width and height in px, NaN if not given.
    ``image`` (row of ``image_ids``), ``category`` (row of ``Categories``), ``boxes``
    (annotations, 4) x, y, w, h in px, ``area`` in px² and ``crowd`` have one row per annotation.
    ``listed`` holds the rows of ``Categories`` that the split's file lists, ascending.
    ``file_order`` holds the rows of ``image_ids`` in the order in which the file lists them,
    ``name_order`` in the order of their file names. ``name_number`` is the number in each file name
    (7 for ``007.jpg``; -1 for a name that is no number). Both are empty if a file name is missing.
    """

    name: str
    image_ids: Ints
    sizes: Floats
    listed: Ints
    image: Ints
    category: Ints
    boxes: Floats
    area: Floats
    crowd: Bools
    file_order: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    name_order: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    name_number: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n_scored(self) -> int:
        """Number of scored annotations: all except crowd."""
        return int(np.count_nonzero(~self.crowd))

    def scored_per_category(self, n_categories: int) -> Ints:
        """Number of scored annotations of each row of ``Categories``."""
        return np.bincount(self.category[~self.crowd], minlength=n_categories).astype(np.int64)


@dataclass(frozen=True, slots=True)
class TrainIncidence:
    """The species on each training image: one row per (image, category) pair.

    ``image`` numbers the distinct training images from 0 (``n_images`` in all, including those
    without annotations); ``category`` is a row of ``Categories``; ``n_objects`` is the number of
    specimens of that species on that image.
    """

    n_images: int
    image: Ints
    category: Ints
    n_objects: Ints


@dataclass(frozen=True, slots=True)
class Benchmark:
    """All ground truth that an evaluation or an aggregation needs.

    ``splits`` holds the splits whose files exist. ``train`` is ``None`` without ``train.json``.
    ``digests`` maps each file that was read, relative to the benchmark folder, to its SHA-256.
    ``description`` is the dataset description in the ``info`` of the first known split.
    """

    categories: Categories
    splits: dict[str, SplitTruth]
    train: TrainIncidence | None
    digests: dict[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def stray_files(self) -> list[str]:
        """Annotation files of unknown splits, sorted.

        Their categories count as categories of the benchmark, as in the benchmark's evaluator,
        which reads every .json file in the folder.
        """
        return sorted(name for name in self.digests if is_stray(name))

    @property
    def digest(self) -> str:
        """SHA-256 of the names and digests of all files: equal for equal benchmarks."""
        text = "".join(f"{name}\0{digest}\n" for name, digest in sorted(self.digests.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    def split(self, name: str) -> SplitTruth:
        """The split's ground truth. Raises ``UsageError`` if the benchmark has no such split."""
        if name not in self.splits:
            have = ", ".join(self.splits) or "none"
            raise UsageError(
                f"split {name!r}: the benchmark has no {ANNOTATIONS / (name + '.json')}; "
                f"its splits are: {have}"
            )
        return self.splits[name]
