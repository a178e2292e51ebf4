"""Detection of duplicate keys in JSON records, of which decoders silently keep only the last.

Checking every key takes as long as decoding. Counting the colons, or else the keys, clears
nearly every file; only the remaining ones are read record by record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

_COLON = ord(":")
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
"""An escaped ASCII character, which could hide a key from counting; JSON writers do not use it."""


Reader = Callable[[bytes], Any]
"""Decodes any JSON, with ``as_record``; ``ValueError`` on failure."""


class RecordWithDuplicates(dict[str, Any]):
    """A record with duplicate keys; ``duplicates`` maps each of them to all its values."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        all_values: dict[str, list[Any]] = {}
        for key, value in pairs:
            all_values.setdefault(key, []).append(value)
        self.duplicates = {key: values for key, values in all_values.items() if len(values) > 1}


def as_record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict (``object_pairs_hook`` of ``json``)."""
    record = dict(pairs)
    return record if len(record) == len(pairs) else RecordWithDuplicates(pairs)


def duplicates(record: object, keys: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """Those of ``keys`` that are duplicated in a record, with all their values."""
    if isinstance(record, RecordWithDuplicates):
        yield from ((key, record.duplicates[key]) for key in keys if key in record.duplicates)


def cleared_by_colons(text: bytes | memoryview, n_keys: int) -> bool:
    """Whether the number of colons proves that a list of records has no duplicate key.

    ``n_keys`` is the total number of keys without duplicates. Every key is followed by a colon, so
    if there are as many colons as keys, none is duplicated.
    """
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON)) == n_keys


def cleared_by_keys(text: bytes, counts: Mapping[str, int]) -> bool:
    """Like ``cleared_by_colons``, for records that may have other keys.

    ``counts`` maps each key to the number of records that have it.
    """
    return not _ESCAPED_ASCII.search(text) and all(
        text.count(b'"%b"' % key.encode()) == count for key, count in counts.items()
    )


def has_duplicate_keys(
    text: bytes | memoryview, n_records: int, keys: Sequence[str], read: Reader
) -> bool:
    """Whether any record of a JSON list repeats one of ``keys``, which every record has.

    ``text`` is valid JSON with ``n_records`` records; ``read`` decodes it with ``as_record``.
    """
    if cleared_by_colons(text, n_records * len(keys)):
        return False
    text = bytes(text)
    if cleared_by_keys(text, dict.fromkeys(keys, n_records)):
        return False
    return any(True for record in read(text) for _ in duplicates(record, keys))


COCO_KEYS = {
    "images": ("image", ("id", "width", "height")),
    "annotations": ("annotation", ("id", "image_id", "category_id", "bbox", "iscrowd", "area")),
    "categories": ("category", ("id", "name")),
}
"""The lists of a COCO file that are read, each with the name and the keys of its records."""


class _Present(msgspec.Struct, gc=False):
    """The optional keys of a record."""

    width: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    height: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    area: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _counts(text: bytes, keys: Sequence[str]) -> dict[str, int]:
    """The number of records of a list that have each key (all of them for a required key)."""
    records = msgspec.json.decode(text, type=list[_Present])
    counts = dict.fromkeys(keys, len(records))
    for key in _Present.__struct_fields__:
        if key in counts:
            counts[key] = sum(getattr(r, key) is not msgspec.UNSET for r in records)
    return counts


def duplicates_in_coco(data: bytes, read: Reader) -> Iterator[tuple[str, str, list[Any]]]:
    """(record, key, values) of each duplicate key in a valid COCO file.

    ``read`` decodes any JSON with ``as_record``; ``ValueError`` on failure.
    """
    try:
        sections = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:  # only the tolerant reader accepts NaN and a byte order mark
        yield from _slowly(read(data.removeprefix(b"\xef\xbb\xbf")))
        return
    if _ESCAPED_ASCII.search(data) or any(data.count(b'"%b"' % s.encode()) != 1 for s in COCO_KEYS):
        for name, values in duplicates(read(data), tuple(COCO_KEYS)):
            yield "", name, [f"{len(value)} records" for value in values]
    for name, (_, keys) in COCO_KEYS.items():
        text = bytes(sections[name])
        if not cleared_by_keys(text, _counts(text, keys)):
            yield from _duplicates_in_list(name, read(text))


def _duplicates_in_list(name: str, records: Any) -> Iterator[tuple[str, str, list[Any]]]:
    what, keys = COCO_KEYS[name]
    for index, record in enumerate(records):
        for key, values in duplicates(record, keys):
            yield f"{what} record {index}", key, values


def _slowly(tree: Any) -> Iterator[tuple[str, str, list[Any]]]:
    for name, values in duplicates(tree, tuple(COCO_KEYS)):
        yield "", name, [f"{len(value)} records" for value in values]
    for name in COCO_KEYS:
        yield from _duplicates_in_list(name, tree[name])
