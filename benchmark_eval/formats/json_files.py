"""JSON files of records: typed and quick, or record by record with every fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from benchmark_eval.core.atomic_write import atomic_writer
from benchmark_eval.core.json_values import plain_json
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_or_report

T = TypeVar("T")

Id = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number that a column can hold."""

_PIECE = 50_000
"""Records that are turned into text at once, so that memory stays flat."""


def read_bytes(path: Path, problems: Problems, wanted: str) -> bytes | None:
    """The bytes of a file without a byte-order mark; None and a problem if it is unreadable."""
    record = _name(path, problems)
    data = read_or_report(path, problems, wanted, file=problems.file, record=record)
    return None if data is None else data.removeprefix(b"\xef\xbb\xbf")


def _name(path: Path, problems: Problems) -> str:
    return "" if str(path) == problems.file else path.name


def records(path: Path, kind: type[T], problems: Problems, wanted: str) -> list[T]:
    """The list of records in a JSON file; problems name each record that is no ``kind``."""
    data = read_bytes(path, problems, wanted)
    if data is None:
        return []
    try:
        return msgspec.json.decode(data, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # told record by record below
    tree = parse(data, path, problems, wanted)
    if tree is None:
        return []
    if not isinstance(tree, list):
        what = f"a JSON {type(tree).__name__}"
        if isinstance(tree, dict):
            what += f" with the keys {', '.join(map(str, tree))[:80]}"
        problems.add("not-a-list", what, wanted, record=_name(path, problems))
        return []
    where = f"{path.name} " if _name(path, problems) else ""
    made = (convert(entry, kind, f"{where}record {at}", problems) for at, entry in enumerate(tree))
    return [record for record in made if record is not None]


def parse(data: bytes, path: Path, problems: Problems, wanted: str) -> Any:
    """The file as plain JSON (NaN and Infinity too); None and a fault where it is none."""
    try:
        return plain_json(data)
    except ValueError as error:
        problems.add("not-json", str(error)[:200], wanted, record=_name(path, problems),
                   cause="a half-written or damaged file")  # fmt: skip
        return None


def convert(entry: Any, kind: type[T], where: str, problems: Problems) -> T | None:
    """One decoded record as ``kind``; None and a fault where it is none."""
    try:
        return msgspec.convert(entry, type=kind)
    except msgspec.ValidationError as error:
        text, _, at = str(error).partition(" - at `$")
        field = at.rstrip("`").lstrip(".")
        problems.add("record", text, f"a record with {_fields(kind)}", record=where, field=field)
        return None


def _fields(kind: type[Any]) -> str:
    return ", ".join(getattr(kind, "__struct_fields__", ()))


def write_list(path: Path, entries: Iterator[Any], n: int) -> int:
    """Write ``n`` records as a JSON list, a piece at a time; returns the bytes written."""
    encoder = msgspec.json.Encoder()
    size = 0
    with atomic_writer(path) as stream:
        size += stream.write(b"[")
        for start in range(0, n, _PIECE):
            piece = [next(entries) for _ in range(min(_PIECE, n - start))]
            size += stream.write((b"," if start else b"") + encoder.encode(piece)[1:-1])
        size += stream.write(b"]\n")
    return size
