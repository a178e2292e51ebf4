"""A split's detections as columns, strictly checked against the benchmark.

The file is decoded in pieces straight into columns, so that memory follows the
columns and not the text. The typed decoder stops at the first fault; only then does a tolerant
pass read the file again and name every fault of every record.
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
from benchmark_eval.inputs.benchmark import Benchmark, SplitTruth
from benchmark_eval.inputs.prediction_decoder import Columns, Faults, read_columns
from benchmark_eval.protocol import SPECIES_SPLITS


@dataclass(frozen=True, slots=True)
class OutOfVocabulary:
    """Detections that no metric sees, as columns like those of ``Predictions``."""

    image: Ints
    category: Ints
    boxes: Floats
    score: Floats

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, slots=True)
class Predictions:
    """The detections of one split that are scored, one a row, in file order.

    ``image`` is a row of ``SplitTruth.image_ids``, ``category`` a row of ``Categories``;
    ``boxes`` is (detections, 4) x, y, w, h in px; ``score`` lies in [0, 1].
    ``out_of_vocabulary`` holds detections of categories of the benchmark that the split does not
    list (iid_test and inat_test only); no metric uses them, ``diagnostics`` does. ``dropped``
    counts invalid records by reason, empty unless they were asked to be dropped. ``sha256`` is the
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
        """All detections, those of unlisted categories behind the others."""
        left = self.out_of_vocabulary
        return replace(
            self,
            image=np.concatenate([self.image, left.image]),
            category=np.concatenate([self.category, left.category]),
            boxes=np.concatenate([self.boxes, left.boxes]),
            score=np.concatenate([self.score, left.score]),
        )

    @property
    def n_out_of_vocabulary(self) -> int:
        """Number of detections of categories that the split does not list."""
        return len(self.out_of_vocabulary)


# --------------------------------------------------------------------------------------------
# Decoding
# --------------------------------------------------------------------------------------------


# --------------------------------------------------------------------------------------------
# Checking
# --------------------------------------------------------------------------------------------


def _check_values(
    columns: Columns,
    place: Ints,
    image: Ints,
    category: Ints,
    truth: SplitTruth,
    known_categories: Ints,
    faults: Faults,
) -> None:
    """Faults of records that have the right types: unknown ids, impossible boxes, odd scores."""

    def strike(
        bad: Any, kind: str, name: str, found: Callable[[int], str], wanted: str, cause: str = ""
    ) -> None:
        for row in np.flatnonzero(bad).tolist():
            faults.add(int(place[row]), kind, name, found(row), wanted, cause)

    boxes, score = columns.boxes, columns.score
    if len(image) and (image < 0).any():
        span = f"{truth.image_ids[0]} to {truth.image_ids[-1]}" if len(truth.image_ids) else "none"
        unknown = columns.image_id[image < 0]
        distinct = np.unique(unknown).tolist()
        ids = ", ".join(map(str, distinct[:3])) + (", ..." if len(distinct) > 3 else "")
        strike(
            image < 0,
            "image-id-unknown",
            "image_id",
            lambda row: f"image_id {columns.image_id[row]}",
            f"an image of {truth.name} (its ids: {span})",
            f"{len(unknown)} of {len(image)} records {'has' if len(unknown) == 1 else 'have'} an "
            f"image_id ({ids}) that is not in the split: predictions of another split, or ids of "
            "another annotation file",
        )
    if (category < 0).any():
        unknown = columns.category_id[category < 0]
        near = ""
        if (unknown == 0).any():
            near = "0-based category ids, or "
        elif (unknown == known_categories.max(initial=0) + 1).all():
            near = "category ids shifted by one, or "
        strike(
            category < 0,
            "category-id-unknown",
            "category_id",
            lambda row: f"category_id {columns.category_id[row]} not in benchmark",
            "a category id of some split file",
            f"{near}class numbers of the model instead of the benchmark's ids",
        )
    strike(
        ~finite_boxes(boxes),
        "bbox-not-finite",
        "bbox",
        lambda row: str(boxes[row].tolist()),
        "finite numbers",
        "bbox not finite",
    )
    strike(
        (boxes[:, 2:] < 0).any(axis=1),
        "bbox-negative",
        "bbox",
        lambda row: str(boxes[row].tolist()),
        "w >= 0 and h >= 0 in px",
        "corners in the wrong order, or x2, y2 where w, h belong",
    )
    out = ~((score >= 0) & (score <= 1))
    percent = bool(len(score)) and float(np.nanmax(score)) > 1 and float(np.nanmax(score)) <= 100
    strike(
        out,
        "score-range",
        "score",
        lambda row: f"score {score[row]:g} outside [0,1]",
        "a confidence in [0, 1]",
        "percent instead of shares" if percent else "logits or an unbounded score",
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
        What `load_benchmark` returns.
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
        The benchmark has no such split.

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
    """One prediction file: its valid records, the problems of the others, in file order.

    ``category_ids`` (readable records,) are the category ids of valid and invalid records alike,
    as they stand in the file.
    """

    predictions: Predictions
    problems: tuple[Problem, ...]
    category_ids: Ints


def check_predictions(
    path: str | Path, benchmark: Benchmark, split: str, *, digest: bool = True
) -> CheckedPredictions:
    """Read one prediction file and return its problems beside its valid records.

    The valid records are those of ``read_predictions`` with ``on_invalid="drop"``. ``InputError``
    where there are no records at all. Likely causes that need the valid records are added by
    ``benchmark_eval.scoring.diagnostics.with_likely_causes``.
    """
    path = Path(path)
    truth = benchmark.split(split)
    faults = Faults(str(path))
    columns, place, sha256 = read_columns(path, faults, digest=digest)
    image = rows_of_images(columns.image_id, truth)
    category = benchmark.categories.rows_of(columns.category_id)
    _check_values(columns, place, image, category, truth, benchmark.categories.ids, faults)
    keep = np.ones(len(place), np.bool_)
    if faults.reason:
        keep &= ~np.isin(place, np.fromiter(faults.reason, np.int64, len(faults.reason)))
    left = np.zeros(len(place), np.bool_)
    if split in SPECIES_SPLITS:
        left = keep & ~np.isin(category, truth.listed)
        keep &= ~left
    rows: Any = slice(None) if keep.all() else keep  # no copy where nothing is left out
    predictions = Predictions(
        image=image[rows],
        category=category[rows],
        boxes=columns.boxes[rows],
        score=columns.score[rows],
        out_of_vocabulary=OutOfVocabulary(
            image[left], category[left], columns.boxes[left], columns.score[left]
        ),
        dropped=dict(sorted(Counter(faults.reason.values()).items())),
        file=path.name,
        sha256=sha256,
    )
    return CheckedPredictions(predictions, tuple(faults.in_file_order()), columns.category_id)


def rows_of_images(image_id: Ints, truth: SplitTruth) -> Ints:
    """Row of ``truth.image_ids`` of each image id; -1 where the split has no such image."""
    return rows_of_ids(truth.image_ids, image_id)


OnInvalid = Literal["error", "drop"]
