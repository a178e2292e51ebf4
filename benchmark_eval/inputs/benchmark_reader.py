"""Reading a benchmark folder; one ``InputError`` lists every problem of all files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from benchmark_eval.core.arrays import Codes, Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import absent
from benchmark_eval.inputs.benchmark import Benchmark, Categories, SplitTruth, TrainIncidence
from benchmark_eval.inputs.coco_annotations import RawSplit, read_split
from benchmark_eval.inputs.taxonomy import read_taxonomy
from benchmark_eval.protocol import ANNOTATIONS, KNOWN_SPLITS, OOD_BANDS, RANKS, TAXONOMY


def _codes(texts: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """Integers that are equal if the texts are equal, -1 for blank ones; and the distinct texts."""
    distinct = tuple(sorted({t for t in texts if t}))
    number = {text: code for code, text in enumerate(distinct)}
    return np.array([number.get(t, -1) for t in texts], np.int32), distinct


def _category_names(raws: Iterable[RawSplit], problems: Problems) -> dict[int, str]:
    names: dict[int, str] = {}
    first_file: dict[int, str] = {}
    for raw in raws:
        for number, name in zip(raw.category_ids.tolist(), raw.category_names, strict=True):
            if names.setdefault(number, name) != name:
                problems.add(
                    "category-name",
                    f"category {number} is {name!r}",
                    f"{names[number]!r} as in {first_file[number]}",
                    file=raw.file,
                    record=f"category {number}",
                    field="name",
                    cause="files of different benchmark versions",
                )
            first_file.setdefault(number, raw.file)
    return names


def _check_categories(raw: RawSplit, ids: Ints, problems: Problems) -> None:
    """Report annotations of categories that no file of the benchmark lists."""
    for bad in np.flatnonzero(~np.isin(raw.category, ids)):
        problems.add(
            "annotation-category-unknown",
            f"category {raw.category[bad]}",
            "a category id of the benchmark",
            file=raw.file,
            record=f"annotation {raw.annotation_ids[bad]}",
            field="category_id",
        )


def _valid_part(raw: RawSplit, ids: Ints) -> RawSplit:
    """An invalid file, without duplicates or annotations of unknown images or categories."""
    keep = np.isin(raw.image, raw.image_ids) & np.isin(raw.category, ids)
    columns = ("annotation_ids", "image", "category", "boxes", "area", "crowd")
    image_ids, first = np.unique(raw.image_ids, return_index=True)
    return replace(
        raw,
        image_ids=image_ids,
        sizes=raw.sizes[first],
        file_names=tuple(raw.file_names[row] for row in first) if raw.file_names else (),
        category_ids=np.unique(raw.category_ids),
        **{name: getattr(raw, name)[keep] for name in columns},
    )


def _split_truth(raw: RawSplit, categories: Categories) -> SplitTruth:
    order = np.argsort(raw.image_ids, kind="stable")
    image_ids = raw.image_ids[order]
    image = np.searchsorted(image_ids, raw.image)
    rows = categories.rows_of(raw.category)
    by_image = np.argsort(image, kind="stable")
    return SplitTruth(
        name=raw.name,
        image_ids=image_ids,
        sizes=np.where((raw.sizes <= 0).any(axis=1, keepdims=True), np.nan, raw.sizes)[order],
        listed=np.sort(categories.rows_of(raw.category_ids)),
        image=image[by_image],
        category=rows[by_image],
        boxes=raw.boxes[by_image],
        area=raw.area[by_image],
        crowd=raw.crowd[by_image],
        file_order=np.argsort(order, kind="stable"),
        **_name_columns([raw.file_names[row] for row in order] if raw.file_names else []),
    )


def _name_columns(names: Sequence[str]) -> dict[str, Ints]:
    """Order and numbers of file names, as columns of ``SplitTruth``."""
    stems = [PurePosixPath(name).stem for name in names]
    numbers = [int(s) if s.isascii() and s.isdigit() and len(s) < 19 else -1 for s in stems]
    return {
        "name_order": np.array(sorted(range(len(names)), key=names.__getitem__), np.int64),
        "name_number": np.array(numbers, np.int64),
    }


def _train_incidence(raw: RawSplit, ids: Ints) -> TrainIncidence:
    image_ids = np.unique(raw.image_ids)
    width = max(len(ids), 1)
    # a species that train.json does not list counts as untrained, as in the benchmark's evaluator
    own = np.isin(raw.category, raw.category_ids)
    image, category = raw.image[own], raw.category[own]
    pair = np.searchsorted(image_ids, image) * width + np.searchsorted(ids, category)
    distinct, count = np.unique(pair, return_counts=True)
    return TrainIncidence(
        n_images=len(image_ids),
        image=distinct // width,
        category=distinct % width,
        n_objects=count.astype(np.int64),
    )


def _train_counts(
    train: TrainIncidence | None, name_code: Codes, n_categories: int
) -> tuple[Ints, Ints]:
    """Training images and objects per category row, by species name; -1 if there are none."""
    none = np.full(n_categories, -1, np.int64)
    if train is None or not len(train.image):
        return none, none.copy()
    species = name_code[train.category]
    n_names = max(int(name_code.max()) + 1, 1)  # blank names have no code, but are reported
    pairs = np.unique(train.image * n_names + species)
    images = np.bincount(pairs % n_names, minlength=n_names)[name_code]
    objects = np.zeros(n_names, np.int64)
    np.add.at(objects, species, train.n_objects)
    return np.where(images > 0, images, -1), np.where(images > 0, objects[name_code], -1)


@dataclass(frozen=True, slots=True)
class Survey:
    """The readable content of a benchmark folder, and all its problems.

    ``benchmark`` is ``None`` if no annotation file can be read. If there are problems it holds the
    valid part: enough for further checks, never for scoring. ``raws`` are the annotation files as
    columns, ``taxonomy`` the rows of the taxonomy by species name.
    """

    benchmark: Benchmark | None
    raws: tuple[RawSplit, ...]
    taxonomy: dict[str, dict[str, str]]
    problems: tuple[Problem, ...]


def load_benchmark(benchmark_dir: str | Path) -> Benchmark:
    """Read the ground truth of a benchmark folder.

    Parameters
    ----------
    benchmark_dir : str or Path
        The unpacked benchmark: ``species_taxonomy.csv`` and at least one of ``train.json``,
        ``iid_test.json``, ``inat_test.json`` and ``semantic_ood.json`` in
        ``detection/annotations_coco/``.

    Returns
    -------
    Benchmark
        ``categories`` (all categories of all files, one per row: ``ids``, ``names`` and their
        ranks and bands), ``splits`` (a dict of the ground truth of each split), ``train``
        (species per training image, or None without ``train.json``) and ``digests`` (SHA-256 of
        each file).

        A split has ``image_ids`` (n_images,), ascending, and one row per annotation in
        ``image`` and ``category`` (n_annotations,), which are rows of ``image_ids`` and of
        ``categories``, ``boxes`` (n_annotations, 4) as x, y, w, h in px, ``area``
        (n_annotations,) in px² and ``crowd`` (n_annotations,).

    Raises
    ------
    InputError
        The folder or a file in it is missing or not valid. All problems of all files are in
        ``problems``.

    Notes
    -----
    The files are in the COCO detection format. As in pycocotools and the benchmark's evaluator,
    ``area`` is read as given (w * h where it is absent) and annotations with ``iscrowd`` are not
    scored.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import load_benchmark, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> benchmark = load_benchmark(made.benchmark_dir)
    >>> list(benchmark.splits)
    ['iid_test', 'inat_test', 'semantic_ood', 'train']
    >>> len(benchmark.categories.ids)
    175
    >>> truth = benchmark.splits["iid_test"]
    >>> truth.boxes.shape == (len(truth.crowd), 4)
    True
    >>> folder.cleanup()
    """
    survey = survey_benchmark(benchmark_dir)
    if survey.problems:
        raise InputError(survey.problems)
    assert survey.benchmark is not None
    return survey.benchmark


def survey_benchmark(benchmark_dir: str | Path) -> Survey:
    """Read as much of a benchmark folder as possible. Raises ``InputError`` if it is missing."""
    directory = Path(benchmark_dir)
    problems = Problems()
    digests: dict[str, str] = {}
    if not directory.is_dir():
        found = "a file" if directory.exists() else absent(directory, "no such folder")
        expected = "the unpacked benchmark folder"
        cause = _hint(directory)
        raise InputError([Problem("missing-folder", str(directory), found, expected, cause=cause)])
    taxonomy = read_taxonomy(directory / TAXONOMY, digests, problems)
    folder = directory / ANNOTATIONS
    present: list[Path] = []
    with contextlib.suppress(OSError):  # an empty list is reported
        present = listed(folder)
    files = [path for path in present if path.suffix == ".json"]
    if not files:
        problems.add(
            "missing-file",
            "no .json file",
            "COCO annotation files",
            file=ANNOTATIONS.as_posix(),
            cause=f"{directory} is not the unpacked benchmark: {_hint(directory)}",
        )
    _check_names(present, problems)
    raws = [raw for file in files if (raw := read_split(directory, file, digests, problems))]
    names = _category_names(raws, problems)
    ids = np.array(sorted(names), np.int64)
    if len(raws) == len(files) and all(raw.whole for raw in raws):
        for raw in raws:
            _check_categories(raw, ids, problems)
    benchmark = None
    if raws:
        valid = [_valid_part(raw, ids) for raw in raws] if problems else raws
        benchmark = _assemble(valid, names, taxonomy, digests)
        _check_bands(benchmark, problems)
    return Survey(benchmark, tuple(raws), taxonomy, tuple(problems.all()))


def _hint(directory: Path) -> str:
    from benchmark_eval.inputs.path_hints import benchmark_hint

    return benchmark_hint(directory)


def _check_names(present: Iterable[Path], problems: Problems) -> None:
    """Report files whose names differ from those of the splits only in case."""
    expected = {f"{name}.json" for name in KNOWN_SPLITS}
    for name in (path.name for path in present):
        meant = name.lower()
        if name not in expected and meant in expected:
            problems.add(
                "split-file-name",
                f"a file named {name!r}",
                f"{meant!r}, or a name that differs in more than case",
                file=(ANNOTATIONS / name).as_posix(),
                cause=f"not read as the split {meant.removesuffix('.json')}",
            )


def _assemble(
    raws: Sequence[RawSplit],
    names: dict[int, str],
    taxonomy: dict[str, dict[str, str]],
    digests: dict[str, str],
) -> Benchmark:
    """All files as one benchmark; every annotation has a known image and category."""
    ids = np.array(sorted(names), np.int64)
    ordered = [names[i] for i in ids.tolist()]
    ranks = {
        rank: _codes([taxonomy.get(name, {}).get(rank, "") for name in ordered]) for rank in RANKS
    }
    name_code, _ = _codes(ordered)
    train_raw = next((raw for raw in raws if raw.name == "train"), None)
    train = None if train_raw is None else _train_incidence(train_raw, ids)
    n_images, n_objects = _train_counts(train, name_code, len(ids))
    genus_code, genera = ranks["genus"]
    categories = Categories(
        ids=ids,
        names=tuple(ordered),
        name_code=name_code,
        subfamily_code=ranks["subfamily"][0],
        tribe_code=ranks["tribe"][0],
        genus_code=genus_code,
        genera=tuple(genera[code] if code >= 0 else "" for code in genus_code.tolist()),
        distance_band=tuple(
            taxonomy.get(n, {}).get("distance_band_vs_trainable", "") for n in ordered
        ),
        target_band=tuple(taxonomy.get(n, {}).get("target_band", "") for n in ordered),
        n_train_images=n_images,
        n_train_objects=n_objects,
    )
    splits = {raw.name: _split_truth(raw, categories) for raw in raws}
    known = {name: splits[name] for name in KNOWN_SPLITS if name in splits}
    descriptions = {raw.name: raw.description for raw in raws if raw.description}
    description = next((descriptions[n] for n in KNOWN_SPLITS if n in descriptions), "")
    return Benchmark(categories, known, train, digests, description)


def _check_bands(benchmark: Benchmark, problems: Problems) -> None:
    """Report held-out species with an unknown distance band."""
    if "semantic_ood" not in benchmark.splits:
        return
    categories = benchmark.categories
    for row in benchmark.splits["semantic_ood"].listed.tolist():
        band = categories.distance_band[row]
        if band and band not in OOD_BANDS:
            problems.add(
                "distance-band",
                repr(band),
                f"blank or one of {', '.join(OOD_BANDS)}",
                file=TAXONOMY,
                record=categories.names[row],
                field="distance_band_vs_trainable",
            )
