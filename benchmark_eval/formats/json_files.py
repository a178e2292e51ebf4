"""JSON files of records: a fast typed reader, and a slow one that reports every problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from benchmark_eval.core.atomic_write import atomic_writer
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import lone_surrogate, plain_json
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_or_report

T = TypeVar("T")

Id = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer that fits into an int64 column."""

_CHUNK = 50_000
"""Number of records encoded at a time, to bound memory."""


def read_bytes(path: Path, problems: Problems, expected: str) -> bytes | None:
    """The bytes of a file without a byte order mark; None and a problem if it is unreadable."""
    record = _record_name(path, problems)
    data = read_or_report(path, problems, expected, file=problems.file, record=record)
    return None if data is None else data.removeprefix(b"\xef\xbb\xbf")


def _record_name(path: Path, problems: Problems) -> str:
    return "" if str(path) == problems.file else path.name


def records(path: Path, kind: type[T], problems: Problems, expected: str) -> list[T]:
    """The records of a JSON list; one problem per record that is not a valid ``kind``."""
    data = read_bytes(path, problems, expected)
    if data is None:
        return []
    try:
        return msgspec.json.decode(data, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # the slow path reports each record
    tree = parse(data, path, problems, expected)
    if tree is None:
        return []
    if not isinstance(tree, list):
        what = f"a JSON {type(tree).__name__}"
        if isinstance(tree, dict):
            what += f" with keys {', '.join(map(str, tree))[:80]}"
        problems.add("not-a-list", what, expected, record=_record_name(path, problems))
        return []
    where = f"{path.name} " if _record_name(path, problems) else ""
    made = (convert(entry, kind, f"{where}record {at}", problems) for at, entry in enumerate(tree))
    return [record for record in made if record is not None]


def parse(data: bytes, path: Path, problems: Problems, expected: str) -> Any:
    """The content as plain JSON (including NaN and Infinity); None and a problem if invalid."""
    try:
        tree = plain_json(data)
    except ValueError as error:
        found, record = f"invalid JSON: {error}"[:200], _record_name(path, problems)
        problems.add("not-json", found, expected, record=record, cause=json_cause(data))
        return None
    odd = lone_surrogate(data, tree)
    if odd:
        found, record = f"half of a surrogate pair in {odd}", _record_name(path, problems)
        problems.add("not-unicode", found, "valid Unicode", record=record)
        return None
    return tree


def convert(entry: Any, kind: type[T], where: str, problems: Problems) -> T | None:
    """One decoded record as ``kind``; None and a problem if invalid."""
    try:
        return msgspec.convert(entry, type=kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".")
        found = f"an invalid record ({text})"
        problems.add("record", found, f"a record with {_fields(kind)}", record=where, field=field)
        return None


def _fields(kind: type[Any]) -> str:
    return ", ".join(getattr(kind, "__struct_fields__", ()))


def write_list(path: Path, entries: Iterator[Any], n: int) -> int:
    """Write ``n`` records as a JSON list in chunks; returns the bytes written."""
    encoder = msgspec.json.Encoder()
    size = 0
    with atomic_writer(path) as stream:
        size += stream.write(b"[")
        for start in range(0, n, _CHUNK):
            chunk = [next(entries) for _ in range(min(_CHUNK, n - start))]
            size += stream.write((b"," if start else b"") + encoder.encode(chunk)[1:-1])
        size += stream.write(b"]\n")
    return size
