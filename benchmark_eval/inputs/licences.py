"""File names, licences and photographers of the images of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.json_values import as_id
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.inputs.extra_columns import extra_fields, optional_table
from benchmark_eval.protocol import ANNOTATIONS, LICENCES


@dataclass(frozen=True, slots=True)
class Licence:
    """Licence of an image and who is to be named with it; blank where it is not stated."""

    name: str
    url: str
    photographer: str
    institution: str


@dataclass(frozen=True, slots=True)
class ImageOrigin:
    """File name of an image (blank if its annotation file has none) and licence, if known."""

    file_name: str
    licence: Licence | None


class _Image(msgspec.Struct):
    id: Any = None
    file_name: Any = None
    source_image_uuid: Any = None


class _Images(msgspec.Struct):
    images: list[_Image]


class LicenceTable:
    """``image_licences.csv``; ``problems`` is why it cannot be used, if so."""

    def __init__(self, benchmark_dir: str | Path) -> None:
        self._by_uuid: dict[str, Licence] = {}
        self._by_image: dict[tuple[str, str], Licence] = {}
        rows, problems = optional_table(Path(benchmark_dir), LICENCES)
        if rows is None and not problems:
            problems = [
                Problem("missing-file", LICENCES, "no such file", "the licences of the images")
            ]
        for _, row in rows or ():
            licence = Licence(
                *(
                    row.get(column, "").strip()
                    for column in (
                        "license_name",
                        "license_url",
                        "photographer",
                        "holding_institution",
                    )
                )
            )
            if uuid := row.get("source_image_uuid"):
                self._by_uuid[uuid] = licence
            if name := row.get("file_name"):
                self._by_image[row.get("split", ""), name] = licence
        self.problems = problems

    def find(self, split: str, name: str, uuid: object) -> Licence | None:
        """The licence of an image, by its UUID, or else by split and file name."""
        if isinstance(uuid, str) and uuid in self._by_uuid:
            return self._by_uuid[uuid]
        return self._by_image.get((split, name))


def image_origins(
    benchmark_dir: str | Path, split: str, licences: LicenceTable
) -> dict[int, ImageOrigin]:
    """Name and licence of each image of a split, by image id.

    The annotation file has been read before, so it is COCO; ``OSError`` if it has disappeared.
    """
    data = read_input(Path(benchmark_dir) / ANNOTATIONS / f"{split}.json")
    found: dict[int, ImageOrigin] = {}
    for image in extra_fields(data, _Images).images:
        number = as_id(image.id)
        name = image.file_name if isinstance(image.file_name, str) else ""
        if number is not None:
            found[number] = ImageOrigin(name, licences.find(split, name, image.source_image_uuid))
    return found
