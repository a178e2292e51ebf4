"""Boxes in plain text: one file an image, one line a box.

    ground truth:  <class> <left> <top> <right> <bottom> [difficult]
    detections:    <class> <confidence> <left> <top> <right> <bottom>

The numbers stand at the end of the line, so a class name may hold blanks. Every fault of a
folder is collected; nothing is guessed and nothing is skipped but blank lines.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import read_or_report

Kind = Literal["ground truth", "detections"]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and how much there is."""

SHAPE: dict[Kind, str] = {
    "ground truth": "<class> <left> <top> <right> <bottom> [difficult]",
    "detections": "<class> <confidence> <left> <top> <right> <bottom>",
}
DIFFICULT = "difficult"
FARTHEST = 1e9
"""No pixel lies farther out (px); areas up to here are computed without overflow."""
SHOWN = 80
"""Longest piece of a line that a message quotes."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[0-9][,;]\s?[0-9.]")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of one folder as columns, in the order of image name, then line.

    ``images`` and ``classes`` are sorted names; ``image`` and ``label`` (int64) point into them.
    ``corners`` is n x 4, left, top, right, bottom in px; ``line`` counts from 1; ``confidence``
    is 0 for ground truth; ``difficult`` is False for detections.
    """

    images: tuple[str, ...]
    classes: tuple[str, ...]
    image: NDArray[np.int64]
    label: NDArray[np.int64]
    line: NDArray[np.int64]
    corners: NDArray[np.float64]
    confidence: NDArray[np.float64]
    difficult: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.label)


def text_files(folder: str | Path) -> list[Path]:
    """The ``.txt`` files of ``folder`` in the order of image name; hidden ones are passed over.

    Raises UsageError if there is no such folder or it cannot be listed.
    """
    folder = Path(folder)
    try:
        found = [
            path
            for path in folder.iterdir()
            if path.suffix.lower() == ".txt" and not path.name.startswith(".")
        ]
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        raise UsageError(f"{folder}: found {reason}; expected a folder of text files") from fault
    return sorted(found, key=lambda path: (path.stem, path.name))


def class_name(raw: str) -> str:
    """A class name as it is compared: one blank between words, composed Unicode characters."""
    return unicodedata.normalize("NFC", " ".join(raw.split()))


def read_boxes(
    folder: str | Path, kind: Kind, progress: Progress | None = None
) -> tuple[Boxes, list[Problem]]:
    """Read every text file of ``folder``; return its boxes and all its problems, in file order.

    With problems the boxes are those of the lines without a fault. Raises UsageError if the
    folder is missing.
    """
    files = text_files(folder)
    problems = Problems(str(folder))
    if not files:
        _report_empty_folder(Path(folder), kind, problems)
    reader = _Reader(kind)
    for index, path in enumerate(files):
        if index and files[index - 1].stem == path.stem:
            found = f"{files[index - 1].name} beside it"
            problems.add("duplicate-file", found, "one file per image", file=str(path))
        if not path.stem.isprintable():
            found = f"the name {_quoted(path.name)}"
            problems.add("file-name", found, "a name of printable characters", file=str(path))
        reader.read(index, path, problems)
        if progress:
            progress(f"read {kind}", index + 1, len(files))
    return reader.boxes(tuple(path.stem for path in files)), problems.all()


def _report_empty_folder(folder: Path, kind: Kind, problems: Problems) -> None:
    others = sorted({p.suffix for p in folder.iterdir() if p.suffix and p.name[0] != "."})
    problems.add(
        "empty-folder",
        "no .txt file",
        f"one text file per image with its {kind}",
        cause=f"the folder holds {', '.join(others[:5])}" if others else "",
    )


class _Reader:
    """Columns that grow file by file."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.scored = kind == "detections"
        self.numbers = array("d")  # confidence, left, top, right, bottom of each box
        self.places = array("q")  # image, label, line, difficult of each box
        self.labels: dict[str, int] = {}  # class name -> label in order of appearance
        self.spellings: dict[str, int] = {}  # what stands in a file -> label

    def read(self, image: int, path: Path, problems: Problems) -> None:
        """Add the boxes of one file and report its problems."""
        text = text_of(path, problems)
        for number, line in enumerate(_LINE_END.split(text or ""), start=1):
            if line and not line.isspace() and not self._add(image, number, line):
                problems.extend([_explain(line, self.kind, str(path), f"line {number}")])

    def _add(self, image: int, number: int, line: str) -> bool:
        """Add the box of a line, or return False: the slow ``_explain`` then says why."""
        parts = line.rsplit(None, 5)
        difficult = not self.scored and parts[-1] == DIFFICULT
        if difficult:
            del parts[-1]
        elif not self.scored:
            parts = line.rsplit(None, 4)
        name, *texts = parts or [""]
        # float() also takes 1_0 and digits of other scripts, which no other tool does
        joined = "".join(texts)
        if len(texts) != 4 + self.scored or "_" in joined or not joined.isascii():
            return False
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            return False
        if not self.scored:
            numbers.insert(0, 0.0)
        confidence, left, top, right, bottom = numbers
        # false for NaN too
        if not (
            0 <= confidence <= 1
            and -FARTHEST <= left <= right <= FARTHEST
            and -FARTHEST <= top <= bottom <= FARTHEST
        ):
            return False
        label = self.spellings.get(name)
        if label is None:
            if _name_problem(name, line, self.kind):
                return False
            label = self.labels.setdefault(class_name(name), len(self.labels))
            self.spellings[name] = label
        self.numbers.extend(numbers)
        self.places.extend((image, label, number, difficult))
        return True

    def boxes(self, images: tuple[str, ...]) -> Boxes:
        """Everything read so far, with classes renumbered in the order of their names."""
        numbers = np.array(self.numbers, dtype=np.float64).reshape(-1, 5)
        places = np.array(self.places, dtype=np.int64).reshape(-1, 4)
        classes = sorted(self.labels)
        position = np.zeros(len(classes), dtype=np.int64)
        for new, name in enumerate(classes):
            position[self.labels[name]] = new
        return Boxes(
            images=images,
            classes=tuple(classes),
            image=places[:, 0].copy(),
            label=position[places[:, 1]],
            line=places[:, 2].copy(),
            corners=numbers[:, 1:].copy(),
            confidence=numbers[:, 0].copy(),
            difficult=places[:, 3] == 1,
        )


def text_of(path: Path, problems: Problems) -> str | None:
    """The text of a file without its byte-order mark; None and a problem if it cannot be read."""
    data = read_or_report(path, problems, "a text file")
    if data is None:
        return None
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        line = error.object[: error.start].count(b"\n") + 1
        problems.add(
            "not-utf-8",
            f"byte 0x{error.object[error.start]:02x}, which is not UTF-8",
            "text in UTF-8",
            file=str(path),
            record=f"line {line}",
            cause="UTF-16, as Windows saves 'Unicode'" if wide else "another encoding, say Latin-1",
        )
        return None


def _explain(line: str, kind: Kind, file: str, record: str) -> Problem:
    """Why a line is refused."""
    fields = ["left", "top", "right", "bottom"]
    words = line.split()
    if kind == "detections":
        fields.insert(0, "confidence")
    elif words[-1] == DIFFICULT:
        del words[-1]
    name, values = words[: -len(fields)], words[-len(fields) :]
    problem: Problem | None
    if not name or not all(map(_is_number, values)):
        problem = Problem(
            "line-shape", "", _quoted(line), SHAPE[kind], cause=_shape_cause(line, kind)
        )
    else:
        numbers = dict(zip(fields, values, strict=True))
        problem = (
            _number_problem(numbers)
            or _corner_problem(numbers, flagged=kind == "ground truth" and _is_number(name[-1]))
            or _name_problem(" ".join(name), line, kind)
        )
    assert problem is not None, line  # nothing else can be wrong with a line
    return replace(problem, file=file, record=record)


def _shape_cause(line: str, kind: Kind) -> str:
    """The likely reason for a line of the wrong shape, where one can be told."""
    words = line.split()
    if words[-1] == DIFFICULT and kind == "detections":
        return "ground truth among the detections, or folders swapped"
    if words[-1] != DIFFICULT and words[-1].lower() == DIFFICULT:
        return f"the word '{DIFFICULT}' is written in small letters"
    if words[0][0] in "<{[":
        return "XML or JSON: see benchmark-eval convert"
    if _COMMA.search(line):
        return "blanks are wanted between the numbers and points in them"
    if kind == "detections" and len(words) > 4 and all(map(_is_number, words[-4:])):
        return "the confidence is left out: ground truth among the detections, or folders swapped"
    return ""


def _number_problem(numbers: dict[str, str]) -> Problem | None:
    """A number that cannot be what its field says."""
    for field, text in numbers.items():
        value = float(text)
        if _NOT_FINITE.fullmatch(text):
            return Problem("not-finite", "", text, "a finite number", field=field)
        if field == "confidence" and not 0 <= value <= 1:
            cause = "a percentage, or the confidence is left out" if value > 1 else ""
            return Problem(
                "confidence", "", _quoted(text), "a number from 0 to 1", field=field, cause=cause
            )
        if abs(value) > FARTHEST:
            expected = f"a pixel between -{FARTHEST:g} and {FARTHEST:g}"
            return Problem("coordinate", "", _quoted(text), expected, field=field)
    return None


def _corner_problem(numbers: dict[str, str], *, flagged: bool) -> Problem | None:
    """Corners in the wrong order; ``flagged`` if there may be a flag behind them."""
    for low, high in (("left", "right"), ("top", "bottom")):
        if float(numbers[high]) < float(numbers[low]):
            cause = "corners swapped, or width and height instead of right and bottom"
            if flagged and numbers["bottom"] in {"0", "1"}:
                cause = f"a flag at the end of the line? the word '{DIFFICULT}' is wanted"
            found = f"{low} {_quoted(numbers[low])} and {high} {_quoted(numbers[high])}"
            expected, field = f"{high} not below {low}", f"{low}, {high}"
            return Problem("swapped-corners", "", found, expected, field=field, cause=cause)
    return None


def _name_problem(raw: str, line: str, kind: Kind) -> Problem | None:
    """Why something cannot be a class name."""
    name = class_name(raw)
    *words, last = name.split(" ")
    cause = ""
    if not name.isprintable():
        found = f"{_quoted(name)} with an invisible character"
        return Problem("class-name", "", found, "a name of printable characters", field="class")
    if words and all(_NUMBER.fullmatch(word) for word in (*words, last)):
        cause = "more numbers than wanted"
    elif words and _NUMBER.fullmatch(last) and not last.isdigit() and 0 <= float(last) <= 1:
        cause = "a confidence too many"
        if kind == "ground truth":
            cause += ": a detection among the ground truth, or folders swapped"
    return Problem("line-shape", "", _quoted(line), SHAPE[kind], cause=cause) if cause else None


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text))


def _quoted(text: str) -> str:
    """Text for a message: short, on one line, with invisible characters made visible."""
    text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return repr(text)
