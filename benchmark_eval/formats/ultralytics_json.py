"""Ultralytics' predictions.json (``save_json``): COCO results with file names and class numbers.

``image_id`` is the stem of the file name, as an integer if it consists of digits ("007.jpg" is 7).
``category_id`` is the model's class number, 1-based in newer releases and 0-based in older ones.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.coco_results import read_list
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule


class _Detection(msgspec.Struct, gc=False):
    image_id: int | str
    file_name: str
    category_id: int
    bbox: list[float]
    score: float


def read(path: Path, _options: Options, problems: Problems) -> Parsed:
    """Read a predictions.json; ``file_name`` takes precedence over ``image_id`` if present."""
    return read_list(path, Parsed("xywh", image_numbers="names"), problems)


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write a predictions.json with 1-based classes, as newer releases do."""
    stems = [int(s) if s.isdecimal() else s for s in boxes.images.stems]
    names, image = boxes.images.names, boxes.image.tolist()
    entries = map(
        _Detection,
        [stems[row] for row in image],
        [names[row] for row in image],
        (boxes.label + 1).tolist(),
        boxes.xywh.tolist(),
        boxes.score.tolist(),
    )
    json_files.write_list(target, entries, len(boxes))
