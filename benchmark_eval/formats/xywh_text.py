"""Text files with left, top, width and height: one file per image, one line per box, class names.

<class> <left> <top> <width> <height> [difficult]
<class> <confidence> <left> <top> <width> <height>
"""

from __future__ import annotations

from pathlib import Path

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule
from benchmark_eval.formats.xyxy_text import read_lines, write_numbers


def read(folder: Path, options: Options, problems: Problems) -> Parsed:
    """Read a folder as detections or as ground truth, whichever fits all lines."""
    return read_lines(folder, options, problems, "xywh")


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write one file per image: detections if the boxes have confidences, else ground truth."""
    write_numbers(boxes, target, boxes.xywh)
