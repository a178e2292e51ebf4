"""darkflow JSON: one file per image, a list of {label, confidence, topleft, bottomright}."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, to_corners
from benchmark_eval.formats.text_files import label_files, rows_by_image

EXPECTED = "a JSON list of {label, confidence, topleft {x, y}, bottomright {x, y}}"


class _Point(msgspec.Struct):
    x: float
    y: float


class _Record(msgspec.Struct, omit_defaults=True):
    label: str
    topleft: _Point
    bottomright: _Point
    confidence: float | None = None


def read(folder: Path, _options: Options, problems: Problems) -> Parsed:
    """Read the JSON files of a folder, with or without confidences."""
    parsed = Parsed("corners", one_file_each=True)
    files = label_files(folder, ".json", problems)
    if not files:
        problems.add("empty-folder", "no .json file", "one JSON file per image")
    for name, path in files:
        image = parsed.image(name, f"{path.name} record")
        for at, entry in enumerate(json_files.records(path, _Record, problems, EXPECTED)):
            near, far = entry.topleft, entry.bottomright
            score = float("nan") if entry.confidence is None else entry.confidence
            parsed.add(image, entry.label, (near.x, near.y, far.x, far.y), score, record=at)
    return parsed


def write(boxes: BoxTable, target: Path, pixels: PixelRule) -> None:
    """Write one JSON file per image, an empty list if it has no box."""
    corners = to_corners(boxes, pixels).tolist()
    label, score, scored = boxes.label.tolist(), boxes.score.tolist(), boxes.scored
    for stem, rows in zip(boxes.images.stems, rows_by_image(boxes), strict=True):
        entries = [
            _Record(
                boxes.classes.names[label[row]],
                _Point(*corners[row][:2]),
                _Point(*corners[row][2:]),
                score[row] if scored else None,
            )
            for row in rows
        ]
        (target / f"{stem}.json").write_bytes(msgspec.json.encode(entries) + b"\n")
