"""COCO annotations: images, categories and boxes, including crowd regions.

Annotations with a ``score`` are detections, as FiftyOne exports them.
"""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.duplicate_keys import cleared_by_keys, duplicates
from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import json_files
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.classes import Convention
from benchmark_eval.formats.json_files import Id
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import UNKNOWN, BoxTable, PixelRule

EXPECTED = "COCO annotations: a JSON object with images, annotations and categories"


class _Image(msgspec.Struct):
    id: Id
    file_name: str
    width: float | None = None
    height: float | None = None
    license: Any = None
    license_name: Any = None
    license_url: Any = None


class _Category(msgspec.Struct):
    id: Id
    name: str


class _Annotation(msgspec.Struct):
    id: Id
    image_id: Id
    category_id: Id
    bbox: tuple[float, float, float, float]
    iscrowd: int | bool = 0
    score: float | None = None
    segmentation: Any = None
    keypoints: Any = None


class _Coco(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]
    n_licences: int = 0


_LISTS: dict[str, type[Any]] = {
    "images": _Image,
    "annotations": _Annotation,
    "categories": _Category,
}


def read(path: Path, _options: Options, problems: Problems) -> Parsed:
    """Read the boxes of COCO annotations; crowd regions become ``ignored``."""
    parsed = Parsed("xywh")
    coco = _decode(path, problems)
    if coco is None:
        return parsed
    parsed.image_ids = []
    row_of: dict[int, int] = {}
    for image in coco.images:
        if image.file_name in parsed.image_rows or image.id in row_of:
            found = f"a duplicate of image {image.id}, {image.file_name!r}"
            problems.add("two-images", found, "unique ids and file names")
            continue
        if not (image.license is image.license_name is image.license_url is None):
            parsed.skipped["licence fields of images"] += 1
        parsed.image_ids.append(image.id)
        row_of[image.id] = parsed.image(image.file_name)
        if image.width and image.height:
            parsed.sizes[row_of[image.id]] = (image.width, image.height)
    names: dict[int, str] = {}
    for category in sorted(coco.categories, key=lambda c: c.id):
        if category.id in names or category.name in names.values():
            found = f"a duplicate of category {category.id}, {category.name!r}"
            problems.add("two-classes", found, "unique ids and names")
        names[category.id] = category.name
    parsed.convention = Convention(ids={name: number for number, name in names.items()})
    parsed.skipped["licences"] += coco.n_licences
    for note in coco.annotations:
        where = f"annotation {note.id}"
        if note.image_id not in row_of:
            problems.add("unknown-image", f"image {note.image_id}", "an image of the file",
                       record=where, field="image_id")  # fmt: skip
        elif note.category_id not in names:
            problems.add("unknown-class", f"category {note.category_id}", "a category of the file",
                       record=where, field="category_id")  # fmt: skip
        else:
            parsed.add(
                row_of[note.image_id],
                names[note.category_id],
                note.bbox,
                math.nan if note.score is None else note.score,
                record=note.id,
                ignored=bool(note.iscrowd),
            )
            parsed.skipped["keypoints"] += bool(note.keypoints)
            parsed.skipped["masks (segmentation)"] += json_files.is_mask(note.segmentation)
    parsed.record_word = "annotation"
    return parsed


def _decode(path: Path, problems: Problems) -> _Coco | None:
    data = json_files.read_bytes(path, problems, EXPECTED)
    if data is None:
        return None
    parts = _typed_parts(data)
    if parts is None:  # the slow path reports each record
        tree = json_files.parse(data, path, problems, EXPECTED, dict)
        if tree is None:
            return None
        parts = _checked_parts(tree, problems)
    return None if problems else _Coco(**parts)


def _typed_parts(data: bytes) -> dict[str, Any] | None:
    """The records of the three lists; None if one is invalid or may have a duplicate key."""
    try:
        sections = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not cleared_by_keys(data, dict.fromkeys(_LISTS, 1)):
        return None
    if not _LISTS.keys() <= sections.keys():
        return None
    parts: dict[str, Any] = {
        name: json_files.decode_records(bytes(sections[name]), kind)
        for name, kind in _LISTS.items()
    }
    if None in parts.values():
        return None
    with contextlib.suppress(msgspec.DecodeError):
        parts["n_licences"] = len(msgspec.json.decode(sections.get("licenses", b"[]"), type=list))
    return parts


def _checked_parts(tree: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """The records of the three lists, with a problem for each invalid one."""
    parts: dict[str, Any] = {}
    for name, values in duplicates(tree, tuple(_LISTS)):
        found = f"{len(values)} lists of {name}"
        problems.add("duplicate-key", found, "unique keys", field=name)
    for name, kind in _LISTS.items():
        entries = tree.get(name)
        if not isinstance(entries, list):
            problems.add("not-coco", f"no list of {name}", EXPECTED, field=name)
            continue
        made = (
            json_files.convert(entry, kind, f"{name} record {at}", problems)
            for at, entry in enumerate(entries)
        )
        parts[name] = [entry for entry in made if entry is not None]
    licences = tree.get("licenses")
    parts["n_licences"] = len(licences) if isinstance(licences, list) else 0
    return parts


def write(boxes: BoxTable, target: Path, _pixels: PixelRule = "edges") -> None:
    """Write COCO annotations; ids are numbered from 1 if any is missing or duplicated."""
    image_ids = numbered(boxes.images.ids.tolist())
    class_ids = numbered(boxes.classes.ids.tolist())
    images: list[dict[str, object]] = []
    for number, name, (width, height) in zip(
        image_ids, boxes.images.names, boxes.images.sizes.tolist(), strict=True
    ):
        image: dict[str, object] = {"id": number, "file_name": name}
        if not math.isnan(width):
            image |= {"width": _short(width), "height": _short(height)}
        images.append(image)
    columns = zip(
        boxes.image.tolist(),
        boxes.label.tolist(),
        boxes.xywh.tolist(),
        boxes.score.tolist(),
        boxes.ignored.tolist(),
        strict=True,
    )
    tree = {
        "images": images,
        "annotations": [
            {
                "id": at,
                "image_id": image_ids[row],
                "category_id": class_ids[label],
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": int(crowd),
            }
            | ({} if math.isnan(score) else {"score": score})
            for at, (row, label, box, score, crowd) in enumerate(columns, start=1)
        ],
        "categories": [
            {"id": number, "name": name}
            for number, name in zip(class_ids, boxes.classes.names, strict=True)
        ],
    }
    write_bytes_atomic(target, msgspec.json.encode(tree) + b"\n")


def numbered(ids: list[int]) -> list[int]:
    """The ids if all are known and unique, otherwise 1, 2, 3, ..."""
    if UNKNOWN in ids or len(set(ids)) < len(ids):
        return list(range(1, len(ids) + 1))
    return ids


def _short(value: float) -> float | int:
    return int(value) if value.is_integer() else value
