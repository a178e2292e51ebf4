"""The plain text of the mAP tool: a file an image, a line a box, classes by name.

<class> <left> <top> <right> <bottom> [difficult]
<class> <confidence> <left> <top> <right> <bottom>
"""

from __future__ import annotations

from pathlib import Path

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, to_corners
from benchmark_eval.formats.text_files import write_lines
from benchmark_eval.voc.text import DIFFICULT, Kind, read_boxes


def read(folder: Path, options: Options, problems: Problems) -> Parsed:
    """Read a folder of ground truth or of detections, whichever all its lines are."""
    parsed = Parsed("corners", one_file_each=True)
    kinds: list[Kind] = ["detections", "ground truth"]
    if options.scores is not None:
        kinds = ["detections" if options.scores else "ground truth"]
    tried = [(kind, *read_boxes(folder, kind)) for kind in kinds]
    fit = [entry for entry in tried if not entry[2]]
    if len(fit) == 2 and len(fit[0][1]):
        problems.add(
            "two-readings",
            "lines that may be detections, or ground truth whose class names end in a number",
            "which of the two: --scores or --no-scores",
        )
        return parsed
    kind, boxes, found = fit[0] if fit else min(tried, key=lambda entry: len(entry[2]))
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
    """Write a file for every image: detections where the boxes have confidences."""
    names = boxes.classes.names
    columns = zip(
        boxes.label.tolist(),
        boxes.score.tolist(),
        to_corners(boxes, pixels).tolist(),
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
