"""``<model>_detections.csv``: true positives, or also false positives and missed specimens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.csv_text import csv_cell
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.results.true_positives import TruePositiveTable

Rows = Literal["hits", "all", "none"]
"""What ``<model>_detections.csv`` holds; with ``"none"`` it is not written."""
DETECTION_MEANINGS = {
    "split": "The split.",
    "image_id": "Image id in the annotation file of the split.",
    "score": "Confidence; empty for a missed specimen.",
    "iou": "IoU with the matched specimen; for a false positive the highest IoU with any scored "
    "specimen, empty below 0.1 and for a missed specimen.",
    "is_tp": "1 for a true positive, 0 for a false positive, empty for a missed specimen.",
    "pred_species": "Predicted species; empty for a missed specimen.",
    "gt_species": "Species of the specimen that `iou` refers to, or that is missed.",
    "pred_genus": "Genus of the predicted species.",
    "gt_genus": "Genus of `gt_species`.",
    "correct_species": "Whether the species is correct (1 or 0), for true positives only.",
    "correct_genus": "Whether the genus is correct (1 or 0), for true positives only.",
    "band": "Distance band of `gt_species`.",
    "error_type": "Error type (see above); only with `detections: all`.",
}
"""Every column and its meaning."""
ALL_COLUMNS = tuple(DETECTION_MEANINGS)
"""The columns with ``detections: all``."""
DETECTION_COLUMNS = ALL_COLUMNS[:-1]
"""The columns with ``detections: hits``."""


@dataclass(frozen=True, slots=True)
class DetectionTable:
    """Detections outside crowd regions, and missed specimens, of one split as columns.

    By image id, then descending score, then missed specimens in file order. ``predicted`` and
    ``true`` are rows of ``categories``, or -1: ``predicted`` of a missed specimen, ``true`` of a
    detection that overlaps no specimen. ``score`` of a missed specimen and ``iou`` without a
    specimen are NaN. ``error_type`` is an index into ``ERROR_TYPES``; ``is_tp`` is 1, 0, or -1 for
    a missed specimen.
    """

    split: str
    categories: Categories
    image_id: Ints
    score: Floats
    iou: Floats
    is_tp: NDArray[np.int8]
    predicted: Ints
    true: Ints
    error_type: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class ModelTables:
    """What the files of a model hold beside its metrics.

    ``evidence`` are the bytes of ``<model>_evidence.npz``; ``detections`` has one table per split
    for ``<model>_detections.csv``, or is None if that file is not written.
    """

    evidence: bytes
    detections: Sequence[TruePositiveTable | DetectionTable] | None


def detections_csv(tables: Sequence[TruePositiveTable | DetectionTable]) -> str:
    """The text of ``<model>_detections.csv``; always has a header."""
    hits = [table for table in tables if isinstance(table, TruePositiveTable)]
    everything = [table for table in tables if isinstance(table, DetectionTable)]
    return _all_csv(everything) if everything else _hits_csv(hits)


def _floats(column: Floats) -> list[str]:
    """Finite numbers as ``repr`` writes them: the shortest text that reads back the same."""
    if not len(column):
        return []
    texts = msgspec.json.encode(column.tolist())[1:-1].decode().split(",")
    # in [1e-4, 1e15) the encoder writes the same text as repr, five times faster
    for row in np.flatnonzero(~((column >= 1e-4) & (column < 1e15))).tolist():
        texts[row] = repr(float(column[row]))
    return texts


def _texts(column: Floats) -> list[str]:
    """``_floats``, with empty cells for NaN."""
    texts = _floats(column)
    for row in np.flatnonzero(np.isnan(column)).tolist():
        texts[row] = ""
    return texts


def _hits_csv(tables: Sequence[TruePositiveTable]) -> str:
    """One row per true positive; always has a header."""
    lines = [",".join(DETECTION_COLUMNS)]
    for table in tables:
        names = [csv_cell(text) for text in table.categories.names]
        genera = [csv_cell(text) for text in table.categories.genera]
        bands = [csv_cell(text) for text in table.categories.distance_band]
        # the end of a row depends only on the pair of species
        n = len(names)
        pair, first, row = np.unique(
            table.predicted * n + table.true, return_index=True, return_inverse=True
        )
        species, genus = table.correct_species[first], table.correct_genus[first]
        ends = [
            f"{names[predicted]},{names[true]},{genera[predicted]},{genera[true]},{is_species:d},"
            f"{is_genus:d},{bands[true]}"
            for predicted, true, is_species, is_genus in zip(
                (pair // n).tolist(), (pair % n).tolist(), species, genus, strict=True
            )
        ]
        lines += [
            f"{table.split},{image},{score},{iou},1,{ends[at]}"
            for image, score, iou, at in zip(
                table.image_id.tolist(),
                _floats(table.score),
                _floats(table.iou),
                row.tolist(),
                strict=True,
            )
        ]
    return "\n".join(lines) + "\n"


def _all_csv(tables: Sequence[DetectionTable]) -> str:
    """One row per detection outside crowd regions and per missed specimen; always a header."""
    lines = [",".join(ALL_COLUMNS)]
    for table in tables:
        names, genera, bands = (
            [*(csv_cell(text) for text in column), ""]  # the last one stands for -1
            for column in (
                table.categories.names,
                table.categories.genera,
                table.categories.distance_band,
            )
        )
        # the end of a row depends only on the pair of species, the type and is_tp
        n = len(names)
        key = (table.predicted + 1) * n + table.true + 1
        key = (key * len(ERROR_TYPES) + table.error_type) * 3 + table.is_tp + 1
        _, first, row = np.unique(key, return_index=True, return_inverse=True)
        ends = [_end(table, at, names, genera, bands) for at in first.tolist()]
        lines += [
            f"{table.split},{image},{score},{iou},{ends[at]}"
            for image, score, iou, at in zip(
                table.image_id.tolist(),
                _texts(table.score),
                _texts(table.iou),
                row.tolist(),
                strict=True,
            )
        ]
    return "\n".join(lines) + "\n"


def _end(
    table: DetectionTable,
    at: int,
    names: Sequence[str],
    genera: Sequence[str],
    bands: Sequence[str],
) -> str:
    """The columns from ``is_tp`` of one row."""
    categories, is_tp = table.categories, int(table.is_tp[at])
    predicted, true = int(table.predicted[at]), int(table.true[at])
    correct = ","
    if is_tp == 1:
        genus = categories.genus_code
        species = categories.name_code[predicted] == categories.name_code[true]
        same_genus = genus[predicted] == genus[true] and genus[true] >= 0
        correct = f"{species:d},{same_genus:d}"
    return ",".join(
        (
            "" if is_tp < 0 else str(is_tp),
            names[predicted],
            names[true],
            genera[predicted],
            genera[true],
            correct,
            bands[true],
            ERROR_TYPES[table.error_type[at]],
        )
    )
