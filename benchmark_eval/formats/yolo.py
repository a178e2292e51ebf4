"""YOLO text, as written by Ultralytics' ``save_txt``: one file per image, one line per box.

    <class number from 0> <centre x> <centre y> <width> <height> [confidence]

Coordinates are normalised by the image's width and height. An optional ``classes.txt`` in the same
folder has the class names, one per line.
"""

from __future__ import annotations

from pathlib import Path

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.classes import Convention, read_class_names
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, to_normalised
from benchmark_eval.formats.text_files import label_files, parse_number, write_lines
from benchmark_eval.voc.foreign_labels import CURE, line_format
from benchmark_eval.voc.text import text_of

CLASSES = "classes.txt"
_DIGITS = 9
_POSE = 11
"""Fewest values of a line with a box and two keypoints of three values."""
SHAPE = "<class> <centre x> <centre y> <width> <height> [confidence]"


def read(folder: Path, options: Options, problems: Problems) -> Parsed:
    """Read the label files of a folder and its subfolders; an empty one is an image without boxes.

    ``classes.txt`` at the top level has the class names, if no others are given.
    """
    parsed = Parsed("centre", one_file_each=True)
    adjacent = None
    for name, path in label_files(folder, ".txt", problems):
        if path.name == CLASSES:
            if options.names is None and path.parent == folder and path.stat().st_size:
                try:
                    adjacent = read_class_names(path)
                except InputError as error:
                    problems.extend(error.problems)
            continue
        where = path.relative_to(folder).as_posix()
        image = parsed.image(name, f"{where} line")
        text = text_of(path, problems)
        if text is None:
            continue
        for at, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                _add(parsed, image, line, f"{where} line {at}", at, problems)
    parsed.convention = Convention(first=0, stated_by=("mapping",), adjacent=adjacent)
    if not parsed.image_rows and not problems:
        problems.add("empty-folder", "no label file", "one .txt file per image")
    return parsed


def _add(parsed: Parsed, image: int, line: str, where: str, at: int, problems: Problems) -> None:
    words = line.split()
    if len(words) not in (5, 6):
        found = f"{len(words)} values"
        problems.add("line-shape", found, SHAPE, record=where, cause=_layout(line))
        return
    if not (words[0].isascii() and words[0].isdigit() and len(words[0]) <= _DIGITS):
        foreign = line_format(line)
        cause = "" if _is_number(words[0]) else "a class name; use --from xyxy-text"
        cause = f"{foreign}, {CURE}" if foreign else cause
        problems.add(
            "class-number",
            repr(words[0]),
            "an integer class number >= 0",
            record=where,
            cause=cause,
        )
        return
    try:
        values = [parse_number(word) for word in words[1:]]
    except ValueError as error:
        problems.add("not-a-number", str(error), SHAPE, record=where)
        return
    x, y, w, h = values[:4]
    if len(values) == 5:
        if values[4] > 1 and words[5].isdigit():
            problems.add(
                "confidence",
                words[5],
                "a number in [0, 1]",
                record=where,
                field="confidence",
                cause="a track id without a confidence (model.track without save_conf), or a "
                "percentage",
            )
            return
        parsed.add(image, int(words[0]), (x, y, w, h), values[4], record=at)
    else:
        parsed.add(image, int(words[0]), (x, y, w, h), record=at)


def _layout(line: str) -> str:
    """What a line is that has more values than a box; blank if it has fewer."""
    foreign = line_format(line)
    words = line.split()
    n = len(words)
    what = "polygons of a segmentation model"
    if foreign:
        what = f"{foreign}, {CURE}"
    elif n < 5:
        what = ""
    elif not all(map(_is_number, words)):
        what = "a class name with spaces; use --from xyxy-text"
    elif n == 7 and words[-1].isdigit() and int(words[-1]) > 0:
        what = "tracks with ids (model.track): predict without tracking, or remove the last column"
    elif 9 <= n <= 11:
        what = "oriented boxes (OBB) with four corners, or polygons of a segmentation model"
    elif n >= _POSE and (n - 5) % 3 in (0, 1) and _is_pose(words):
        what = "keypoints of a pose model"
    return what


def _is_pose(words: list[str]) -> bool:
    """Whether every third value after the box is a visibility: 0, 1, 2, or a confidence."""
    values = [float(word) for word in words]
    x, y, w, h = values[1:5]
    points = values[5 : 5 + 3 * ((len(values) - 5) // 3)]
    inside = [
        abs(px - x) <= w and abs(py - y) <= h
        for px, py in zip(points[::3], points[1::3], strict=True)
    ]
    hidden = [px == py == 0 for px, py in zip(points[::3], points[1::3], strict=True)]
    return sum(a or b for a, b in zip(inside, hidden, strict=True)) >= 0.9 * len(inside)


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write one label file per image, empty if it has no box, and ``classes.txt``."""
    normalised, scored = to_normalised(boxes), boxes.scored
    rows = [
        (str(label), *box, score) if scored else (str(label), *box)
        for label, box, score in zip(
            boxes.label.tolist(), normalised.tolist(), boxes.score.tolist(), strict=True
        )
    ]
    write_lines(boxes, target, rows, {CLASSES: "".join(f"{n}\n" for n in boxes.classes.names)})
