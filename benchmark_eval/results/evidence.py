"""The evidence of one model: counts and scores from which the sweep computes its statistics.

``<model>_evidence.npz`` is an uncompressed archive of numpy arrays, without pickle. The same inputs
give the same bytes on every machine. ``COLUMNS`` defines the arrays; docs/metrics.md lists them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Codes, Floats, Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.npz import BROKEN, load_npz
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import open_input, read_input, unreadable
from benchmark_eval.results.schema import ERROR_TYPES, Evaluation

EVIDENCE_VERSION = 1
"""Layout version of the file; other versions are rejected."""
SUFFIX = "evidence.npz"
THRESHOLDS = ("all", "operating")
"""The two rows of counts: of all detections, and of those at and above the operating threshold."""
UNDEFINED = -1
"""Count in the second row if the model has no operating threshold."""
DENSITY = ("1", "2 to 10", ">10")
"""Density strata by specimens per image; ``hit_stratum`` is an index."""

_LOWEST_OCTAVE = -14
_BITS = 8
N_SCORE_BINS = -_LOWEST_OCTAVE * 2**_BITS + 1


class Column(NamedTuple):
    """One array of a split. ``shape`` names its axes; equal names have equal lengths."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    meaning: str


COLUMNS = (
    Column(
        "n_images",
        "<i4",
        ("species or none",),
        "Images by species: that of most scored specimens of the image, in the order of the "
        "categories if tied; last row: images without scored specimens.",
    ),
    Column(
        "n_scored",
        "<i4",
        ("species",),
        "Scored specimens of each species.",
    ),
    Column(
        "n_found",
        "<i4",
        ("threshold", "species"),
        "Specimens of the species that are detected.",
    ),
    Column(
        "n_right",
        "<i4",
        ("threshold", "species"),
        "Specimens of the species that are detected and correctly identified.",
    ),
    Column(
        "n_genus",
        "<i4",
        ("threshold", "species"),
        "Specimens of the species that are detected with the correct genus.",
    ),
    Column(
        "n_found_open",
        "<i4",
        ("threshold", "species"),
        "As `n_found`, with out-of-vocabulary detections.",
    ),
    Column(
        "n_right_open",
        "<i4",
        ("threshold", "species"),
        "As `n_right`, with out-of-vocabulary detections.",
    ),
    Column(
        "n_given",
        "<i4",
        ("threshold", "species"),
        "True positives labelled with the species. Divided by `n_found`: labels per "
        "detected specimen of the species.",
    ),
    Column(
        "errors",
        "<i4",
        ("threshold", "species or none", "error type"),
        "Detections of each error type and missed specimens, by species: the true one of true"
        " positives and missed specimens, that of the image (see `n_images`) of false "
        "positives.",
    ),
    Column(
        "confusion_true",
        "<i4",
        ("pair",),
        "Confusion of true positives, one row per pair of species that occurs, sorted: the "
        "true species (row of the categories).",
    ),
    Column(
        "confusion_predicted",
        "<i4",
        ("pair",),
        "The predicted species.",
    ),
    Column(
        "confusion_n",
        "<i4",
        ("threshold", "pair"),
        "Number of specimens; each specimen has at most one true positive.",
    ),
    Column(
        "hit_true",
        "<i4",
        ("hit",),
        "True positives, one row each, by image, then descending score: the true species.",
    ),
    Column(
        "hit_predicted",
        "<i4",
        ("hit",),
        "The predicted species.",
    ),
    Column(
        "hit_score",
        "<f8",
        ("hit",),
        "Confidence; 1 - `hit_score` is the novelty score.",
    ),
    Column(
        "hit_stratum",
        "|i1",
        ("hit",),
        "Specimens on the image, crowd included: 0 for 1, 1 for 2 to 10, 2 for more than 10.",
    ),
    Column(
        "fp_species",
        "<i4",
        ("cell",),
        "Histogram of false positives, one row per cell that is not empty, sorted: the "
        "species of the image (see `n_images`).",
    ),
    Column(
        "fp_bin",
        "<i4",
        ("cell",),
        "Bin of the confidence: between `score_edges[fp_bin]` and the next edge, lower edge "
        "included.",
    ),
    Column(
        "fp_n",
        "<i4",
        ("threshold", "cell"),
        "Number of false positives. The operating threshold can divide a bin.",
    ),
)
"""The arrays of each split, stored as ``<split>/<name>``."""


_INDEXES = {
    "confusion_true": "species",
    "confusion_predicted": "species",
    "hit_true": "species",
    "hit_predicted": "species",
    "hit_stratum": "stratum",
    "fp_species": "species or none",
    "fp_bin": "bin",
}
"""Arrays whose values are positions on an axis."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitEvidence:
    """The arrays of one split; ``COLUMNS`` has their meanings.

    Species are rows of ``Evidence.category_ids``. Axes: S species, S + 1 with the images without
    scored specimens, 2 thresholds (``THRESHOLDS``), 9 error types (``ERROR_TYPES``).

    Attributes
    ----------
    n_images : (S + 1,) int
    n_scored : (S,) int
    n_found, n_right, n_genus, n_found_open, n_right_open, n_given : (2, S) int
    errors : (2, S + 1, 9) int
    confusion_true, confusion_predicted : (n_pairs,) int
    confusion_n : (2, n_pairs) int
    hit_true, hit_predicted, hit_stratum : (n_hits,) int
    hit_score : (n_hits,) float
    fp_species, fp_bin : (n_cells,) int
    fp_n : (2, n_cells) int
    """

    n_images: Codes
    n_scored: Codes
    n_found: Codes
    n_right: Codes
    n_genus: Codes
    n_found_open: Codes
    n_right_open: Codes
    n_given: Codes
    errors: Codes
    confusion_true: Codes
    confusion_predicted: Codes
    confusion_n: Codes
    hit_true: Codes
    hit_predicted: Codes
    hit_score: Floats
    hit_stratum: NDArray[np.int8]
    fp_species: Codes
    fp_bin: Codes
    fp_n: Codes


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the evidence was computed from.

    ``operating_confidence`` is None if the model has no operating threshold; ``inputs`` and
    ``scoring_code`` are those of the summary's provenance.
    """

    schema_version: int
    model: str
    splits: list[str]
    iou_threshold: float
    operating_confidence: float | None
    scoring_code: str
    inputs: dict[str, str]
    category_names: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The content of ``<model>_evidence.npz``.

    Attributes
    ----------
    header : Header
    category_ids : (S,) int
        All categories of the benchmark, ascending; ``header.category_names`` has their names.
    score_edges : (n_bins + 1,) float
        Edges of the bins of confidence, from 0 to 1.
    splits : dict of str to SplitEvidence
    """

    header: Header
    category_ids: Ints
    score_edges: Floats
    splits: dict[str, SplitEvidence]


def score_bins(scores: Floats) -> Ints:
    """Bin of each score in [0, 1]: 256 bins of equal width in each octave from 2**-14.

    Scores below 2**-14 share the first bin; a score of 1 belongs to the last one.
    """
    bits = (scores + 0.0).view(np.int64) >> (52 - _BITS)  # -0.0 becomes 0.0
    lowest = np.array([2.0**_LOWEST_OCTAVE]).view(np.int64) >> (52 - _BITS)
    bins: Ints = np.clip(bits - lowest + 1, 0, N_SCORE_BINS - 1)
    return bins


def score_edges() -> Floats:
    """Edges of ``score_bins``, (N_SCORE_BINS + 1,)."""
    steps = 1 + np.arange(2**_BITS) / 2**_BITS
    octaves = 2.0 ** np.arange(_LOWEST_OCTAVE, 0)
    return np.concatenate([[0.0], (octaves[:, None] * steps).ravel(), [1.0]])


def encode(evidence: Evidence) -> bytes:
    """The bytes of ``<model>_evidence.npz``."""
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(msgspec.json.encode(evidence.header), np.uint8),
        "category_ids": evidence.category_ids.astype("<i8"),
        "score_edges": evidence.score_edges.astype("<f8"),
    }
    for split, table in evidence.splits.items():
        for column in COLUMNS:
            arrays[f"{split}/{column.name}"] = getattr(table, column.name).astype(column.dtype)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(
                member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
            )
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # else it depends on the machine
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue())
    return stream.getvalue()


def read_evidence(path: str | Path) -> Evidence:
    """Read a ``<model>_evidence.npz``.

    Raises
    ------
    InputError
        If the file is unreadable, damaged, of another schema version, or not evidence.
    """
    try:
        data = read_input(path, text=False)
    except OSError as error:
        raise InputError([unreadable(path, error, "the evidence of a model")]) from error
    return decode_evidence(data, str(path))


def decode_evidence(data: bytes, file: str) -> Evidence:
    """Decode the bytes of a file; ``file`` names it in messages."""
    found = decode_columns(data, file, [column.name for column in COLUMNS])
    splits = {name: SplitEvidence(**arrays) for name, arrays in found.splits.items()}
    return Evidence(found.header, found.category_ids, found.score_edges, splits)


class SomeColumns(NamedTuple):
    """What ``Evidence`` holds, with some of the arrays of each split, by name."""

    header: Header
    category_ids: Ints
    score_edges: Floats
    splits: dict[str, dict[str, NDArray[Any]]]


def decode_columns(data: bytes, file: str, names: Collection[str]) -> SomeColumns:
    """Decode only the arrays ``names`` of each split, which takes less time than all of them."""
    always = ("header", "category_ids", "score_edges")
    wanted = {*always, *names}
    try:
        store = load_npz(io.BytesIO(data), wanted=lambda name: name.rpartition("/")[2] in wanted)
        header = _header(store["header"].tobytes(), file)
        sizes = {
            "threshold": len(THRESHOLDS),
            "species": len(header.category_names),
            "species or none": len(header.category_names) + 1,
            "error type": len(ERROR_TYPES),
            "bin": N_SCORE_BINS,
            "stratum": len(DENSITY),
        }
        columns = [column for column in COLUMNS if column.name in wanted]
        return SomeColumns(
            header,
            _array(store, Column("category_ids", "<i8", ("species",), ""), "", dict(sizes)),
            _array(store, Column("score_edges", "<f8", ("edge",), ""), "", dict(sizes)),
            {name: _split(store, name, columns, dict(sizes)) for name in header.splits},
        )
    except BROKEN as error:
        raise InputError([_broken(file, error)]) from error


def read_header(path: str | Path) -> Header:
    """Read the header only.

    Raises FileNotFoundError, and InputError as ``read_evidence`` does.
    """
    try:
        with (
            open_input(path) as stream,
            zipfile.ZipFile(stream) as archive,
            archive.open("header.npy") as member,
        ):
            array = np.lib.format.read_array(member, allow_pickle=False)
        return _header(array.tobytes(), str(path))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError([unreadable(path, error, "the evidence of a model")]) from error
    except BROKEN as error:
        raise InputError([_broken(path, error)]) from error


def evidence_problems(path: str | Path, evaluation: Evaluation) -> list[Problem]:
    """Whether the evidence beside a summary belongs to it; reads the header only.

    A file that does not exist is no problem. Reports a damaged file, another schema version,
    another model, and evidence computed from other inputs, by other code or with other options.
    """
    try:
        header = read_header(path)
    except FileNotFoundError:
        return []
    except InputError as error:
        return list(error.problems)
    if header.model != evaluation.model:
        return [
            Problem(
                "other-model",
                str(path),
                repr(header.model),
                repr(evaluation.model),
                field="model",
                cause="a renamed or copied file",
            )
        ]
    same = (
        header.inputs == evaluation.provenance.inputs
        and header.scoring_code == evaluation.provenance.scoring_code
        and header.iou_threshold == evaluation.config.iou_threshold
        and header.splits == evaluation.config.splits
        and header.operating_confidence == evaluation.operating_threshold.confidence
    )
    if same:
        return []
    return [
        Problem(
            "other-evidence",
            str(path),
            "evidence of another evaluation",
            "the inputs, options and scoring code of the summary next to it",
            cause="copied, or restored from a backup: evaluate the model again",
        )
    ]


def content_problems(path: str | Path, digest: str, evaluation: Evaluation) -> list[Problem]:
    """Why a file with this SHA-256 is not the evidence of an evaluation, its header first."""
    problems = evidence_problems(path, evaluation)
    recorded = evaluation.provenance.evidence
    if problems or digest == recorded:
        return problems
    return [
        Problem(
            "digest",
            str(path),
            f"SHA-256 {digest[:12]}...",
            f"SHA-256 {recorded[:12]}..., as in the summary",
            cause="edited, damaged, or from another run: evaluate the model again",
        )
    ]


def _header(data: bytes, file: str) -> Header:
    """Decode the header; InputError for another schema version."""
    version = msgspec.json.decode(data, type=_Version).schema_version
    if version != EVIDENCE_VERSION:
        raise InputError(
            [
                Problem(
                    "schema-version",
                    file,
                    f"schema_version {version}",
                    f"schema_version {EVIDENCE_VERSION}",
                    cause="written by another version of benchmark_eval; evaluate the model again",
                )
            ]
        )
    return msgspec.json.decode(data, type=Header)


class _Version(msgspec.Struct):
    """The one field that every version has."""

    schema_version: int


def _split(
    store: Any, split: str, columns: Sequence[Column], sizes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """The arrays of one split; ValueError if one does not fit."""
    arrays = {column.name: _array(store, column, f"{split}/", sizes) for column in columns}
    for name, array in arrays.items():
        axis = _INDEXES.get(name)
        if axis is not None and array.size and not (array.min() >= 0 and array.max() < sizes[axis]):
            raise ValueError(f"{split}/{name} has values outside 0 to {sizes[axis] - 1}")
    return arrays


def _array(store: Any, column: Column, prefix: str, sizes: dict[str, int]) -> NDArray[Any]:
    """One array; ValueError unless it has the type and the shape of its column."""
    array: NDArray[Any] = store[prefix + column.name]
    expected = tuple(
        sizes.setdefault(axis, length)
        for axis, length in zip(column.shape, array.shape, strict=False)
    )
    if (
        array.dtype != np.dtype(column.dtype)
        or len(expected) != array.ndim
        or (array.ndim != len(column.shape) or expected != array.shape)
    ):
        raise ValueError(f"{prefix}{column.name} is {array.dtype} {array.shape}")
    return array


def _broken(path: str | Path, error: Exception) -> Problem:
    return Problem(
        "evidence-broken",
        str(path),
        f"{type(error).__name__}: {error}",
        "a <model>_evidence.npz written by benchmark-eval evaluate",
        cause="truncated, edited, or another file; evaluate the model again",
    )
