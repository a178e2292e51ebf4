"""Keys that stand twice in one record of a JSON file; a decoder takes the last one without a word.

Looking at every key costs as much as decoding again. Nearly every file can be cleared by counting:
of colons, or else of each key; only what is left is read record by record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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


def cleared_by_keys(text: bytes, n_records: int, keys: Sequence[str]) -> bool:
    """The same for records that have every one of ``keys``, and maybe others."""
    return not _ESCAPED_ASCII.search(text) and all(
        text.count(b'"%b"' % key.encode()) == n_records for key in keys
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
    if cleared_by_keys(text, n_records, keys):
        return False
    return any(True for record in read(text) for _ in repeated(record, keys))


COCO_KEYS = {
    "images": ("image", ("id", "width", "height")),
    "annotations": ("annotation", ("id", "image_id", "category_id", "bbox", "iscrowd", "area")),
    "categories": ("category", ("id", "name")),
}
"""What is read of a COCO file: lists, what one of their records is, and its keys."""


def repeated_in_coco(
    data: bytes, counts: dict[str, int], read: Reader
) -> Iterator[tuple[str, str, list[Any]]]:
    """(record, key, values) of each key that stands twice in a sound COCO file.

    ``counts`` has the number of images, annotations and categories; ``read`` reads any JSON with
    ``as_record``.
    """
    if _ESCAPED_ASCII.search(data) or any(data.count(b'"%b"' % s.encode()) != 1 for s in COCO_KEYS):
        for name, values in repeated(read(data), tuple(COCO_KEYS)):
            yield "", name, [f"{len(value)} records" for value in values]
    sections = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    for name, (what, keys) in COCO_KEYS.items():
        text = bytes(sections[name])
        if cleared_by_keys(text, counts[name], keys):
            continue
        for index, record in enumerate(read(text)):
            for key, values in repeated(record, keys):
                yield f"{what} record {index}", key, values
