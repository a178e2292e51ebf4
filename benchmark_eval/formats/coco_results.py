"""COCO results: a list of {image_id, category_id, bbox, score} with the benchmark's ids.

This is the format of the benchmark's prediction files and of Detectron2's
coco_instances_results.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.json_values import as_id
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.classes import Convention
from benchmark_eval.formats.json_files import Id
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule

EXPECTED = "a JSON list of {image_id, category_id, bbox [x, y, w, h], score}"


class Record(msgspec.Struct, gc=False):
    """One detection; ``image_id`` may be a file name, and other fields are ignored."""

    image_id: Id | float | str
    category_id: Id | float
    bbox: tuple[float, float, float, float]
    score: float
    file_name: str | None = None
    segmentation: Any = None
    keypoints: Any = None


class _Detection(msgspec.Struct, gc=False):
    image_id: int
    category_id: int
    bbox: list[float]
    score: float


def read(path: Path, _options: Options, problems: Problems) -> Parsed:
    """Read results; integer image ids are the benchmark's, strings are file names."""
    return read_list(path, Parsed("xywh", convention=Convention(stated_by=("coco",))), problems)


def read_list(path: Path, parsed: Parsed, problems: Problems) -> Parsed:
    """Read a list of detections into ``parsed``."""
    for at, entry in enumerate(json_files.records(path, Record, problems, EXPECTED)):
        label = _integer(entry.category_id, "category_id", at, problems)
        named = entry.image_id if entry.file_name is None else entry.file_name
        key = named if isinstance(named, str) else _integer(named, "image_id", at, problems)
        if label is None or key is None:
            continue
        parsed.add(parsed.image(key), label, entry.bbox, entry.score, record=at)
        if json_files.is_mask(entry.segmentation):
            parsed.skipped["masks (segmentation)"] += 1
        if entry.keypoints:
            parsed.skipped["keypoints"] += 1
    return parsed


def _integer(value: float, field: str, at: int, problems: Problems) -> int | None:
    """The value as an integer (7.0 is 7); None and a problem for anything else."""
    number = as_id(value)
    if number is None:
        problems.add("not-whole", repr(value), "an integer", record=f"record {at}", field=field)
    return number


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write detections with the ids of their images and classes."""
    ids = boxes.images.ids[boxes.image]
    write_results(target, ids, boxes.classes.ids[boxes.label], boxes.xywh, boxes.score)


def write_results(
    path: Path, image_id: Ints, category_id: Ints, boxes: Floats, score: Floats
) -> int:
    """Write one record per detection (``boxes``: x, y, w, h in px); returns the bytes written."""
    entries = map(
        _Detection, image_id.tolist(), category_id.tolist(), boxes.tolist(), score.tolist()
    )
    return json_files.write_list(path, entries, len(score))
