"""What no score depends on: origins and licences of images, in tables and annotation files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmark_eval.core.csv_text import csv_records
from benchmark_eval.core.json_values import plain_json
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import read_input, unreadable

Record = TypeVar("Record")


def optional_table(
    directory: Path, file: str
) -> tuple[list[tuple[int, dict[str, str]]] | None, list[Problem]]:
    """The rows of an optional CSV file with their lines, short ones padded with blanks.

    None if the file does not exist or cannot be read, and its problems.
    """
    problems = Problems(file)
    path = directory / file
    try:
        text = read_input(path).decode("utf-8-sig", errors="replace")
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or path.is_symlink():
            problems.extend([unreadable(file, error)])
        return None, problems.all()
    records = csv_records(text, problems)
    if records is None:
        return None, problems.all()
    header = records[0][1] if records else []
    rows = [
        (line, dict(itertools.zip_longest(header, cells[: len(header)], fillvalue="")))
        for line, cells in records[1:]
    ]
    return rows, []


def extra_fields(data: bytes, kind: type[Record]) -> Record:
    """An annotation file decoded as ``kind``, a struct of the fields of interest.

    Raises ``ValueError`` or ``msgspec.DecodeError`` for files that are not COCO.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:  # NaN or a byte order mark, which only a tolerant reader accepts
        return msgspec.convert(plain_json(data.removeprefix(b"\xef\xbb\xbf")), type=kind)
