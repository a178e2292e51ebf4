"""What a gallery is made from: models, their options and their results."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.text import some_of
from benchmark_eval.inputs.config import Config, read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.model_names import name_problem
from benchmark_eval.inputs.prediction_files import holds_predictions, model_folders
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.schema import Evaluation, load_summary
from benchmark_eval.scoring.evaluate import Options
from benchmark_eval.sweep.summaries import SUFFIX, find_summaries

RESULTS = Path("results") / "models"
"""Where the workflow writes the summaries."""
AGAIN = "evaluate the model again"


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its name, the folder of its prediction files, and its summary if there is one."""

    name: str
    predictions_dir: Path
    summary_file: Path | None
    summary: Evaluation | None


@dataclass(frozen=True, slots=True)
class Sources:
    """Benchmark, models and options; ``splits_given`` is whether the user named the splits."""

    benchmark_dir: Path
    models: tuple[Model, ...]
    options: Options
    splits_given: bool


def find_sources(
    names: Sequence[str],
    *,
    configfile: str | Path | None,
    benchmark_dir: str | Path | None,
    predictions_dir: str | Path | None,
    eval_dir: str | Path | None,
    splits: Sequence[str] | None,
) -> Sources:
    """Find everything that the options name; ``InputError`` or ``UsageError`` if something is not.

    Options take precedence over the config. The options of scoring are those of the summaries, or
    else of the config.
    """
    _check_names(names)
    config = None if configfile is None else read_config(configfile)
    if benchmark_dir is None and config is not None:
        benchmark_dir = config.benchmark_dir
    if benchmark_dir is None:
        raise UsageError("no benchmark: give --configfile with a benchmark_dir, or --benchmark-dir")
    if Path(benchmark_dir).suffix == ".npz":
        raise UsageError(
            f"{benchmark_dir}: found an index; expected the folder of the benchmark "
            "(an index has no file names and licences of images)"
        )
    folders = _folders(names, config, predictions_dir)
    summaries = _summaries(names, eval_dir)
    models = tuple(
        Model(name, folder, path, None if path is None else load_summary(path))
        for name, folder, path in zip(names, folders, summaries, strict=True)
    )
    default = TEST_SPLITS if config is None else config.splits
    return Sources(
        Path(benchmark_dir),
        models,
        _options(models, config, tuple(splits or default)),
        bool(splits),
    )


def _check_names(names: Sequence[str]) -> None:
    if not 1 <= len(names) <= 2:
        raise UsageError(f"--model: found {len(names)} models; expected one, or two to compare")
    if len(set(names)) < len(names):
        raise UsageError(f"--model: found {names[0]!r} twice; expected two different models")
    for name in names:
        problem = name_problem(name)
        if problem:
            raise UsageError(f"--model {name!r}: found a name {problem}; expected a model's name")


def _folders(
    names: Sequence[str], config: Config | None, predictions_dir: str | Path | None
) -> list[Path]:
    """The folder with the prediction files of each model."""
    if predictions_dir is not None:
        folder = Path(predictions_dir)
        if len(names) == 1 and not (folder / names[0]).is_dir() and holds_predictions(folder):
            return [folder]
        return [folder / name for name in names]
    if config is None:
        raise UsageError("no predictions: give --configfile, or --predictions-dir")
    if config.manifest is None:
        if config.predictions_dir is None:
            raise UsageError("the config has neither predictions_dir nor manifest")
        return [config.predictions_dir / name for name in names]
    entries = {entry.model_name: entry for entry in read_manifest(config.manifest).models}
    problems = Problems(str(config.manifest))
    for name in names:
        if name not in entries:
            near = difflib.get_close_matches(name, entries, n=1)
            problems.add(
                "unknown-model",
                f"no model {name!r}",
                "a model_name of the manifest",
                cause=f"did you mean {near[0]!r}?"
                if near
                else f"it has {some_of(list(entries), 3)}",
            )
    if problems:
        raise InputError(problems.all())
    return model_folders(config, [entries[name] for name in names])


def _summaries(names: Sequence[str], eval_dir: str | Path | None) -> list[Path | None]:
    """The summary of each model; with ``eval_dir``, each must exist."""
    folder = RESULTS if eval_dir is None else Path(eval_dir)
    if eval_dir is None and not folder.is_dir():
        return [None for _ in names]
    problems = Problems(str(folder))
    found = find_summaries(folder, problems)
    for name in names:
        if eval_dir is not None and name not in found:
            expected = f"{name}{SUFFIX} or {name}/{name}{SUFFIX}"
            problems.add("missing-summary", f"no summary of {name!r}", expected)
    if problems:
        raise InputError(problems.all())
    return [found.get(name) for name in names]


def _options(models: Sequence[Model], config: Config | None, splits: tuple[str, ...]) -> Options:
    """The options of scoring: those of the summaries, which must agree, or of the config."""
    wanted = {} if config is None else _scoring_options(config.iou, config.on_invalid,
                                                        config.operating_confidence)  # fmt: skip
    source = "the config"
    problems = Problems()
    for model in models:
        if model.summary is None:
            continue
        made = model.summary.config
        found = _scoring_options(made.iou_threshold, made.on_invalid, made.operating_confidence)
        for key in wanted:
            if found[key] != wanted[key]:
                problems.add(
                    "other-options",
                    f"values scored with {key} {found[key]}",
                    f"{key} {wanted[key]}, as in {source}",
                    file=str(model.summary_file),
                    cause=f"an option was changed: {AGAIN}",
                )
        wanted, source = found, f"the summary of {model.name!r}"
    if problems:
        raise InputError(problems.all())
    return Options(splits, **wanted)  # type: ignore[arg-type]


def _scoring_options(
    iou: float, on_invalid: str, operating_confidence: float | None
) -> dict[str, object]:
    return {"iou": iou, "on_invalid": on_invalid, "operating_confidence": operating_confidence}


def digest_problems(model: Model, inputs: dict[str, str]) -> list[Problem]:
    """Differences between what a summary was made from and what is read now.

    ``inputs`` are the digests by role, as in the provenance of a summary.
    """
    if model.summary is None:
        return []
    made = model.summary.provenance
    problems = Problems(str(model.summary_file))
    if model.summary.model != model.name:
        problems.add(
            "other-model",
            repr(model.summary.model),
            repr(model.name),
            field="model",
            cause="a renamed or copied summary",
        )
    for role, digest in sorted(inputs.items()):
        recorded = made.inputs.get(role)
        if recorded is not None and recorded != digest:
            problems.add(
                "digest",
                f"values scored on {role} with SHA-256 {recorded[:12]}...",
                f"SHA-256 {digest[:12]}..., as in the current file",
                cause=f"the file changed after the evaluation: {AGAIN}",
            )
    if made.scoring_code != code_digest("scoring"):
        problems.add(
            "other-code",
            f"scoring code {made.scoring_code[:12]}...",
            f"the installed scoring code, {code_digest('scoring')[:12]}...",
            cause=f"scored by another version: {AGAIN}",
        )
    return problems.all()
