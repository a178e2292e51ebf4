"""Evaluate one model: read, match once, compute the metric families, assemble the result."""

from __future__ import annotations

import hashlib
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
from benchmark_eval.results.detections_csv import DetectionTable, ModelTables, Rows
from benchmark_eval.results.evidence import SplitEvidence, encode
from benchmark_eval.results.schema import (
    SCHEMA_VERSION,
    Engine,
    Evaluation,
    OperatingThreshold,
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
from benchmark_eval.scoring.error_types import (
    ErrorTypes,
    class_aware_errors,
    count_types,
    error_types,
    is_class_agnostic,
    split_overlaps,
)
from benchmark_eval.scoring.matching import localise
from benchmark_eval.scoring.metrics.calibration import calibration
from benchmark_eval.scoring.metrics.chance import chance
from benchmark_eval.scoring.metrics.class_imbalance import class_imbalance
from benchmark_eval.scoring.metrics.confusions import confusions
from benchmark_eval.scoring.metrics.decomposition import decomposition
from benchmark_eval.scoring.metrics.density import density
from benchmark_eval.scoring.metrics.detection_cap import detection_cap
from benchmark_eval.scoring.metrics.errors import errors
from benchmark_eval.scoring.metrics.hierarchical import hierarchical
from benchmark_eval.scoring.metrics.ood_by_band import ood_by_band
from benchmark_eval.scoring.metrics.open_vocabulary import open_vocabulary
from benchmark_eval.scoring.metrics.operating_point import (
    given_threshold,
    operating_point,
    sorted_scores,
    threshold_of,
)
from benchmark_eval.scoring.metrics.per_species import per_species
from benchmark_eval.scoring.metrics.prediction_density import prediction_density
from benchmark_eval.scoring.metrics.reliability import reliability
from benchmark_eval.scoring.metrics.summary import TruePositiveConfidence, headline, summary
from benchmark_eval.scoring.model_evidence import (
    detection_table,
    model_evidence,
    species_of_images,
    split_evidence,
)
from benchmark_eval.scoring.overlaps import Overlaps
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
    operating_confidence : float, optional
        The operating threshold, in [0, 1]. By default that of the best F1 on iid_test.

    Raises
    ------
    UsageError
        If a value is invalid. The message lists all invalid values.
    """

    splits: tuple[str, ...] = TEST_SPLITS
    iou: float = 0.5
    engine: Engine = "fast"
    on_invalid: OnInvalid = "error"
    operating_confidence: float | None = None

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
        threshold = self.operating_confidence
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if threshold is not None and not (number and 0 <= threshold <= 1):
            problems.append(f"operating_confidence must be a number in [0, 1]; got {threshold!r}")
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
    operating_confidence: float | None = None,
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
    operating_confidence : float, optional
        Confidence threshold, in [0, 1], of all values "at the operating threshold", on every
        split. By default that of the best F1 on iid_test.
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
    options = Options(tuple(splits), iou, engine, on_invalid, operating_confidence)
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
    operating_confidence: float | None = None,
    detections: Rows | bool = "hits",
    quiet: bool = True,
    force: bool = False,
) -> Evaluation:
    """Score one model and write its result files to ``output_dir``: all of them or none.

    The files are ``<model>_summary.json``, ``<model>_summary.csv``, ``<model>_per_species.csv``,
    ``<model>_report.txt``, ``<model>_evidence.npz`` and, with ``detections``,
    ``<model>_detections.csv``.

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
    operating_confidence : float, optional
        Confidence threshold, in [0, 1], of all values "at the operating threshold", on every
        split. By default that of the best F1 on iid_test.
    detections : {"hits", "all", "none"}, default "hits"
        Rows of ``<model>_detections.csv``: true positives; or also false positives and missed
        specimens, with their error types; or no such file. True and False mean "hits" and "none".
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
    alder_gu_kall_s0_evidence.npz
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
    options = Options(tuple(splits), iou, engine, on_invalid, operating_confidence)
    rows = detection_rows(detections)
    inputs = evaluation_inputs(benchmark, predictions_dir, options.splits)
    with claim_model_files(output_dir, model_name, inputs=inputs, force=force) as output:
        loaded = open_benchmark(benchmark)
        evaluation, tables = evaluate(loaded, predictions_dir, model_name, options, detections=rows)
        write_results(evaluation, loaded, tables, output, quiet=quiet)
    return evaluation


def evaluation_inputs(
    benchmark: str | Path | Benchmark, predictions_dir: str | Path, splits: Sequence[str]
) -> list[Input]:
    """The files that an evaluation reads, which its outputs must not replace."""
    return [*benchmark_inputs(benchmark), *prediction_inputs(predictions_dir, splits)]


def detection_rows(detections: Rows | bool) -> Rows:
    """The option ``detections`` as text; UsageError if it is not allowed."""
    if isinstance(detections, bool):
        return "hits" if detections else "none"
    if detections not in get_args(Rows):
        raise UsageError(f"detections must be one of {get_args(Rows)}; got {detections!r}")
    return detections


def write_results(
    evaluation: Evaluation,
    benchmark: Benchmark,
    tables: ModelTables,
    output: Outputs,
    *,
    quiet: bool = True,
) -> None:
    """Write the files of a model, all or none of them; log its warnings and notes.

    Prints the report unless ``quiet``.
    """
    from benchmark_eval.results.writers import write_evaluation

    model = evaluation.model
    report = write_evaluation(evaluation, benchmark, tables, output)
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
    detections: Rows = "none",
) -> tuple[Evaluation, ModelTables]:
    """Evaluate one model; ``detections`` are the rows of detections.csv.

    The problems of all prediction files are raised in one ``InputError``.
    """
    loaded = open_benchmark(benchmark)
    truths = [loaded.split(split) for split in options.splits]
    per_split: dict[str, SplitEvaluation] = {}
    confidence: dict[str, TruePositiveConfidence] = {}
    found: dict[str, SplitEvidence] = {}
    tables: dict[str, TruePositiveTable | DetectionTable] = {}
    inputs = {f"benchmark/{name}": digest for name, digest in loaded.digests.items()}
    problems: dict[str, list[Problem]] = {}
    threshold = given_threshold(options.operating_confidence)
    # the operating threshold of every split comes from iid_test
    for truth in sorted(truths, key=lambda truth: truth.name != "iid_test"):
        try:
            path = predictions_file(predictions_dir, truth.name)
            checked = check_predictions(path, loaded, truth.name)
            if checked.problems and options.on_invalid == "error":
                raise InputError(with_likely_causes(checked, loaded, truth.name))
        except InputError as error:
            problems[truth.name] = list(error.problems)
            continue
        if problems:
            continue  # only collect the problems of the other files
        predictions = checked.predictions
        inputs[f"predictions/{truth.name}"] = predictions.sha256
        of_split = evaluate_split(loaded, truth.name, predictions, options, threshold)
        threshold = of_split.threshold
        per_split[truth.name] = of_split.evaluation
        confidence[truth.name] = true_positive_confidence(of_split.data)
        found[truth.name] = of_split.evidence
        if detections != "none":
            tables[truth.name] = of_split.table(detections)
    if problems:
        raise InputError([p for split in options.splits for p in problems.get(split, [])])
    per_split = {split: per_split[split] for split in options.splits}
    config = RunConfig(
        iou_threshold=float(options.iou),
        splits=list(options.splits),
        engine=options.engine,
        on_invalid=options.on_invalid,
        operating_confidence=given_threshold(options.operating_confidence).confidence,
    )
    evidence = encode(
        model_evidence(
            loaded,
            model_name,
            config,
            threshold.confidence,
            _scoring_code(),
            dict(sorted(inputs.items())),
            {split: found[split] for split in options.splits},
        )
    )
    evaluation = Evaluation(
        schema_version=SCHEMA_VERSION,
        model=model_name,
        headline=headline(per_split),
        summary=summary(per_split, confidence),
        operating_threshold=threshold,
        per_split=per_split,
        config=config,
        provenance=Provenance(
            package_version=__version__,
            schema_version=SCHEMA_VERSION,
            scoring_code=_scoring_code(),
            inputs=dict(sorted(inputs.items())),
            benchmark=loaded.description,
            evidence=hashlib.sha256(evidence).hexdigest(),
        ),
    )
    rows = None if detections == "none" else [tables[split] for split in options.splits]
    return evaluation, ModelTables(evidence, rows)


def _scoring_code() -> str:
    """Digest of the scoring code."""
    from benchmark_eval.core.code_digest import code_digest

    return code_digest("scoring")


@dataclass(frozen=True, slots=True)
class SplitResult:
    """One split of a model: the matched data, the metrics, the evidence, the threshold used."""

    data: SplitData
    types: ErrorTypes
    overlaps: Overlaps
    evaluation: SplitEvaluation
    evidence: SplitEvidence
    threshold: OperatingThreshold

    def table(self, rows: Rows) -> TruePositiveTable | DetectionTable:
        """The rows of the split in detections.csv, ``"hits"`` or ``"all"``."""
        if rows == "all":
            return detection_table(self.data, self.types, self.overlaps)
        return true_positive_table(self.data)


def evaluate_split(
    benchmark: Benchmark,
    split: str,
    predictions: Predictions,
    options: Options,
    threshold: OperatingThreshold,
) -> SplitResult:
    """Match the detections of one split and compute every metric family.

    ``threshold`` is the operating threshold; on iid_test, one without a confidence is determined.
    """
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
    scores = sorted_scores(data)
    points = operating_point(data, scores)
    if split == "iid_test" and threshold.confidence is None:
        threshold = threshold_of(points.best_F1)
    overlaps = split_overlaps(data)
    types = error_types(data, overlaps)
    suite, match = (
        (as_one, match_as_one) if is_class_agnostic(split) else (by_species, match_by_species)
    )
    class_aware = class_aware_errors(data, overlaps, suite, match)
    everything = open_vocabulary(data, predictions)
    of_image = species_of_images(truth, len(categories.ids))
    counts = count_types(data, types, of_image, threshold.confidence)
    hints = Evidence(predictions, truth, benchmark)
    evaluation = SplitEvaluation(
        warnings=warnings_of(hints),
        notes=notes_of(hints),
        n_predictions=len(detections),
        prediction_density=prediction_density(data),
        coco=coco,
        per_species=species,
        class_agnostic=agnostic,
        calibration=calibration(data),
        hierarchical=hierarchical(data),
        class_imbalance=class_imbalance(benchmark, split, species),
        decomposition=decomposition(data, everything, coco.AP_50, agnostic.AP_50),
        density=density(data),
        chance=chance(data),
        confusions=confusions(data),
        detection_cap=detection_cap(data, as_one, match_as_one),
        operating_point=points,
        errors=errors(data, types, counts, class_aware),
        reliability=reliability(split, scores, threshold.confidence),
        **bands,
    )
    evidence = split_evidence(data, of_image, counts, everything, threshold.confidence)
    return SplitResult(data, types, overlaps, evaluation, evidence, threshold)


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
