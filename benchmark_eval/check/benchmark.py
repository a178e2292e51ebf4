"""Findings that involve several files of a benchmark: splits, taxonomy, licences, digests."""

from __future__ import annotations

import difflib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np

from benchmark_eval.core.duplicate_keys import duplicates_in_coco
from benchmark_eval.core.json_values import plain_json, show
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import absent, file_sha256, read_input
from benchmark_eval.core.text import counted, nfc, some_of
from benchmark_eval.inputs.benchmark import is_stray
from benchmark_eval.inputs.benchmark_reader import Survey
from benchmark_eval.inputs.coco_annotations import RawSplit
from benchmark_eval.inputs.extra_columns import extra_fields, optional_table
from benchmark_eval.protocol import (
    ANNOTATIONS,
    FILE_LIST,
    IMAGES,
    KNOWN_SPLITS,
    LICENCES,
    TAXONOMY,
    TEST_SPLITS,
)

PUBLISHED = {
    # images, scored specimens, crowd regions, species
    "train": (6096, 53040, 0, 65),
    "iid_test": (620, 650, 4367, 65),
    "inat_test": (74, 80, 8, 8),
    "semantic_ood": (7701, 46924, 0, 110),
}
"""Published size of version 2.0.1 of the benchmark."""
_SHOWN = 5
_PATH_COLUMNS = ("path", "file", "filename", "file_name", "file_path", "relative_path", "name")
_DIGEST_COLUMNS = ("sha256", "sha-256", "sha_256", "sha256_digest", "digest", "checksum")


class _Image(msgspec.Struct):
    id: Any = None
    file_name: Any = None
    width: Any = None
    height: Any = None
    source_image_uuid: Any = None
    license_name: Any = None


class _Annotation(msgspec.Struct):
    id: Any = None
    source_record_id: Any = None


class _Origins(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]


def benchmark_findings(directory: Path, survey: Survey) -> Iterator[Problem]:
    """Findings about the files of a benchmark, most serious first."""
    duplicates: list[Problem] = []
    origins = dict(_origins(directory, survey.raws, duplicates))
    yield from duplicates
    yield from _shared_origins(origins)
    yield from _shared_file_names(origins)
    yield from _listed_files(directory, survey)
    for raw in survey.raws:
        yield from _image_sizes(raw)
        yield from _empty_boxes(raw)
        yield from _shared_names(raw)
        if raw.name == "iid_test" and len(raw.crowd) and not raw.crowd.any():
            yield Problem(
                "no-crowd",
                raw.file,
                "no crowd region",
                "crowd regions, as in version 2 of the benchmark",
                field="iscrowd",
                cause="looks like version 1, where unscored specimens lead to false positives",
            )
    yield from _stray_files(survey)
    yield from _species(survey)
    yield from _ranks(survey.taxonomy)
    yield from _licences(directory, origins)
    for raw in survey.raws:
        yield from _counts(raw)


def _origins(
    directory: Path, raws: Sequence[RawSplit], duplicates: list[Problem]
) -> Iterator[tuple[str, _Origins]]:
    """Sources of the images and annotations of each file; files that are not COCO are skipped.

    Duplicate keys of a record are added to ``duplicates``, since the text is needed for both.
    """
    for raw in raws:
        try:
            data = read_input(directory / raw.file)
            yield raw.file, extra_fields(data, _Origins)
            duplicates += _repeated_keys(data, raw)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # reported by the reader of the annotations


def _repeated_keys(data: bytes, raw: RawSplit) -> Iterator[Problem]:
    for record, key, values in duplicates_in_coco(data, plain_json):
        found = f"{key} twice: {' and '.join(map(show, values))}"
        expected = "each key once in a record"
        cause = "readers silently use the last value"
        yield Problem("duplicate-key", raw.file, found, expected, record, key, cause)


def _shared_origins(origins: Mapping[str, _Origins]) -> Iterator[Problem]:
    """Images and annotation records that are in more than one split."""
    for kind, noun, field in (
        ("image-in-two-splits", "image", "source_image_uuid"),
        ("record-in-two-splits", "annotation", "source_record_id"),
    ):
        records: dict[str, Sequence[Any]] = {
            file: found.images if noun == "image" else found.annotations
            for file, found in origins.items()
        }
        names: dict[str, set[str | int]] = {
            file: {name for name in map(attrgetter(field), rows) if isinstance(name, str | int)}
            for file, rows in records.items()
        }
        for first, second in itertools.combinations(origins, 2):
            shared = names[first] & names[second]
            if not shared:
                continue
            ids = {getattr(row, field): row.id for row in reversed(records[first])}
            for row in records[second]:
                name = getattr(row, field)
                if name not in shared:
                    continue
                shared.discard(name)  # report each name once
                yield Problem(
                    kind,
                    second,
                    f"{name}, the same as {noun} {ids[name]} of {first}",
                    f"an {noun} that is in one split only",
                    f"{noun} {row.id}",
                    field,
                    "overlapping splits: models would be tested on training data",
                )
        unknown = [file for file, rows in records.items() if rows and not names[file]]
        if unknown:
            yield Problem(
                "not-compared",
                some_of(unknown, _SHOWN),
                f"no {field}",
                f"{field} of each {noun}, to compare the splits",
                field=field,
            )


def _shared_file_names(origins: Mapping[str, _Origins]) -> Iterator[Problem]:
    """Images of equal name and size in two splits that have no common ``source_image_uuid``.

    Names that are only a number are not compared: they usually count the images of each split.
    """
    for (first, one), (second, other) in itertools.combinations(origins.items(), 2):
        known = {_name_and_size(image): image for image in reversed(one.images)}
        shared = [
            image
            for image in other.images
            if isinstance(image.file_name, str)
            and not PurePosixPath(image.file_name).stem.isdigit()
            and (twin := known.get(_name_and_size(image))) is not None
            and (
                image.source_image_uuid is None or image.source_image_uuid != twin.source_image_uuid
            )
        ]
        if shared:
            names = some_of([f"{image.file_name!r}" for image in shared], _SHOWN)
            yield Problem(
                "file-name-in-two-splits",
                second,
                f"{counted(len(shared), 'image')} with the name and size of an image of {first}: "
                f"{names}",
                "images that are in one split only",
                f"image {shared[0].id}",
                "file_name",
                "overlapping splits: models would be tested on training data; or different "
                "photographs with equal names",
            )


def _name_and_size(image: _Image) -> tuple[str, ...]:
    return (nfc(str(image.file_name)), str(image.width), str(image.height))


def _listed_files(directory: Path, survey: Survey) -> Iterator[Problem]:
    """Files whose digest differs from MANIFEST.csv. Images are not read."""
    rows, problems = optional_table(directory, FILE_LIST)
    yield from problems
    if rows is None:
        return
    header = {name.strip().lower(): name for name in (rows[0][1] if rows else {})}
    path_column = next((header[c] for c in _PATH_COLUMNS if c in header), None)
    digest_column = next((header[c] for c in _DIGEST_COLUMNS if c in header), None)
    if path_column is None or digest_column is None:
        yield Problem(
            "not-compared",
            FILE_LIST,
            f"the columns {', '.join(header) or 'none'}",
            "columns path and sha256",
        )
        return
    known = {} if survey.benchmark is None else survey.benchmark.digests
    n_images = 0
    for line, row in rows:
        name = row[path_column].strip().removeprefix("./")
        if name.startswith(f"{IMAGES.as_posix()}/"):
            n_images += 1
            continue
        where = f"line {line}"
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or not name:
            yield Problem(
                "not-compared", FILE_LIST, repr(name), "a path inside the benchmark", where, "path"
            )
            continue
        digest = known.get(name) or _digest(directory / name)
        if digest is None:
            yield Problem(
                "listed-file-missing",
                name,
                absent(directory / name),
                f"a file, as listed in {FILE_LIST}",
            )
        elif digest != row[digest_column].strip().lower():
            yield Problem(
                "digest",
                name,
                f"SHA-256 {digest[:12]}...",
                f"SHA-256 {row[digest_column].strip().lower()[:12]}..., as in {FILE_LIST}, {where}",
                cause="edited, or download incomplete",
            )
    if n_images:
        yield Problem(
            "not-compared",
            FILE_LIST,
            f"{n_images:,} image files listed",
            "tables (images are not read)",
        )


def _digest(path: Path) -> str | None:
    try:
        return file_sha256(path)
    except OSError:
        return None


def _image_sizes(raw: RawSplit) -> Iterator[Problem]:
    for row in np.flatnonzero((raw.sizes <= 0).any(axis=1)):
        width, height = raw.sizes[row].tolist()
        yield Problem(
            "image-size",
            raw.file,
            f"width {width:g} and height {height:g}",
            "a width and height > 0 in px",
            f"image {raw.image_ids[row]}",
            cause="placeholders of another program; the size counts as unknown",
        )


def _empty_boxes(raw: RawSplit) -> Iterator[Problem]:
    for row in np.flatnonzero((raw.boxes[:, 2:] == 0).any(axis=1)):
        yield Problem(
            "annotation-empty-box",
            raw.file,
            str(raw.boxes[row].tolist()),
            "w > 0 and h > 0 in px",
            f"annotation {raw.annotation_ids[row]}",
            "bbox",
            "no detection can match it; it counts as missed",
        )


def _stray_files(survey: Survey) -> Iterator[Problem]:
    """Annotation files of unknown splits, and the number of categories that only they list."""
    known = {
        number
        for raw in survey.raws
        if not is_stray(raw.file)
        for number in raw.category_ids.tolist()
    }
    for raw in survey.raws:
        if is_stray(raw.file):
            n = len(set(raw.category_ids.tolist()) - known)
            yield Problem(
                "stray-annotations",
                raw.file,
                f"not a known split; {counted(n, 'category', 'categories')} of it are not listed "
                "elsewhere",
                f"only {', '.join(f'{name}.json' for name in KNOWN_SPLITS)}",
                cause="its categories are part of the benchmark, as in the benchmark's evaluator",
            )


def _shared_names(raw: RawSplit) -> Iterator[Problem]:
    """Categories of one file with the same species name."""
    first: dict[str, int] = {}
    for number, name in zip(raw.category_ids.tolist(), raw.category_names, strict=True):
        other = first.setdefault(name, number)
        if other != number:
            yield Problem(
                "species-two-ids",
                raw.file,
                f"{name!r}, the same as category {other}",
                "one category per species",
                f"category {number}",
                "name",
                "each id has its own AP, but species accuracy compares names",
            )


def _species(survey: Survey) -> Iterator[Problem]:
    """Compare category names with the taxonomy and with the other splits."""
    listed = {raw.name: set(raw.category_names) for raw in survey.raws}
    files = {raw.name: raw.file for raw in survey.raws}
    if survey.taxonomy:
        for name, species in listed.items():
            for text in sorted(species - set(survey.taxonomy)):
                near = difflib.get_close_matches(text, survey.taxonomy, n=1)
                yield Problem(
                    "species-not-in-taxonomy",
                    files[name],
                    repr(text),
                    f"a scientificName in {TAXONOMY}",
                    f"category {text!r}",
                    "name",
                    f"did you mean {near[0]!r}?" if near else "it has no genus, tribe or band",
                )
            expected = "semantic_ood" if name == "semantic_ood" else "trainable"
            for text in sorted(species & set(survey.taxonomy)):
                role = survey.taxonomy[text]["benchmark_role"]
                if role and role != expected and (name == "train" or name in TEST_SPLITS):
                    yield Problem(
                        "species-role",
                        files[name],
                        f"benchmark_role {role} in {TAXONOMY}",
                        expected,
                        f"category {text!r}",
                    )
    train = listed.get("train")
    for name in TEST_SPLITS if train else ():
        seen = name == "semantic_ood"
        odd = listed.get(name, set()) & (train or set())
        if not seen:
            odd = listed.get(name, set()) - (train or set())
        for text in sorted(odd):
            yield Problem(
                "species-seen" if seen else "species-untrained",
                files[name],
                f"{text!r}, which train.json {'also lists' if seen else 'does not list'}",
                "only held-out species" if seen else "only training species",
                f"category {text!r}",
            )
    for text in sorted(listed.get("semantic_ood", set()) & set(survey.taxonomy)):
        if not survey.taxonomy[text]["distance_band_vs_trainable"]:
            yield Problem(
                "species-without-band",
                TAXONOMY,
                "a blank cell",
                "a band; without it the species is excluded from all bands",
                f"species {text!r}",
                "distance_band_vs_trainable",
            )


def _ranks(taxonomy: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """Genera assigned to two tribes and tribes assigned to two subfamilies."""
    for kind, low, high in (
        ("genus-in-two-tribes", "genus", "tribe"),
        ("tribe-in-two-subfamilies", "tribe", "subfamily"),
    ):
        above: dict[str, dict[str, str]] = defaultdict(dict)
        for species, row in taxonomy.items():
            if row[low] and row[high]:
                above[row[low]].setdefault(row[high], species)
        for name, parents in above.items():
            if len(parents) > 1:
                text = " and ".join(f"{parent} ({species})" for parent, species in parents.items())
                yield Problem(kind, TAXONOMY, text, f"one {high}", f"{low} {name!r}", high)


def _licences(directory: Path, origins: Mapping[str, _Origins]) -> Iterator[Problem]:
    """Images without a licence, or whose licence differs from their annotation file."""
    numbered, problems = optional_table(directory, LICENCES)
    yield from problems
    if numbered is None:
        return
    rows = [row for _, row in numbered]
    if not rows or "source_image_uuid" not in rows[0]:
        yield Problem(
            "not-compared",
            LICENCES,
            f"the columns {', '.join(rows[0]) if rows else 'none'}",
            "a column source_image_uuid",
        )
        return
    licence = {row["source_image_uuid"]: row.get("license_name") for row in rows}
    for file, found in origins.items():
        for image in found.images:
            uuid = image.source_image_uuid
            if not isinstance(uuid, str):
                continue
            where = f"image {image.id}"
            if uuid not in licence:
                yield Problem(
                    "image-without-licence", file, uuid, f"a row in {LICENCES}", where,
                    "source_image_uuid",
                )  # fmt: skip
            elif licence[uuid] and image.license_name and licence[uuid] != image.license_name:
                yield Problem(
                    "licence-differs",
                    file,
                    repr(image.license_name),
                    f"{licence[uuid]!r}, as in {LICENCES}, which takes precedence",
                    where,
                    "license_name",
                )


def _counts(raw: RawSplit) -> Iterator[Problem]:
    """Size of a split compared with the published one; species without a scored specimen."""
    scored = np.unique(raw.category[~raw.crowd])
    counts = (
        len(raw.image_ids),
        int(np.count_nonzero(~raw.crowd)),
        int(np.count_nonzero(raw.crowd)),
        len(raw.category_ids),
    )
    nouns = (("image",), ("scored specimen",), ("crowd region",), ("species", "species"))
    published = PUBLISHED.get(raw.name)
    expected = "a split with published counts"
    if published is not None:
        other = ", ".join(
            counted(number, *noun)
            for number, count, noun in zip(published, counts, nouns, strict=True)
            if number != count
        )
        expected = f"{other}, as published for 2.0.1" if other else "the counts of 2.0.1"
    found = ", ".join(counted(number, *noun) for number, noun in zip(counts, nouns, strict=True))
    yield Problem("counts", raw.file, found, expected, f"split {raw.name}")
    without = [
        name
        for number, name in zip(raw.category_ids.tolist(), raw.category_names, strict=True)
        if number not in set(scored.tolist())
    ]
    if without and raw.name in PUBLISHED:
        yield Problem(
            "listed-not-scored",
            raw.file,
            f"{len(without)} of {len(raw.category_ids)} listed species without a scored specimen: "
            f"{some_of(without, _SHOWN)}",
            "a scored specimen; without one, a species is excluded from means (the benchmark's "
            "evaluator counts it as AP 0)",
        )


def annotation_file(split: str) -> str:
    """The annotation file of a split, relative to the benchmark folder."""
    return (ANNOTATIONS / f"{split}.json").as_posix()
