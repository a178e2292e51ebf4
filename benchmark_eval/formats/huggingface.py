"""Hugging Face detections: output of ``post_process_object_detection`` or a pipeline, by image.

    {"<file name or id>": {"scores": [...], "labels": [...], "boxes": [[x1, y1, x2, y2], ...]}}
    {"<file name>": [{"score": 0.9, "label": "<class>", "box": {"xmin": ..., ...}}, ...]}
    [{"image_id": 42, "scores": [...], "labels": [...], "boxes": [...]}, ...]

``from_arrays`` takes the same data as arrays, without a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.json_values import json_kind
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed, assemble
from benchmark_eval.formats.classes import Convention
from benchmark_eval.formats.json_files import ONE_ENTRY, Id
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule
from benchmark_eval.formats.text_files import rows_by_image
from benchmark_eval.inputs.prediction_decoder import MAX_LISTED

EXPECTED = "a JSON object of detections by file name, or a list of {image_id, scores, ...}"


class _Corners(msgspec.Struct):
    xmin: float
    ymin: float
    xmax: float
    ymax: float


class _Single(msgspec.Struct):
    score: float
    label: str | Id
    box: _Corners


class _Arrays(msgspec.Struct):
    scores: list[float]
    labels: list[Id | str]
    boxes: list[tuple[float, float, float, float]]
    image_id: Id | str | None = None
    file_name: str | None = None
    masks: Any = None
    keypoints: Any = None


def read(path: Path, _options: Options, problems: Problems) -> Parsed:
    """Read detections by image."""
    parsed = Parsed("corners", text_numbers=True, convention=Convention(stated_by=("id2label",)))
    data = json_files.read_bytes(path, problems, EXPECTED)
    if data is None:
        return parsed
    tree = json_files.parse(data, path, problems, EXPECTED, dict, list)
    if isinstance(tree, dict):
        parsed.image_numbers = None  # a key may be an id or a file name
        json_files.report_images_twice(tree, problems)
        for name, entry in tree.items():
            _read_image(parsed, name, entry, problems)
        return parsed
    record_of: dict[str | int, int] = {}
    for at, entry in enumerate(tree or ()):
        made = json_files.convert(entry, _Arrays, f"record {at}", problems)
        if made is None:
            continue
        key = made.image_id if made.file_name is None else made.file_name
        if key is None:
            problems.add(
                "no-image",
                'missing field "image_id"',
                "image_id or file_name",
                record=f"record {at}",
            )
        elif key in record_of:
            found = f"image {key!r} again, after record {record_of[key]}"
            problems.add("two-images", found, ONE_ENTRY, record=f"record {at}")
        else:
            record_of[key] = at
            _add(parsed, key, made, problems)
    return parsed


def _read_image(parsed: Parsed, name: str, entry: Any, problems: Problems) -> None:
    if isinstance(entry, dict):
        made = json_files.convert(entry, _Arrays, f"image {name!r}", problems)
        if made is not None:
            _add(parsed, name, made, problems)
        return
    if not isinstance(entry, list):
        expected = "a list of detections, or an object with scores, labels and boxes"
        problems.add("not-detections", json_kind(entry), expected, record=f"image {name!r}")
        return
    image = parsed.image(name, f"image {name!r} box")
    for at, single in enumerate(entry):
        one = json_files.convert(single, _Single, f"image {name!r} box {at}", problems)
        if one is not None:
            box = (one.box.xmin, one.box.ymin, one.box.xmax, one.box.ymax)
            parsed.add(image, one.label, box, one.score, record=at)


def _add(parsed: Parsed, key: str | int, arrays: _Arrays, problems: Problems) -> None:
    image = parsed.image(key, f"image {key!r} box")
    lengths = {len(arrays.scores), len(arrays.labels), len(arrays.boxes)}
    if len(lengths) > 1:
        found = (
            f"{len(arrays.scores)} scores, {len(arrays.labels)} labels, {len(arrays.boxes)} boxes"
        )
        problems.add("lengths", found, "equal numbers", record=f"image {key!r}")
        return
    columns = zip(arrays.labels, arrays.boxes, arrays.scores, strict=True)
    for at, (label, box, score) in enumerate(columns):
        parsed.add(image, label, box, score, record=at)
    if arrays.masks is not None:
        parsed.skipped["masks (segmentation)"] += len(arrays.boxes)
    if arrays.keypoints is not None:
        parsed.skipped["keypoints"] += len(arrays.boxes)


def from_arrays(
    results: Mapping[str | int, Mapping[str, Any]], options: Options, source: str = "arrays"
) -> BoxTable:
    """Boxes from arrays by image: ``scores`` (n,), ``labels`` (n,), ``boxes`` (n, 4) corners in px.

    Keys are file names or the benchmark's image ids. Values are anything that numpy can convert,
    including tensors on the CPU. ``source`` names the data in messages. Raises InputError with
    every problem.
    """
    parsed = Parsed("corners", convention=Convention(stated_by=("id2label",)))
    problems = Problems(source, most=MAX_LISTED)
    for key, entry in results.items():
        missing = [name for name in ("scores", "labels", "boxes") if name not in entry]
        if missing:
            problems.add(
                "not-detections",
                f"missing {', '.join(missing)}",
                "scores, labels and boxes",
                record=f"image {key!r}",
            )
            continue
        boxes = np.asarray(entry["boxes"], np.float64)
        if boxes.size and boxes.shape[1:] != (4,):
            problems.add(
                "shape", f"boxes of shape {boxes.shape}", "(n, 4)", record=f"image {key!r}"
            )
            continue
        made = _Arrays(
            np.asarray(entry["scores"], np.float64).ravel().tolist(),
            [_label(value) for value in np.asarray(entry["labels"]).ravel().tolist()],
            [(a, b, c, d) for a, b, c, d in boxes.reshape(-1, 4).tolist()],
        )
        _add(parsed, key, made, problems)
    table = None if problems else assemble(parsed, options, problems)
    if table is None:
        raise InputError(problems.all())
    return table


def _label(value: Any) -> Any:
    """The label; integer-valued floats become integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write pipeline output by file name, with class names as labels."""
    corners, names = boxes.corners.tolist(), boxes.classes.names
    label, score = boxes.label.tolist(), boxes.score.tolist()
    tree = {
        name: [_Single(score[row], names[label[row]], _Corners(*corners[row])) for row in rows]
        for name, rows in zip(boxes.images.names, rows_by_image(boxes), strict=True)
    }
    write_bytes_atomic(target, msgspec.json.encode(tree) + b"\n")
