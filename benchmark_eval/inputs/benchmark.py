"""The benchmark's ground truth as columns: read once from its files.

``load_benchmark`` reads a benchmark folder (COCO annotations of every split and the taxonomy)
and reports every fault of all files in one ``InputError``. ``benchmark_index`` keeps a benchmark
as one file that loads in milliseconds.
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
    """Whether a file of the benchmark (relative path) is an annotation file of no known split."""
    path = PurePosixPath(file)
    return path.parent == PurePosixPath(ANNOTATIONS.as_posix()) and path.stem not in KNOWN_SPLITS


@dataclass(frozen=True, slots=True)
class Categories:
    """Every category of any split file, one a row, ascending by ``ids``.

    Code columns hold small integers that are equal where the text is equal and -1 where it is
    blank, so that agreement at a rank is a comparison of columns. ``n_train_images`` and
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
        """Row of each category id; -1 where no split file lists the id."""
        return rows_of_ids(self.ids, ids)


@dataclass(frozen=True, slots=True)
class SplitTruth:
    """The ground truth of one split, annotations grouped by image, file order within an image.

    ``image_ids`` ascend; ``sizes`` is (images, 2) width and height in px, NaN where not given.
    ``image`` (row of ``image_ids``), ``category`` (row of ``Categories``), ``boxes``
    (annotations, 4) x, y, w, h in px, ``area`` in px² and ``crowd`` are one row an annotation.
    ``listed`` are the rows of ``Categories`` that the split's file lists, ascending.
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

    @property
    def n_scored(self) -> int:
        """Annotations that are scored: all but crowd."""
        return int(np.count_nonzero(~self.crowd))

    def scored_per_category(self, n_categories: int) -> Ints:
        """Number of scored annotations of each row of ``Categories``."""
        return np.bincount(self.category[~self.crowd], minlength=n_categories).astype(np.int64)


@dataclass(frozen=True, slots=True)
class TrainIncidence:
    """Which species stand on which training image: one row an (image, category) pair.

    ``image`` numbers distinct training images from 0 (``n_images`` in all, those without an
    annotation included); ``category`` is a row of ``Categories``; ``n_objects`` the specimens
    of that species on that image.
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
    ``description`` is what the first known split's ``info`` says of the data.
    """

    categories: Categories
    splits: dict[str, SplitTruth]
    train: TrainIncidence | None
    digests: dict[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def stray_files(self) -> list[str]:
        """Annotation files that were read and are none of the known splits, sorted.

        Their categories count as the benchmark's all the same (as for the benchmark's evaluator,
        which reads every .json file there).
        """
        return sorted(name for name in self.digests if is_stray(name))

    @property
    def digest(self) -> str:
        """One SHA-256 over names and digests of all files: equal for equal benchmarks."""
        text = "".join(f"{name}\0{digest}\n" for name, digest in sorted(self.digests.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    def split(self, name: str) -> SplitTruth:
        """The split's ground truth; ``UsageError`` when the benchmark has no such file."""
        if name not in self.splits:
            have = ", ".join(self.splits) or "none"
            raise UsageError(
                f"split {name!r}: the benchmark has no {ANNOTATIONS / (name + '.json')}; "
                f"its splits are: {have}"
            )
        return self.splits[name]
