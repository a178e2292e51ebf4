"""Boxes in text files: one file per image, one line per box.

    ground truth:  <class> <left> <top> <right> <bottom> [difficult]
    detections:    <class> <confidence> <left> <top> <right> <bottom>

Numbers are parsed from the end of the line, so class names may contain spaces. All problems of a
folder are collected; only blank lines are skipped.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.listing import listed, walked
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import dead_link, decoded, read_or_report
from benchmark_eval.core.text import nfc
from benchmark_eval.voc.foreign_labels import CURE, file_format, line_format

Kind = Literal["ground truth", "detections"]
Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the number of items done and their total."""

SHAPE: dict[Kind, str] = {
    "ground truth": "<class> <left> <top> <right> <bottom> [difficult]",
    "detections": "<class> <confidence> <left> <top> <right> <bottom>",
}
DIFFICULT = "difficult"
MAX_COORDINATE = 1e9
"""Largest absolute coordinate (px); areas up to this limit are computed without overflow."""
MAX_QUOTED = 80
"""Maximum length of quoted text in a message."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[0-9][,;]\s?[0-9.]")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of one folder as columns, ordered by image name, then line.

    ``images`` and ``classes`` are sorted names; ``image`` and ``label`` (int64) are indices into
    them. ``corners`` is (n, 4) left, top, right, bottom in px; ``line`` is 1-based; ``confidence``
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
    """The ``.txt`` files of ``folder`` sorted by image name, without hidden files.

    Raises UsageError if the folder does not exist or cannot be listed.
    """
    folder = Path(folder)
    try:
        found = [path for path in listed(folder) if path.suffix.lower() == ".txt"]
    except OSError as error:
        reason = dead_link(folder) or error.strerror or type(error).__name__
        raise UsageError(f"{folder}: found {reason}; expected a folder of text files") from error
    return sorted(found, key=lambda path: (image_name(path), path.name))


def image_name(path: Path) -> str:
    """The name of the image of a text file: its stem, with composed characters (NFC)."""
    return nfc(path.stem)


def class_name(raw: str) -> str:
    """Normalised class name: single spaces between words, Unicode NFC."""
    return nfc(" ".join(raw.split()))


def read_boxes(
    folder: str | Path,
    kind: Kind,
    progress: Progress | None = None,
    *,
    files: Sequence[tuple[str, Path]] | None = None,
    sized: bool = False,
) -> tuple[Boxes, list[Problem]]:
    """Read every text file of ``folder``; return its boxes and all problems, in file order.

    ``files`` are the image names and files to read; by default those at the top level of the
    folder. With ``sized``, the last two numbers of a line are width and height, and so are those of
    ``corners``. If there are problems, the boxes are those of the valid lines. Raises UsageError
    if the folder does not exist.
    """
    if files is None:
        files = [(image_name(path), path) for path in text_files(folder)]
    problems = Problems(str(folder))
    if not files:
        _report_empty_folder(Path(folder), kind, problems)
    reader = _Reader(kind, sized=sized)
    for index, (name, path) in enumerate(files):
        if index and files[index - 1][0] == name:
            found = f"another file of the same image, {files[index - 1][1].name}"
            problems.add("duplicate-file", found, "one file per image", file=str(path))
        if not path.stem.isprintable():
            found = f"file name {_quoted(path.name)}"
            problems.add("file-name", found, "a name of printable characters", file=str(path))
        reader.read(index, path, problems)
        if progress:
            progress(f"read {kind}", index + 1, len(files))
    return reader.boxes(tuple(name for name, _ in files)), problems.all()


def _report_empty_folder(folder: Path, kind: Kind, problems: Problems) -> None:
    others = [path for path in listed(folder) if path.suffix]
    cause = ""
    if others:
        cause = f"folder with {', '.join(sorted({path.suffix for path in others})[:5])} files"
        foreign = file_format(others[0])
        cause += f"; {foreign} is {CURE}" if foreign else ""
    below = next((path for path in walked(folder) if path.suffix.lower() == ".txt"), None)
    if below is not None:
        cause = f"text files only in subfolders, such as {below.relative_to(folder)}"
    problems.add(
        "empty-folder", "no .txt file", f"one text file per image with its {kind}", cause=cause
    )


class _Reader:
    """Boxes read so far, as growing columns."""

    def __init__(self, kind: Kind, *, sized: bool = False) -> None:
        self.kind = kind
        self.sized = sized
        self.scored = kind == "detections"
        self.numbers = array("d")  # confidence, left, top, right, bottom of each box
        self.places = array("q")  # image, label, line, difficult of each box
        self.labels: dict[str, int] = {}  # class name -> label, in order of appearance
        self.spellings: dict[str, int] = {}  # class name as written -> label

    def read(self, image: int, path: Path, problems: Problems) -> None:
        """Add the boxes of one file and report its problems."""
        text = text_of(path, problems)
        for number, line in enumerate(_LINE_END.split(text or ""), start=1):
            if line and not line.isspace() and not self._add(image, number, line):
                problem = _explain(line, self.kind, str(path), f"line {number}", sized=self.sized)
                problems.extend([problem])

    def _add(self, image: int, number: int, line: str) -> bool:
        """Add the box of a line; False if it is invalid (``_explain`` gives the reason)."""
        parts = line.rsplit(None, 5)
        difficult = not self.scored and parts[-1] == DIFFICULT
        if difficult:
            del parts[-1]
        elif not self.scored:
            parts = line.rsplit(None, 4)
        name, *texts = parts or [""]
        # float() also accepts 1_0 and non-ASCII digits, which other tools do not
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
        near = (0.0, 0.0) if self.sized else (left, top)
        # false for NaN too
        if not (
            0 <= confidence <= 1
            and -MAX_COORDINATE <= left <= MAX_COORDINATE
            and -MAX_COORDINATE <= top <= MAX_COORDINATE
            and near[0] <= right <= MAX_COORDINATE
            and near[1] <= bottom <= MAX_COORDINATE
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
        """All boxes read so far, with labels in the order of class names."""
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
    """The text of a file without its byte order mark; None and a problem if it cannot be read."""
    data = read_or_report(path, problems, "a text file")
    if data is None:
        return None
    found = Problems(str(path))
    text = decoded(data, found)
    problems.extend(found.all())
    return text


def _explain(line: str, kind: Kind, file: str, record: str, *, sized: bool = False) -> Problem:
    """The problem of an invalid line."""
    fields = ["left", "top", *(("width", "height") if sized else ("right", "bottom"))]
    words = line.split()
    foreign = line_format(line)
    if foreign:
        cause = f"{foreign}, {CURE}"
        return Problem("line-shape", file, _quoted(line), SHAPE[kind], record, cause=cause)
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
            or _size_problem(numbers)
            or _corner_problem(numbers, flagged=kind == "ground truth" and _is_number(name[-1]))
            or _name_problem(" ".join(name), line, kind)
        )
    assert problem is not None, line  # the checks above cover all invalid lines
    return replace(problem, file=file, record=record)


def _shape_cause(line: str, kind: Kind) -> str:
    """Likely cause of a line of the wrong shape, if known."""
    words = line.split()
    if words[-1] == DIFFICULT and kind == "detections":
        return "ground truth among the detections, or swapped folders"
    if words[-1] != DIFFICULT and words[-1].lower() == DIFFICULT:
        return f"{DIFFICULT!r} must be lowercase"
    if words[0][0] in "<{[":
        return "XML or JSON; use benchmark-eval convert"
    if _COMMA.search(line):
        return "use spaces between numbers and decimal points within them"
    if kind == "detections" and len(words) > 4 and all(map(_is_number, words[-4:])):
        return "missing confidence: ground truth among the detections, or swapped folders"
    return ""


def _number_problem(numbers: dict[str, str]) -> Problem | None:
    """The problem of a number outside the range of its field."""
    for field, text in numbers.items():
        value = float(text)
        if _NOT_FINITE.fullmatch(text):
            return Problem("not-finite", "", text, "a finite number", field=field)
        if field == "confidence" and not 0 <= value <= 1:
            cause = "a percentage, or a missing confidence" if value > 1 else ""
            return Problem(
                "confidence", "", _quoted(text), "a number in [0, 1]", field=field, cause=cause
            )
        if abs(value) > MAX_COORDINATE:
            expected = f"a number in [-{MAX_COORDINATE:g}, {MAX_COORDINATE:g}]"
            return Problem("coordinate", "", _quoted(text), expected, field=field)
    return None


def _size_problem(numbers: dict[str, str]) -> Problem | None:
    """The problem of a negative width or height."""
    for field in ("width", "height"):
        if float(numbers.get(field, "0")) < 0:
            expected = f"{field} >= 0"
            return Problem("negative-size", "", _quoted(numbers[field]), expected, field=field)
    return None


def _corner_problem(numbers: dict[str, str], *, flagged: bool) -> Problem | None:
    """The problem of corners in the wrong order; ``flagged`` if a flag may follow them."""
    for low, high in (("left", "right"), ("top", "bottom")):
        if high in numbers and float(numbers[high]) < float(numbers[low]):
            cause = "swapped corners, or width and height instead of right and bottom"
            if flagged and numbers["bottom"] in {"0", "1"}:
                cause = f"a flag of 0 or 1 at the end of the line; use {DIFFICULT!r} instead"
            found = f"{low} {_quoted(numbers[low])} and {high} {_quoted(numbers[high])}"
            expected, field = f"{high} >= {low}", f"{low}, {high}"
            return Problem("swapped-corners", "", found, expected, field=field, cause=cause)
    return None


def _name_problem(raw: str, line: str, kind: Kind) -> Problem | None:
    """The problem of an invalid class name."""
    name = class_name(raw)
    *words, last = name.split(" ")
    cause = ""
    if not name.isprintable():
        found = f"{_quoted(name)} with a non-printable character"
        return Problem("class-name", "", found, "a name of printable characters", field="class")
    foreign = line_format(line)
    if foreign:
        cause = f"{foreign}, {CURE}"
    elif words and all(_NUMBER.fullmatch(word) for word in (*words, last)):
        cause = "too many numbers"
    elif words and _NUMBER.fullmatch(last) and not last.isdigit() and 0 <= float(last) <= 1:
        cause = "an extra confidence"
        if kind == "ground truth":
            cause += ": detections among the ground truth, or swapped folders"
    return Problem("line-shape", "", _quoted(line), SHAPE[kind], cause=cause) if cause else None


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text))


def _quoted(text: str) -> str:
    """Text for a message: shortened, with non-printable characters escaped."""
    text = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."
    return repr(text)
