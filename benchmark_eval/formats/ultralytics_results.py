"""Ultralytics' ``Results.to_json()``: one file per image, or one object by image.

[{"name": "<class>", "class": 0, "confidence": 0.9, "box": {"x1": ..., "y1": ..., "x2": ...,
  "y2": ...}}, ...]
{"<file name>": [{"name": ..., ...}, ...], ...}
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.json_files import Id
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule
from benchmark_eval.formats.text_files import label_files, rows_by_image

EXPECTED = "a JSON list of {name, class, confidence, box {x1, y1, x2, y2}}"
_LOST = {"segments": "masks (segmentation)", "keypoints": "keypoints", "track_id": "track ids"}


class _Corners(msgspec.Struct):
    x1: float
    y1: float
    x2: float
    y2: float


class _Detection(msgspec.Struct):
    name: str
    confidence: float
    box: _Corners


class _Written(msgspec.Struct):
    name: str
    class_: Id = msgspec.field(name="class")
    confidence: float
    box: _Corners


def read(path: Path, _options: Options, problems: Problems) -> Parsed:
    """Read the JSON files of a folder, or one object by image, with the names of classes."""
    parsed = Parsed("corners", one_file_each=path.is_dir(), image_numbers=None, text_numbers=True)
    if path.is_dir():
        parsed.text_numbers = False
        files = label_files(path, ".json", problems)
        if not files:
            problems.add("empty-folder", "no .json file", "one JSON file per image")
        for name, file in files:
            where = file.relative_to(path).as_posix()
            data = json_files.read_bytes(file, problems, EXPECTED)
            if data is not None:
                tree = json_files.parse(data, file, problems, EXPECTED, list)
                _add(parsed, parsed.image(name, f"{where} record"), where, tree or (), problems)
        return parsed
    data = json_files.read_bytes(path, problems, EXPECTED)
    tree = None if data is None else json_files.parse(data, path, problems, EXPECTED, dict)
    json_files.report_images_twice(tree, problems)
    for name, entries in (tree or {}).items():
        where = f"image {name!r}"
        if isinstance(entries, list):
            _add(parsed, parsed.image(name, f"{where} box"), f"{where} box", entries, problems)
        else:
            problems.add("not-detections", type(entries).__name__, EXPECTED, record=where)
    return parsed


def _add(
    parsed: Parsed, image: int, where: str, entries: Iterable[Any], problems: Problems
) -> None:
    for at, entry in enumerate(entries):
        place = f"{where} {at}" if where.endswith("box") else f"{where} record {at}"
        box = entry.get("box") if isinstance(entry, dict) else None
        if isinstance(box, dict) and "x3" in box:
            problems.add(
                "oriented-box", "a box with four corners", EXPECTED, record=place, field="box",
                cause="oriented boxes (OBB), which have no upright box",
            )  # fmt: skip
            continue
        made = json_files.convert(entry, _Detection, place, problems)
        if made is None:
            continue
        corners = (made.box.x1, made.box.y1, made.box.x2, made.box.y2)
        parsed.add(image, made.name, corners, made.confidence, record=at)
        for key, what in _LOST.items():
            if entry.get(key) is not None:
                parsed.skipped[what] += 1


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write one JSON file per image, an empty list if it has no box."""
    corners, names = boxes.corners.tolist(), boxes.classes.names
    label, score = boxes.label.tolist(), boxes.score.tolist()
    for stem, rows in zip(boxes.images.stems, rows_by_image(boxes), strict=True):
        entries = [
            _Written(names[label[row]], label[row], score[row], _Corners(*corners[row]))
            for row in rows
        ]
        (target / f"{stem}.json").write_bytes(msgspec.json.encode(entries) + b"\n")
