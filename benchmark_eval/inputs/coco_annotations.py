"""Reading the benchmark's COCO annotation files.

A fast typed decoder reads valid files. It stops at the first problem; only then does a slower
tolerant reader read the file again and report every problem of every record.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import (
    Bools,
    Box,
    Floats,
    Ints,
    NumberColumns,
    finite_boxes,
    integer_column,
)
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import as_id, is_number, lone_surrogate, plain_json, show
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import read_or_report

MEMORY_PER_BYTE = 8.0
"""Memory needed per byte of an annotation file, because all its records are decoded at once."""


class _Image(msgspec.Struct, gc=False):
    # floats only, so that all records are encoded with the same length (``NumberColumns``)
    id: float
    width: float = math.nan
    height: float = math.nan


class _Annotation(msgspec.Struct, gc=False):
    id: float
    image_id: float
    category_id: float
    bbox: Box
    iscrowd: float
    area: float = math.nan


class _Name(msgspec.Struct, gc=False):
    file_name: Any = None


class _Names(msgspec.Struct):
    images: list[_Name]


class _Category(msgspec.Struct):
    id: int
    name: str


class _Coco(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]
    info: Any = None


_Numbers = dict[str, NDArray[Any]]
"""Columns by field: ids as integers, all else as floats, NaN for a missing field."""
_IDS = ("id", "image_id", "category_id")


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a COCO file."""

    images: _Numbers
    annotations: _Numbers
    categories: list[_Category]
    info: Any
    file_names: tuple[str, ...]


def _file_names(values: Iterable[object]) -> tuple[str, ...]:
    """File names of all images; none if one of them is missing or not text."""
    names = tuple(values)
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else ()


def _typed(data: bytes) -> _Content:
    """Decode a valid file; ``msgspec.DecodeError`` at the first problem."""
    coco = msgspec.json.decode(data, type=_Coco)
    images: _Numbers = dict(NumberColumns(_Image).of(coco.images))
    annotations: _Numbers = dict(NumberColumns(_Annotation).of(coco.annotations))
    for table in (images, annotations):
        table.update((name, integer_column(table[name])) for name in _IDS if name in table)
    crowd = annotations["iscrowd"]
    if not ((crowd == 0) | (crowd == 1)).all():
        raise msgspec.ValidationError("iscrowd is neither 0 nor 1")
    names = _file_names(i.file_name for i in msgspec.json.decode(data, type=_Names).images)
    return _Content(images, annotations, coco.categories, coco.info, names)


def _table(record: type[msgspec.Struct], rows: Sequence[Sequence[Any]]) -> _Numbers:
    """Records as columns; each record holds the values of its fields in order."""
    fields = zip(*rows, strict=True) if rows else [()] * len(record.__struct_fields__)
    table: _Numbers = {}
    for name, values in zip(record.__struct_fields__, fields, strict=True):
        column = np.array(values, np.int64 if name in _IDS else np.float64)
        table[name] = column.reshape(-1, 4) if name == "bbox" else column
    return table


@dataclass(frozen=True, slots=True)
class RawSplit:
    """A split's file as columns, with the ids of the file."""

    name: str
    file: str
    image_ids: Ints
    sizes: Floats
    category_ids: Ints
    category_names: tuple[str, ...]
    annotation_ids: Ints
    image: Ints
    category: Ints
    boxes: Floats
    area: Floats
    crowd: Bools
    description: str = ""
    """The dataset description in the file's ``info``, on one line."""
    whole: bool = True
    """Whether every image and category record could be read."""
    file_names: tuple[str, ...] = ()
    """File name of each image; empty if one of them is missing."""


class _TolerantReader:
    """Reads a COCO file that the typed decoder rejected and reports every problem.

    Records with invalid ids are dropped. Any other invalid value is replaced by a valid one, so
    that the checks of the whole file can still run.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.incomplete = False

    def read(self, data: bytes) -> _Content | None:
        try:
            tree = plain_json(data)
        except ValueError as error:
            self.problems.add(
                "not-json",
                str(error)[:200],
                "a COCO JSON object",
                cause=json_cause(data),
            )
            return None
        odd = lone_surrogate(data, tree)
        if odd:
            self.problems.add(
                "not-unicode",
                "half of a surrogate pair",
                "valid Unicode",
                record=odd,
                cause="text cut in the middle of a character by another program",
            )
        if not isinstance(tree, dict):
            self.problems.add("not-coco", f"a JSON {type(tree).__name__}", "a COCO JSON object")
            return None
        parts: dict[str, list[Any]] = {}
        for key in ("images", "annotations", "categories"):
            if not isinstance(tree.get(key), list):
                self.problems.add(
                    "not-coco",
                    show(tree.get(key)),
                    f"a list of {key}",
                    field=key,
                    cause="not a COCO detection file",
                )
            else:
                parts[key] = tree[key]
        images = [self._image(i, r) for i, r in enumerate(parts.get("images", []))]
        annotations = [self._annotation(i, r) for i, r in enumerate(parts.get("annotations", []))]
        categories = [self._category(i, r) for i, r in enumerate(parts.get("categories", []))]
        if len(parts) < 3:
            return None
        self.incomplete = None in images or None in categories
        return _Content(
            _table(_Image, [i for i in images if i]),
            _table(_Annotation, [a for a in annotations if a]),
            [c for c in categories if c],
            tree.get("info"),
            _file_names(
                record.get("file_name")
                for record, valid in zip(parts["images"], images, strict=True)
                if valid
            ),
        )

    def _record(self, kind: str, index: int, record: object) -> dict[str, Any] | None:
        if isinstance(record, dict):
            return record
        self.problems.add(
            "record-shape", show(record), "a JSON object", record=f"{kind} record {index}"
        )
        return None

    def _ids(self, record: dict[str, Any], where: str, *names: str) -> list[int] | None:
        """The ids in these fields; None if one is invalid."""
        ids = [as_id(record.get(name)) for name in names]
        for name, value in zip(names, ids, strict=True):
            if value is None:
                found, expected = show(record.get(name)), "a 64-bit integer"
                self.problems.add("id-type", found, expected, record=where, field=name)
        return None if None in ids else [value for value in ids if value is not None]

    def _size(self, record: dict[str, Any], where: str, name: str) -> float | None:
        value = record.get(name)
        if value is not None and not is_number(value):
            self.problems.add("size-type", show(value), "a number (px)", record=where, field=name)
            return None
        return value

    def _image(self, index: int, record: object) -> tuple[Any, ...] | None:
        entry = self._record("image", index, record)
        where = f"image record {index}"
        if entry is None:
            return None
        ids = self._ids(entry, where, "id")
        width, height = self._size(entry, where, "width"), self._size(entry, where, "height")
        return (ids[0], width, height) if ids else None

    def _category(self, index: int, record: object) -> _Category | None:
        entry = self._record("category", index, record)
        where = f"category record {index}"
        if entry is None:
            return None
        name = entry.get("name")
        if not isinstance(name, str):
            self.problems.add("name-type", show(name), "text", record=where, field="name")
        ids = self._ids(entry, where, "id")
        return _Category(ids[0], name) if ids and isinstance(name, str) else None

    def _annotation(self, index: int, record: object) -> tuple[Any, ...] | None:
        entry = self._record("annotation", index, record)
        if entry is None:
            return None
        where = f"annotation {show(entry['id'])}" if "id" in entry else f"annotation record {index}"
        box = entry.get("bbox")
        if not (isinstance(box, list) and len(box) == 4 and all(is_number(v) for v in box)):
            expected = "four finite numbers [x, y, w, h] in px"
            self.problems.add("bbox-type", show(box), expected, record=where, field="bbox")
            box = [0.0, 0.0, 1.0, 1.0]
        crowd = entry.get("iscrowd")
        if "iscrowd" not in entry:
            self.problems.add(
                "iscrowd-missing",
                'missing field "iscrowd"',
                "0 or 1 (annotations with crowd regions are required)",
                record=where,
                field="iscrowd",
                cause="annotations of version 1, or a converter that removed the field",
            )
            crowd = 0
        elif crowd not in (0, 1):
            self.problems.add("iscrowd-value", show(crowd), "0 or 1", record=where, field="iscrowd")
            crowd = 0
        area = self._size(entry, where, "area")
        ids = self._ids(entry, where, "id", "image_id", "category_id")
        if ids is None:
            return None
        return (*ids, [float(v) for v in box], int(crowd == 1), area)


def _columns(name: str, file: str, coco: _Content, *, whole: bool) -> RawSplit:
    annotations, images = coco.annotations, coco.images
    box, area = annotations["bbox"], annotations["area"]
    with np.errstate(over="ignore", invalid="ignore"):  # reported with the other invalid boxes
        computed = box[:, 2] * box[:, 3]
    return RawSplit(
        name=name,
        file=file,
        image_ids=images["id"],
        sizes=np.stack([images["width"], images["height"]], axis=1),
        category_ids=np.array([c.id for c in coco.categories], np.int64),
        category_names=tuple(c.name for c in coco.categories),
        annotation_ids=annotations["id"],
        image=annotations["image_id"],
        category=annotations["category_id"],
        boxes=box,
        area=np.where(np.isnan(area), computed, area),
        crowd=annotations["iscrowd"] == 1,
        description=_description(coco.info),
        whole=whole,
        file_names=coco.file_names,
    )


def _description(info: object) -> str:
    text = info.get("description") if isinstance(info, dict) else None
    return " ".join(text.split())[:500] if isinstance(text, str) else ""


def _repeated(values: Ints) -> Ints:
    """Values that occur more than once, ascending."""
    unique, count = np.unique(values, return_counts=True)
    return unique[count > 1]


def _check_columns(raw: RawSplit, problems: Problems) -> None:
    """Report duplicate ids, unknown images and invalid boxes and areas."""
    for kind, what, ids in (
        ("duplicate-annotation-id", "annotation", raw.annotation_ids),
        ("duplicate-image-id", "image", raw.image_ids),
        ("duplicate-category-id", "category", raw.category_ids),
    ):
        for value in _repeated(ids):
            problems.add(
                kind,
                f"{what} id {value} used twice",
                f"unique {what} ids",
                record=f"{what} {value}",
                field="id",
            )
    dangling = np.flatnonzero(~np.isin(raw.image, raw.image_ids)) if raw.whole else ()
    for row in dangling:
        problems.add(
            "annotation-image-unknown",
            f"image {raw.image[row]}",
            "the id of an image of this file",
            record=f"annotation {raw.annotation_ids[row]}",
            field="image_id",
        )
    for number, name in zip(raw.category_ids.tolist(), raw.category_names, strict=True):
        if not name.strip() or "\0" in name:
            problems.add(
                "name-type",
                show(name),
                "the name of a species",
                record=f"category {number}",
                field="name",
            )
    bad = ~finite_boxes(raw.boxes) | (raw.boxes[:, 2:] < 0).any(axis=1)
    for row in np.flatnonzero(bad):
        problems.add(
            "annotation-box",
            show(raw.boxes[row].tolist()),
            "x, y, w, h in px, finite like x + w, y + h and the area, with w, h >= 0",
            record=f"annotation {raw.annotation_ids[row]}",
            field="bbox",
        )
    for row in np.flatnonzero(~bad & (~np.isfinite(raw.area) | (raw.area < 0))):
        problems.add(
            "annotation-area",
            show(float(raw.area[row])),
            "a finite area >= 0 in px²",
            record=f"annotation {raw.annotation_ids[row]}",
            field="area",
        )


def read_split(
    directory: Path, file: Path, digests: dict[str, str], problems: Problems
) -> RawSplit | None:
    """One split's file as columns; its problems are added to ``problems``.

    ``None`` if nothing can be read. The columns of an invalid file hold its valid records: enough
    for further checks, never for scoring. The file's SHA-256 is added to ``digests`` under its
    path relative to the benchmark folder.
    """
    name = file.relative_to(directory).as_posix()
    data = read_or_report(file, problems, file=name, memory_per_byte=MEMORY_PER_BYTE)
    if data is None:
        return None
    digests[name] = hashlib.sha256(data).hexdigest()
    found = Problems(name)
    raw: RawSplit | None = None
    try:
        raw = _columns(file.stem, name, _typed(data), whole=True)
    except (msgspec.DecodeError, OverflowError, RecursionError, UnicodeDecodeError):
        tolerant = _TolerantReader(found)
        content = tolerant.read(data.removeprefix(b"\xef\xbb\xbf"))
        if content is not None:
            raw = _columns(file.stem, name, content, whole=not tolerant.incomplete)
    if raw is not None:
        _check_columns(raw, found)
    problems.extend(found.all())
    return raw
