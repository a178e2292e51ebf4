"""Training subsets of the three regimes, drawn from the benchmark's ``train.json``.

Each species has its own random order of its training images per regime and seed; a condition takes
the first images in this order. The subsets of a regime and seed are therefore nested in k and in p,
and the draw of a species does not depend on any other species, condition or seed.

A subset is COCO JSON: the images that any of their species has drawn, with all their boxes. Boxes
of a species that has not drawn the image become crowd regions, which must not be trained on: the
small budget of a species then also holds on images that it shares with other species.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.csv_text import csv_records, csv_text
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.outputs import Outputs, claim
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.rng import stream
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.coco_annotations import RawSplit, read_split
from benchmark_eval.inputs.input_files import benchmark_inputs
from benchmark_eval.inputs.manifest import Manifest, parse_budget, read_manifest
from benchmark_eval.inputs.model_names import name_problem
from benchmark_eval.protocol import ANNOTATIONS
from benchmark_eval.training.budgets import Budget, ExpectedBudgets
from benchmark_eval.training.regimes import GRID, SEEDS, condition_name, n_drawn

TRAIN = ANNOTATIONS / "train.json"
SUBSET_FILE = "train.json"
IMAGE_LIST = "images.txt"
BUDGETS = "budgets.csv"
MANIFEST = "manifest.csv"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, order=True)
class Draw:
    """What determines a subset: condition and seed. ``k_or_p`` is canonical text."""

    regime: str
    k_or_p: str
    seed: int

    @property
    def name(self) -> str:
        """The subset's folder, such as ``gu_k5_s0``."""
        return f"{condition_name(self.regime, self.k_or_p)}_s{self.seed}"


@dataclass(frozen=True, slots=True)
class Subset:
    """One drawn subset, as masks over the images and annotations of ``train.json``.

    ``trained`` marks the boxes to train on; all other boxes on the subset's images become crowd.
    ``budget`` counts the images with a trained box, and those boxes.
    """

    draw: Draw
    images: Bools
    trained: Bools
    budget: Budget


class TrainingPool:
    """``train.json`` as columns and as raw records, from which subsets are drawn."""

    def __init__(self, benchmark_dir: str | Path) -> None:
        """Read and check the benchmark; raises InputError if it is invalid or has no train.json."""
        directory = Path(benchmark_dir)
        self.benchmark: Benchmark = load_benchmark(directory)
        if self.benchmark.train is None:
            raise InputError(
                [
                    Problem(
                        "missing-file",
                        TRAIN.as_posix(),
                        "no such file",
                        "the benchmark's training annotations",
                    )
                ]
            )
        problems = Problems()
        raw = read_split(directory, directory / TRAIN, {}, problems)
        if raw is None or problems:  # only if the file changed since ``load_benchmark``
            raise InputError(problems.all())
        self.columns: RawSplit = raw
        self.digest = self.benchmark.digests[TRAIN.as_posix()]
        self._data = read_input(directory / TRAIN).removeprefix(b"\xef\xbb\xbf")
        self._category = self.benchmark.categories.rows_of(raw.category)
        order = np.argsort(raw.image_ids, kind="stable")
        self._image = order[np.searchsorted(raw.image_ids, raw.image, sorter=order)]
        self._pairs = self._species_images()

    @cached_property
    def _records(self) -> tuple[dict[str, msgspec.Raw], list[msgspec.Raw], list[msgspec.Raw]]:
        try:
            tree = msgspec.json.decode(self._data, type=dict[str, msgspec.Raw])
            images = msgspec.json.decode(tree["images"], type=list[msgspec.Raw])
            annotations = msgspec.json.decode(tree["annotations"], type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # the reader of annotations accepts NaN and UTF-16, but copies must be valid
            found, expected = f"invalid JSON: {error}", "strict JSON in UTF-8"
            raise InputError([Problem("not-json", TRAIN.as_posix(), found, expected)]) from error
        return tree, images, annotations

    @cached_property
    def file_names(self) -> list[str]:
        """Image file names in ``train.json``; raises InputError if one is missing."""
        names: list[str] = []
        problems = Problems(TRAIN.as_posix())
        for row, record in enumerate(self._records[1]):
            name = msgspec.json.decode(record).get("file_name")
            if not isinstance(name, str) or not name.strip() or {"\n", "\0"} & set(name):
                found = 'missing field "file_name"' if name is None else repr(name)
                where = f"image {self.columns.image_ids[row]}"
                expected = "the name of the image file"
                problems.add("file-name", found, expected, record=where, field="file_name")
            names.append(str(name))
        if problems:
            raise InputError(problems.all())
        return names

    def _species_images(self) -> dict[int, Ints]:
        """The images with a non-crowd box of each category row, as rows by ascending image id."""
        usable = ~self.columns.crowd
        n_images = max(len(self.columns.image_ids), 1)
        pairs = np.unique(self._category[usable] * n_images + self._image[usable])
        species, images = pairs // n_images, pairs % n_images
        by_id = np.lexsort((self.columns.image_ids[images], species))
        species, images = species[by_id], images[by_id]
        present, first = np.unique(species, return_index=True)
        parts = np.split(images, first[1:]) if len(present) else []
        return dict(zip(present.tolist(), parts, strict=True))

    @cached_property
    def n_images(self) -> Ints:
        """Distinct training images of each category row of the benchmark."""
        counts = np.zeros(len(self.benchmark.categories.ids), np.int64)
        for row, images in self._pairs.items():
            counts[row] = len(images)
        return counts

    @cached_property
    def is_target(self) -> Bools:
        """Which category rows are target species."""
        return np.array([bool(b) for b in self.benchmark.categories.target_band], np.bool_)

    @cached_property
    def expected(self) -> ExpectedBudgets:
        """The expected budget of each condition."""
        return ExpectedBudgets(self.benchmark)

    def draw(self, draw: Draw) -> Subset:
        """The subset of a condition and seed; deterministic."""
        counts = n_drawn(draw.regime, draw.k_or_p, self.n_images, self.is_target)
        width = max(len(self.columns.image_ids), 1)
        drawn: list[Ints] = [np.zeros(0, np.int64)]
        for row, images in self._pairs.items():
            name = self.benchmark.categories.names[row]
            rng = stream(draw.seed, "training subset", draw.regime, name)
            # raw output of the bit generator: numpy guarantees that it never changes
            order = np.argsort(rng.bit_generator.random_raw(len(images)), kind="stable")
            drawn.append(row * width + images[order[: counts[row]]])
        trained = ~self.columns.crowd & np.isin(
            self._category * width + self._image, np.concatenate(drawn)
        )
        used = np.zeros(len(self.columns.image_ids), np.bool_)
        used[self._image[trained]] = True
        return Subset(draw, used, trained, Budget(float(used.sum()), float(trained.sum())))

    def short_of(self, regime: str, k_or_p: str) -> list[str]:
        """Species with fewer than k training images, sorted by name; [] if there is no k."""
        if regime == "incremental_natural" or k_or_p == "all":
            return []
        short = (self.n_images > 0) & (self.n_images < int(k_or_p))
        if regime == "incremental_uniform_targets":
            short &= self.is_target
        return sorted(self.benchmark.categories.names[row] for row in np.flatnonzero(short))

    def coco(self, subset: Subset) -> bytes:
        """A subset as COCO JSON: records of ``train.json``, unchanged except for ``iscrowd``.

        ``info.training_subset`` records the SHA-256 of ``train.json`` and how it was drawn.
        """
        tree, images, annotations = self._records
        info: Any = msgspec.json.decode(tree["info"]) if "info" in tree else {}
        draw = subset.draw
        drawn_as = {
            "regime": draw.regime,
            "k_or_p": draw.k_or_p,
            "seed": draw.seed,
            "n_images": int(subset.budget.n_images),
            "n_specimens": int(subset.budget.n_specimens),
            "train_json_sha256": self.digest,
        }
        info = {**(info if isinstance(info, dict) else {}), "training_subset": drawn_as}
        kept = np.flatnonzero(subset.images[self._image])
        boxes = [
            bytes(annotations[row])
            if subset.trained[row] or self.columns.crowd[row]
            else _as_crowd(annotations[row])
            for row in kept.tolist()
        ]
        parts = {key: bytes(value) for key, value in tree.items()}
        parts["images"] = _list([bytes(images[row]) for row in np.flatnonzero(subset.images)])
        parts["annotations"] = _list(boxes)
        parts = {"info": msgspec.json.encode(info)} | {
            k: v for k, v in parts.items() if k != "info"
        }
        body = b",\n".join(msgspec.json.encode(key) + b":" + value for key, value in parts.items())
        return b"{" + body + b"}\n"

    def image_list(self, subset: Subset) -> str:
        """The file names of a subset's images, one per line, in the order of ``train.json``."""
        return "".join(f"{self.file_names[row]}\n" for row in np.flatnonzero(subset.images))


def _as_crowd(record: msgspec.Raw) -> bytes:
    entry = msgspec.json.decode(record)
    entry["iscrowd"] = 1
    return msgspec.json.encode(entry)


def _list(records: Sequence[bytes]) -> bytes:
    return b"[" + b",\n".join(records) + b"]"


@dataclass(frozen=True, slots=True)
class SubsetRow:
    """One row of ``budgets.csv``: a subset's exact budget and its condition's expected budget."""

    draw: Draw
    exact: Budget
    expected: Budget
    n_species_short: int


@dataclass(frozen=True, slots=True)
class SubsetTree:
    """The files written: one folder per subset, ``budgets.csv`` and the manifest.

    ``short`` maps each condition (``global_uniform k=50``) to the species with fewer than k images.
    """

    folder: Path
    manifest: Path
    rows: tuple[SubsetRow, ...]
    short: dict[str, list[str]]


def write_subsets(
    benchmark_dir: str | Path,
    output_dir: str | Path,
    *,
    manifest: str | Path | None = None,
    conditions: Iterable[tuple[str, str]] = GRID,
    seeds: Iterable[int] = SEEDS,
    architectures: Sequence[str] = (),
    progress: Progress | None = None,
    force: bool = False,
) -> SubsetTree:
    """Draw training subsets of the three regimes and write them.

    Each subset goes to ``output_dir/<condition>_s<seed>/`` as ``train.json`` (COCO) and
    ``images.txt``. ``output_dir/budgets.csv`` lists the exact and expected budget of each.

    Parameters
    ----------
    benchmark_dir : str or Path
        The unpacked benchmark with ``train.json``.
    output_dir : str or Path
        Folder for the subsets; created if needed.
    manifest : str or Path, optional
        A manifest whose conditions and seeds are drawn; its column ``train_annotations`` is filled
        in. Without it, ``output_dir/manifest.csv`` is written.
    conditions : iterable of (str, str), optional
        Regime and k or p of each condition, such as ``("global_uniform", "5")``; by default the
        17 conditions of the sweep. Not used with ``manifest``.
    seeds : iterable of int, optional
        Seeds of each condition, by default 0, 1 and 2. Not used with ``manifest``.
    architectures : sequence of str, default ()
        Architectures in the new manifest, which gets one row per architecture and subset.
    progress : callable, optional
        Called with (what, done, total) after each subset.
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since. ``manifest`` itself is updated in any case.

    Returns
    -------
    SubsetTree
        ``folder``, ``manifest``, ``rows`` (the rows of ``budgets.csv``) and ``short`` (per
        condition, the species with fewer images than its k).

    Raises
    ------
    InputError
        The benchmark or the manifest is missing or not valid. All problems are in ``problems``;
        nothing is written.
    UsageError
        A condition, a seed or an architecture is not allowed, or a file must not be replaced: it
        is an input, was not written by this package, or another process is writing it.

    Notes
    -----
    Each species has its own random order of training images for each regime and seed, and a
    condition takes the first of them, so that the subsets of a regime and seed are nested.
    Specimens of a species that did not draw the image are crowd regions in the subset. The same
    inputs give the same bytes. The "Training subsets" page of the documentation gives the formulas.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import make_synthetic, write_subsets
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> written = write_subsets(
    ...     made.benchmark_dir,
    ...     f"{folder.name}/subsets",
    ...     conditions=[("global_uniform", "1"), ("incremental_natural", "0.5")],
    ...     seeds=[0],
    ... )
    >>> sorted(path.name for path in written.folder.glob("[!.]*"))
    ['budgets.csv', 'gu_k1_s0', 'in_p050_s0', 'manifest.csv']
    >>> folder.cleanup()
    """
    output = Path(output_dir)
    if manifest is None:
        draws = draws_of(conditions, seeds)
        manifest_path = output / MANIFEST
        check_architectures(architectures)
    else:
        manifest_path = Path(manifest)
        known = read_manifest(manifest_path)
        draws = [Draw(e.regime, e.k_or_p, e.seed) for e in known.in_table_order()]
        draws = list(dict.fromkeys(draws))
    where = {draw: output / draw.name / SUBSET_FILE for draw in draws}
    text = (
        _new_manifest(draws, architectures, where, manifest_path)
        if manifest is None
        else _filled_manifest(known, where)
    )
    names = [f"{draw.name}/{file}" for draw in draws for file in (SUBSET_FILE, IMAGE_LIST)]
    names += [BUDGETS] if manifest is not None else [BUDGETS, MANIFEST]
    inputs = [*benchmark_inputs(benchmark_dir), *([] if manifest is None else [manifest_path])]
    with claim(output, names, inputs=inputs, force=force) as out:
        if manifest is not None:
            _check_update(manifest_path, text, force=force)
        rows, short = _write_draws(TrainingPool(benchmark_dir), draws, out, progress)
        out.write(BUDGETS, _budgets(rows).encode())
        if manifest is None:
            out.write(MANIFEST, text.encode())
        out.publish(BUDGETS)
        if manifest is not None and _differs(manifest_path, text):
            write_text_atomic(manifest_path, text)
    return SubsetTree(output, manifest_path, tuple(rows), short)


def _check_update(manifest: Path, text: str, *, force: bool) -> None:
    """Raise UsageError if the given manifest is a link that would be replaced."""
    if manifest.is_symlink() and not force and _differs(manifest, text):
        raise UsageError(
            f"{manifest}: found a link; expected the manifest itself, because its column "
            f"train_annotations is filled in (the link leads to {manifest.readlink()}); "
            "nothing was written; name that file, or replace the link with --force"
        )


def _differs(manifest: Path, text: str) -> bool:
    return read_input(manifest) != text.encode()


def _write_draws(
    pool: TrainingPool, draws: Sequence[Draw], out: Outputs, progress: Progress | None
) -> tuple[list[SubsetRow], dict[str, list[str]]]:
    """Prepare the files of each subset; returns the rows of the budgets and the short species."""
    rows: list[SubsetRow] = []
    short: dict[str, list[str]] = {}
    for done, draw in enumerate(draws, start=1):
        subset = pool.draw(draw)
        out.write(f"{draw.name}/{SUBSET_FILE}", pool.coco(subset))
        out.write(f"{draw.name}/{IMAGE_LIST}", pool.image_list(subset).encode())
        expected = pool.expected.budget(draw.regime, draw.k_or_p) or Budget(0.0, 0.0)
        lacking = pool.short_of(draw.regime, draw.k_or_p)
        if lacking:
            short[f"{draw.regime} k={draw.k_or_p}"] = lacking
        rows.append(SubsetRow(draw, subset.budget, expected, len(lacking)))
        if progress is not None:
            progress("training subsets", done, len(draws))
    return rows, short


def draws_of(conditions: Iterable[tuple[str, str]], seeds: Iterable[int]) -> list[Draw]:
    """Every condition with every seed, in the given order; one UsageError lists all problems."""
    problems: list[str] = []
    draws: list[Draw] = []
    seeds = list(dict.fromkeys(seeds))
    problems += [f"seed must be >= 0, got {seed}" for seed in seeds if seed < 0]
    for regime, text in conditions:
        parsed = parse_budget(regime, text)
        if parsed is None:
            problems.append(f"{regime}: {_EXPECTED[regime]}, got {text!r}")
        else:
            draws += [Draw(regime, parsed[1], seed) for seed in seeds]
    if problems:
        raise UsageError("; ".join(problems))
    if not draws:
        raise UsageError("no conditions or no seeds given; expected at least one of each")
    return list(dict.fromkeys(draws))


_EXPECTED = {
    "global_uniform": "k must be an integer >= 1 or all",
    "incremental_natural": "p must be in (0, 1]",
    "incremental_uniform_targets": "k must be an integer >= 0",
}


def check_architectures(architectures: Sequence[str]) -> None:
    """Raise UsageError for duplicates and for names that cannot begin the name of a model."""
    problems = [
        f"architecture {a!r}: a name {reason}" for a in architectures if (reason := name_problem(a))
    ]
    problems += [
        f"architecture {a!r} is given more than once"
        for a in dict.fromkeys(architectures)
        if architectures.count(a) > 1
    ]
    if problems:
        raise UsageError("; ".join(problems))


def _relative(path: Path, manifest: Path) -> str:
    """A path relative to the manifest's folder, with forward slashes."""
    return Path(os.path.relpath(path.absolute(), manifest.absolute().parent)).as_posix()


def model_names(draws: Iterable[Draw], architectures: Sequence[str]) -> list[str]:
    """The names of the models in ``manifest_text``, such as ``yolo11x_gu_k5_s0``."""
    draws = list(draws)
    if not architectures:
        return [draw.name for draw in draws]
    return [f"{architecture}_{draw.name}" for architecture in architectures for draw in draws]


def manifest_text(
    draws: Iterable[Draw], architectures: Sequence[str], annotations: Callable[[Draw], str]
) -> str:
    """A manifest as CSV: one row per architecture and draw; ``annotations`` is the last column."""
    draws = list(draws)
    header = ["model_name", "regime", "k_or_p", "seed", "architecture", "train_annotations"]
    rows = [
        [name, d.regime, d.k_or_p, str(d.seed), architecture, annotations(d)]
        for name, (architecture, d) in zip(
            model_names(draws, architectures),
            itertools.product(architectures or [""], draws),
            strict=True,
        )
    ]
    if not architectures:
        header, *rows = [[*row[:4], row[5]] for row in [header, *rows]]
    return csv_text(header, rows, escape_formulas=False)


def _new_manifest(
    draws: Sequence[Draw], architectures: Sequence[str], where: dict[Draw, Path], manifest: Path
) -> str:
    return manifest_text(draws, architectures, lambda draw: _relative(where[draw], manifest))


def _filled_manifest(manifest: Manifest, where: dict[Draw, Path]) -> str:
    """The given manifest with ``train_annotations`` filled in."""
    text = read_input(manifest.path).decode("utf-8-sig")
    header, *rows = [cells for _, cells in csv_records(text, Problems()) or ()]
    column = "train_annotations"
    if column not in header:
        header.append(column)
        rows = [[*row, ""] for row in rows]
    position = header.index(column)
    problems = Problems(str(manifest.path))
    for row, entry in zip(rows, manifest.models, strict=True):
        path = where[Draw(entry.regime, entry.k_or_p, entry.seed)]
        present = entry.train_annotations
        if present is not None and present.resolve() != path.resolve():
            problems.add(
                "train-annotations",
                repr(row[position]),
                f"a blank cell, or {_relative(path, manifest.path)!r}",
                record=f"row {entry.row} (line {entry.line})",
                field=column,
                cause="clear the cell to use the new subset",
            )
        row[position] = _relative(path, manifest.path)
    if problems:
        raise InputError(problems.all())
    return csv_text(header, rows, escape_formulas=False)


def _budgets(rows: Iterable[SubsetRow]) -> str:
    header = [
        "regime", "k_or_p", "seed", "n_images", "n_specimens",
        "expected_n_images", "expected_n_specimens", "n_species_short",
    ]  # fmt: skip
    table: list[Sequence[object]] = []
    for row in rows:
        d, exact, expected = row.draw, row.exact, row.expected
        table.append(
            [d.regime, d.k_or_p, d.seed, int(exact.n_images), int(exact.n_specimens),
             expected.n_images, expected.n_specimens, row.n_species_short]
        )  # fmt: skip
    return csv_text(header, table)
