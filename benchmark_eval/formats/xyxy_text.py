"""Text files of ``benchmark-eval map``: one file per image, one line per box, class names.

<class> <left> <top> <right> <bottom> [difficult]
<class> <confidence> <left> <top> <right> <bottom>
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, to_corners
from benchmark_eval.formats.text_files import label_files, write_lines
from benchmark_eval.voc.text import DIFFICULT, Kind, read_boxes


def read(folder: Path, options: Options, problems: Problems) -> Parsed:
    """Read a folder as detections or as ground truth, whichever fits all lines."""
    return read_lines(folder, options, problems, "corners")


def read_lines(
    folder: Path, options: Options, problems: Problems, layout: Literal["corners", "xywh"]
) -> Parsed:
    """Read lines whose last four numbers are of this layout."""
    parsed = Parsed(layout, one_file_each=True)
    kinds: list[Kind] = ["detections", "ground truth"]
    if options.scores is not None:
        kinds = ["detections" if options.scores else "ground truth"]
    files = list(dict(label_files(folder, ".txt", problems)).items())
    sized = layout == "xywh"
    readings = [(kind, *read_boxes(folder, kind, files=files, sized=sized)) for kind in kinds]
    valid = [reading for reading in readings if not reading[2]]
    if len(valid) == 2 and len(valid[0][1]):
        problems.add(
            "two-readings",
            "lines that are valid as detections and as ground truth with class names that end in a "
            "number",
            "--scores or --no-scores",
        )
        return parsed
    kind, boxes, found = valid[0] if valid else min(readings, key=lambda reading: len(reading[2]))
    problems.extend(found)
    for name in boxes.images:
        parsed.image(name, f"{name}.txt line")
    scores = boxes.confidence.tolist() if kind == "detections" else [float("nan")] * len(boxes)
    for image, label, line, corners, score, difficult in zip(
        boxes.image.tolist(),
        boxes.label.tolist(),
        boxes.line.tolist(),
        boxes.corners.tolist(),
        scores,
        boxes.difficult.tolist(),
        strict=True,
    ):
        name = boxes.classes[label]
        parsed.add(image, name, tuple(corners), score, record=line, ignored=difficult)
    return parsed


def write(boxes: BoxTable, target: Path, pixels: PixelRule) -> None:
    """Write one file per image: detections if the boxes have confidences, else ground truth."""
    write_numbers(boxes, target, to_corners(boxes, pixels))


def write_numbers(boxes: BoxTable, target: Path, numbers: Floats) -> None:
    """Write one file per image with four ``numbers`` per box."""
    names = boxes.classes.names
    columns = zip(
        boxes.label.tolist(),
        boxes.score.tolist(),
        numbers.tolist(),
        boxes.ignored.tolist(),
        strict=True,
    )
    if boxes.scored:
        rows = [(names[label], score, *box) for label, score, box, _ in columns]
    else:
        rows = [
            (names[label], *box, *([DIFFICULT] if difficult else []))
            for label, _, box, difficult in columns
        ]
    write_lines(boxes, target, rows, {})
