"""Reads the summaries of all models and checks that they are comparable.

Only the values that the tables need are kept, so that thousands of summaries fit in memory.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import dead_link, read_input, read_or_report, unreadable
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import Manifest, ModelEntry
from benchmark_eval.protocol import OOD_BANDS, TEST_SPLITS
from benchmark_eval.results import schema as results
from benchmark_eval.results.evidence import SUFFIX as EVIDENCE
from benchmark_eval.results.registry import CURVE_METRICS
from benchmark_eval.sweep.custom_metrics import CustomMetrics

SUFFIX = "_summary.json"
DISJOINT_STRATA = ("1", "2 to 10", ">10")
"""The disjoint density strata: specimens per image, including crowd regions."""
STRATA = (*DISJOINT_STRATA, ">1")
"""All density strata; the last pools the two before it."""
STRATUM_METRICS = (
    "recall",
    "classification_given_detection_acc",
    "species_recall",
    "image_mean_recall",
    "image_mean_classification_given_detection_acc",
    "image_mean_species_recall",
    "n_images_with_tp",
)
CURVE_KEYS = ("precision", "recall", "F1", "species_recall", "false_positives_per_image")
"""The metrics of an operating curve at each confidence threshold."""
BENCHMARK_INPUT = "benchmark/"
"""Prefix of the benchmark's files in a summary's ``provenance.inputs``."""


SPECIES_KEYS = (
    "AP_50",
    "AP_50_95",
    "n_gt",
    "n_matched_tp",
    "n_correct_species",
    "n_correct_genus",
)
"""The values of each species in ``ModelResult.species``."""


@dataclass(frozen=True, slots=True)
class SplitSpecies:
    """The scored species of a split, for one model.

    ``ids`` are category ids (species,), ascending; ``values`` is (len(SPECIES_KEYS), species), NaN
    where a value is undefined.
    """

    ids: Ints
    values: Floats

    def by_id(self, key: str) -> dict[int, float | None]:
        """A value of each species by category id; None where undefined."""
        column: list[float] = self.values[SPECIES_KEYS.index(key)].tolist()
        return {
            number: None if math.isnan(value) else value
            for number, value in zip(self.ids.tolist(), column, strict=True)
        }


@dataclass(frozen=True, slots=True)
class StratumCount:
    """Size of a density stratum; equal for all models of a benchmark."""

    n_images: int
    n_gt: int


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The values of one model that the tables need.

    ``values`` has every name of ``CURVE_METRICS``, then custom metrics; ``species`` the scored
    species by split; ``density`` maps (split, band or "", stratum) to the values of
    ``STRATUM_METRICS``; ``operating`` maps a split to an array (len(CURVE_KEYS), thresholds), NaN
    for undefined values; ``errors`` has the errors per 100 images and the dAP@.5 of each error
    type by split; ``evidence`` is the place of ``<model>_evidence.npz``, which may be missing.
    """

    entry: ModelEntry
    values: dict[str, float | None]
    species: dict[str, SplitSpecies]
    density: dict[tuple[str, str, str], tuple[float | None, ...]]
    strata: dict[tuple[str, str, str], StratumCount]
    thresholds: dict[str, tuple[float, ...]]
    operating: dict[str, NDArray[np.float64]]
    warnings: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, str], ...]
    config: results.RunConfig
    provenance: results.Provenance
    digest: str
    errors: dict[str, dict[str, tuple[float | None, float | None]]]
    evidence: Path | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """The models of a manifest with and without a summary, and summaries that it does not list."""

    models: tuple[ModelResult, ...]
    missing: tuple[ModelEntry, ...]
    unlisted_summaries: tuple[str, ...]


def collect(
    eval_dir: Path,
    manifest: Manifest,
    benchmark_digests: Mapping[str, str],
    *,
    allow_missing: bool,
    exclude: Collection[str] = (),
    custom: CustomMetrics | None = None,
    on_read: Callable[[ModelResult, Problems], None] | None = None,
) -> Collected:
    """Read the summary of every model of the manifest, in table order.

    ``benchmark_digests`` maps each file of the benchmark to its SHA-256; ``custom`` are custom
    metrics. Models of ``exclude`` count as missing. ``on_read`` is called with every model that was
    read, and with the collected problems.

    Raises InputError with all problems: summaries that are missing (unless ``allow_missing``),
    damaged, of another schema version, model or benchmark, or evaluated with other options than
    most.
    """
    problems = Problems(str(eval_dir))
    found = find_summaries(eval_dir, problems)
    models: list[ModelResult] = []
    missing: list[ModelEntry] = []
    for entry in manifest.in_table_order():
        path = found.pop(entry.model_name, None)
        if path is None or entry.model_name in exclude:
            missing.append(entry)
            continue
        model = _read(path, entry, custom, problems)
        if model is not None:
            models.append(model)
            if on_read is not None:
                on_read(model, problems)
    _check_benchmark(models, benchmark_digests, problems)
    _check_options(models, problems)
    if not allow_missing:
        _report_missing(eval_dir, missing, problems)
    if not models and not problems:
        problems.add(
            "no-summary",
            "no summary of any model of the manifest",
            f"<model>{SUFFIX} or <model>/<model>{SUFFIX}",
            cause=f"only {counted(len(found), 'summary', 'summaries')} of other models"
            if found
            else "",
        )
    if problems:
        raise InputError(problems.all())
    return Collected(tuple(models), tuple(missing), tuple(sorted(found)))


def find_summaries(eval_dir: Path, problems: Problems) -> dict[str, Path]:
    """Summaries by model name: ``<m>_summary.json`` and ``<m>/<m>_summary.json``.

    Raises InputError if the folder cannot be read.
    """
    found: dict[str, Path] = {}
    try:
        entries = listed(eval_dir)
    except OSError as error:
        raise InputError([unreadable(eval_dir, error, "a folder with summaries")]) from error
    for item in entries:
        if item.name.endswith(SUFFIX) and item.name != SUFFIX:
            model, path = item.name.removesuffix(SUFFIX), item
        else:
            model, path = item.name, item / (item.name + SUFFIX)
        if not path.exists() or path.is_dir():
            continue
        first = found.setdefault(model, path)
        if first != path and not _same_bytes(first, path):
            problems.add(
                "duplicate-summary",
                f"a summary of {model!r} that differs from {first.name} next to its folder",
                "one summary per model",
                file=str(path),
                cause="one of them is stale: remove it",
            )
    return found


def _same_bytes(left: Path, right: Path) -> bool:
    try:
        return read_input(left) == read_input(right)
    except OSError:
        return False


def _report_missing(eval_dir: Path, missing: Iterable[ModelEntry], problems: Problems) -> None:
    for entry in missing:
        name = entry.model_name
        places = (f"{name}{SUFFIX}", f"{name}/{name}{SUFFIX}")
        links = ((place, dead_link(eval_dir / place)) for place in places)
        link = next((f": {place} is {link}" for place, link in links if link), "")
        problems.add(
            "missing-summary",
            f"no summary of {name!r} ({entry.condition}, seed {entry.seed}){link}",
            " or ".join(places),
            cause=""
            if link
            else "not evaluated yet; --allow-missing (allow_missing in a config) skips it",
        )


def _read(
    path: Path, entry: ModelEntry, custom: CustomMetrics | None, problems: Problems
) -> ModelResult | None:
    """One model's summary; None and a problem if it cannot be used."""
    data = read_or_report(path, problems)
    if data is None:
        return None
    try:
        evaluation = results.decode_summary(data, str(path))
        if evaluation.model == entry.model_name:
            evidence = path.with_name(f"{entry.model_name}_{EVIDENCE}")
            digest = hashlib.sha256(data).hexdigest()
            return extract(evaluation, entry, digest, custom, evidence)
    except InputError as error:
        problems.extend(error.problems)
        return None
    problems.add(
        "other-model",
        repr(evaluation.model),
        repr(entry.model_name),
        file=str(path),
        field="model",
        cause="a renamed or copied summary",
    )
    return None


def extract(
    evaluation: results.Evaluation,
    entry: ModelEntry,
    digest: str,
    custom: CustomMetrics | None = None,
    evidence: Path | None = None,
) -> ModelResult:
    """The values of an evaluation that the tables need; ``digest`` is its summary's SHA-256.

    ``evidence`` is the place of its evidence file.
    """
    splits = evaluation.per_split
    density: dict[tuple[str, str, str], tuple[float | None, ...]] = {}
    strata: dict[tuple[str, str, str], StratumCount] = {}
    for split, block in splits.items():
        for band, group in (("", block.density.strata), *block.density.by_band.items()):
            for stratum, cell in zip(
                STRATA, (group.one, group.few, group.many, group.multi), strict=True
            ):
                key = (split, band, stratum)
                density[key] = tuple(_float(getattr(cell, name)) for name in STRATUM_METRICS)
                strata[key] = StratumCount(cell.n_images, cell.n_gt)
    return ModelResult(
        entry=entry,
        values={
            **{name: read(evaluation) for name, read in _CURVE_READERS},
            **(custom.values(evaluation) if custom else {}),
        },
        species={split: _species(block.per_species) for split, block in splits.items()},
        density=density,
        strata=strata,
        thresholds={s: tuple(b.operating_point.curve.confidence) for s, b in splits.items()},
        operating={
            split: np.array(
                [getattr(block.operating_point.curve, key) for key in CURVE_KEYS], np.float64
            )
            for split, block in splits.items()
        },
        warnings=tuple((s, text) for s, block in splits.items() for text in block.warnings),
        notes=tuple((s, text) for s, block in splits.items() for text in block.notes),
        config=evaluation.config,
        provenance=evaluation.provenance,
        digest=digest,
        errors={split: _errors(block.errors) for split, block in splits.items()},
        evidence=evidence,
    )


def _errors(errors: results.Errors) -> dict[str, tuple[float | None, float | None]]:
    """Errors per 100 images and dAP@.5 of the error types that the split has."""
    named = {name: getattr(errors, name) for name in ("wrong_name", *results.ERROR_TYPES)}
    return {
        name: (_float(count.per_100_images), _float(count.dAP_50))
        for name, count in named.items()
        if isinstance(count, results.ErrorCount) and name != "correct"
    }


def _species(scores: Mapping[str, results.SpeciesScore]) -> SplitSpecies:
    scored = sorted(
        ((int(number), score) for number, score in scores.items() if score.n_gt > 0),
        key=lambda item: item[0],
    )
    columns = [[getattr(score, key) for _, score in scored] for key in SPECIES_KEYS]
    return SplitSpecies(
        np.array([number for number, _ in scored], np.int64), np.array(columns, np.float64)
    )


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def reader(path: Sequence[str]) -> Callable[[results.Evaluation], float | None]:
    """A function that reads the number at ``path`` (JSON keys) of a summary.

    None if the summary lacks it, as on a split that was not evaluated. Raises ValueError if no
    summary can have such a path.
    """
    steps = _steps(path)

    def read(evaluation: results.Evaluation) -> float | None:
        node: Any = evaluation
        for is_key, name in steps:
            node = node.get(name) if is_key else getattr(node, name)
            if node is None or node is msgspec.UNSET:
                return None
        return float(node)

    return read


def _steps(path: Sequence[str]) -> list[tuple[bool, str]]:
    """Each step of ``path``: whether it is a key of a dict, and its key or attribute."""
    kinds = [msgspec.inspect.type_info(results.Evaluation)]
    steps = []
    for key in path:
        fields = [
            (False, field.name, field.type)
            for kind in kinds
            if isinstance(kind, msgspec.inspect.StructType)
            for field in kind.fields
            if field.encode_name == key
        ]
        fields += [
            (True, key, kind.value_type)
            for kind in kinds
            if isinstance(kind, msgspec.inspect.DictType) and key in (*TEST_SPLITS, *OOD_BANDS)
        ]
        if not fields:
            raise ValueError(f"no summary has {key!r} of {'.'.join(path)}")
        is_key, name, kind = fields[0]
        steps.append((is_key, name))
        kinds = list(kind.types) if isinstance(kind, msgspec.inspect.UnionType) else [kind]
    numbers = (msgspec.inspect.FloatType, msgspec.inspect.IntType)
    if not any(isinstance(kind, numbers) for kind in kinds):
        raise ValueError(f"{'.'.join(path)} of a summary is not a number")
    return steps


_CURVE_READERS = tuple((metric.name, reader(metric.path)) for metric in CURVE_METRICS)


def _check_benchmark(
    models: Iterable[ModelResult], digests: Mapping[str, str], problems: Problems
) -> None:
    """Report models that were evaluated on another benchmark than that of the tables."""
    expected = {f"{BENCHMARK_INPUT}{name}": digest for name, digest in digests.items()}
    for model in models:
        inputs = model.provenance.inputs
        found = {name: d for name, d in inputs.items() if name.startswith(BENCHMARK_INPUT)}
        if found == expected:
            continue
        names = sorted(found.keys() | expected.keys())
        odd = [n.removeprefix(BENCHMARK_INPUT) for n in names if found.get(n) != expected.get(n)]
        problems.add(
            "other-benchmark",
            f"{model.entry.model_name!r}, evaluated with another {', '.join(odd)}",
            "the files of this benchmark",
            field="provenance.inputs",
            cause="evaluated on another version of the benchmark: evaluate the model again",
        )


def _check_options(models: Sequence[ModelResult], problems: Problems) -> None:
    """Report models that were evaluated with other options or other code than most."""
    aspects: tuple[tuple[str, Callable[[ModelResult], object]], ...] = (
        ("config.iou_threshold", lambda m: m.config.iou_threshold),
        ("config.engine", lambda m: m.config.engine),
        ("config.on_invalid", lambda m: m.config.on_invalid),
        ("config.operating_confidence", lambda m: m.config.operating_confidence),
        ("config.splits", lambda m: ", ".join(m.config.splits)),
        ("provenance.scoring_code", lambda m: m.provenance.scoring_code[:12]),
    )
    for field, value in aspects:
        usual, count = Counter(map(value, models)).most_common(1)[0] if models else (None, 0)
        for model in models:
            if value(model) != usual:
                problems.add(
                    "other-options",
                    f"{value(model)} for {model.entry.model_name!r}",
                    f"{usual}, as for {counted(count, 'other model')}",
                    field=field,
                    cause="results of different options cannot be averaged: evaluate it again",
                )
