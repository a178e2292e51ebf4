"""A split's detections as columns, strictly checked against the benchmark.

The file is decoded in pieces straight into columns, so that memory follows the
columns and not the text. The typed decoder stops at the first fault; only then does a tolerant
pass read the file again and name every fault of every record.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from benchmark_eval.benchmark import NAMED_SPLITS, Benchmark, SplitTruth
from benchmark_eval.coco_files import as_id, is_number, plain_json, show
from benchmark_eval.columns import (
    Box,
    Floats,
    Ints,
    NumberColumns,
    finite_boxes,
    rows_of_ids,
    whole_column,
)
from benchmark_eval.errors import InputError, Problem
from benchmark_eval.memory import available_memory, give_back_freed_memory
from benchmark_eval.reading import check_size, open_input
from benchmark_eval.repeated_keys import has_repeated_keys, repeated
from benchmark_eval.results import OnInvalid

PIECE = 512 * 1024
"""Bytes of JSON text that are decoded at a time."""

LONGEST_RECORD = 64 * 1024 * 1024
"""Bytes of text without the end of a record after which the file is no list of detections."""

MEMORY_PER_BYTE = 4.0
"""Memory that an evaluation takes for each byte of JSON text, beside what it takes for none: some
300 bytes a box (``make bench`` measures it), of which the text has 88 and may have fewer."""

FREELY = 4 * 1024 * 1024
"""Bytes of text that are read without asking what memory is free: numpy alone takes as much."""

LISTING_PER_BYTE = 16.0
"""The same for reading a faulty file as plain JSON, to list every fault."""

MAX_LISTED = 1_000
"""Faults of one kind in one file that are kept as text; beyond it they are only counted."""


REASONS = {
    "record-shape": "malformed",
    "key-repeated": "malformed",
    "id-type": "malformed",
    "bbox-type": "malformed",
    "score-type": "malformed",
    "bbox-not-finite": "bad box",
    "bbox-negative": "bad box",
    "score-range": "score out of range",
    "image-id-unknown": "unknown image id",
    "category-id-unknown": "unknown category id",
}
"""Every fault of a record by its kind, and the reason under which a dropped record is counted."""


class _Prediction(msgspec.Struct, gc=False):
    # ids are floats here: 7.0 is an id as 7 is
    image_id: float
    category_id: float
    bbox: Box
    score: float


KEYS = _Prediction.__struct_fields__


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Detections that no metric sees, as columns like those of ``Predictions``."""

    image: Ints
    category: Ints
    boxes: Floats
    score: Floats

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, slots=True)
class Predictions:
    """The detections of one split that are scored, one a row, in file order.

    ``image`` is a row of ``SplitTruth.image_ids``, ``category`` a row of ``Categories``;
    ``boxes`` is (detections, 4) x, y, w, h in px; ``score`` lies in [0, 1].
    ``left_out`` holds detections of the benchmark's categories that the split does not list
    (iid_test and inat_test only): no metric sees them, ``diagnostics`` does. ``dropped`` counts
    invalid records by reason, empty unless they were asked to be dropped. ``sha256`` is the
    digest of the file's bytes as stored.
    """

    image: Ints
    category: Ints
    boxes: Floats
    score: Floats
    left_out: LeftOut
    dropped: dict[str, int]
    file: str
    sha256: str

    def __len__(self) -> int:
        return len(self.score)

    def with_left_out(self) -> Predictions:
        """All detections, those of unlisted categories behind the others."""
        left = self.left_out
        return replace(
            self,
            image=np.concatenate([self.image, left.image]),
            category=np.concatenate([self.category, left.category]),
            boxes=np.concatenate([self.boxes, left.boxes]),
            score=np.concatenate([self.score, left.score]),
        )

    @property
    def n_left_out(self) -> int:
        """Number of detections of categories that the split does not list."""
        return len(self.left_out)


@dataclass(slots=True)
class _Columns:
    image_id: Ints
    category_id: Ints
    boxes: Floats
    score: Floats


def predictions_file(predictions_dir: str | Path, split: str) -> Path:
    """The split's file in a model's folder: ``<split>_predictions.json`` or the same with ``.gz``.

    ``InputError`` when neither or both exist.
    """
    plain = Path(predictions_dir) / f"{split}_predictions.json"
    packed = plain.with_name(f"{plain.name}.gz")
    found = [path for path in (plain, packed) if path.exists()]
    if len(found) == 2:
        raise InputError(
            [
                Problem(
                    "two-files",
                    str(plain),
                    f"{plain.name} and {packed.name}",
                    "only one of the two",
                    cause="a stale copy; nothing tells which one is meant",
                )
            ]
        )
    if not found:
        from benchmark_eval.near_files import absence

        what, cause = absence(predictions_dir, split)
        wanted = f"the model's detections on {split} (an empty list [] if it found nothing)"
        raise InputError([Problem("missing-file", str(plain), what, wanted, cause=cause)])
    return found[0]


# --------------------------------------------------------------------------------------------
# Decoding
# --------------------------------------------------------------------------------------------

MOST_CUTS = 100
"""Braces that are tried for a cut in one piece; records have no more within them."""
_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")


class _EndlessError(OSError):
    """Text in which no record ends: no list of detections, however it goes on."""


class _Source:
    """A prediction file as a stream of text that ends before memory does.

    ``OSError`` when there is more text than memory can hold the detections of, packed or not.
    """

    def __init__(self, path: Path, *, digest: bool) -> None:
        self.packed = path.suffix == ".gz"
        self._file = open_input(path)
        self._hash = hashlib.sha256() if digest else None
        self._stream = gzip.GzipFile(fileobj=cast("Any", self)) if self.packed else None
        self._read = 0
        self._most: float | None = None  # not yet asked for
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
        """The digest of the file's bytes as stored, once all are read; blank if not wanted."""
        while self.read(PIECE):
            pass
        return "" if self._hash is None else self._hash.hexdigest()

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes as they are stored (what a packed file is unpacked from)."""
        block = self._file.read(size)
        if self._hash is not None:
            self._hash.update(block)
        return block

    def text(self, size: int) -> bytes:
        """The next ``size`` bytes of text, or what is left of it."""
        block = self.read(size) if self._stream is None else self._stream.read(size)
        self._read += len(block)
        self._check(self._read)
        return block

    def _check(self, size: int) -> None:
        """Refuse (``OSError``) text of ``size`` bytes where memory cannot hold its detections."""
        if size > FREELY and size > self._limit():
            check_size(size, MEMORY_PER_BYTE)

    def _limit(self) -> float:
        """The bytes of text that there was memory for when it was first asked for."""
        if self._most is None:
            free = available_memory()
            self._most = math.inf if free is None else free / MEMORY_PER_BYTE
        return self._most

    def read_all(self) -> bytes:
        """All text, for reading it as plain JSON; ``MemoryError`` where there is too little."""
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
    """The text of a JSON list in pieces that are lists themselves, cut between two records.

    A piece lies in a buffer that the next one overwrites. A cut at ``},{`` that is not between
    two top-level records (inside a nested list or a text)
    leaves a piece with unbalanced brackets or quotes, which the decoder refuses; the caller
    then falls back to reading the whole file. So a wrong cut can never give wrong records.
    """
    text = bytearray()
    while block := stream.text(PIECE):
        text += block
        cut = _last_cut(text)
        if cut is None:
            if len(text) > LONGEST_RECORD:
                raise _EndlessError(f"{len(text):,} bytes of text without the end of a record")
            continue
        end, start = cut[0] + 1, cut[1] - 2
        # what stands between the two records makes room for the brackets
        text[end] = ord("]")
        with memoryview(text) as whole, whole[: end + 1] as piece:
            yield piece
        text[start] = ord("[")
        del text[:start]
    with memoryview(text) as piece:
        yield piece


def _last_cut(text: bytearray) -> tuple[int, int] | None:
    """Where the last ``},{`` of the text lies, as the span from its first brace to its last."""
    end = len(text)
    for _ in range(MOST_CUTS):
        brace = text.rfind(b"{", 0, end)
        start = text.rfind(b"}", 0, max(brace, 0))
        if start < 0:
            return None
        if found := _BETWEEN.match(text, start, brace + 1):
            return found.span()
        end = brace
    return None


def _typed_columns(stream: _Source) -> _Columns:
    """Decode piece by piece; ``msgspec.DecodeError`` at the first fault."""
    decoder = msgspec.json.Decoder(list[_Prediction])
    columns = NumberColumns(_Prediction)
    parts: dict[str, list[Any]] = {name: [] for name in _Prediction.__struct_fields__}
    for piece in _pieces(stream):
        try:
            found: dict[str, Any] = columns.of(decoder.decode(piece))
            for name in ("image_id", "category_id"):
                found[name] = whole_column(found[name])
        except msgspec.DecodeError as fault:
            done = sum(map(len, parts["score"]))
            raise msgspec.DecodeError(f"after {done} records: {fault}") from None
        _require_single_keys(piece, len(found["score"]))
        for name, column in found.items():
            parts[name].append(column)
    image_id, category_id, boxes, score = (np.concatenate(part) for part in parts.values())
    return _Columns(image_id, category_id, boxes, score)


def _require_single_keys(piece: bytes | memoryview, n_records: int) -> None:
    """``msgspec.DecodeError`` where a record has one of its keys twice: the last would count."""
    try:
        if not has_repeated_keys(piece, n_records, KEYS, plain_json):
            return
    except ValueError as fault:
        raise msgspec.DecodeError(str(fault)) from None
    raise msgspec.DecodeError("a key stands twice in one record")


def _records(data: bytes, file: str) -> list[Any]:
    """The file as plain JSON; ``InputError`` when it is no JSON list."""
    try:
        tree = plain_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise InputError(
            [
                Problem(
                    "not-json",
                    file,
                    f"no JSON ({str(error)[:200] or type(error).__name__})",
                    "a JSON list of detections",
                    cause="a half-written or damaged file",
                )
            ]
        ) from None
    if not isinstance(tree, list):
        keys = ", ".join(map(str, tree))[:80] if isinstance(tree, dict) else ""
        raise InputError(
            [
                Problem(
                    "not-a-list",
                    file,
                    f"a JSON {type(tree).__name__}" + (f" with the keys {keys}" if keys else ""),
                    "a JSON list of {image_id, category_id, bbox, score}",
                    cause="a whole COCO file instead of its results" if keys else "",
                )
            ]
        )
    return tree


class _Faults:
    """Collects the faults of one file and which records they strike."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[tuple[int, Problem]] = []
        self.reason: dict[int, str] = {}
        self.count: Counter[str] = Counter()

    def add(self, row: int, kind: str, name: str, found: str, wanted: str, cause: str = "") -> None:
        """One fault of record ``row``; ``kind`` is one of ``REASONS``."""
        self.reason.setdefault(row, REASONS[kind])
        self.count[kind] += 1
        if self.count[kind] <= MAX_LISTED:
            where = f"record {row}"
            self.problems.append((row, Problem(kind, self.file, found, wanted, where, name, cause)))

    def in_file_order(self) -> list[Problem]:
        """The faults by record; of a kind with very many the first ones, then how many more."""
        told = [problem for _, problem in sorted(self.problems, key=lambda p: p[0])]
        for kind, count in self.count.items():
            more = count - MAX_LISTED
            if more > 0:
                wanted = next(p.wanted for p in told if p.kind == kind)
                told.append(Problem(kind, self.file, f"{more:,} more", wanted, times=more))
        return told


def _tolerant_columns(data: bytes, faults: _Faults) -> tuple[_Columns, Ints]:
    """Every record that has the right types, as columns, and its place in the file."""
    rows: list[int] = []
    ids: list[int] = []
    kinds: list[int] = []
    boxes: list[list[float]] = []
    scores: list[float] = []
    for row, record in enumerate(_records(data, faults.file)):
        if not isinstance(record, dict):
            faults.add(row, "record-shape", "", show(record), "a JSON object")
            continue
        for name, values in repeated(record, KEYS):
            found = f"{name} twice: {' and '.join(map(show, values))}"
            faults.add(row, "key-repeated", name, found, "each key once in a record")
        numbers: dict[str, int] = {}
        for name in ("image_id", "category_id"):
            value = as_id(record.get(name))
            if value is None:
                wanted = "an integer of this split" if name == "image_id" else "an integer"
                found = show(record[name]) if name in record else "nothing"
                faults.add(row, "id-type", name, found, f"{name} must be {wanted}")
            else:
                numbers[name] = value
        box = record.get("bbox")
        if not (isinstance(box, list) and len(box) == 4):
            found = show(box) if "bbox" in record else "nothing"
            faults.add(row, "bbox-type", "bbox", found, "four numbers [x, y, w, h] in px")
        elif not all(isinstance(v, int | float) and not isinstance(v, bool) for v in box):
            faults.add(row, "bbox-type", "bbox", show(box), "four numbers [x, y, w, h] in px")
        elif not all(map(is_number, box)):
            faults.add(
                row, "bbox-not-finite", "bbox", show(box), "finite numbers", "bbox not finite"
            )
        score = record.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float):
            found = show(score) if "score" in record else "nothing"
            faults.add(row, "score-type", "score", found, "score must be a number")
        elif not is_number(score):
            faults.add(row, "score-range", "score", show(score), "a number in [0, 1]")
        if row not in faults.reason:
            assert isinstance(box, list)
            assert isinstance(score, int | float)
            rows.append(row)
            ids.append(numbers["image_id"])
            kinds.append(numbers["category_id"])
            boxes.append([float(v) for v in box])
            scores.append(float(score))
    return (
        _Columns(
            np.array(ids, np.int64),
            np.array(kinds, np.int64),
            np.array(boxes, np.float64).reshape(-1, 4),
            np.array(scores, np.float64),
        ),
        np.array(rows, np.int64),
    )


# --------------------------------------------------------------------------------------------
# Checking
# --------------------------------------------------------------------------------------------


def _check_values(
    columns: _Columns,
    place: Ints,
    image: Ints,
    category: Ints,
    truth: SplitTruth,
    known_categories: Ints,
    faults: _Faults,
) -> None:
    """Faults of records that have the right types: unknown ids, impossible boxes, odd scores."""

    def strike(
        bad: Any, kind: str, name: str, found: Callable[[int], str], wanted: str, cause: str = ""
    ) -> None:
        for row in np.flatnonzero(bad).tolist():
            faults.add(int(place[row]), kind, name, found(row), wanted, cause)

    boxes, score = columns.boxes, columns.score
    if len(image) and (image < 0).any():
        span = f"{truth.image_ids[0]} to {truth.image_ids[-1]}" if len(truth.image_ids) else "none"
        unknown = columns.image_id[image < 0]
        distinct = np.unique(unknown).tolist()
        ids = ", ".join(map(str, distinct[:3])) + (", ..." if len(distinct) > 3 else "")
        strike(
            image < 0,
            "image-id-unknown",
            "image_id",
            lambda row: f"image_id {columns.image_id[row]}",
            f"an image of {truth.name} (its ids: {span})",
            f"{len(unknown)} of {len(image)} records {'has' if len(unknown) == 1 else 'have'} an "
            f"image_id ({ids}) that is not in the split: predictions of another split, or ids of "
            "another annotation file",
        )
    if (category < 0).any():
        unknown = columns.category_id[category < 0]
        near = ""
        if (unknown == 0).any():
            near = "0-based category ids, or "
        elif (unknown == known_categories.max(initial=0) + 1).all():
            near = "category ids shifted by one, or "
        strike(
            category < 0,
            "category-id-unknown",
            "category_id",
            lambda row: f"category_id {columns.category_id[row]} not in benchmark",
            "a category id of some split file",
            f"{near}class numbers of the model instead of the benchmark's ids",
        )
    strike(
        ~finite_boxes(boxes),
        "bbox-not-finite",
        "bbox",
        lambda row: str(boxes[row].tolist()),
        "finite numbers",
        "bbox not finite",
    )
    strike(
        (boxes[:, 2:] < 0).any(axis=1),
        "bbox-negative",
        "bbox",
        lambda row: str(boxes[row].tolist()),
        "w >= 0 and h >= 0 in px",
        "corners in the wrong order, or x2, y2 where w, h belong",
    )
    out = ~((score >= 0) & (score <= 1))
    percent = bool(len(score)) and float(np.nanmax(score)) > 1 and float(np.nanmax(score)) <= 100
    strike(
        out,
        "score-range",
        "score",
        lambda row: f"score {score[row]:g} outside [0,1]",
        "a confidence in [0, 1]",
        "percent instead of shares" if percent else "logits or an unbounded score",
    )


def _read_columns(path: Path, faults: _Faults, *, digest: bool) -> tuple[_Columns, Ints, str]:
    """Columns, each row's place in the file, and the digest of the file's bytes where asked."""
    try:
        with _Source(path, digest=digest) as stream:
            columns = _typed_columns(stream)
            return columns, np.arange(len(columns.score)), stream.sha256
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        first = str(error)  # told fault by fault below, outside the handler: no context is chained
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, faults.file, error) from None
    except MemoryError:
        raise _no_memory(faults.file, "") from None
    try:
        with _Source(path, digest=digest) as stream:
            data, sha256 = stream.read_all(), stream.sha256
        columns, place = _tolerant_columns(data, faults)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, faults.file, error) from None
    except MemoryError:
        raise _no_memory(faults.file, first) from None
    return columns, place, sha256


def _unreadable(path: Path, file: str, error: Exception) -> InputError:
    what = getattr(error, "strerror", None) or str(error)
    cause = ""
    if path.suffix == ".gz" and not getattr(error, "errno", None):
        cause = "a truncated or damaged gzip file"
    if isinstance(error, _EndlessError):
        cause = "no list of detections, or one made to fill the memory"
    return InputError([Problem("unreadable", file, what, "a readable file", cause=cause)])


def _no_memory(file: str, first: str) -> InputError:
    """There is too little memory; ``first`` is the fault that the file was read again for."""
    found, wanted = "more detections than the memory that is free holds", "less, or more memory"
    if first:
        found = f"{first}, in a file too large for the memory that is free to list its faults"
        wanted = "a JSON list of {image_id, category_id, bbox, score}"
    return InputError([Problem("unreadable", file, found, wanted)])


def read_predictions(
    path: str | Path,
    benchmark: Benchmark,
    split: str,
    on_invalid: OnInvalid = "error",
    *,
    digest: bool = True,
) -> Predictions:
    """Read and check one prediction file.

    ``InputError`` lists every invalid record. With ``on_invalid="drop"`` invalid records are
    left out and counted by reason instead; a file that is no JSON list is an error all the same.
    Integral floats (7.0) are ids. On iid_test and inat_test, detections whose category is in the
    benchmark but not listed by the split are left out and counted (as the benchmark's evaluator
    does); on semantic_ood and train they stay. Without ``digest`` its SHA-256 is left blank.
    """
    predictions, faults, ids = _read(path, benchmark, split, digest=digest)
    if faults.reason and on_invalid == "error":
        raise InputError(_explained(predictions, faults, ids, benchmark, split))
    return predictions


def read_with_faults(
    path: str | Path, benchmark: Benchmark, split: str, *, digest: bool = True, explain: bool = True
) -> tuple[Predictions, list[Problem]]:
    """The valid records as ``read_predictions`` has them when it drops others, and all faults.

    ``InputError`` where there are no records to tell faults of. Without ``explain`` the valid
    records are not asked what became of the others.
    """
    predictions, faults, ids = _read(path, benchmark, split, digest=digest)
    if not explain:
        return predictions, faults.in_file_order()
    return predictions, _explained(predictions, faults, ids, benchmark, split)


def _read(
    path: str | Path, benchmark: Benchmark, split: str, *, digest: bool
) -> tuple[Predictions, _Faults, Ints]:
    """Valid records, the faults of the others, and the category id of every readable record."""
    path = Path(path)
    truth = benchmark.split(split)
    faults = _Faults(str(path))
    columns, place, sha256 = _read_columns(path, faults, digest=digest)
    image = rows_of_images(columns.image_id, truth)
    category = benchmark.categories.rows_of(columns.category_id)
    _check_values(columns, place, image, category, truth, benchmark.categories.ids, faults)
    keep = np.ones(len(place), np.bool_)
    if faults.reason:
        keep &= ~np.isin(place, np.fromiter(faults.reason, np.int64, len(faults.reason)))
    left = np.zeros(len(place), np.bool_)
    if split in NAMED_SPLITS:
        left = keep & ~np.isin(category, truth.listed)
        keep &= ~left
    rows: Any = slice(None) if keep.all() else keep  # no copy where nothing is left out
    predictions = Predictions(
        image=image[rows],
        category=category[rows],
        boxes=columns.boxes[rows],
        score=columns.score[rows],
        left_out=LeftOut(image[left], category[left], columns.boxes[left], columns.score[left]),
        dropped=dict(sorted(Counter(faults.reason.values()).items())),
        file=path.name,
        sha256=sha256,
    )
    return predictions, faults, columns.category_id


def _explained(
    predictions: Predictions, faults: _Faults, ids: Ints, benchmark: Benchmark, split: str
) -> list[Problem]:
    """The faults, those of unknown categories with the cause that the other records tell."""
    problems = faults.in_file_order()
    if not faults.count["category-id-unknown"]:
        return problems
    from benchmark_eval.diagnostics import shift_of_unknown_ids

    cause = shift_of_unknown_ids(predictions, ids, benchmark, split)
    if not cause:
        return problems
    return [
        replace(problem, cause=cause)
        if problem.kind == "category-id-unknown" and problem.times == 1
        else problem
        for problem in problems
    ]


def rows_of_images(image_id: Ints, truth: SplitTruth) -> Ints:
    """Row of ``truth.image_ids`` of each image id; -1 where the split has no such image."""
    return rows_of_ids(truth.image_ids, image_id)
