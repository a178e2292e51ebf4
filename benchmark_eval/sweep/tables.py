"""The typed tables of a sweep, and the reader and writer of their files.

``aggregated.json`` has everything; the CSV files are views of it. An undefined value is ``null``
in JSON and an empty cell in CSV. Floats are written with enough digits to be read back unchanged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.intervals import Covers, Estimate, Reason
from benchmark_eval.core.json_values import syntax_cause
from benchmark_eval.core.outputs import Input, Outputs, claim
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.records import require_last_run
from benchmark_eval.core.safe_read import read_or_report
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import REGIMES
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE
from benchmark_eval.sweep.differences import DIFFERENCES
from benchmark_eval.sweep.species_tables import SPECIES_MEANS
from benchmark_eval.sweep.summaries import CURVE_KEYS, STRATUM_METRICS
from benchmark_eval.sweep.table_rows import (
    BandGapRow,
    ConditionRow,
    ConfusionRow,
    EnrichmentRow,
    ErrorRow,
    GenusConfusionRow,
    HistogramRow,
    LabelRow,
    NoveltyRow,
    ReliabilityRow,
    RetentionRow,
    RiskRow,
    ShareRow,
    SpeciesCurveRow,
    SpeciesRow,
    TargetGainRow,
    TierRow,
    parsed,
)
from benchmark_eval.sweep.verdicts import Word

SCHEMA_VERSION = 4
"""Layout version of ``aggregated.json``; other versions are rejected."""
AGGREGATED = "aggregated.json"
TARGET_REGIME = REGIMES[2]
"""The regime of the tables about target species: incremental_uniform_targets."""
TARGET_KEYS = ("AP_50", "AP_50_95")
"""The per-species metrics of the tables about target species."""


class _TargetConditionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of one condition of the regime that adds images of target species, on one split."""

    architecture: str
    split: str
    k: str

    @property
    def condition(self) -> Condition:
        """The condition as a sortable object."""
        return parsed(self.architecture, TARGET_REGIME, self.k)


class Limits(msgspec.Struct, frozen=True):
    """The limits of a 95 % interval; both are None if ``reason`` says why there is none."""

    low: float | None
    high: float | None
    reason: Reason | None


class CurveRow(ConditionRow, frozen=True, kw_only=True):
    """One condition of learning_curves.csv: an estimate over seeds for each curve metric.

    ``seeds`` were evaluated; ``missing`` are the manifest's models without a result.
    ``identical`` are the splits on which some of the seeds have the same prediction file: n counts
    these seeds, but there is no interval. ``differences`` are those within a model, by the names of
    ``sweep.differences``. ``retraining`` are the intervals over seeds of every metric;
    ``species_retraining`` those over species and seeds of the metrics that are means over species.
    ``by_construction`` are the metrics with a value that says nothing about the models; so in
    every other row.
    """

    seeds: list[int]
    missing: list[str]
    identical: list[str]
    metrics: dict[str, Estimate]
    differences: dict[str, Estimate]
    retraining: dict[str, Limits]
    species_retraining: dict[str, Limits]
    by_construction: list[str]


class TargetRow(_TargetConditionRow, frozen=True, kw_only=True):
    """One cell of the band x k grid: mean AP of a band's target species over seeds."""

    band: str
    n_species: int
    AP_50: Estimate
    AP_50_95: Estimate
    by_construction: list[str]


class TargetGapRow(_TargetConditionRow, frozen=True, kw_only=True):
    """Mean AP over seeds of target species, of non-target species, and their difference."""

    target_AP_50: Estimate
    nontarget_AP_50: Estimate
    gap_AP_50: Estimate
    target_AP_50_95: Estimate
    nontarget_AP_50_95: Estimate
    gap_AP_50_95: Estimate
    by_construction: list[str]


class BudgetRow(ConditionRow, frozen=True, kw_only=True):
    """Distinct training images and specimens of a condition, and the headline estimates.

    ``source`` is "exact" (counted in the condition's training annotations), "expected" (from
    train.json) or "unknown" (without either). ``price`` is that of the images and specimens, by
    the prices of the configuration.
    """

    n_images: float | None
    n_specimens: float | None
    price: float | None
    source: Literal["exact", "expected", "unknown"]
    headline: dict[str, Estimate]


class DensityRow(ConditionRow, frozen=True, kw_only=True):
    """A condition on the images of one density stratum, for one distance band or all."""

    split: str
    band: str
    stratum: str
    n_images: int
    n_gt: int
    metrics: dict[str, Estimate]
    by_construction: list[str]


class OperatingRow(ConditionRow, frozen=True, kw_only=True):
    """The best condition of an architecture at one confidence threshold."""

    split: str
    confidence: float
    metrics: dict[str, Estimate]
    by_construction: list[str]


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: the mean difference of side ``a`` minus side ``b`` of a metric.

    ``scope`` is what the question is about if there is one question per architecture or curve;
    ``n_tests`` counts the tests of the question, over which ``p_holm`` is adjusted. The interval is
    the plain 95 % one and covers what ``covers`` says. ``per_doubling_images`` and
    ``per_doubling_specimens`` are the difference per doubling of the cost, in a step between two
    known costs. ``reason`` says why nothing was tested.
    """

    question: str
    metric: str
    split: str
    scope: str
    a: str
    b: str
    n_species: int
    n_seeds: int
    n_left_out: int
    a_minus_b: float | None
    ci95_low: float | None
    ci95_high: float | None
    per_doubling_images: float | None
    per_doubling_specimens: float | None
    covers: Covers
    p: float | None
    p_holm: float | None
    n_tests: int
    verdict: Word
    reason: Reason | None


BELOW, ABOVE = "< smallest", "> largest"
"""Where a cost lies that is beyond the budgets of its regime."""


class PlanningRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cost at which a regime reaches a fraction of the result with all images.

    ``unit`` is "images", "specimens" or, if the configuration has prices, "price". Costs lie
    within the budgets, ``smallest`` to ``largest``; an undefined one has ``BELOW`` or ``ABOVE`` in
    ``..._beyond``, or a ``reason``. The interval covers retraining.
    """

    architecture: str
    regime: str
    metric: str
    split: str
    unit: str
    fraction: float
    target: float | None
    smallest: float
    largest: float
    cost: float | None
    cost_beyond: str
    ci95_low: float | None
    low_beyond: str
    ci95_high: float | None
    high_beyond: str
    reason: Reason | None


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluated model: its contribution to the means over seeds.

    ``values`` holds the curve metrics; ``targets`` the band and target means of a model of
    incremental_uniform_targets, named ``<split>/<band or target, nontarget, gap>/<metric>``;
    ``density`` (only of a model of its architecture's best condition) those named
    ``<split>/<band or all>/<stratum>/<metric>``.
    """

    model: str
    architecture: str
    regime: str
    k_or_p: str
    seed: int
    values: dict[str, float | None]
    targets: dict[str, float | None]
    density: dict[str, float | None]
    by_construction: list[str]

    @property
    def condition(self) -> Condition:
        """The condition as a sortable object."""
        return parsed(self.architecture, self.regime, self.k_or_p)


class MissingSeed(ConditionRow, frozen=True, kw_only=True):
    """A cell of the sweep without a result; ``model`` is empty if the manifest lacks it too."""

    seed: int
    model: str


class IdenticalFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Models with identical prediction files on these splits."""

    splits: list[str]
    models: list[str]


class ModelWarnings(msgspec.Struct, frozen=True, kw_only=True):
    """Warnings (or notes) on a split that differ only in numbers, and their models.

    ``text`` is the first model's; ``alike`` is true if every model has the same text.
    """

    split: str
    text: str
    alike: bool
    models: list[str]


class SplitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a split of the benchmark."""

    n_images: int
    n_scored: int
    n_crowd: int
    n_species: int


class BandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The scored species and specimens of a band of unseen species, without crowd regions.

    ``n_images`` is the number of images with such a specimen, ``two_largest`` the number of
    specimens of the two largest species. A model's ``ood_by_band`` counts crowd regions too.
    """

    n_species: int
    n_images: int
    n_scored: int
    two_largest: int


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmark that the models were evaluated on."""

    digest: str
    description: str = ""
    splits: dict[str, SplitFacts]
    bands: dict[str, BandFacts]
    n_targets: int
    target_bands: dict[str, int]


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Digests (SHA-256) of all inputs, and the options of the evaluation."""

    package_version: str
    scoring_code: str
    manifest: str
    options: dict[str, Any]
    summaries: dict[str, str]
    train_annotations: dict[str, str]


class Aggregated(msgspec.Struct, frozen=True, kw_only=True):
    """A whole sweep: the content of ``aggregated.json``.

    ``without_evidence`` are the models without ``<model>_evidence.npz``, which the tables that are
    computed from it lack.
    """

    schema_version: int
    inputs: Inputs
    benchmark: Benchmark
    missing: list[MissingSeed]
    unlisted_summaries: list[str]
    identical: list[IdenticalFiles]
    warnings: list[ModelWarnings]
    notes: list[ModelWarnings]
    learning_curves: list[CurveRow]
    target_species_curves: list[TargetRow]
    target_vs_nontarget: list[TargetGapRow]
    budget_curves: list[BudgetRow]
    density_curves: list[DensityRow]
    operating_curves: list[OperatingRow]
    comparisons: list[ComparisonRow]
    budget_planning: list[PlanningRow]
    species: list[SpeciesRow]
    species_curves: list[SpeciesCurveRow]
    tiers: list[TierRow]
    target_gains: list[TargetGainRow]
    retention: list[RetentionRow]
    pooled_shares: list[ShareRow]
    band_gaps: list[BandGapRow]
    error_types: list[ErrorRow]
    confusions: list[ConfusionRow]
    genus_confusions: list[GenusConfusionRow]
    labels: list[LabelRow]
    confusion_by_chance: list[EnrichmentRow]
    reliability: list[ReliabilityRow]
    risk_coverage: list[RiskRow]
    novelty: list[NoveltyRow]
    novelty_histograms: list[HistogramRow]
    without_evidence: list[str]
    models: list[ModelRow]

    @property
    def architectures(self) -> list[str]:
        """The architectures in table order."""
        return list(dict.fromkeys(row.architecture for row in self.learning_curves))

    def conditions(self, architecture: str, regime: str) -> list[CurveRow]:
        """The conditions of an architecture in a regime, by increasing budget."""
        return [
            row
            for row in self.learning_curves
            if (row.architecture, row.regime) == (architecture, regime)
        ]


PARTS = ("mean", "std", "n", "ci95_low", "ci95_high")
"""The columns of an estimate, as ``<metric>_<part>``."""
RETRAINING = ("ci95_retraining_low", "ci95_retraining_high")
"""The columns of an interval over seeds, as ``<metric>_<part>``."""
SPECIES_RETRAINING = ("ci95_species_retraining_low", "ci95_species_retraining_high")
"""The columns of an interval over species and seeds, as ``<metric>_<part>``."""
HEADLINE_PARTS = ("mean", "std", "n")

FIXED = "by_construction"
"""The column with the metrics that are fixed by construction."""
BUDGET_KEYS = ("k_or_p", "iid_AP_50_95", "iid_species_recall")
"""The columns of a species at a budget, as ``<regime>_<smallest or largest>_<key>``."""

Row = Sequence[object]
Layout = Callable[["Aggregated"], tuple[list[str], list[Row]]]
Kind = Literal["text", "count", "number"]


def _stems(names: Iterable[str], parts: Sequence[str] = PARTS) -> list[str]:
    return [f"{name}_{part}" for name in names for part in parts]


def _cells(estimates: Iterable[Estimate], parts: Sequence[str] = PARTS) -> list[object]:
    return [getattr(item, part) for item in estimates for part in parts]


def _fixed(row: CurveRow | TargetRow | TargetGapRow | DensityRow | OperatingRow | ModelRow) -> str:
    return "; ".join(row.by_construction)


def curve_names(table: Aggregated) -> list[str]:
    """Column stems of the curve metrics: those of the registry, then custom metrics."""
    custom = (name for row in table.models for name in row.values)
    return list(dict.fromkeys([*(metric.name for metric in CURVE_METRICS), *custom]))


def _learning_curves(table: Aggregated) -> tuple[list[str], list[Row]]:
    names = curve_names(table)
    header = ["architecture", "regime", "k_or_p", "n_seeds"]
    for name in names:
        header += _stems([name], [*PARTS, *RETRAINING])
        header += _stems([name], SPECIES_RETRAINING) if name in SPECIES_MEANS else []
    rows: list[Row] = []
    for row in table.learning_curves:
        cells: list[object] = [row.architecture, row.regime, row.k_or_p, len(row.seeds)]
        for name in names:
            cells += _cells([row.metrics[name]])
            cells += [row.retraining[name].low, row.retraining[name].high]
            if name in SPECIES_MEANS:
                cells += [row.species_retraining[name].low, row.species_retraining[name].high]
        rows.append([*cells, "; ".join(row.missing), "; ".join(row.identical), _fixed(row)])
    return [*header, "missing_models", "identical_predictions", FIXED], rows


def _differences(table: Aggregated) -> tuple[list[str], list[Row]]:
    rows: list[Row] = [
        [row.architecture, row.regime, row.k_or_p, name, *_cells([value])]
        for row in table.learning_curves
        for name, value in row.differences.items()
    ]
    return ["architecture", "regime", "k_or_p", "difference", *PARTS], rows


def _target_species(table: Aggregated) -> tuple[list[str], list[Row]]:
    header = ["architecture", "split", "k", "band", "n_species", *_stems(TARGET_KEYS), FIXED]
    rows: list[Row] = [
        [
            row.architecture,
            row.split,
            row.k,
            row.band,
            row.n_species,
            *_cells((row.AP_50, row.AP_50_95)),
            _fixed(row),
        ]
        for row in table.target_species_curves
    ]
    return header, rows


GAP_SIDES = ("target", "nontarget", "gap")


def _target_gap(table: Aggregated) -> tuple[list[str], list[Row]]:
    names = [f"{side}_{key}" for key in TARGET_KEYS for side in GAP_SIDES]
    rows: list[Row] = [
        [
            row.architecture,
            row.split,
            row.k,
            *_cells(getattr(row, name) for name in names),
            _fixed(row),
        ]
        for row in table.target_vs_nontarget
    ]
    return ["architecture", "split", "k", *_stems(names), FIXED], rows


def _budgets(table: Aggregated) -> tuple[list[str], list[Row]]:
    header = ["architecture", "regime", "k_or_p", "n_images", "n_specimens", "price", "source"]
    rows: list[Row] = [
        [
            row.architecture,
            row.regime,
            row.k_or_p,
            row.n_images,
            row.n_specimens,
            row.price,
            row.source,
            *_cells((row.headline[name] for name in HEADLINE), HEADLINE_PARTS),
        ]
        for row in table.budget_curves
    ]
    return [*header, *_stems(HEADLINE, HEADLINE_PARTS)], rows


def _density(table: Aggregated) -> tuple[list[str], list[Row]]:
    header = ["architecture", "regime", "k_or_p", "split", "band", "stratum", "n_images", "n_gt"]
    rows: list[Row] = [
        [
            row.architecture,
            row.regime,
            row.k_or_p,
            row.split,
            row.band,
            row.stratum,
            row.n_images,
            row.n_gt,
            *_cells(row.metrics[name] for name in STRATUM_METRICS),
            _fixed(row),
        ]
        for row in table.density_curves
    ]
    return [*header, *_stems(STRATUM_METRICS), FIXED], rows


def _operating(table: Aggregated) -> tuple[list[str], list[Row]]:
    header = ["architecture", "regime", "k_or_p", "split", "confidence"]
    rows: list[Row] = [
        [
            row.architecture,
            row.regime,
            row.k_or_p,
            row.split,
            row.confidence,
            *_cells(row.metrics[name] for name in CURVE_KEYS),
            _fixed(row),
        ]
        for row in table.operating_curves
    ]
    return [*header, *_stems(CURVE_KEYS), FIXED], rows


COUNTED = (msgspec.inspect.IntType, msgspec.inspect.BoolType)


def column_kinds(kind: type[msgspec.Struct]) -> dict[str, Kind]:
    """The kind of each column of a table whose rows are flat: text, a count or a number.

    Flags are counts: 1 is true, 0 is false.
    """
    kinds: dict[str, Kind] = {}
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        given = field.type
        parts = given.types if isinstance(given, msgspec.inspect.UnionType) else (given,)
        if any(isinstance(part, msgspec.inspect.FloatType) for part in parts):
            kinds[field.name] = "number"
        elif any(isinstance(part, COUNTED) for part in parts):
            kinds[field.name] = "count"
        else:
            kinds[field.name] = "text"
    return kinds


def _fields(name: str, kind: type[msgspec.Struct]) -> Layout:
    """The layout of a table whose rows are flat: a column for each field."""
    kinds = column_kinds(kind)
    columns = [column for column in kinds if column != "budgets"]
    read = attrgetter(*columns)
    text = [at for at, column in enumerate(columns) if kinds[column] == "text"]

    def layout(table: Aggregated) -> tuple[list[str], list[Row]]:
        rows: list[Row] = []
        for row in getattr(table, name):
            cells = [int(cell) if isinstance(cell, bool) else cell for cell in read(row)]
            for at in text:  # text has no undefined cells
                cells[at] = cells[at] or ""
            rows.append(cells)
        return columns, rows

    return layout


BUDGET_COLUMNS = [
    f"{regime}_{end}_{key}"
    for regime in REGIMES
    for end in ("smallest", "largest")
    for key in BUDGET_KEYS
]
"""The columns of ``SpeciesRow.budgets``."""


def _species(table: Aggregated) -> tuple[list[str], list[Row]]:
    columns, rows = _fields("species", SpeciesRow)(table)
    cells: list[Row] = []
    for row, found in zip(rows, table.species, strict=True):
        held = {(item.regime, item.end): item for item in found.budgets}
        more: list[object] = []
        for regime in REGIMES:
            for end in ("smallest", "largest"):
                item = held.get((regime, end))
                more += (
                    [item.k_or_p, item.AP_50_95, item.species_recall] if item else ["", None, None]
                )
        cells.append([*row, *more])
    return [*columns, *BUDGET_COLUMNS], cells


def _models(table: Aggregated) -> tuple[list[str], list[Row]]:
    names = curve_names(table)
    targets = list(dict.fromkeys(key for row in table.models for key in row.targets))
    header = ["model", "architecture", "regime", "k_or_p", "seed", *names, *targets]
    rows: list[Row] = [
        [
            row.model,
            row.architecture,
            row.regime,
            row.k_or_p,
            row.seed,
            *(row.values.get(name) for name in names),
            *(row.targets.get(name) for name in targets),
            _fixed(row),
        ]
        for row in table.models
    ]
    return [*header, FIXED], rows


FLAT: dict[str, type[msgspec.Struct]] = {
    "comparisons": ComparisonRow,
    "budget_planning": PlanningRow,
    "species_curves": SpeciesCurveRow,
    "tiers": TierRow,
    "target_gains": TargetGainRow,
    "retention": RetentionRow,
    "pooled_shares": ShareRow,
    "band_gaps": BandGapRow,
    "error_types": ErrorRow,
    "confusions": ConfusionRow,
    "genus_confusions": GenusConfusionRow,
    "labels": LabelRow,
    "confusion_by_chance": EnrichmentRow,
    "reliability": ReliabilityRow,
    "risk_coverage": RiskRow,
    "novelty": NoveltyRow,
    "novelty_histograms": HistogramRow,
}
"""The tables whose columns are the fields of their rows."""

CSV_FILES: dict[str, Layout] = {
    "learning_curves.csv": _learning_curves,
    "differences.csv": _differences,
    "target_species_curves.csv": _target_species,
    "target_vs_nontarget.csv": _target_gap,
    "budget_curves.csv": _budgets,
    "density_curves.csv": _density,
    "operating_curves.csv": _operating,
    "species.csv": _species,
    **{f"{name}.csv": _fields(name, kind) for name, kind in FLAT.items()},
    "models.csv": _models,
}
"""Each CSV file of an aggregation with the function that returns its header and rows."""
FILES = (*CSV_FILES, AGGREGATED)
"""All files that ``write`` writes, in order."""


@contextlib.contextmanager
def claim_tables(
    output_dir: str | Path,
    *,
    others: Iterable[str] = (),
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> Iterator[Outputs]:
    """Claim the files of an aggregation and ``others`` (``core.outputs.claim``), for ``write``.

    If the block raises, those of an earlier aggregation are removed, because they are stale.
    """
    names = [*FILES, *others]
    with claim(output_dir, names, inputs=inputs, force=force, declared=declared) as output:
        try:
            yield output
        except Exception:
            with contextlib.suppress(OSError):
                output.clear()
            raise


def write(table: Aggregated, output: Outputs) -> None:
    """Write every table, and what else was prepared: all of them, or none if the disk is full.

    If ``aggregated.json`` exists, the set is complete (``Outputs.publish``).
    """
    for name, layout in CSV_FILES.items():
        output.write(name, csv_text(*layout(table)).encode())
    output.write(AGGREGATED, encode(table))
    output.publish(AGGREGATED)


def encode(table: Aggregated) -> bytes:
    """``aggregated.json`` as bytes."""
    return msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"


T = TypeVar("T")


def load_current_tables(path: str | Path) -> Aggregated:
    """Read an ``aggregated.json`` to show or use its numbers, after ``records.require_last_run``.

    InputError also if it is of an earlier run of the workflow, or was edited since.
    """
    require_last_run(path)
    return load_tables(path)


def load_tables(path: str | Path) -> Aggregated:
    """Read an ``aggregated.json``; InputError for any other file or another schema version."""
    path = Path(path)
    problems = Problems(str(path))
    data = read_or_report(path, problems)
    if data is None:
        raise InputError(problems.all())
    try:
        table = msgspec.json.decode(data, type=Aggregated)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problems.add(
            "not-aggregated",
            f"text that cannot be decoded: {error}",
            f"an {AGGREGATED} of schema version {SCHEMA_VERSION}",
            cause=(syntax_cause(data) or "written by another version of the package, or edited")
            + ": aggregate again",
        )
        raise InputError(problems.all()) from error
    if table.schema_version != SCHEMA_VERSION:
        problems.add(
            "schema-version",
            f"schema_version {table.schema_version}",
            f"schema_version {SCHEMA_VERSION}",
            cause="written by another version of the package: aggregate again",
        )
        raise InputError(problems.all())
    try:
        for row in _rows_of_conditions(table):
            _ = row.condition
    except ValueError as error:
        problems.add(
            "not-aggregated",
            str(error),
            "a regime of the benchmark and one of its budgets",
            cause="edited manually: aggregate again",
        )
        raise InputError(problems.all()) from error
    for place, names in _missing_names(table):
        problems.add(
            "not-aggregated",
            f"no {', '.join(names)}",
            "the metrics of every row",
            record=place,
            cause="edited manually: aggregate again",
        )
    if problems:
        raise InputError(problems.all())
    return table


def _missing_names(table: Aggregated) -> Iterator[tuple[str, list[str]]]:
    """The place of each row without one of its metrics, and the names of these metrics."""
    curves = curve_names(table)
    rows: list[tuple[str, Sequence[Mapping[str, object]], Iterable[str]]] = [
        ("learning_curves", [row.metrics for row in table.learning_curves], curves),
        ("learning_curves", [row.differences for row in table.learning_curves], DIFFERENCES),
        ("learning_curves", [row.retraining for row in table.learning_curves], curves),
        (
            "learning_curves",
            [row.species_retraining for row in table.learning_curves],
            SPECIES_MEANS,
        ),
        ("budget_curves", [row.headline for row in table.budget_curves], HEADLINE),
        ("density_curves", [row.metrics for row in table.density_curves], STRATUM_METRICS),
        ("operating_curves", [row.metrics for row in table.operating_curves], CURVE_KEYS),
        ("models", [row.values for row in table.models], curves),
    ]
    for place, mappings, names in rows:
        for at, mapping in enumerate(mappings):
            missing = [name for name in names if name not in mapping]
            if missing:
                yield f"{place}, row {at}", missing


def _rows_of_conditions(
    table: Aggregated,
) -> Iterator[ConditionRow | _TargetConditionRow | ModelRow]:
    yield from table.missing
    yield from table.learning_curves
    yield from table.target_species_curves
    yield from table.target_vs_nontarget
    yield from table.budget_curves
    yield from table.density_curves
    yield from table.operating_curves
    yield from table.models
    for name, kind in FLAT.items():
        if issubclass(kind, ConditionRow):
            yield from getattr(table, name)


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``aggregated.json``."""
    schema = msgspec.json.schema(Aggregated)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
