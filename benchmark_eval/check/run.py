"""Check a benchmark, a manifest, a config and all prediction files."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark_eval.check.benchmark import annotation_file, benchmark_findings
from benchmark_eval.check.files import Context, FileResult, Progress, Task, check_files
from benchmark_eval.check.kinds import ABSENCE_KINDS, RECORD_KINDS
from benchmark_eval.check.report import CheckReport, Finding, findings_of
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import absent
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_reader import Survey, survey_benchmark
from benchmark_eval.inputs.config import Config, config_schema, normalise_config, read_yaml
from benchmark_eval.inputs.manifest import Manifest, ModelEntry, read_manifest
from benchmark_eval.inputs.path_hints import benchmark_hint, folder_hint, with_hints
from benchmark_eval.inputs.prediction_files import (
    find_prediction_files,
    holds_predictions,
    model_folders,
    pattern_problems,
    predictions_file,
)
from benchmark_eval.inputs.predictions import OnInvalid


@dataclass(frozen=True, slots=True)
class _Request:
    """What to check: the valid keys of the config, and the ``problems`` of the others.

    ``config.benchmark_dir`` is missing or not a folder only if there are problems.
    """

    config: Config
    problems: tuple[Problem, ...] = ()


def check_inputs(
    config: str | Path | None = None,
    *,
    benchmark_dir: str | Path | None = None,
    predictions_dir: str | Path | None = None,
    manifest: str | Path | None = None,
    splits: Sequence[str] | None = None,
    on_invalid: OnInvalid | None = None,
    allow_missing: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Find every problem in a benchmark, a manifest, a config and all prediction files.

    Parameters
    ----------
    config : str or Path, optional
        The YAML configuration of a sweep. An option below, where given, takes precedence over
        the key of the same name.
    benchmark_dir : str or Path, optional
        The unpacked benchmark. Required unless ``config`` names it.
    predictions_dir : str or Path, optional
        Folder with ``<model>/<split>_predictions.json[.gz]``, or with the files of one model.
    manifest : str or Path, optional
        The manifest of the sweep (CSV). Without it, all models in ``predictions_dir`` are
        checked.
    splits : sequence of str, optional
        The splits whose predictions are checked; by default the three test splits.
    on_invalid : {"error", "drop"}, optional
        With ``"drop"``, invalid records of prediction files are warnings instead of problems.
    allow_missing : bool, optional
        With True, missing prediction files are warnings instead of problems.
    jobs : int, optional
        Number of processes that read prediction files; by default one per core. The report does
        not depend on it.
    progress : callable, optional
        Called with (what, done, total) after each file.

    Returns
    -------
    CheckReport
        All findings. ``count("problem")``, ``count("warning")`` and ``count("note")`` give their
        numbers, ``text()`` the report as text, ``to_dict()`` the report as plain dicts and lists.

    Raises
    ------
    UsageError
        There is nothing to check: the config cannot be read, or no benchmark is named.

    Notes
    -----
    Problems of the inputs are collected in the report, not raised. A likely mistake, such as
    shifted category ids or normalised coordinates (0-1) instead of pixels, is reported with its
    evidence. The page "Trust" of the documentation lists every kind of finding.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import check_inputs, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> report = check_inputs(
    ...     benchmark_dir=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir,
    ...     manifest=made.manifest,
    ...     jobs=1,
    ... )
    >>> report.count("problem"), report.n_models, report.n_files
    (0, 1, 3)
    >>> folder.cleanup()
    """
    request = _read_request(
        config,
        benchmark_dir=benchmark_dir,
        predictions_dir=predictions_dir,
        manifest=manifest,
        splits=None if splits is None else list(splits),
        on_invalid=on_invalid,
        allow_missing=allow_missing,
    )
    return _check(request, jobs, progress)


def _read_request(configfile: str | Path | None, **given: Any) -> _Request:
    """Merge a config file with the options given (not None), which take precedence.

    Raises UsageError if the config cannot be read, or is valid but names no benchmark.
    """
    keys = {key: value for key, value in given.items() if value is not None}
    raw: object = {}
    if configfile is not None:
        try:
            raw = read_yaml(configfile)
        except InputError as error:
            raise UsageError("; ".join(map(str, error.problems))) from None
    source = "options" if configfile is None else str(configfile)
    content = {} if raw is None else raw
    merged = {**content, **keys} if isinstance(content, Mapping) else content
    problems: list[Problem] = []
    try:
        config = normalise_config(merged, source=source)
    except InputError as error:
        problems += error.problems
        invalid = {problem.field for problem in problems}
        mapping = merged if isinstance(merged, Mapping) else keys
        config = normalise_config(
            {
                k: v
                for k, v in mapping.items()
                if k not in invalid and k in config_schema()["properties"]
            }
        )
    if config.benchmark_dir is None and not problems:
        raise UsageError(
            f"no benchmark to check: give --benchmark-dir, or set benchmark_dir in {source}"
        )
    problems += _absent_folders(config, source)
    return _Request(config, tuple(problems))


def _absent_folders(config: Config, source: str) -> Iterator[Problem]:
    """Folders that are named in the config but do not exist."""
    for key, expected in (
        ("benchmark_dir", "the unpacked benchmark folder"),
        ("predictions_dir", "the folder of all predictions"),
    ):
        folder = getattr(config, key)
        if folder is None or folder.is_dir():
            continue
        otherwise = f"which {'is a file' if folder.exists() else 'does not exist'}"
        found = f"{folder}, {absent(folder, otherwise)}"
        cause = benchmark_hint(folder) if key == "benchmark_dir" else folder_hint(folder)
        yield Problem("missing-folder", source, found, expected, field=key, cause=cause)


def _check(request: _Request, jobs: int | None, progress: Progress | None) -> CheckReport:
    """Check everything that ``request`` names."""
    config = request.config
    manifest: Manifest | None = None
    manifest_problems: Sequence[Problem] = ()
    if config.manifest is not None:
        try:
            manifest = read_manifest(config.manifest)
        except InputError as error:
            manifest_problems = error.problems
    findings = findings_of(_config_problems(request, manifest))
    survey = Survey(None, (), {}, ())
    directory = config.benchmark_dir
    if directory is not None and directory.is_dir():
        survey = survey_benchmark(directory)
        findings += findings_of(survey.problems)
        findings += findings_of(list(benchmark_findings(directory, survey)))

    findings += findings_of(manifest_problems)
    lowered = set(RECORD_KINDS) if config.on_invalid == "drop" else set()
    if config.allow_missing:
        lowered |= set(ABSENCE_KINDS)
    tasks, problems = _tasks(config, manifest)
    if manifest is not None:
        problems += pattern_problems(config, manifest)
        problems += _grid(manifest)
        problems += _training_annotations(manifest, survey)
        problems += _unlisted(config, manifest)
        problems += _shared_folders(config, manifest)
        if not any(problem.field == "predictions_dir" for problem in request.problems):
            problems += _models_without_folder(config, manifest)
    findings += findings_of(problems, lowered=lowered)

    benchmark = survey.benchmark
    checkable = [t for t in tasks if benchmark is not None and t.split in benchmark.splits]
    if directory is not None and directory.is_dir():
        findings += findings_of(list(_unreadable_splits(tasks, benchmark, survey)))
    elif tasks:
        found = f"{counted(len(tasks), 'prediction file')}, not read"
        expected = "a benchmark to compare them with"
        findings += findings_of([Problem("not-compared", str(directory or ""), found, expected)])
    results: list[FileResult] = []
    if benchmark is not None and checkable:
        context = Context(benchmark, not survey.problems, drop=config.on_invalid == "drop")
        results = check_files(checkable, context, jobs, progress)
    for result in results:
        findings += findings_of(result.findings, lowered=lowered)
    findings += _copies(results)
    return CheckReport(
        findings=tuple(findings),
        n_models=len({task.model for task in tasks}),
        n_files=len(results),
        n_detections=sum(result.n_detections for result in results),
        n_bytes=sum(task.size for task in checkable),
    )


def _tasks(config: Config, manifest: Manifest | None) -> tuple[list[Task], list[Problem]]:
    """The prediction files to check, and problems of missing, empty and ambiguous ones."""
    tasks: list[Task] = []
    problems: list[Problem] = []
    others: list[Path] = []
    if manifest is not None:
        others = model_folders(config, manifest.models)
        for entry in manifest.in_table_order():
            if entry.predictions_dir is None and config.predictions_dir is None:
                continue  # reported by ``_models_without_folder``
            if entry.predictions_dir is None and not _is_folder(config.predictions_dir):
                continue  # reported once, by ``_absent_folders``
            files, found = find_prediction_files(config, entry)
            problems += found
            tasks += [_task(Path(path), entry.model_name) for path in files]
    elif config.predictions_dir is not None and config.predictions_dir.is_dir():
        folders = _model_folders(config.predictions_dir)
        if not folders:
            problems.append(
                Problem(
                    "no-predictions",
                    str(config.predictions_dir),
                    "no prediction file and no model folder",
                    "<split>_predictions.json, or <model>/<split>_predictions.json",
                )
            )
        for folder in folders:
            for split in config.splits:
                try:
                    tasks.append(_task(predictions_file(folder, split), folder.name))
                except InputError as error:
                    problems += error.problems
    problems = _folders_once(with_hints(problems, others), config.splits)
    times = Counter((task.split, task.size) for task in tasks)
    tasks = [replace(task, twin=times[task.split, task.size] > 1) for task in tasks]
    return tasks, problems


def _is_folder(path: Path | None) -> bool:
    return path is not None and path.is_dir()


def _folders_once(problems: Sequence[Problem], splits: Sequence[str]) -> list[Problem]:
    """Report a missing model folder once instead of once per split."""
    reported: set[str] = set()
    kept = []
    for problem in problems:
        folder = Path(problem.file).parent
        if problem.kind != "missing-predictions" or folder.is_dir():
            kept.append(problem)
        elif problem.record not in reported:
            reported.add(problem.record)
            found = absent(folder, problem.found if problem.cause else "no such folder")
            expected = f"a folder with the predictions of {', '.join(splits)}"
            kept.append(replace(problem, file=str(folder), found=found, expected=expected))
    return kept


def _config_problems(request: _Request, manifest: Manifest | None) -> list[Problem]:
    """Problems of the config; a missing predictions_dir is ignored if no model needs it."""
    unused = manifest is not None and all(m.predictions_dir for m in manifest.models)
    return [
        problem
        for problem in request.problems
        if not (unused and (problem.kind, problem.field) == ("missing-folder", "predictions_dir"))
    ]


def _unlisted(config: Config, manifest: Manifest) -> Iterator[Problem]:
    """Folders of predictions that are not in the manifest."""
    home = config.predictions_dir
    if home is None or not home.is_dir():
        return
    named = {folder.absolute() for folder in model_folders(config, manifest.models)}
    for folder in listed(home):
        if folder.absolute() not in named and holds_predictions(folder):
            yield Problem(
                "unlisted-predictions",
                str(folder),
                f"predictions that are not in {manifest.path}",
                "one row per model to be evaluated",
            )


def _shared_folders(config: Config, manifest: Manifest) -> Iterator[Problem]:
    """Models whose predictions are in the folder of another model, also through a link."""
    first: dict[Path, ModelEntry] = {}
    for entry in manifest.models:
        for folder in model_folders(config, [entry]):
            other = first.setdefault(folder.resolve(), entry)
            if other is not entry:
                yield Problem(
                    "shared-predictions-dir",
                    str(manifest.path),
                    f"{folder}, the folder of model {other.model_name!r} in row {other.row} "
                    f"(line {other.line})",
                    "a folder of its own for each model",
                    f"row {entry.row} (line {entry.line})",
                    "predictions_dir",
                    cause="a copied row, or a link to the folder of another model",
                )


def _task(path: Path, model: str) -> Task:
    size = 0
    with contextlib.suppress(OSError):
        size = path.stat().st_size
    return Task(path, path.name.partition("_predictions.json")[0], model, size)


def _models_without_folder(config: Config, manifest: Manifest) -> Iterator[Problem]:
    """Models for which neither the manifest nor the config names a folder of predictions."""
    without = [entry for entry in manifest.models if entry.predictions_dir is None]
    if config.predictions_dir is None and without:
        yield Problem(
            "config-value",
            str(manifest.path),
            f"no predictions_dir for {counted(len(without), 'model')}, the first is "
            f"{without[0].model_name!r}",
            "predictions_dir in the config, or in every row of the manifest",
            field="predictions_dir",
        )


def _model_folders(folder: Path) -> list[Path]:
    """The folder itself if it contains prediction files, otherwise all its subfolders."""
    if holds_predictions(folder):
        return [folder]
    return [path for path in listed(folder) if path.is_dir()]


def _grid(manifest: Manifest) -> Iterator[Problem]:
    """The size of the sweep, and the conditions with missing seeds."""
    from benchmark_eval.sweep.completeness import by_condition, missing_seeds

    conditions = {entry.condition for entry in manifest.models}
    seeds = {entry.seed for entry in manifest.models}
    absent = missing_seeds(manifest, ())
    found = (
        f"{counted(len(manifest.models), 'model')}: {counted(len(conditions), 'condition')}, "
        f"{counted(len(seeds), 'seed')}"
    )
    expected = "every condition with every seed, for every architecture"
    yield Problem("sweep", str(manifest.path), found, expected)
    for condition, cells in by_condition(absent).items():
        numbers = ", ".join(str(cell.seed) for cell in cells)
        yield Problem(
            "sweep",
            str(manifest.path),
            f"no seed {numbers}",
            expected,
            f"{condition.architecture} {condition.regime} {condition.k_or_p}",
        )


def _training_annotations(manifest: Manifest, survey: Survey) -> Iterator[Problem]:
    """Training annotations that cannot be read or are not a subset of the benchmark's."""
    from benchmark_eval.training.budgets import exact_budget

    if survey.benchmark is None:
        return
    paths = [entry.train_annotations for entry in manifest.models if entry.train_annotations]
    for path in dict.fromkeys(paths):
        try:
            exact_budget(path, survey.benchmark)
        except InputError as error:
            yield from error.problems


def _unreadable_splits(
    tasks: Sequence[Task], benchmark: Benchmark | None, survey: Survey
) -> Iterator[Problem]:
    """Splits whose predictions cannot be checked because their annotations cannot be read."""
    loaded = set() if benchmark is None else set(benchmark.splits)
    reported = {problem.file for problem in survey.problems}
    for split in dict.fromkeys(task.split for task in tasks):
        file = annotation_file(split)
        if split in loaded:
            continue
        n = sum(task.split == split for task in tasks)
        if file in reported:
            yield Problem(
                "not-compared", file, f"{counted(n, 'prediction file')} of {split}", "a valid file"
            )
        else:
            yield Problem(
                "missing-split", file, "no such file", f"the annotations of {split}",
                cause=f"{counted(n, 'prediction file')} cannot be scored",
            )  # fmt: skip


def _copies(results: Sequence[FileResult]) -> list[Finding]:
    """Identical prediction files of two models: one of them is most likely stale."""
    first: dict[tuple[str, str], Task] = {}
    problems = []
    for result in results:
        if not result.n_detections or not result.sha256:
            continue
        other = first.setdefault((result.task.split, result.sha256), result.task)
        # a shared folder is reported by ``_shared_folders``
        if other.path.parent.resolve() != result.task.path.parent.resolve():
            problems.append(
                Problem(
                    "same-predictions",
                    str(result.task.path),
                    f"the same content as {other.path}",
                    "different predictions for each model",
                    f"model {result.task.model!r}",
                    cause="a copied file, or a model evaluated under two names",
                )
            )
    return findings_of(problems)
