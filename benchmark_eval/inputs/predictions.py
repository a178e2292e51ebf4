"""A split's detections as columns, strictly validated against the benchmark.

The file is decoded in pieces, directly into columns, so that memory depends on the columns and not
on the text. The typed decoder stops at the first problem; only then does a slower tolerant pass
read the file again and report every problem of every record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmark_eval.core.arrays import (
    Floats,
    Ints,
    finite_boxes,
    rows_of_ids,
)
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.benchmark import Benchmark, SplitTruth
from benchmark_eval.inputs.prediction_decoder import (
    NO_OVERFLOW,
    NOT_FINITE,
    SCORE,
    Columns,
    InvalidRecords,
    read_columns,
)
from benchmark_eval.protocol import SPECIES_SPLITS


@dataclass(frozen=True, slots=True)
class OutOfVocabulary:
    """Out-of-vocabulary detections, as columns like those of ``Predictions``.

    ``n_before`` is the number of detections of ``Predictions`` that precede each one in the file.
    """

    image: Ints
    category: Ints
    boxes: Floats
    score: Floats
    n_before: Ints

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, slots=True)
class Predictions:
    """The scored detections of one split, one per row, in file order.

    ``image`` is a row of ``SplitTruth.image_ids``, ``category`` a row of ``Categories``;
    ``boxes`` is (detections, 4) x, y, w, h in px; ``score`` is in [0, 1].
    ``out_of_vocabulary`` holds detections of categories of the benchmark that the split does not
    list (iid_test and inat_test only); only ``detection_recall_open_vocabulary`` and
    ``diagnostics`` use them. ``dropped`` counts invalid records by reason. ``sha256`` is the
    digest of the file's bytes as stored.
    """

    image: Ints
    category: Ints
    boxes: Floats
    score: Floats
    out_of_vocabulary: OutOfVocabulary
    dropped: dict[str, int]
    file: str
    sha256: str

    def __len__(self) -> int:
        return len(self.score)

    def with_out_of_vocabulary(self) -> Predictions:
        """All detections in file order, which decides between equal scores."""
        extra = self.out_of_vocabulary
        if not len(extra):
            return self
        return replace(
            self,
            image=np.insert(self.image, extra.n_before, extra.image),
            category=np.insert(self.category, extra.n_before, extra.category),
            boxes=np.insert(self.boxes, extra.n_before, extra.boxes, axis=0),
            score=np.insert(self.score, extra.n_before, extra.score),
        )

    @property
    def n_out_of_vocabulary(self) -> int:
        """Number of detections of categories that the split does not list."""
        return len(self.out_of_vocabulary)


def _check_values(
    columns: Columns,
    position: Ints,
    image: Ints,
    category: Ints,
    truth: SplitTruth,
    known_categories: Ints,
    invalid: InvalidRecords,
) -> None:
    """Report unknown ids, invalid boxes and invalid scores."""

    def add_rows(
        bad: Any, kind: str, name: str, found: Callable[[int], str], expected: str, cause: str
    ) -> None:
        for row in np.flatnonzero(bad).tolist():
            invalid.add(int(position[row]), kind, name, found(row), expected, cause)

    boxes, score = columns.boxes, columns.score
    if len(image) and (image < 0).any():
        span = f"{truth.image_ids[0]} to {truth.image_ids[-1]}" if len(truth.image_ids) else "none"
        unknown = columns.image_id[image < 0]
        distinct = np.unique(unknown).tolist()
        ids = ", ".join(map(str, distinct[:3])) + (", ..." if len(distinct) > 3 else "")
        add_rows(
            image < 0,
            "image-id-unknown",
            "image_id",
            lambda row: f"image_id {columns.image_id[row]}",
            f"an image id of {truth.name} ({span})",
            f"{len(unknown):,} of {counted(len(image), 'record')} "
            f"{'has' if len(unknown) == 1 else 'have'} an image_id ({ids}) that is not in "
            "the split: predictions of another split, or image ids of another annotation file",
        )
    if (category < 0).any():
        unknown = columns.category_id[category < 0]
        near = ""
        if (unknown == 0).any():
            near = "0-based category ids, or "
        elif len(known_categories) and (unknown - 1 == known_categories[-1]).all():
            near = "category ids shifted by one, or "
        add_rows(
            category < 0,
            "category-id-unknown",
            "category_id",
            lambda row: f"category_id {columns.category_id[row]} not in benchmark",
            "a category id of a split file",
            f"{near}the model's class indices instead of the benchmark's category ids",
        )
    usable = finite_boxes(boxes)
    as_given = np.isfinite(boxes).all(axis=1)
    for bad, expected, cause in (
        (~as_given, "finite numbers", NOT_FINITE),
        (as_given & ~usable, NO_OVERFLOW, "coordinates far beyond any image"),
    ):
        add_rows(bad, "bbox-not-finite", "bbox", lambda r: str(boxes[r].tolist()), expected, cause)
    add_rows(
        (boxes[:, 2:] < 0).any(axis=1),
        "bbox-negative",
        "bbox",
        lambda row: str(boxes[row].tolist()),
        "w >= 0 and h >= 0 in px",
        "corners in the wrong order, or x2, y2 instead of w, h",
    )
    out = ~((score >= 0) & (score <= 1))
    percent = bool(len(score)) and float(np.nanmax(score)) > 1 and float(np.nanmax(score)) <= 100
    add_rows(
        out,
        "score-range",
        "score",
        lambda row: f"{score[row]:g}",
        SCORE,
        "percentages instead of fractions" if percent else "logits or an unbounded score",
    )


def read_predictions(
    path: str | Path,
    benchmark: Benchmark,
    split: str,
    on_invalid: OnInvalid = "error",
    *,
    digest: bool = True,
) -> Predictions:
    """Read one prediction file and check it against the benchmark.

    Parameters
    ----------
    path : str or Path
        A ``<split>_predictions.json`` or ``.json.gz``: a list of
        ``{"image_id", "category_id", "bbox": [x, y, w, h], "score"}``.
    benchmark : Benchmark
        The benchmark, as returned by `load_benchmark`.
    split : str
        The split that the predictions are for.
    on_invalid : {"error", "drop"}, default "error"
        With ``"drop"``, invalid records are dropped and counted in ``dropped`` by reason. A file
        that is not a JSON list is an error in both cases.
    digest : bool, default True
        Whether to compute the SHA-256 of the file.

    Returns
    -------
    Predictions
        The detections in file order: ``image`` and ``category`` (n_detections,), which are rows
        of ``image_ids`` of the split and of ``benchmark.categories``, ``boxes``
        (n_detections, 4) as x, y, w, h in px and ``score`` (n_detections,) in [0, 1].

    Raises
    ------
    InputError
        The file cannot be read, or a record is not valid. All problems are in ``problems``.
    UsageError
        The benchmark does not have the split.

    Notes
    -----
    As in the benchmark's evaluator, detections on ``iid_test`` and ``inat_test`` whose category is
    in the benchmark but not in the split (out-of-vocabulary labels) are not scored; on
    ``semantic_ood`` and ``train`` they are kept. Ids may be integral floats (``7.0``).

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from benchmark_eval import load_benchmark, make_synthetic, read_predictions
    >>> folder = tempfile.TemporaryDirectory()
    >>> benchmark = load_benchmark(make_synthetic(folder.name, scale=0.005).benchmark_dir)
    >>> path = Path(folder.name, "semantic_ood_predictions.json")
    >>> record = {"image_id": 1, "category_id": 7, "bbox": [10, 20, 30, 40], "score": 0.9}
    >>> _ = path.write_text(json.dumps([record]))
    >>> predictions = read_predictions(path, benchmark, "semantic_ood")
    >>> predictions.boxes.tolist(), predictions.score.tolist()
    ([[10.0, 20.0, 30.0, 40.0]], [0.9])
    >>> folder.cleanup()
    """
    checked = check_predictions(path, benchmark, split, digest=digest)
    if checked.problems and on_invalid == "error":
        raise InputError(checked.problems)
    return checked.predictions


@dataclass(frozen=True, slots=True)
class CheckedPredictions:
    """One prediction file: its valid records, and the problems of the others in file order.

    ``category_ids`` (readable records,) are the category ids in the file, including those of
    invalid records.
    """

    predictions: Predictions
    problems: tuple[Problem, ...]
    category_ids: Ints


def check_predictions(
    path: str | Path, benchmark: Benchmark, split: str, *, digest: bool = True
) -> CheckedPredictions:
    """Read one prediction file and return its valid records and its problems.

    The valid records are those of ``read_predictions`` with ``on_invalid="drop"``. ``InputError``
    if the file is not a list of records. Likely causes that depend on the valid records are added
    by ``benchmark_eval.scoring.diagnostics.with_likely_causes``.
    """
    path = Path(path)
    truth = benchmark.split(split)
    invalid = InvalidRecords(str(path))
    columns, position, sha256 = read_columns(path, invalid, digest=digest)
    image = rows_of_images(columns.image_id, truth)
    category = benchmark.categories.rows_of(columns.category_id)
    _check_values(columns, position, image, category, truth, benchmark.categories.ids, invalid)
    keep = np.ones(len(position), np.bool_)
    if invalid.reason:
        keep &= ~np.isin(position, np.fromiter(invalid.reason, np.int64, len(invalid.reason)))
    unlisted = np.zeros(len(position), np.bool_)
    if split in SPECIES_SPLITS:
        unlisted = keep & ~np.isin(category, truth.listed)
        keep &= ~unlisted
    rows: Any = slice(None) if keep.all() else keep  # no copy if all are kept
    predictions = Predictions(
        image=image[rows],
        category=category[rows],
        boxes=columns.boxes[rows],
        score=columns.score[rows],
        out_of_vocabulary=OutOfVocabulary(
            image[unlisted],
            category[unlisted],
            columns.boxes[unlisted],
            columns.score[unlisted],
            np.cumsum(keep, dtype=np.int64)[unlisted],
        ),
        dropped=dict(sorted(Counter(invalid.reason.values()).items())),
        file=path.name,
        sha256=sha256,
    )
    return CheckedPredictions(predictions, tuple(invalid.in_file_order()), columns.category_id)


def rows_of_images(image_id: Ints, truth: SplitTruth) -> Ints:
    """Row of ``truth.image_ids`` of each image id; -1 if the split does not have the image."""
    return rows_of_ids(truth.image_ids, image_id)


OnInvalid = Literal["error", "drop"]
