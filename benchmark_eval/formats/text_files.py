"""Helpers for formats with one file per image."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import unreadable
from benchmark_eval.formats.table import BoxTable

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?nan|[+-]?inf", re.I
)


def label_files(
    folder: Path, suffix: str, problems: Problems | None = None
) -> list[tuple[str, Path]]:
    """The files with a suffix in a folder and its subfolders, with the names of their images.

    An image is named by the path of its file in ``folder``, without the suffix. Two files of one
    image (``a.txt`` and ``a.TXT``) and whatever cannot be read are added to ``problems``.
    """
    found = [
        (path.relative_to(folder).as_posix()[: -len(suffix)], path)
        for path in _below(folder, suffix, problems)
        if path.suffix.lower() == suffix
    ]
    found.sort(key=lambda pair: (pair[0], pair[1].name))
    for (name, path), (after, other) in itertools.pairwise(found):
        if name == after and problems is not None:
            what = f"another file of the same image, {path.name}"
            problems.add("duplicate-file", what, "one file per image", record=other.name)
    return found


def _below(folder: Path, suffix: str, problems: Problems | None) -> Iterator[Path]:
    """Everything in a folder and its subfolders; what cannot be listed is added to ``problems``."""
    try:
        entries = listed(folder)
    except OSError as error:
        if problems is not None:
            problems.extend([unreadable(folder, error, "a folder of label files")])
        return
    for path in entries:
        if path.suffix.lower() == suffix or not path.is_dir():
            yield path
        elif not path.is_symlink():
            yield from _below(path, suffix, problems)
        elif problems is not None:
            found, expected = "a link to a folder, which is not read", "files or folders"
            problems.add("linked-folder", found, expected, record=path.name)


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
