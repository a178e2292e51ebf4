"""Guess the format of a file or folder from its suffix and from all of its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import json_kind, plain_json
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import absent, read_input, unreadable
from benchmark_eval.core.text import counted
from benchmark_eval.formats.registry import FORMATS
from benchmark_eval.formats.text_files import label_files, parse_number
from benchmark_eval.formats.yolo import CLASSES
from benchmark_eval.voc.foreign_labels import CURE, json_format, line_format
from benchmark_eval.voc.foreign_labels import file_format as foreign_file

_HINT = f"specify the format with --from {' | '.join(FORMATS)}"
_NORMALISED = 1.5
"""Largest number that is taken for a normalised coordinate; some exceed 1 by rounding."""
_LINES = 20
"""Most lines of a text file that are looked at, evenly spread over the file."""
_BBOX_JSON = ".bbox.json"


@dataclass(frozen=True, slots=True)
class Guess:
    """A format guessed from the content, and the evidence for it."""

    name: str
    evidence: str

    @property
    def note(self) -> str:
        """The guess as an assumption of the report."""
        return f"the format {self.name} was guessed from {self.evidence}; --from sets the format"

    def explained(self, problem: Problem) -> Problem:
        """A problem of the source with the guess as a possible cause."""
        guess = f"read as {self.name}, guessed from {self.evidence}: --from sets the format"
        return replace(problem, cause=f"{problem.cause}; {guess}" if problem.cause else guess)


def detect_format(source: str | Path) -> str:
    """The name of the format of ``source``. Raises UsageError if it is ambiguous."""
    return guess_format(source).name


def guess_format(source: str | Path) -> Guess:
    """The likeliest format of ``source``. Raises UsageError if there is none.

    The format of a folder is that of most of its files, the format of a text file that of most of
    its lines. COCO results, Detectron2 JSON and Ultralytics JSON look alike: a list with a file
    name is read as Ultralytics JSON, a list with integer image ids only as COCO results.
    """
    source = Path(source)
    if source.is_dir():
        return _folder(source)
    if not source.exists():
        raise UsageError(f"{source}: {absent(source, 'no such file or folder')}")
    if source.suffix.lower() == ".json":
        return _json(source)
    found = foreign_file(source)
    if found:
        raise _refused(source, found)
    suffix = f"with the suffix {source.suffix}" if source.suffix else "without a suffix"
    raise UsageError(f"{source}: found a file {suffix}; {_HINT}")


def _refused(path: Path, found: str) -> UsageError:
    return UsageError(f"{path}: found {found}, which is {CURE}")


def _folder(folder: Path) -> Guess:
    by_kind = {
        kind: [path for _, path in label_files(folder, kind)] for kind in (".xml", ".json", ".txt")
    }
    by_kind[".txt"] = [path for path in by_kind[".txt"] if path.name != CLASSES]
    kinds = [kind for kind, files in by_kind.items() if files]
    if len(kinds) != 1:
        what = "no .xml, .json or .txt file"
        if kinds:
            what = f"found {' and '.join(sorted(kinds))} files"
        raise UsageError(f"{folder}: {what}; {_HINT}")
    (kind,) = kinds
    if kind == ".txt":
        return _text_folder(folder, by_kind[kind])
    votes = Counter(
        vote
        for path in by_kind[kind]
        if (vote := foreign_file(path) or ("voc-xml" if kind == ".xml" else _image_json(path)))
    )
    if not votes or (not votes.most_common(1)[0][0]):
        raise UsageError(f"{folder}: found only files without a box; {_HINT}")
    name, n = votes.most_common(1)[0]
    if name == _UNKNOWN:
        formats = "darkflow or ultralytics-results"
        raise UsageError(f"{folder}: found .json files that are not in {formats} format; {_HINT}")
    if name not in FORMATS:
        raise _refused(folder, name)
    return Guess(name, f"{n:,} of {counted(votes.total(), 'file')}")


_UNKNOWN = "unknown"


def _image_json(path: Path) -> str:
    """The format of a JSON file of one image; blank if it has no box."""
    tree = _decode(path)
    if not isinstance(tree, list):
        return _UNKNOWN
    votes = Counter(
        "darkflow"
        if isinstance(entry, dict) and "topleft" in entry
        else "ultralytics-results"
        if _is_result(entry)
        else _UNKNOWN
        for entry in tree
    )
    return votes.most_common(1)[0][0] if votes else ""


def _is_result(entry: Any) -> bool:
    """Whether a record is one detection as ``Results.to_json()`` of Ultralytics writes it."""
    box = entry.get("box") if isinstance(entry, dict) else None
    return isinstance(box, dict) and "x1" in box


def _text_folder(folder: Path, files: Iterable[Path]) -> Guess:
    votes: Counter[str] = Counter()
    reversed_lines = text_lines = 0
    for path in files:
        lines = [line for line in _text(path).splitlines() if line.strip()]
        lines = lines[:: -(-len(lines) // _LINES) or 1]
        kinds = Counter(map(_line_format, lines))
        text_lines += kinds["xyxy-text"]
        if kinds["xyxy-text"]:
            reversed_lines += sum(map(_is_reversed, lines))
        votes.update(name for name, _ in kinds.most_common(1))
    if not votes:
        raise UsageError(f"{folder}: found only empty text files; {_HINT}")
    name, n = votes.most_common(1)[0]
    if name not in FORMATS:
        raise _refused(folder, name)
    evidence = f"{n:,} of {counted(votes.total(), 'file')}"
    if name == "xyxy-text" and 2 * reversed_lines > text_lines:
        # corners are never in this order; width and height often are less than left and top
        return Guess("xywh-text", evidence)
    return Guess(name, evidence)


def _line_format(line: str) -> str:
    """The format of a line: YOLO of any kind of label, another known format, or text."""
    foreign = line_format(line)
    if foreign:
        return foreign
    values = _numbers(line.split())
    if values is None or len(values) < 5 or not values[0].is_integer() or values[0] < 0:
        return "xyxy-text"
    return "yolo" if all(-_NORMALISED <= v <= _NORMALISED for v in values[1:5]) else "xyxy-text"


def _is_reversed(line: str) -> bool:
    """Whether the last four numbers of a line cannot be corners."""
    values = _numbers(line.split()[-4:])
    if values is None or len(values) < 4:
        return False
    return values[2] < values[0] or values[3] < values[1]


def _numbers(words: list[str]) -> list[float] | None:
    try:
        return [parse_number(word) for word in words]
    except ValueError:
        return None


def _text(path: Path) -> str:
    return _bytes(path).removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")


def _decode(path: Path) -> Any:
    data = _bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return plain_json(data)  # NaN, which the reader reports for each record
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error} ({json_cause(data)}); {_HINT}") from None


def _bytes(path: Path) -> bytes:
    try:
        return read_input(path)
    except OSError as error:
        raise InputError([unreadable(path, error)]) from None


def _json(path: Path) -> Guess:
    tree = _decode(path)
    if not isinstance(tree, dict | list):
        raise UsageError(f"{path}: found {json_kind(tree)}; expected a list or an object")
    foreign = json_format(tree)
    if foreign:
        raise _refused(path, foreign)
    if isinstance(tree, dict) and {"images", "annotations", "categories"} <= tree.keys():
        return Guess("coco", "its keys")
    votes = Counter(_votes(tree))
    n_empty = votes.pop(_EMPTY, 0)
    if n_empty and not votes:
        votes["huggingface"] = n_empty
    if not votes:
        raise UsageError(f"{path}: found JSON of an unknown structure; {_HINT}")
    name, n = votes.most_common(1)[0]
    evidence = f"{n:,} of {counted(votes.total(), 'record')}"
    if name == _ONE_IMAGE:
        raise UsageError(
            f"{path}: found the detections of one image, as Results.to_json() writes them; "
            "expected a folder with one such file per image, or an object {file name: detections}"
        )
    if name == _UNKNOWN:
        raise UsageError(f"{path}: found JSON of an unknown structure; {_HINT}")
    if name in ("coco-results", "ultralytics-json"):
        # one file name shows who wrote the file: Ultralytics writes 7 for the image 007.jpg
        if votes["ultralytics-json"]:
            named = votes["ultralytics-json"]
            total = named + votes["coco-results"]
            return Guess("ultralytics-json", f"file names in {named:,} of {total:,} records")
        if path.name.endswith(_BBOX_JSON):
            return Guess("mmdetection", f"the suffix {_BBOX_JSON}")
    return Guess(name, evidence)


_ONE_IMAGE = "one image"
_EMPTY = "an image without boxes"


def _votes(tree: dict[str, Any] | list[Any]) -> Iterator[str]:
    """The format of each record of a list, or of each image of an object."""
    if isinstance(tree, dict):
        yield from map(_entry_format, tree.values())
        return
    for entry in tree:
        if not isinstance(entry, dict):
            yield _UNKNOWN
        elif {"scores", "boxes"} <= entry.keys():
            yield "huggingface"
        elif {"image_id", "bbox"} <= entry.keys():
            named = entry.get("file_name") is not None or isinstance(entry["image_id"], str)
            yield "ultralytics-json" if named else "coco-results"
        else:
            yield _ONE_IMAGE if _is_result(entry) else _UNKNOWN


def _entry_format(entry: Any) -> str:
    """The format of the detections of one image in an object."""
    if isinstance(entry, dict):
        return "huggingface" if {"scores", "boxes"} <= entry.keys() else _UNKNOWN
    if not isinstance(entry, list) or not all(isinstance(one, dict) for one in entry):
        return _UNKNOWN
    if not entry:
        return _EMPTY
    if all(map(_is_result, entry)):
        return "ultralytics-results"
    return "huggingface" if all("box" in one for one in entry) else _UNKNOWN
