"""Decoding a prediction file in pieces, straight into columns."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import math
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from benchmark_eval.core.arrays import (
    Box,
    Floats,
    Ints,
    NumberColumns,
    integer_column,
)
from benchmark_eval.core.duplicate_keys import duplicates, has_duplicate_keys
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.first_bytes import GZIP, SNIFFED, foreign, json_cause
from benchmark_eval.core.json_values import as_id, is_number, json_kind, plain_json, show
from benchmark_eval.core.memory import available_memory, give_back_freed_memory
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import check_size, open_input, require_own_content, unreadable

PIECE = 512 * 1024
"""Bytes of JSON text decoded at a time."""
LONGEST_RECORD = 64 * 1024 * 1024
"""Maximum length of a record in bytes; a file with a longer one is not a list of detections."""
MEMORY_PER_BYTE = 4.0
"""Memory that an evaluation needs per byte of JSON text, on top of a constant: about 300 bytes per
detection (``make bench`` measures it), whose text has 88 bytes or fewer."""
UNCHECKED_BYTES = 4 * 1024 * 1024
"""Bytes of text that are read without checking the free memory: numpy alone needs as much."""
LISTING_PER_BYTE = 16.0
"""Memory per byte of text for reading an invalid file as plain JSON, to list every problem."""
MAX_LISTED = 1_000
"""Maximum number of problems of one kind listed per file; further ones are counted."""
REASONS = {
    "record-shape": "malformed",
    "duplicate-key": "malformed",
    "id-type": "malformed",
    "bbox-type": "malformed",
    "score-type": "malformed",
    "bbox-not-finite": "bad box",
    "bbox-negative": "bad box",
    "score-range": "score out of range",
    "image-id-unknown": "unknown image id",
    "category-id-unknown": "unknown category id",
}
"""Every kind of invalid record, and the reason under which dropped records are counted."""


class _Prediction(msgspec.Struct, gc=False):
    # ids are floats: 7.0 is as valid an id as 7
    image_id: float
    category_id: float
    bbox: Box
    score: float


SCORE = "a number in [0, 1]"
NOT_FINITE = "bbox not finite: NaN or infinity in the model's output"
NO_OVERFLOW = "numbers whose right and bottom edges, x + w and y + h, and area are finite"
KEYS = _Prediction.__struct_fields__


@dataclass(slots=True)
class Columns:
    """Readable records as columns, with the ids of the file."""

    image_id: Ints
    category_id: Ints
    boxes: Floats
    score: Floats


MAX_BRACES = 100
"""Maximum number of braces tried for a split of a piece; records contain fewer."""
_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")


class _EndlessError(OSError):
    """Text in which no record ends, so that it cannot be a list of detections."""


class _Source:
    """A prediction file as a stream of text, uncompressed if needed.

    Raises ``OSError`` as soon as memory cannot hold the detections in the text.
    """

    def __init__(self, path: Path, *, digest: bool) -> None:
        self.packed = path.suffix == ".gz"
        self._file = open_input(path)
        self._hash = hashlib.sha256() if digest else None
        self._stream = gzip.GzipFile(fileobj=cast("Any", self)) if self.packed else None
        self._read = 0
        self._most: float | None = None  # not yet known
        if not self.packed:
            try:
                self._check(os.fstat(self._file.fileno()).st_size)
            except OSError:
                self._file.close()
                raise

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        self._file.close()

    @property
    def sha256(self) -> str:
        """The digest of the file's bytes as stored, read to the end; blank if not requested."""
        while self.read(PIECE):
            pass
        return "" if self._hash is None else self._hash.hexdigest()

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes as stored (compressed in a .gz file)."""
        block = self._file.read(size)
        if self._hash is not None:
            self._hash.update(block)
        return block

    def text(self, size: int) -> bytes:
        """The next ``size`` bytes of text, or the rest."""
        block = self.read(size) if self._stream is None else self._stream.read(size)
        self._read += len(block)
        self._check(self._read)
        return block

    def _check(self, size: int) -> None:
        """Raise ``OSError`` if memory cannot hold the detections in ``size`` bytes of text."""
        if size > UNCHECKED_BYTES and size > self._limit():
            check_size(size, MEMORY_PER_BYTE)

    def _limit(self) -> float:
        """The bytes of text for which there was memory at the first call."""
        if self._most is None:
            free = available_memory()
            self._most = math.inf if free is None else free / MEMORY_PER_BYTE
        return self._most

    def read_all(self) -> bytes:
        """All text, for reading it as plain JSON; raises ``MemoryError`` if it does not fit."""
        give_back_freed_memory()
        self._most = None
        most = self._limit() * MEMORY_PER_BYTE / LISTING_PER_BYTE
        blocks = []
        while block := self.text(PIECE):
            blocks.append(block)
            if self._read > most:
                raise MemoryError
        return b"".join(blocks)


def _pieces(stream: _Source) -> Iterator[memoryview]:
    """The text of a JSON list in pieces that are lists themselves, split between two records.

    Each piece is overwritten by the next. A split at a ``},{`` inside a nested list or a string
    leaves unbalanced brackets or quotes, which the decoder rejects; the caller then reads the
    whole file at once. A wrong split can therefore never give wrong records.
    """
    text = bytearray()
    while block := stream.text(PIECE):
        text += block
        gap = _last_gap(text)
        if gap is None:
            if len(text) > LONGEST_RECORD:
                raise _EndlessError(f"{len(text):,} bytes of text without the end of a record")
            continue
        end, start = gap[0] + 1, gap[1] - 2
        # the brackets replace the separator of the two records
        text[end] = ord("]")
        with memoryview(text) as whole, whole[: end + 1] as piece:
            yield piece
        text[start] = ord("[")
        del text[:start]
    with memoryview(text) as piece:
        yield piece


def _last_gap(text: bytearray) -> tuple[int, int] | None:
    """The span of the last ``},{`` of the text, from its first brace to its last."""
    end = len(text)
    for _ in range(MAX_BRACES):
        brace = text.rfind(b"{", 0, end)
        start = text.rfind(b"}", 0, max(brace, 0))
        if start < 0:
            return None
        if found := _BETWEEN.match(text, start, brace + 1):
            return found.span()
        end = brace
    return None


def _typed_columns(stream: _Source) -> Columns:
    """Decode piece by piece; ``msgspec.DecodeError`` at the first problem."""
    decoder = msgspec.json.Decoder(list[_Prediction])
    columns = NumberColumns(_Prediction)
    parts: dict[str, list[Any]] = {name: [] for name in _Prediction.__struct_fields__}
    for piece in _pieces(stream):
        try:
            found: dict[str, Any] = columns.of(decoder.decode(piece))
            for name in ("image_id", "category_id"):
                found[name] = integer_column(found[name])
        except msgspec.DecodeError as error:
            done = sum(map(len, parts["score"]))
            raise msgspec.DecodeError(f"after {done} records: {error}") from None
        _require_single_keys(piece, len(found["score"]))
        for name, column in found.items():
            parts[name].append(column)
    image_id, category_id, boxes, score = (np.concatenate(part) for part in parts.values())
    return Columns(image_id, category_id, boxes, score)


def _require_single_keys(piece: bytes | memoryview, n_records: int) -> None:
    """Raise ``msgspec.DecodeError`` for a duplicate key, of which only the last would count."""
    try:
        if not has_duplicate_keys(piece, n_records, KEYS, plain_json):
            return
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None
    raise msgspec.DecodeError("a record has a duplicate key")


def _records(data: bytes, file: str) -> list[Any]:
    """The records of a file as plain JSON. Raises ``InputError`` unless it is a JSON list."""
    try:
        tree = plain_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise InputError(
            [
                Problem(
                    "not-json",
                    file,
                    f"invalid JSON ({str(error)[:200] or type(error).__name__})",
                    "a JSON list of detections",
                    cause=json_cause(data),
                )
            ]
        ) from None
    if not isinstance(tree, list):
        raise InputError(
            [
                Problem(
                    "not-a-list",
                    file,
                    json_kind(tree),
                    "a JSON list of {image_id, category_id, bbox, score}",
                    cause="a COCO annotation file instead of a list of detections"
                    if isinstance(tree, dict) and tree
                    else "",
                )
            ]
        )
    return tree


class InvalidRecords:
    """Problems of the records of one file, and the reason under which each record is dropped."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.reason: dict[int, str] = {}
        self._problems = Problems(file, most=MAX_LISTED)

    def add(
        self, row: int, kind: str, field: str, found: str, expected: str, cause: str = ""
    ) -> None:
        """Add a problem of record ``row``; ``kind`` is one of ``REASONS``."""
        self.reason.setdefault(row, REASONS[kind])
        self._problems.add(kind, found, expected, record=f"record {row}", field=field, cause=cause)

    def in_file_order(self) -> list[Problem]:
        """The problems by record, then for each kind the number of those that are not listed."""
        return sorted(self._problems.all(), key=_row)


def _row(problem: Problem) -> float:
    return int(problem.record.removeprefix("record ")) if problem.record else math.inf


def _shown(record: dict[str, Any], field: str) -> str:
    """The value of a field for messages."""
    return show(record[field]) if field in record else f"missing field {show(field)}"


def _tolerant_columns(data: bytes, invalid: InvalidRecords) -> tuple[Columns, Ints]:
    """The records with the right types as columns, and their positions in the file."""
    rows: list[int] = []
    ids: list[int] = []
    kinds: list[int] = []
    boxes: list[list[float]] = []
    scores: list[float] = []
    for row, record in enumerate(_records(data, invalid.file)):
        if not isinstance(record, dict):
            invalid.add(row, "record-shape", "", show(record), "a JSON object")
            continue
        for name, values in duplicates(record, KEYS):
            found = f"{name} more than once: {' and '.join(map(show, values))}"
            invalid.add(row, "duplicate-key", name, found, "unique keys within a record")
        numbers: dict[str, int] = {}
        for name in ("image_id", "category_id"):
            value = as_id(record.get(name))
            if value is None:
                invalid.add(row, "id-type", name, _shown(record, name), "an integer")
            else:
                numbers[name] = value
        box = record.get("bbox")
        if not (isinstance(box, list) and len(box) == 4):
            expected = "four numbers [x, y, w, h] in px"
            invalid.add(row, "bbox-type", "bbox", _shown(record, "bbox"), expected)
        elif not all(isinstance(v, int | float) and not isinstance(v, bool) for v in box):
            invalid.add(row, "bbox-type", "bbox", show(box), "four numbers [x, y, w, h] in px")
        elif not all(map(is_number, box)):
            invalid.add(
                row,
                "bbox-not-finite",
                "bbox",
                show(box),
                "finite numbers",
                NOT_FINITE,
            )
        score = record.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float):
            invalid.add(row, "score-type", "score", _shown(record, "score"), SCORE)
        elif not is_number(score):
            invalid.add(row, "score-range", "score", show(score), SCORE)
        if row not in invalid.reason:
            assert isinstance(box, list)
            assert isinstance(score, int | float)
            rows.append(row)
            ids.append(numbers["image_id"])
            kinds.append(numbers["category_id"])
            boxes.append([float(v) for v in box])
            scores.append(float(score))
    return (
        Columns(
            np.array(ids, np.int64),
            np.array(kinds, np.int64),
            np.array(boxes, np.float64).reshape(-1, 4),
            np.array(scores, np.float64),
        ),
        np.array(rows, np.int64),
    )


def read_columns(path: Path, invalid: InvalidRecords, *, digest: bool) -> tuple[Columns, Ints, str]:
    """Columns, each row's position in the file, and the digest of the file's bytes if requested."""
    try:
        with _Source(path, digest=digest) as stream:
            columns = _typed_columns(stream)
            return columns, np.arange(len(columns.score)), stream.sha256
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        first = str(
            error
        )  # all problems are listed below, outside the handler, without a chained context
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, invalid.file, error) from None
    except MemoryError:
        raise _no_memory(invalid.file, "") from None
    try:
        with open_input(path) as file:
            start = file.read(SNIFFED)
        if not (path.suffix == ".gz" and start.startswith(GZIP)):
            require_own_content(start)
        with _Source(path, digest=digest) as stream:
            data, sha256 = stream.read_all(), stream.sha256
        if path.suffix == ".gz" and data.startswith(GZIP):
            found, expected = (
                "gzip data in a gzip file",
                "a JSON list of detections, compressed once",
            )
            cause = "compressed twice: unpack it once"
            raise InputError([Problem("unreadable", invalid.file, found, expected, cause=cause)])
        columns, place = _tolerant_columns(data, invalid)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, invalid.file, error) from None
    except MemoryError:
        raise _no_memory(invalid.file, first) from None
    return columns, place, sha256


def _unreadable(path: Path, file: str, error: Exception) -> InputError:
    problem = unreadable(file, error)
    if path.suffix == ".gz" and not getattr(error, "errno", None):
        problem = replace(problem, cause="truncated or damaged gzip file")
        with contextlib.suppress(OSError), open_input(path) as stream:
            start = stream.read(SNIFFED)
            if not start.startswith(GZIP):
                cause = json_cause(start) if foreign(start) else "not compressed: remove .gz"
                problem = replace(problem, found="a file that is not gzip data", cause=cause)
    if isinstance(error, _EndlessError):
        problem = replace(problem, cause="not a list of detections, or crafted to exhaust memory")
    return InputError([problem])


def _no_memory(file: str, first: str) -> InputError:
    """The error for insufficient memory; ``first`` is the first problem of an invalid file."""
    found, expected = "more detections than fit in free memory", "fewer detections, or more memory"
    if first:
        found = f"{first}, in a file too large to list its problems in free memory"
        expected = "a JSON list of {image_id, category_id, bbox, score}"
    return InputError([Problem("unreadable", file, found, expected)])
