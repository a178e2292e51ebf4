"""Writing the files of a synthetic benchmark and of the simulated models' predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.formats.coco_results import write_results
from benchmark_eval.protocol import (
    ANNOTATIONS,
    FILE_LIST,
    IMAGES,
    KNOWN_SPLITS,
    LICENCES,
    TAXONOMY,
)
from benchmark_eval.synthetic.conditions import Model
from benchmark_eval.synthetic.detector import PredictionColumns
from benchmark_eval.synthetic.ground_truth import GroundTruth, SyntheticBenchmark
from benchmark_eval.synthetic.pictures import picture_file
from benchmark_eval.synthetic.randomness import stream
from benchmark_eval.synthetic.taxonomy import FAMILY

NOTICE = (
    "SYNTHETIC data for trying and testing benchmark-eval: invented species and boxes, no "
    "photographs. Not the Bark and Ambrosia Beetle Detection Benchmark; no result on it means "
    "anything."
)

_CREATIVE_COMMONS = "https://creativecommons.org/licenses"
_LICENCES = (
    # name, url, text as supplied, whether it states a version
    ("CC BY 4.0", f"{_CREATIVE_COMMONS}/by/4.0/", "CC BY 4.0", True),
    ("CC BY-NC 4.0", f"{_CREATIVE_COMMONS}/by-nc/4.0/", "CC BY-NC 4.0", True),
    ("CC BY-SA 4.0", f"{_CREATIVE_COMMONS}/by-sa/4.0/", "CC BY-SA 4.0", True),
    ("CC BY-NC", "", "cc-by-nc", False),
    ("CC0 1.0", "https://creativecommons.org/publicdomain/zero/1.0/", "CC0", True),
)
_LICENCE_FRACTIONS = {
    "inat_test": (0.1, 0.1, 0.0, 0.7, 0.1),
    "": (0.6, 0.2, 0.1, 0.05, 0.05),
}


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: int
    height: int
    source_image_uuid: str
    license: int
    license_name: str
    license_url: str
    license_verbatim: str
    license_versioned: bool


class _Annotation(msgspec.Struct):
    id: int
    image_id: int
    category_id: int
    bbox: list[float]
    area: float
    iscrowd: int
    source_record_id: str
    depicts_valid_name_id: int


BENCHMARK_FILES = (
    *(f"{ANNOTATIONS.as_posix()}/{split}.json" for split in KNOWN_SPLITS),
    "README.md",
    LICENCES,
    TAXONOMY,
    FILE_LIST,
)
"""The files of a benchmark, relative to its folder."""


def write_predictions(path: Path, columns: PredictionColumns) -> int:
    """Write one split's detections as a JSON list; returns the number of bytes."""
    return write_results(path, columns.image_id, columns.category_id, columns.box, columns.score)


def write_manifest(path: Path, models: Iterable[Model]) -> None:
    """Write the manifest of the sweep: one row per model."""
    rows = ([m.name, m.regime, m.k_or_p, m.seed, m.architecture] for m in models)
    header = ["model_name", "regime", "k_or_p", "seed", "architecture"]
    path.write_bytes(csv_text(header, rows).encode())


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One row of the benchmark's list of files; ``path`` is relative to its folder."""

    path: str
    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: str, data: bytes) -> ListedFile:
        """The row of a file with this content."""
        return cls(path, len(data), hashlib.sha256(data).hexdigest())


def write_benchmark(folder: Path, benchmark: SyntheticBenchmark) -> list[ListedFile]:
    """Write annotations and tables in the real layout; returns the rows of the list of files."""
    contents = {"README.md": f"# Synthetic benchmark\n\n{NOTICE}\n".encode()}
    licences: list[list[object]] = []
    for split, truth in benchmark.splits.items():
        images = _images(benchmark, truth)
        contents[f"{ANNOTATIONS.as_posix()}/{split}.json"] = _coco(benchmark, truth, images)
        licences += _licence_rows(benchmark, split, images)
    contents[LICENCES] = csv_text(
        ["split", "image_id", "file_name", "source_image_uuid", "license_name", "license_url",
         "license_verbatim", "license_versioned", "photographer", "holding_institution"],
        licences,
    ).encode()  # fmt: skip
    contents[TAXONOMY] = _taxonomy(benchmark)
    return [_write(folder, name, data) for name, data in contents.items()]


def write_picture(
    folder: Path, benchmark: SyntheticBenchmark, split: str, row: int, name: str
) -> ListedFile:
    """Draw one image (0-based row of the split) and write it below the benchmark's folder."""
    return _write(
        folder, f"{IMAGES.as_posix()}/{split}/{name}", picture_file(benchmark, split, row)
    )


def write_file_list(folder: Path, files: Iterable[ListedFile]) -> None:
    """Write the benchmark's list of its files."""
    rows = sorted((file.path, file.n_bytes, file.sha256) for file in files)
    _write(folder, FILE_LIST, csv_text(["path", "bytes", "sha256"], rows).encode())


def _write(folder: Path, name: str, data: bytes) -> ListedFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return ListedFile.of(name, data)


def file_names(benchmark: SyntheticBenchmark, split: str) -> list[str]:
    """The file names of the images of a split, in the order of their ids."""
    n_images = benchmark.splits[split].n_images
    return _file_names(_uuids(stream(benchmark.seed, "images", split), n_images))


def _file_names(uuids: Iterable[str]) -> list[str]:
    """Names from the UUIDs of images; one in sixteen has a blank."""
    return [f"image {uuid}.jpg" if uuid[0] == "0" else f"{uuid}.jpg" for uuid in uuids]


def _uuids(rng: np.random.Generator, n: int) -> list[str]:
    """Random version-4 UUIDs."""
    digits = rng.bytes(16 * n).hex()
    return [
        f"{d[:8]}-{d[8:12]}-4{d[13:16]}-{'89ab'[int(d[16], 16) % 4]}{d[17:20]}-{d[20:]}"
        for d in (digits[i : i + 32] for i in range(0, len(digits), 32))
    ]


def _images(benchmark: SyntheticBenchmark, truth: GroundTruth) -> list[_Image]:
    rng = stream(benchmark.seed, "images", truth.split)
    uuids = _uuids(rng, truth.n_images)
    fractions = _LICENCE_FRACTIONS.get(truth.split, _LICENCE_FRACTIONS[""])
    licence = rng.choice(len(_LICENCES), size=truth.n_images, p=fractions).tolist()
    sizes = zip(truth.width.tolist(), truth.height.tolist(), strict=True)
    named = zip(_file_names(uuids), uuids, strict=True)
    return [
        _Image(i, name, width, height, uuid, kind + 1, *_LICENCES[kind])
        for i, ((width, height), (name, uuid), kind) in enumerate(
            zip(sizes, named, licence, strict=True), 1
        )
    ]


def _coco(benchmark: SyntheticBenchmark, truth: GroundTruth, images: list[_Image]) -> bytes:
    rng = stream(benchmark.seed, "annotations", truth.split)
    listed = sorted(set(truth.species.tolist()))
    area = np.round(truth.box[:, 2] * truth.box[:, 3], 2)
    annotations = [
        _Annotation(i, image, category, box, size, crowd, record, 900_000 + category)
        for i, (image, category, box, size, crowd, record) in enumerate(
            zip(
                (truth.image + 1).tolist(),
                (truth.species + 1).tolist(),
                truth.box.tolist(),
                area.tolist(),
                truth.crowd.astype(int).tolist(),
                _uuids(rng, len(truth.species)),
                strict=True,
            ),
            start=1,
        )
    ]
    document = {
        "info": {
            "description": NOTICE,
            "version": "synthetic",
            "split": truth.split,
            "seed": benchmark.seed,
            "scale": benchmark.test_scale if truth.split.endswith("_test") else benchmark.scale,
        },
        "licenses": [
            {"id": i, "name": name, "url": url}
            for i, (name, url, _, _) in enumerate(_LICENCES, start=1)
        ],
        "categories": [
            {"id": s.category_id, "name": s.name, "supercategory": s.genus}
            for s in (benchmark.species[row] for row in listed)
        ],
        "images": images,
        "annotations": annotations,
    }
    return msgspec.json.encode(document) + b"\n"


def _licence_rows(
    benchmark: SyntheticBenchmark, split: str, images: list[_Image]
) -> list[list[object]]:
    rng = stream(benchmark.seed, "licences", split)
    photographer = rng.integers(1, 40, len(images)).tolist()
    institution = rng.integers(1, 9, len(images)).tolist()
    return [
        [split, m.id, m.file_name, m.source_image_uuid, m.license_name, m.license_url,
         m.license_verbatim, str(m.license_versioned).lower(),
         f"Invented photographer {who:02d}", f"Invented collection {where}"]
        for m, who, where in zip(images, photographer, institution, strict=True)
    ]  # fmt: skip


def _taxonomy(benchmark: SyntheticBenchmark) -> bytes:
    header = [
        "scientificName", "family", "subfamily", "tribe", "genus", "specificEpithet",
        "valid_name_id", "category_id", "benchmark_role", "target_band",
        "distance_band_vs_trainable", "n_images", "n_annotations", "specimens_per_image",
    ]  # fmt: skip
    rows: list[list[object]] = []
    home = {True: benchmark.splits["train"], False: benchmark.splits["semantic_ood"]}
    specimens = {role: np.bincount(t.species, minlength=175) for role, t in home.items()}
    images = {
        role: np.bincount(np.unique(t.image * 175 + t.species) % 175, minlength=175)
        for role, t in home.items()
    }
    for s in benchmark.species:
        n_images = int(images[s.trainable][s.category_id - 1])
        n_specimens = int(specimens[s.trainable][s.category_id - 1])
        rows.append(
            [s.name, FAMILY, s.subfamily, s.tribe, s.genus, s.name.split()[1],
             s.valid_name_id, s.category_id, "trainable" if s.trainable else "semantic_ood",
             s.target_band, s.distance_band, n_images, n_specimens,
             f"{n_specimens / n_images:.2f}"]
        )  # fmt: skip
    return csv_text(header, rows).encode()
