"""Names of label formats that are not read, for messages."""

from __future__ import annotations

import re
from pathlib import Path

from benchmark_eval.core.json_values import plain_json
from benchmark_eval.core.safe_read import read_input

CURE = "not read: export COCO, YOLO or Pascal VOC instead"
"""What to do with a file of another format."""
_MOST_BYTES = 20_000_000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CVAT = re.compile(rb"<annotations[\s>].*?<image[\s>]", re.DOTALL)
_ICDAR_2013 = re.compile(r'-?\d+,?\s+-?\d+,?\s+-?\d+,?\s+-?\d+,?\s+".*"')
_KITTI_NUMBERS = (14, 15)
_MOT_FIELDS = (9, 10)


def line_format(line: str) -> str:
    """The format of a line of text that is neither YOLO nor the mAP tool's; blank if unknown."""
    line = line.strip().removeprefix("\ufeff")
    words = line.split()
    n = len(words)
    if "," not in line:
        if n - 1 in _KITTI_NUMBERS and not _numeric(words[:1]) and _numeric(words[1:]):
            return "KITTI labels"
        tracks = n in _MOT_FIELDS and words[-3:] == ["-1"] * 3 and _numeric(words)
        return "MOT tracks" if tracks else ""
    fields = [field.strip() for field in line.split(",")]
    if _ICDAR_2013.fullmatch(line) or (len(fields) >= 8 and _numeric(fields[:8])):
        whole = all(field.lstrip("-").isdigit() for field in fields[:2])
        tracks = len(fields) in _MOT_FIELDS and whole and _numeric(fields)
        return "MOT tracks" if tracks else "ICDAR text"
    return ""


def _numeric(words: list[str]) -> bool:
    return all(_NUMBER.fullmatch(word) for word in words)


def file_format(path: Path) -> str:
    """The format of an XML or JSON file that is not read; blank if it is unknown or unreadable."""
    suffix = path.suffix.lower()
    try:
        if suffix not in (".xml", ".json") or path.stat().st_size > _MOST_BYTES:
            return ""
        data = read_input(path)
        if suffix == ".xml":
            return "CVAT XML" if _CVAT.search(data) else ""
        tree = plain_json(data.removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError):
        return ""
    return json_format(tree)


def json_format(tree: object) -> str:
    """The format of decoded JSON that is not read; blank if it is unknown."""
    if isinstance(tree, dict):
        return "LabelMe JSON" if {"shapes", "imagePath"} <= tree.keys() else ""
    first = tree[0] if isinstance(tree, list) and tree else None
    if (
        isinstance(first, dict)
        and "data" in first
        and {"annotations", "predictions"} & first.keys()
    ):
        return "Label Studio JSON"
    return ""
