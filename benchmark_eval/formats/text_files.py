"""Helpers for formats with one text file per image."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark_eval.formats.table import BoxTable

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?nan|[+-]?inf", re.I
)


def parse_number(text: str) -> float:
    """Parse a number; raises ValueError for text that only Python accepts, such as 1_000."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r}, which is not a number")
    return float(text)


def shortest(value: float | str) -> str:
    """The shortest text of a number without loss: 10, 0.5, 1e-09."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def rows_by_image(boxes: BoxTable) -> list[list[int]]:
    """Rows of the boxes of each image, in order."""
    rows: list[list[int]] = [[] for _ in range(len(boxes.images))]
    for row, image in enumerate(boxes.image.tolist()):
        rows[image].append(row)
    return rows


def write_lines(
    boxes: BoxTable,
    folder: Path,
    rows: Sequence[Sequence[float | str]],
    other_files: Mapping[str, str],
) -> None:
    """Write ``<stem>.txt`` per image with one line per box, and other files, into ``folder``."""
    for stem, own_rows in zip(boxes.images.stems, rows_by_image(boxes), strict=True):
        text = "".join(" ".join(map(shortest, rows[row])) + "\n" for row in own_rows)
        (folder / f"{stem}.txt").write_text(text, encoding="utf-8", newline="\n")
    for name, text in other_files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
