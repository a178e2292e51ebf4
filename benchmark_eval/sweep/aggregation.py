"""All tables of a sweep from its manifest, the summaries of its models and the benchmark."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from benchmark_eval import __version__
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.intervals import UNDEFINED, Estimate, estimate, mean_of
from benchmark_eval.core.outputs import Input, Listing
from benchmark_eval.core.problems import Problems
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_index import open_benchmark
from benchmark_eval.inputs.input_files import benchmark_inputs
from benchmark_eval.inputs.manifest import Condition, Manifest, ModelEntry, read_manifest
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.registry import BAND_LABEL, CURVE_METRICS, HEADLINE
from benchmark_eval.sweep import by_construction, tables
from benchmark_eval.sweep.best_evidence import Pairs, best_evidence, pairs_of
from benchmark_eval.sweep.comparison_rows import comparison_rows
from benchmark_eval.sweep.completeness import missing_seeds
from benchmark_eval.sweep.conditions import best_conditions
from benchmark_eval.sweep.confidence_rows import reliability_rows, risk_rows
from benchmark_eval.sweep.confusion_rows import (
    confusion_rows,
    enrichment_rows,
    genus_confusion_rows,
    label_rows,
)
from benchmark_eval.sweep.curve_intervals import curve_intervals
from benchmark_eval.sweep.custom_metrics import CustomMetrics, load_custom_metrics
from benchmark_eval.sweep.differences import DIFFERENCES, differences
from benchmark_eval.sweep.error_rows import error_rows
from benchmark_eval.sweep.evidence_counts import ModelCounts, read_counts
from benchmark_eval.sweep.identical import (
    identical_files,
    shared_splits,
    without_intervals_of_copies,
)
from benchmark_eval.sweep.novelty_rows import histogram_rows, novelty_rows
from benchmark_eval.sweep.planning_rows import planning_rows
from benchmark_eval.sweep.prices import Prices
from benchmark_eval.sweep.share_rows import Density, band_gap_rows, densities, share_rows
from benchmark_eval.sweep.species_curves import retention_rows, species_curve_rows, tier_rows
from benchmark_eval.sweep.species_rows import species_rows
from benchmark_eval.sweep.summaries import (
    CURVE_KEYS,
    STRATA,
    STRATUM_METRICS,
    SUFFIX,
    Collected,
    ModelResult,
    collect,
    find_summaries,
)
from benchmark_eval.sweep.table_rows import HistogramRow, NoveltyRow, ReliabilityRow, RiskRow
from benchmark_eval.sweep.target_rows import target_gain_rows
from benchmark_eval.sweep.targets import target_means, target_tables
from benchmark_eval.training.budgets import ExactBudget, ExpectedBudgets, exact_budget

_NO_PRICES = Prices()
_LOG = logging.getLogger(__name__)
# includes the start of a counted noun, so that '1 image' and '2 images' match
_NUMBER = re.compile(r"[0-9][0-9.,]*(?:( \w{1,3})\w*)?")

Groups = dict[Condition, list[ModelResult]]


@dataclass(frozen=True, slots=True)
class SweepInputs:
    """All inputs of the tables of a sweep, read and checked.

    ``exact`` holds the budgets of training annotations, ``custom`` the custom metrics, ``counts``
    what was counted in the evidence of each model that has some, ``prices`` those of training data.
    """

    eval_dir: Path
    manifest: Manifest
    collected: Collected
    benchmark: Benchmark
    exact: Mapping[Path, ExactBudget]
    custom: CustomMetrics | None
    counts: Mapping[str, ModelCounts]
    prices: Prices


def aggregate(
    *,
    eval_dir: str | Path,
    manifest: str | Path,
    benchmark: str | Path,
    output_dir: str | Path,
    allow_missing: bool = False,
    exclude: Collection[str] = (),
    custom_metrics: str | Path | None = None,
    price_per_image: float | None = None,
    price_per_specimen: float | None = None,
    force: bool = False,
) -> tables.Aggregated:
    """Compute the tables of a sweep from the summaries of its models and write them.

    Parameters
    ----------
    eval_dir : str or Path
        Folder with ``<model>_summary.json`` or ``<model>/<model>_summary.json`` of every model.
    manifest : str or Path
        CSV file that maps each model to its training condition: ``model_name``, ``regime``,
        ``k_or_p``, ``seed`` and, optionally, ``architecture``, ``predictions_dir`` and
        ``train_annotations``.
    benchmark : str or Path
        Folder of the unpacked benchmark, or its index file (``.npz``, written by the workflow).
    output_dir : str or Path
        Folder for ``aggregated.json`` and the CSV files; created if needed.
    allow_missing : bool, default False
        If True, models without a summary are listed as missing instead of being an error.
    exclude : collection of str, default ()
        Models of the manifest that count as missing even if a summary exists.
    custom_metrics : str or Path, optional
        Python file with a function ``custom_metrics`` that computes additional metrics of a model.
    price_per_image, price_per_specimen : float, optional
        Price of a training image, and of an annotated specimen, in any currency. If at least one
        is given, budgets are also compared and planned by price.
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since.

    Returns
    -------
    Aggregated
        The typed content of ``aggregated.json``. `read_aggregated` reads the same tables as
        DataFrames.

    Raises
    ------
    InputError
        The manifest, the benchmark or a summary is missing or not valid, or the summaries do not
        belong together. All problems are in ``problems``.
    UsageError
        A file must not be replaced: it is an input, was not written by this package, or another
        process is writing it. Or a price is negative.
    OSError
        The files cannot be written.

    Notes
    -----
    A mean over seeds has its standard deviation (ddof 1), n, and a 95 % interval over seeds from
    Student's t distribution, undefined for n < 2, which is not cut to the metric's range.
    ``learning_curves`` also has the intervals of ``docs/statistics.md``. Means exclude undefined
    values. If an input is invalid, nothing is written, and the tables of an earlier aggregation are
    removed from ``output_dir``, because they are stale.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import aggregate, evaluate_to_files, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> _ = evaluate_to_files(
    ...     benchmark=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...     output_dir=folder.name,
    ...     model_name="alder_gu_kall_s0",
    ... )
    >>> tables = aggregate(
    ...     eval_dir=folder.name,
    ...     manifest=made.manifest,
    ...     benchmark=made.benchmark_dir,
    ...     output_dir=f"{folder.name}/aggregated",
    ... )
    >>> [(row.regime, row.k_or_p, row.seeds) for row in tables.learning_curves]
    [('global_uniform', 'all', [0])]
    >>> folder.cleanup()
    """
    prices = Prices(price_per_image, price_per_specimen)
    inputs = sweep_inputs(eval_dir, manifest, benchmark, custom_metrics)
    with tables.claim_tables(output_dir, inputs=inputs, force=force) as output:
        read = read_sweep(
            eval_dir=eval_dir,
            manifest=manifest,
            benchmark=benchmark,
            allow_missing=allow_missing,
            exclude=exclude,
            custom_metrics=custom_metrics,
            prices=prices,
        )
        table = assemble(read)
        tables.write(table, output)
    return table


def sweep_inputs(
    eval_dir: str | Path,
    manifest: str | Path,
    benchmark: str | Path | Benchmark,
    custom_metrics: str | Path | None = None,
) -> list[Input]:
    """The files that an aggregation reads, which its outputs must not replace."""
    files: list[Input] = [manifest, *benchmark_inputs(benchmark)]
    files.append(Listing(Path(eval_dir), (SUFFIX,)))
    if custom_metrics is not None:
        files.append(custom_metrics)
    with contextlib.suppress(InputError):  # reported by ``read_sweep``
        files += find_summaries(Path(eval_dir), Problems()).values()
        files += [
            e.train_annotations for e in read_manifest(manifest).models if e.train_annotations
        ]
    return files


def read_sweep(
    *,
    eval_dir: str | Path,
    manifest: str | Path,
    benchmark: str | Path | Benchmark,
    allow_missing: bool = False,
    exclude: Collection[str] = (),
    custom_metrics: str | Path | None = None,
    prices: Prices = _NO_PRICES,
) -> SweepInputs:
    """Read all inputs of the tables; raises one ``InputError`` with all their problems."""
    entries = read_manifest(manifest)
    loaded = open_benchmark(benchmark)
    custom = None if custom_metrics is None else load_custom_metrics(custom_metrics)
    problems = Problems()
    collected = Collected((), (), ())
    counts: dict[str, ModelCounts] = {}

    def count(model: ModelResult, problems: Problems) -> None:
        try:
            found = read_counts(model, loaded)
        except InputError as error:
            problems.extend(error.problems)
            return
        if found is not None:
            counts[model.entry.model_name] = found

    try:
        collected = collect(
            Path(eval_dir),
            entries,
            loaded.digests,
            allow_missing=allow_missing,
            exclude=exclude,
            custom=custom,
            on_read=count,
        )
    except InputError as error:
        problems.extend(error.problems)
    exact = _exact_budgets(entries, loaded, problems)
    if problems:
        raise InputError(problems.all())
    return SweepInputs(Path(eval_dir), entries, collected, loaded, exact, custom, counts, prices)


def assemble(read: SweepInputs) -> tables.Aggregated:
    """Compute every table from its inputs."""
    manifest, collected, benchmark = read.manifest, read.collected, read.benchmark
    exact, custom, counts = read.exact, read.custom, read.counts
    groups: Groups = {
        entry.condition: [] for entry in manifest.in_table_order()
    }  # conditions without an evaluated model have a row too
    for model in collected.models:
        groups[model.entry.condition].append(model)
    categories = benchmark.categories
    target_band = {
        number: band
        for number, band in zip(categories.ids.tolist(), categories.target_band, strict=True)
        if band
    }
    means = {
        model.entry.model_name: target_means(model, target_band)
        for model in collected.models
        if target_band and model.entry.regime == "incremental_uniform_targets"
    }
    splits = list(collected.models[0].config.splits) if collected.models else []
    identical = identical_files(collected.models)
    _warn_identical(identical)
    bands = dict(zip(categories.ids.tolist(), categories.distance_band, strict=True))
    curves = _learning_curves(groups, collected.missing, means, identical, bands)
    best = [row.condition for row in best_conditions(curves).values()]
    grid, gaps = target_tables(groups, means, target_band, splits)
    density = densities(benchmark, splits)
    species_curves = species_curve_rows(groups, benchmark)
    looked_at = _best_evidence(groups, best, counts, benchmark, density)
    budgets = _budgets(curves, manifest, ExpectedBudgets(benchmark), exact, read.prices)
    table = tables.Aggregated(
        schema_version=tables.SCHEMA_VERSION,
        inputs=_inputs(manifest, collected, exact, custom, read.prices),
        benchmark=_benchmark_facts(benchmark),
        missing=missing_seeds(manifest, collected.missing),
        unlisted_summaries=list(collected.unlisted_summaries),
        identical=identical,
        warnings=_grouped((m.entry.model_name, m.warnings) for m in collected.models),
        notes=_grouped((m.entry.model_name, m.notes) for m in collected.models),
        learning_curves=curves,
        target_species_curves=grid,
        target_vs_nontarget=gaps,
        budget_curves=budgets,
        density_curves=_density(groups, splits),
        operating_curves=_operating(groups, curves, splits),
        comparisons=comparison_rows(groups, benchmark, budgets, splits, counts, density),
        budget_planning=planning_rows(groups, benchmark, budgets),
        species=species_rows(benchmark, density, species_curves, best, looked_at.pairs),
        species_curves=species_curves,
        tiers=tier_rows(groups, benchmark),
        target_gains=target_gain_rows(groups, benchmark),
        retention=retention_rows(groups),
        pooled_shares=share_rows(groups, counts, benchmark, density),
        band_gaps=band_gap_rows(groups, counts, benchmark, density),
        error_types=error_rows(groups),
        confusions=confusion_rows(looked_at.pairs, categories),
        genus_confusions=genus_confusion_rows(looked_at.pairs, categories),
        labels=label_rows(looked_at.pairs, groups, counts, categories),
        confusion_by_chance=enrichment_rows(groups, counts),
        reliability=looked_at.reliability,
        risk_coverage=looked_at.risk_coverage,
        novelty=looked_at.novelty,
        novelty_histograms=looked_at.histograms,
        without_evidence=[
            model.entry.model_name
            for model in collected.models
            if model.entry.model_name not in counts
        ],
        models=[_model_row(model, means, best) for model in collected.models],
    )
    return without_intervals_of_copies(table)


@dataclass(frozen=True, slots=True)
class _FromEvidence:
    """What is kept of the whole evidence of the best conditions."""

    pairs: list[Pairs]
    reliability: list[ReliabilityRow]
    risk_coverage: list[RiskRow]
    novelty: list[NoveltyRow]
    histograms: list[HistogramRow]


def _best_evidence(
    groups: Groups,
    best: Collection[Condition],
    counts: Mapping[str, ModelCounts],
    benchmark: Benchmark,
    density: Mapping[str, Density],
) -> _FromEvidence:
    """Read the whole evidence of the best conditions, one architecture at a time."""
    kept = _FromEvidence([], [], [], [], [])
    for each in best_evidence(groups, best, counts):
        for split in TEST_SPLITS:
            found = pairs_of(each, split, benchmark.categories)
            if found is not None:
                kept.pairs.append(found)
        kept.reliability.extend(reliability_rows(each, benchmark.categories))
        kept.risk_coverage.extend(risk_rows(each, benchmark.categories))
        kept.novelty.extend(novelty_rows(each, benchmark.categories, density))
        kept.histograms.extend(histogram_rows(each, benchmark.categories))
    return kept


def _warn_identical(identical: Sequence[tables.IdenticalFiles]) -> None:
    for item in identical:
        _LOG.warning(
            "warning: identical prediction files on %s for %s",
            ", ".join(item.splits),
            ", ".join(item.models),
        )


def _learning_curves(
    groups: Groups,
    missing: Sequence[ModelEntry],
    means: Mapping[str, Mapping[str, float | None]],
    identical: Sequence[tables.IdenticalFiles],
    bands: Mapping[int, str],
) -> list[tables.CurveRow]:
    within = {
        model.entry.model_name: differences(model, means.get(model.entry.model_name, {}))
        for models in groups.values()
        for model in models
    }
    absent: dict[Condition, list[str]] = {}
    for entry in missing:
        absent.setdefault(entry.condition, []).append(entry.model_name)
    custom = [name for models in groups.values() for model in models for name in model.values]
    names = list(dict.fromkeys([*(metric.name for metric in CURVE_METRICS), *custom]))
    intervals = curve_intervals(groups, names, bands)
    return [
        tables.CurveRow(
            architecture=condition.architecture,
            regime=condition.regime,
            k_or_p=condition.k_or_p,
            seeds=[model.entry.seed for model in models],
            missing=absent.get(condition, []),
            identical=shared_splits(identical, [model.entry.model_name for model in models]),
            metrics={name: estimate(model.values.get(name) for model in models) for name in names},
            differences={
                name: estimate(within[model.entry.model_name][name] for model in models)
                for name in DIFFERENCES
            },
            retraining=intervals[condition][0],
            species_retraining=intervals[condition][1],
            by_construction=[name for name in names if name in by_construction.CURVES],
        )
        for condition, models in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class _Cost:
    n_images: float | None
    n_specimens: float | None
    source: Literal["exact", "expected", "unknown"]


def _exact_budgets(
    manifest: Manifest, benchmark: Benchmark, problems: Problems
) -> dict[Path, ExactBudget]:
    """The budget of every file of training annotations in the manifest."""
    paths = dict.fromkeys(
        entry.train_annotations
        for entry in manifest.in_table_order()
        if entry.train_annotations is not None
    )
    found: dict[Path, ExactBudget] = {}
    for path in paths:
        try:
            found[path] = exact_budget(path, benchmark)
        except InputError as error:
            problems.extend(error.problems)
    return found


def _cost(
    condition: Condition,
    entries: Sequence[ModelEntry],
    expected: ExpectedBudgets,
    exact: Mapping[Path, ExactBudget],
) -> _Cost:
    """Exact (mean over seeds) if the manifest names training annotations for every seed."""
    paths = [entry.train_annotations for entry in entries]
    counted = [exact[path].budget for path in paths if path is not None]
    if counted and len(counted) == len(paths):
        return _Cost(
            mean_of(b.n_images for b in counted), mean_of(b.n_specimens for b in counted), "exact"
        )
    budget = expected.budget(condition.regime, condition.k_or_p)
    if budget is None:
        return _Cost(None, None, "unknown")
    return _Cost(budget.n_images, budget.n_specimens, "expected")


def _budgets(
    curves: Sequence[tables.CurveRow],
    manifest: Manifest,
    expected: ExpectedBudgets,
    exact: Mapping[Path, ExactBudget],
    prices: Prices,
) -> list[tables.BudgetRow]:
    entries: dict[Condition, list[ModelEntry]] = {}
    for entry in manifest.in_table_order():
        entries.setdefault(entry.condition, []).append(entry)
    rows = []
    for row, (condition, named) in zip(curves, entries.items(), strict=True):
        cost = _cost(condition, named, expected, exact)
        rows.append(
            tables.BudgetRow(
                architecture=row.architecture,
                regime=row.regime,
                k_or_p=row.k_or_p,
                n_images=cost.n_images,
                n_specimens=cost.n_specimens,
                price=prices.of(cost.n_images, cost.n_specimens),
                source=cost.source,
                headline={name: row.metrics[name] for name in HEADLINE},
            )
        )
    return rows


def _density(groups: Groups, splits: Sequence[str]) -> list[tables.DensityRow]:
    rows = []
    for condition, models in groups.items():
        keys = models[0].strata if models else {}
        for split in [s for s in TEST_SPLITS if s in splits]:
            for band in ("", *BAND_LABEL):
                for stratum in STRATA:
                    key = (split, band, stratum)
                    if key not in keys:
                        continue
                    rows.append(
                        tables.DensityRow(
                            architecture=condition.architecture,
                            regime=condition.regime,
                            k_or_p=condition.k_or_p,
                            split=split,
                            band=band,
                            stratum=stratum,
                            n_images=keys[key].n_images,
                            n_gt=keys[key].n_gt,
                            metrics={
                                name: estimate(model.density[key][at] for model in models)
                                for at, name in enumerate(STRATUM_METRICS)
                            },
                            by_construction=by_construction.fixed_on(split, STRATUM_METRICS),
                        )
                    )
    return rows


def _operating(
    groups: Groups, curves: Sequence[tables.CurveRow], splits: Sequence[str]
) -> list[tables.OperatingRow]:
    rows = []
    for best in best_conditions(curves).values():
        models = groups[best.condition]
        for split in [s for s in TEST_SPLITS if s in splits]:
            for at, confidence in enumerate(models[0].thresholds[split]):
                rows.append(
                    tables.OperatingRow(
                        architecture=best.architecture,
                        regime=best.regime,
                        k_or_p=best.k_or_p,
                        split=split,
                        confidence=confidence,
                        metrics={
                            key: _over_seeds([m.operating[split][line, at] for m in models])
                            for line, key in enumerate(CURVE_KEYS)
                        },
                        by_construction=by_construction.fixed_on(split, CURVE_KEYS),
                    )
                )
    return rows


def _over_seeds(values: Sequence[np.float64]) -> Estimate:
    if not values:
        return UNDEFINED
    return estimate(None if math.isnan(value) else float(value) for value in values)


def _model_row(
    model: ModelResult,
    means: Mapping[str, Mapping[str, float | None]],
    best: Collection[Condition],
) -> tables.ModelRow:
    entry = model.entry
    density = {
        f"{split}/{band or 'all'}/{stratum}/{name}": value
        for (split, band, stratum), cells in model.density.items()
        for name, value in zip(STRATUM_METRICS, cells, strict=True)
    }
    return tables.ModelRow(
        model=entry.model_name,
        architecture=entry.architecture,
        regime=entry.regime,
        k_or_p=entry.k_or_p,
        seed=entry.seed,
        values=model.values,
        targets=dict(means.get(entry.model_name, {})),
        density=density if entry.condition in best else {},
        by_construction=[name for name in model.values if name in by_construction.CURVES],
    )


def _grouped(
    messages: Iterable[tuple[str, Iterable[tuple[str, str]]]],
) -> list[tables.ModelWarnings]:
    """The (split, text) messages of each model, grouped if only numbers differ."""
    held: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, texts in messages:
        for split, text in texts:
            held.setdefault((split, _NUMBER.sub(r"#\1", text)), []).append((text, name))
    return [
        tables.ModelWarnings(
            split=split,
            text=found[0][0],
            alike=len({text for text, _ in found}) == 1,
            models=list(dict.fromkeys(name for _, name in found)),
        )
        for (split, _), found in held.items()
    ]


def _inputs(
    manifest: Manifest,
    collected: Collected,
    exact: Mapping[Path, ExactBudget],
    custom: CustomMetrics | None,
    prices: Prices,
) -> tables.Inputs:
    first = collected.models[0] if collected.models else None
    options = {**(msgspec.to_builtins(first.config) if first else {}), **prices.options}
    return tables.Inputs(
        package_version=__version__,
        scoring_code=first.provenance.scoring_code if first else "",
        manifest=manifest_digest(manifest),
        options={**options, "custom_metrics": custom.digest} if custom else options,
        summaries={model.entry.model_name: model.digest for model in collected.models},
        train_annotations={
            entry.model_name: exact[entry.train_annotations].digest
            for entry in manifest.in_table_order()
            if entry.train_annotations is not None and entry.train_annotations in exact
        },
    )


def manifest_digest(manifest: Manifest) -> str:
    """SHA-256 of a manifest's content, for any order of rows and spelling of numbers."""
    text = "".join(
        f"{entry.model_name}\0{entry.architecture}\0{entry.regime}\0{entry.k_or_p}\0{entry.seed}\n"
        for entry in manifest.in_table_order()
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _benchmark_facts(benchmark: Benchmark) -> tables.Benchmark:
    categories = benchmark.categories
    splits = {
        name: tables.SplitFacts(
            n_images=len(truth.image_ids),
            n_scored=truth.n_scored,
            n_crowd=len(truth.crowd) - truth.n_scored,
            n_species=int(np.count_nonzero(truth.scored_per_category(len(categories.ids)))),
        )
        for name, truth in benchmark.splits.items()
    }
    return tables.Benchmark(
        digest=benchmark.digest,
        description=benchmark.description,
        splits=splits,
        bands=_band_facts(benchmark),
        n_targets=sum(bool(band) for band in categories.target_band),
        target_bands={
            band: sum(each == band for each in categories.target_band) for band in BAND_LABEL
        },
    )


def _band_facts(benchmark: Benchmark) -> dict[str, tables.BandFacts]:
    truth = benchmark.splits.get("semantic_ood")
    if truth is None:
        return {}
    bands = np.array(benchmark.categories.distance_band)[truth.category]
    facts = {}
    for band in BAND_LABEL:
        inside = (bands == band) & ~truth.crowd
        counts = np.bincount(truth.category[inside])
        facts[band] = tables.BandFacts(
            n_species=int(np.count_nonzero(counts)),
            n_images=len(np.unique(truth.image[inside])),
            n_scored=int(counts.sum()),
            two_largest=int(np.sort(counts)[-2:].sum()),
        )
    return facts
