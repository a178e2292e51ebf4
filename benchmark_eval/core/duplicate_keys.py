"""Keys that stand twice in one record of a JSON file; a decoder takes the last one without a word.

Looking at every key costs as much as decoding again. Nearly every file can be cleared by counting:
of colons, or else of each key; only what is left is read record by record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

_COLON = ord(":")
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
"""A letter of a key written as an escape, which no writer of JSON does unasked."""


Reader = Callable[[bytes], Any]
"""Reads any JSON, with ``as_record``; ``ValueError`` where it cannot."""


class TwiceKeyed(dict[str, Any]):
    """A record in which keys stand more than once: ``twice`` has all values of these."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        every: dict[str, list[Any]] = {}
        for key, value in pairs:
            every.setdefault(key, []).append(value)
        self.twice = {key: values for key, values in every.items() if len(values) > 1}


def as_record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict (``object_pairs_hook`` of ``json``)."""
    record = dict(pairs)
    return record if len(record) == len(pairs) else TwiceKeyed(pairs)


def repeated(record: object, keys: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """Those of ``keys`` that stand more than once in a record, with their values."""
    if isinstance(record, TwiceKeyed):
        yield from ((key, record.twice[key]) for key in keys if key in record.twice)


def cleared_by_colons(text: bytes | memoryview, n_keys: int) -> bool:
    """Whether a list of records that have ``n_keys`` keys in all cannot have one of them twice.

    A colon follows every key, so that as many colons as keys leave none for a repetition.
    """
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON)) == n_keys


def cleared_by_keys(text: bytes, counts: Mapping[str, int]) -> bool:
    """The same for records of which so many have each key (``counts``), and maybe others."""
    return not _ESCAPED_ASCII.search(text) and all(
        text.count(b'"%b"' % key.encode()) == count for key, count in counts.items()
    )


def has_repeated_keys(
    text: bytes | memoryview, n_records: int, keys: Sequence[str], read: Reader
) -> bool:
    """Whether one of ``keys``, which every record of a JSON list has, stands twice in one.

    ``text`` is valid JSON with ``n_records`` records; ``read`` reads it with ``as_record``.
    """
    if cleared_by_colons(text, n_records * len(keys)):
        return False
    text = bytes(text)
    if cleared_by_keys(text, dict.fromkeys(keys, n_records)):
        return False
    return any(True for record in read(text) for _ in repeated(record, keys))


COCO_KEYS = {
    "images": ("image", ("id", "width", "height")),
    "annotations": ("annotation", ("id", "image_id", "category_id", "bbox", "iscrowd", "area")),
    "categories": ("category", ("id", "name")),
}
"""What is read of a COCO file: lists, what one of their records is, and its keys."""


class _Present(msgspec.Struct, gc=False):
    """Which of the keys that a record need not have it has."""

    width: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    height: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    area: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _counts(text: bytes, keys: Sequence[str]) -> dict[str, int]:
    """How many records of a list have each key; a key that none may lack counts as all."""
    records = msgspec.json.decode(text, type=list[_Present])
    counts = dict.fromkeys(keys, len(records))
    for key in _Present.__struct_fields__:
        if key in counts:
            counts[key] = sum(getattr(r, key) is not msgspec.UNSET for r in records)
    return counts


def repeated_in_coco(data: bytes, read: Reader) -> Iterator[tuple[str, str, list[Any]]]:
    """(record, key, values) of each key that stands twice in a sound COCO file.

    ``read`` reads any JSON with ``as_record``; ``ValueError`` where it cannot.
    """
    try:
        sections = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:  # what only a tolerant reader takes: NaN, a mark of byte order
        yield from _slowly(read(data.removeprefix(b"\xef\xbb\xbf")))
        return
    if _ESCAPED_ASCII.search(data) or any(data.count(b'"%b"' % s.encode()) != 1 for s in COCO_KEYS):
        for name, values in repeated(read(data), tuple(COCO_KEYS)):
            yield "", name, [f"{len(value)} records" for value in values]
    for name, (_, keys) in COCO_KEYS.items():
        text = bytes(sections[name])
        if not cleared_by_keys(text, _counts(text, keys)):
            yield from _repeated_in_list(name, read(text))


def _repeated_in_list(name: str, records: Any) -> Iterator[tuple[str, str, list[Any]]]:
    what, keys = COCO_KEYS[name]
    for index, record in enumerate(records):
        for key, values in repeated(record, keys):
            yield f"{what} record {index}", key, values


def _slowly(tree: Any) -> Iterator[tuple[str, str, list[Any]]]:
    for name, values in repeated(tree, tuple(COCO_KEYS)):
        yield "", name, [f"{len(value)} records" for value in values]
    for name in COCO_KEYS:
        yield from _repeated_in_list(name, tree[name])
