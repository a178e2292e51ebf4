"""Evaluate one model: read, match once, compute the metric families, assemble the result."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmark_eval import __version__
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.outputs import Input, Outputs
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.terminal import say, say_text
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_index import open_benchmark
from benchmark_eval.inputs.input_files import benchmark_inputs, prediction_inputs
from benchmark_eval.inputs.prediction_files import predictions_file
from benchmark_eval.inputs.predictions import OnInvalid, Predictions, check_predictions
from benchmark_eval.protocol import KNOWN_SPLITS, TEST_SPLITS
from benchmark_eval.results.schema import (
    SCHEMA_VERSION,
    Engine,
    Evaluation,
    Provenance,
    RunConfig,
    SplitEvaluation,
    to_dict,
)
from benchmark_eval.results.true_positives import TruePositiveTable
from benchmark_eval.scoring.coco import (
    MATCH_THRESHOLDS,
    N_AREAS,
    Scorer,
    Suite,
    match_coco,
    score_suite,
)
from benchmark_eval.scoring.detections import order_detections
from benchmark_eval.scoring.diagnostics import notes_of, warnings_of
from benchmark_eval.scoring.diagnostics.evidence import Evidence
from benchmark_eval.scoring.diagnostics.ids import with_likely_causes
from benchmark_eval.scoring.matching import localise
from benchmark_eval.scoring.metrics.calibration import calibration
from benchmark_eval.scoring.metrics.chance import chance
from benchmark_eval.scoring.metrics.class_imbalance import class_imbalance
from benchmark_eval.scoring.metrics.confusions import confusions
from benchmark_eval.scoring.metrics.decomposition import decomposition
from benchmark_eval.scoring.metrics.density import density
from benchmark_eval.scoring.metrics.detection_cap import detection_cap
from benchmark_eval.scoring.metrics.hierarchical import hierarchical
from benchmark_eval.scoring.metrics.ood_by_band import ood_by_band
from benchmark_eval.scoring.metrics.operating_point import operating_point
from benchmark_eval.scoring.metrics.per_species import per_species
from benchmark_eval.scoring.metrics.prediction_density import prediction_density
from benchmark_eval.scoring.metrics.summary import TruePositiveConfidence, headline, summary
from benchmark_eval.scoring.pairs import find_matching_pairs
from benchmark_eval.scoring.split_data import (
    SplitData,
    agreement,
    band_of_annotations,
    true_positive_table,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """Options that affect the metrics.

    Parameters
    ----------
    splits : tuple of str
        The splits to evaluate, in this order.
    iou : float
        IoU threshold of the localisation matching, in (0, 1]. Does not affect AP and AR.
    engine : {"fast", "pycocotools"}
        Implementation of AP and AR.
    on_invalid : {"error", "drop"}
        Whether an invalid record is an error, or is dropped and counted in a warning.

    Raises
    ------
    UsageError
        If a value is invalid. The message lists all invalid values.
    """

    splits: tuple[str, ...] = TEST_SPLITS
    iou: float = 0.5
    engine: Engine = "fast"
    on_invalid: OnInvalid = "error"

    def __post_init__(self) -> None:
        problems = []
        if not self.splits:
            problems.append("splits must not be empty")
        unknown = [s for s in self.splits if s not in KNOWN_SPLITS]
        if unknown:
            problems.append(
                f"splits must be among {', '.join(KNOWN_SPLITS)}; got {', '.join(unknown)}"
            )
        if len(set(self.splits)) < len(self.splits):
            problems.append(f"splits must be unique; got {', '.join(self.splits)}")
        number = isinstance(self.iou, int | float) and not isinstance(self.iou, bool)
        if not (number and 0 < self.iou <= 1):
            problems.append(f"iou must be a number in (0, 1]; got {self.iou!r}")
        for name, allowed in (("engine", Engine), ("on_invalid", OnInvalid)):
            value = getattr(self, name)
            if value not in get_args(allowed):
                problems.append(f"{name} must be one of {get_args(allowed)}; got {value!r}")
        if problems:
            raise UsageError("; ".join(problems))


def run_evaluation(
    benchmark_dir: str | Path | Benchmark,
    predictions_dir: str | Path,
    splits: Sequence[str] = TEST_SPLITS,
    iou: float = 0.5,
    quiet: bool = False,
    *,
    engine: Engine = "fast",
    on_invalid: OnInvalid = "error",
    model_name: str = "model",
) -> dict[str, Any]:
    """Score one model and return all its metrics; writes no file.

    Parameters
    ----------
    benchmark_dir : str, Path or Benchmark
        Folder of the unpacked benchmark, its index file (``.npz``, written by the workflow), or
        the result of `load_benchmark`.
    predictions_dir : str or Path
        Folder with ``<split>_predictions.json`` (or ``.json.gz``) for each of ``splits``: a list
        of ``{"image_id", "category_id", "bbox": [x, y, w, h], "score"}`` with the benchmark's
        ids, boxes in px and scores in [0, 1].
    splits : sequence of str, default ("iid_test", "inat_test", "semantic_ood")
        The splits to score; ``"train"`` can be scored too.
    iou : float, default 0.5
        IoU threshold of the localisation matching, in (0, 1]. AP and AR do not depend on it.
    quiet : bool, default False
        If False, print the text report.
    engine : {"fast", "pycocotools"}, default "fast"
        Which implementation computes AP and AR. Both give the same numbers.
    on_invalid : {"error", "drop"}, default "error"
        With ``"drop"``, invalid records of prediction files are dropped and counted in a warning.
    model_name : str, default "model"
        Name of the model in the result.

    Returns
    -------
    dict
        The content of ``<model>_summary.json`` as plain dicts and lists: ``per_split`` (the
        metrics of each split, by family), ``summary`` (differences between splits),
        ``headline``, ``config`` and ``provenance``. An undefined value is None, never zero.

    Raises
    ------
    InputError
        The benchmark or a prediction file is missing or not valid. All problems of all files are
        in ``problems``.
    UsageError
        An option is not allowed, or the benchmark lacks one of ``splits``.

    Notes
    -----
    AP and AR are those of COCO (Lin et al. 2014, Microsoft COCO: Common Objects in Context, ECCV)
    as pycocotools computes them, with crowd regions ignored. Metrics that the benchmark's own
    evaluator (version 2.0.1) also reports agree with it to 1e-9, except for the documented
    deviations (page "Deviations"). The page "Metrics" defines every metric and marks those that
    are ours.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import make_synthetic, run_evaluation
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> results = run_evaluation(
    ...     made.benchmark_dir,
    ...     made.predictions_dir / "alder_gu_kall_s0",
    ...     splits=["iid_test"],
    ...     quiet=True,
    ... )
    >>> 0 < results["per_split"]["iid_test"]["coco"]["AP_50"] < 1
    True
    >>> results["headline"]["semantic_ood.class_agnostic.AR_100"] is None  # not scored
    True
    >>> folder.cleanup()
    """
    options = Options(tuple(splits), iou, engine, on_invalid)
    evaluation, _ = evaluate(benchmark_dir, predictions_dir, model_name, options)
    if not quiet:
        from benchmark_eval.results.model_report import render_text

        say_text(render_text(evaluation))
    return to_dict(evaluation)


def evaluate_to_files(
    *,
    benchmark: str | Path | Benchmark,
    predictions_dir: str | Path,
    output_dir: str | Path,
    model_name: str,
    splits: Sequence[str] = TEST_SPLITS,
    iou: float = 0.5,
    engine: Engine = "fast",
    on_invalid: OnInvalid = "error",
    detections: bool = True,
    quiet: bool = True,
    force: bool = False,
) -> Evaluation:
    """Score one model and write its result files to ``output_dir``: all of them or none.

    The files are ``<model>_summary.json``, ``<model>_summary.csv``, ``<model>_per_species.csv``,
    ``<model>_report.txt`` and, with ``detections``, ``<model>_detections.csv``.

    Parameters
    ----------
    benchmark : str, Path or Benchmark
        Folder of the unpacked benchmark, its index file (``.npz``, written by the workflow), or
        the result of `load_benchmark`. Load the benchmark once to score several models.
    predictions_dir : str or Path
        Folder with ``<split>_predictions.json`` (or ``.json.gz``) for each of ``splits``.
    output_dir : str or Path
        Folder for the files; created if needed. Files that an earlier call wrote are replaced.
    model_name : str
        Name of the model; the files start with it.
    splits : sequence of str, default ("iid_test", "inat_test", "semantic_ood")
        The splits to score.
    iou : float, default 0.5
        IoU threshold of the localisation matching, in (0, 1]. AP and AR do not depend on it.
    engine : {"fast", "pycocotools"}, default "fast"
        Which implementation computes AP and AR. Both give the same numbers.
    on_invalid : {"error", "drop"}, default "error"
        With ``"drop"``, invalid records of prediction files are dropped and counted in a warning.
    detections : bool, default True
        Whether to write ``<model>_detections.csv``, one row per true positive.
    quiet : bool, default True
        If False, print the text report.
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since.

    Returns
    -------
    Evaluation
        The typed content of ``<model>_summary.json``.

    Raises
    ------
    InputError
        The benchmark or a prediction file is missing or not valid. All problems of all files are
        in ``problems``.
    UsageError
        An option or the name of the model is not allowed, the benchmark lacks one of ``splits``,
        or a file must not be replaced: it is an input, was not written by this package, or another
        process is writing it.

    Notes
    -----
    The metrics are those of `run_evaluation`. The same inputs give the same bytes. Warnings go to
    standard error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmark_eval import evaluate_to_files, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> evaluation = evaluate_to_files(
    ...     benchmark=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...     output_dir=Path(folder.name, "results"),
    ...     model_name="alder_gu_kall_s0",
    ... )
    >>> list(evaluation.per_split)
    ['iid_test', 'inat_test', 'semantic_ood']
    >>> for path in sorted(Path(folder.name, "results").glob("alder*")):
    ...     print(path.name)
    alder_gu_kall_s0_detections.csv
    alder_gu_kall_s0_per_species.csv
    alder_gu_kall_s0_report.txt
    alder_gu_kall_s0_summary.csv
    alder_gu_kall_s0_summary.json
    >>> folder.cleanup()
    """
    from benchmark_eval.inputs.model_names import name_problem
    from benchmark_eval.results.writers import claim_model_files

    problem = name_problem(model_name)
    if problem:
        raise UsageError(f"model name {model_name!r}: {problem}")
    options = Options(tuple(splits), iou, engine, on_invalid)
    inputs = evaluation_inputs(benchmark, predictions_dir, options.splits)
    with claim_model_files(output_dir, model_name, inputs=inputs, force=force) as output:
        loaded = open_benchmark(benchmark)
        evaluation, tables = evaluate(
            loaded, predictions_dir, model_name, options, true_positives=detections
        )
        write_results(evaluation, loaded, tables if detections else None, output, quiet=quiet)
    return evaluation


def evaluation_inputs(
    benchmark: str | Path | Benchmark, predictions_dir: str | Path, splits: Sequence[str]
) -> list[Input]:
    """The files that an evaluation reads, which its outputs must not replace."""
    return [*benchmark_inputs(benchmark), *prediction_inputs(predictions_dir, splits)]


def write_results(
    evaluation: Evaluation,
    benchmark: Benchmark,
    true_positives: list[TruePositiveTable] | None,
    output: Outputs,
    *,
    quiet: bool = True,
) -> None:
    """Write the files of a model, all or none of them; log its warnings and notes.

    ``true_positives`` are the tables for ``<model>_detections.csv``; with None, that file is not
    written. Prints the report unless ``quiet``.
    """
    from benchmark_eval.results.writers import write_evaluation

    model = evaluation.model
    report = write_evaluation(evaluation, benchmark, true_positives, output)
    if not quiet:
        say_text(report)
    for split, result in evaluation.per_split.items():
        for warning in result.warnings:
            say(f"warning: {model}, {split}: {warning}", err=True)
            log.info("%s, %s: warning: %s", model, split, warning)
        for note in result.notes:
            log.info("%s, %s: %s", model, split, note)


def evaluate(
    benchmark: str | Path | Benchmark,
    predictions_dir: str | Path,
    model_name: str,
    options: Options,
    *,
    true_positives: bool = False,
) -> tuple[Evaluation, list[TruePositiveTable]]:
    """Evaluate one model; with ``true_positives`` also return one table of them per split.

    The problems of all prediction files are raised in one ``InputError``.
    """
    loaded = open_benchmark(benchmark)
    truths = [loaded.split(split) for split in options.splits]
    per_split: dict[str, SplitEvaluation] = {}
    confidence: dict[str, TruePositiveConfidence] = {}
    tables: list[TruePositiveTable] = []
    inputs = {f"benchmark/{name}": digest for name, digest in loaded.digests.items()}
    problems: list[Problem] = []
    for truth in truths:
        try:
            path = predictions_file(predictions_dir, truth.name)
            checked = check_predictions(path, loaded, truth.name)
            if checked.problems and options.on_invalid == "error":
                raise InputError(with_likely_causes(checked, loaded, truth.name))
        except InputError as error:
            problems += error.problems
            continue
        if problems:
            continue  # only collect the problems of the other files
        predictions = checked.predictions
        inputs[f"predictions/{truth.name}"] = predictions.sha256
        data, per_split[truth.name] = evaluate_split(loaded, truth.name, predictions, options)
        confidence[truth.name] = true_positive_confidence(data)
        if true_positives:
            tables.append(true_positive_table(data))
    if problems:
        raise InputError(problems)
    evaluation = Evaluation(
        schema_version=SCHEMA_VERSION,
        model=model_name,
        headline=headline(per_split),
        summary=summary(per_split, confidence),
        per_split=per_split,
        config=RunConfig(
            iou_threshold=float(options.iou),
            splits=list(options.splits),
            engine=options.engine,
            on_invalid=options.on_invalid,
        ),
        provenance=Provenance(
            package_version=__version__,
            schema_version=SCHEMA_VERSION,
            scoring_code=_scoring_code(),
            inputs=dict(sorted(inputs.items())),
            benchmark=loaded.description,
        ),
    )
    return evaluation, tables


def _scoring_code() -> str:
    """Digest of the scoring code."""
    from benchmark_eval.core.code_digest import code_digest

    return code_digest("scoring")


def evaluate_split(
    benchmark: Benchmark, split: str, predictions: Predictions, options: Options
) -> tuple[SplitData, SplitEvaluation]:
    """Match the detections of one split and compute every metric family."""
    truth = benchmark.split(split)
    categories = benchmark.categories
    detections = order_detections(predictions, len(categories.ids))
    # ``ood_by_band`` evaluates the crowd regions of each band apart
    _, band = np.unique(band_of_annotations(categories, truth), return_inverse=True)
    min_iou = min(float(MATCH_THRESHOLDS[0]), options.iou)
    pairs = find_matching_pairs(detections, truth, min_iou, band)
    local = localise(detections, truth, pairs, options.iou)
    data = SplitData(
        categories=categories,
        truth=truth,
        detections=detections,
        pairs=pairs,
        local=local,
        agreement=agreement(
            categories,
            detections.category[local.true_positive],
            truth.category[local.matched_truth],
        ),
    )
    by_species = Suite.by_species(detections, truth, len(categories.ids))
    as_one = Suite.class_agnostic(detections, truth)
    match_as_one = match_coco(as_one, detections, truth, pairs)
    score = _scorer(options.engine)
    match_by_species = match_coco(by_species, detections, truth, pairs)
    species_scores = score(by_species, detections, truth, match_by_species, N_AREAS)
    coco = species_scores.metrics()
    agnostic = score(as_one, detections, truth, match_as_one, N_AREAS).metrics()
    species = per_species(data, species_scores)
    bands: dict[str, Any] = {}
    if split == "semantic_ood":
        bands["ood_by_band"] = ood_by_band(data, as_one, match_as_one, score)
    evidence = Evidence(predictions, truth, benchmark)
    return data, SplitEvaluation(
        warnings=warnings_of(evidence),
        notes=notes_of(evidence),
        n_predictions=len(detections),
        prediction_density=prediction_density(data),
        coco=coco,
        per_species=species,
        class_agnostic=agnostic,
        calibration=calibration(data),
        hierarchical=hierarchical(data),
        class_imbalance=class_imbalance(benchmark, split, species),
        decomposition=decomposition(data, predictions, coco.AP_50, agnostic.AP_50),
        density=density(data),
        chance=chance(data),
        confusions=confusions(data),
        detection_cap=detection_cap(data, as_one, match_as_one),
        operating_point=operating_point(data),
        **bands,
    )


def _scorer(engine: Engine) -> Scorer:
    """The function that turns a matching into precision and recall."""
    if engine == "pycocotools":
        from benchmark_eval.scoring.pycocotools_engine import score_with_pycocotools

        return score_with_pycocotools
    return score_suite


def true_positive_confidence(data: SplitData) -> TruePositiveConfidence:
    """Confidence of the true positives of a split, with the band of their true species."""
    band = np.array([*data.categories.distance_band, ""])[data.gt_category]
    return TruePositiveConfidence(data.detections.score[data.local.true_positive], band)
