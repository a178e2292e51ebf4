"""Detect the format of a file or folder by its suffix, then by its content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import json_kind, plain_json
from benchmark_eval.core.listing import listed
from benchmark_eval.core.safe_read import absent, read_input, unreadable
from benchmark_eval.formats.registry import FORMATS
from benchmark_eval.formats.text_files import parse_number
from benchmark_eval.formats.yolo import CLASSES

_HINT = f"specify the format with --from {' | '.join(FORMATS)}"
_FILES_READ = 20


def detect_format(source: str | Path) -> str:
    """The name of the format of ``source``. Raises UsageError if it is ambiguous.

    COCO results, Detectron2 JSON and Ultralytics JSON look alike: a list with file names is read as
    Ultralytics JSON, a list with integer image ids as COCO results.
    """
    source = Path(source)
    if source.is_dir():
        return _folder(source)
    if not source.exists():
        raise UsageError(f"{source}: {absent(source, 'no such file or folder')}")
    if source.suffix.lower() == ".json":
        return _json(source)
    suffix = f"with the suffix {source.suffix}" if source.suffix else "without a suffix"
    raise UsageError(f"{source}: found a file {suffix}; {_HINT}")


def _folder(folder: Path) -> str:
    files = [path for path in listed(folder) if path.is_file()]
    kinds = {p.suffix.lower() for p in files} & {".xml", ".json", ".txt"}
    if len(kinds) != 1:
        what = "no .xml, .json or .txt file"
        if kinds:
            what = f"found {' and '.join(sorted(kinds))} files"
        raise UsageError(f"{folder}: {what}; {_HINT}")
    kind = kinds.pop()
    if kind == ".xml":
        return "voc-xml"
    mine = [p for p in files if p.suffix.lower() == kind]
    if kind == ".json":
        return _json_folder(folder, mine)
    for path in mine[:_FILES_READ]:
        if path.name == CLASSES:
            return "yolo"
        for line in _bytes(path).decode("utf-8", errors="replace").splitlines():
            if line.strip():
                return "yolo" if _is_yolo(line.split()) else "xyxy-text"
    raise UsageError(f"{folder}: found only empty text files; {_HINT}")


def _json_folder(folder: Path, files: list[Path]) -> str:
    for path in files[:_FILES_READ]:
        tree = _decode(path)
        if isinstance(tree, list) and tree:
            if isinstance(tree[0], dict) and "topleft" in tree[0]:
                return "darkflow"
            break
    raise UsageError(f"{folder}: found .json files that are not in darkflow format; {_HINT}")


def _is_yolo(words: list[str]) -> bool:
    """Whether a line has five or six numbers: an integer, then numbers in [0, 1]."""
    try:
        values = [parse_number(word) for word in words]
    except ValueError:
        return False
    return len(words) in (5, 6) and words[0].isdigit() and all(0 <= v <= 1 for v in values[1:])


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


def _json(path: Path) -> str:
    tree = _decode(path)
    entries = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    first = next(iter(entries), None)
    if isinstance(tree, dict):
        if {"images", "annotations", "categories"} <= tree.keys():
            return "coco"
        arrays = isinstance(first, dict) and {"scores", "boxes"} <= first.keys()
        singles = isinstance(first, list) and all(
            isinstance(entry, dict) and "box" in entry for entry in first
        )
        if arrays or singles:
            return "huggingface"
    elif isinstance(first, dict):
        if {"scores", "boxes"} <= first.keys():
            return "huggingface"
        if {"image_id", "bbox"} <= first.keys():
            named = "file_name" in first or isinstance(first["image_id"], str)
            return "ultralytics-json" if named else "coco-results"
    if not isinstance(tree, dict | list):
        raise UsageError(f"{path}: found {json_kind(tree)}; expected a list or an object")
    raise UsageError(f"{path}: found JSON of an unknown structure; {_HINT}")
