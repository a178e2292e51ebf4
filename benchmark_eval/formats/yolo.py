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
from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule, to_normalised
from benchmark_eval.formats.text_files import parse_number, write_lines
from benchmark_eval.voc.text import text_files, text_of

CLASSES = "classes.txt"
_DIGITS = 9
SHAPE = "<class> <centre x> <centre y> <width> <height> [confidence]"


def read(folder: Path, options: Options, problems: Problems) -> Parsed:
    """Read the label files of a folder; an empty one is an image without boxes."""
    parsed = Parsed("centre", one_file_each=True, first_class=0)
    for path in text_files(folder):
        if path.name == CLASSES:
            if options.names is None and path.stat().st_size:
                try:
                    parsed.adjacent_names = read_class_names(path)
                except InputError as error:
                    problems.extend(error.problems)
            continue
        image = parsed.image(path.stem, f"{path.name} line")
        text = text_of(path, problems)
        if text is None:
            continue
        for at, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if words:
                _add(parsed, image, words, f"{path.name} line {at}", at, problems)
    if not parsed.image_rows and not problems:
        problems.add("empty-folder", "no label file", "one .txt file per image")
    return parsed


def _add(
    parsed: Parsed, image: int, words: list[str], where: str, at: int, problems: Problems
) -> None:
    if len(words) not in (5, 6):
        cause = ""
        if len(words) > 6 and len(words) % 2:
            cause = "polygons of a segmentation model, or tracks with ids"
        elif len(words) > 6:
            cause = "a class name with spaces; use --from xyxy-text"
        problems.add("line-shape", f"{len(words)} values", SHAPE, record=where, cause=cause)
        return
    if not (words[0].isascii() and words[0].isdigit() and len(words[0]) <= _DIGITS):
        cause = "a class name; use --from xyxy-text" if not _is_number(words[0]) else ""
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
        parsed.add(image, int(words[0]), (x, y, w, h), values[4], record=at)
    else:
        parsed.add(image, int(words[0]), (x, y, w, h), record=at)


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
