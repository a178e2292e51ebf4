"""JSON files of records: a fast typed reader, and a slow one that reports every problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from benchmark_eval.core.atomic_write import atomic_writer
from benchmark_eval.core.duplicate_keys import RecordWithDuplicates, cleared_by_keys
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import json_kind, lone_surrogate, plain_json, show
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_or_report

T = TypeVar("T")

ONE_ENTRY = "one entry per image"

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
    decoded = decode_records(data, kind)
    if decoded is not None:
        return decoded
    tree = parse(data, path, problems, expected, list)
    where = f"{path.name} " if _record_name(path, problems) else ""
    made = (
        convert(entry, kind, f"{where}record {at}", problems) for at, entry in enumerate(tree or ())
    )
    return [record for record in made if record is not None]


def decode_records(data: bytes, kind: type[T]) -> list[T] | None:
    """The records of a JSON list; None if one is invalid or may have a duplicate key.

    Decoders keep the last value of a duplicate key; ``parse`` and ``convert`` report it.
    """
    try:
        made: list[T] = msgspec.json.decode(data, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return made if cleared_by_keys(data, _key_counts(made, kind)) else None


def _key_counts(made: Sequence[Any], kind: type[Any]) -> Counter[str]:
    """How often each key of ``kind`` and of its nested records was given."""
    counts: Counter[str] = Counter()
    for field in msgspec.structs.fields(kind):
        values = made if field.required else [v for v in made if getattr(v, field.name) is not None]
        counts[field.encode_name] += len(values)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            counts += _key_counts([getattr(v, field.name) for v in values], field.type)
    return counts


def parse(
    data: bytes,
    path: Path,
    problems: Problems,
    expected: str,
    *kinds: type[list[Any] | dict[Any, Any]],
) -> Any:
    """The content as plain JSON (including NaN and Infinity), which is one of ``kinds``.

    None and a problem if it is invalid or anything else; the JSON text ``null`` is a problem too.
    """
    record = _record_name(path, problems)
    try:
        tree = plain_json(data)
    except ValueError as error:
        found = f"invalid JSON: {error}"[:200]
        problems.add("not-json", found, expected, record=record, cause=json_cause(data))
        return None
    odd = lone_surrogate(data, tree)
    if odd:
        found = f"half of a surrogate pair in {odd}"
        problems.add("not-unicode", found, "valid Unicode", record=record)
        return None
    if isinstance(tree, kinds):
        return tree
    problems.add("json-type", json_kind(tree), expected, record=record)
    return None


def convert(entry: Any, kind: type[T], where: str, problems: Problems) -> T | None:
    """One decoded record as ``kind``; None and a problem if invalid."""
    before = len(problems)
    report_duplicate_keys(entry, where, problems)
    try:
        made = msgspec.convert(entry, type=kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".")
        found = f"an invalid record ({text})"
        problems.add("record", found, f"a record with {_fields(kind)}", record=where, field=field)
    return None if len(problems) > before else made


def report_duplicate_keys(tree: Any, where: str, problems: Problems) -> None:
    """Report every key that an object in the tree has twice, of which decoders keep the last."""
    pending = [tree]
    for value in pending:
        if isinstance(value, RecordWithDuplicates):
            for key, values in value.duplicates.items():
                found = f"{key} more than once: {' and '.join(map(show, values))}"
                expected = "unique keys within a record"
                problems.add("duplicate-key", found, expected, record=where, field=key)
        if isinstance(value, dict | list):
            pending.extend(value.values() if isinstance(value, dict) else value)


def report_images_twice(tree: Any, problems: Problems) -> None:
    """Report every image that an object of detections by image has twice."""
    for name, entries in getattr(tree, "duplicates", {}).items():
        found = f"{len(entries)} entries of this name"
        problems.add("two-images", found, ONE_ENTRY, record=f"image {name!r}")


def is_mask(segmentation: Any) -> bool:
    """Whether a segmentation holds a mask: [], {} and [[]] do not."""
    if isinstance(segmentation, list):
        return any(map(is_mask, segmentation))
    if isinstance(segmentation, dict | str):
        return bool(segmentation)
    return segmentation is not None


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
