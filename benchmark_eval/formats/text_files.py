"""What formats with a file for each image share: numbers in text, and writing such folders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark_eval.formats.table import BoxTable

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?nan|[+-]?inf", re.I
)


def number(text: str) -> float:
    """A number as text; ValueError for what only Python takes for one, such as 1_000."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r}, no number")
    return float(text)


def plain(value: float | str) -> str:
    """A number as short as it can be said without loss: 10, 0.5, 1e-09."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def by_image(boxes: BoxTable) -> list[list[int]]:
    """The rows of each image's boxes, in their order."""
    rows: list[list[int]] = [[] for _ in range(len(boxes.images))]
    for row, image in enumerate(boxes.image.tolist()):
        rows[image].append(row)
    return rows


def write_lines(
    boxes: BoxTable,
    folder: Path,
    rows: Sequence[Sequence[float | str]],
    besides: Mapping[str, str],
) -> None:
    """Write ``<stem>.txt`` for every image, a line a box, and other files into ``folder``."""
    for stem, mine in zip(boxes.images.stems, by_image(boxes), strict=True):
        text = "".join(" ".join(map(plain, rows[row])) + "\n" for row in mine)
        (folder / f"{stem}.txt").write_text(text, encoding="utf-8", newline="\n")
    for name, text in besides.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
