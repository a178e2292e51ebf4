"""The one finder of prediction files: where a model's predictions lie."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.inputs.config import Config
from benchmark_eval.inputs.manifest import Manifest, ModelEntry

SUFFIXES = (".json", ".json.gz")
_PATH_KEYS = ("benchmark_dir", "predictions_dir", "manifest")
_PATTERN_MARK = re.compile(r"[{}<>]")


def pattern_problems(config: Config, manifest: Manifest) -> list[Problem]:
    """Names and paths that Snakemake would read as its own patterns: {this}, <that>."""
    problems: list[Problem] = []
    named = [(f"config, {key}", getattr(config, key)) for key in _PATH_KEYS]
    for entry in manifest.models:
        at = f"{manifest.path}, row {entry.row} (line {entry.line})"
        named += [
            (f"{at}, model_name", entry.model_name),
            (f"{at}, predictions_dir", entry.predictions_dir),
            (f"{at}, train_annotations", entry.train_annotations),
        ]
    for where, value in named:
        odd = _PATTERN_MARK.search(str(value or ""))
        if odd:
            problems.append(
                Problem(
                    "wildcard-character",
                    where,
                    repr(str(value)),
                    f"no {odd.group()!r} in it",
                    cause="Snakemake reads {...} and <...> in file names as its own",
                )
            )
    return problems


def _predictions_dir(config: Config, entry: ModelEntry) -> Path:
    if entry.predictions_dir is not None:
        return entry.predictions_dir
    if config.predictions_dir is None:
        raise UsageError(
            f"model {entry.model_name!r} has no predictions_dir in the manifest, and the config "
            "has no predictions_dir either; set one of the two"
        )
    return config.predictions_dir / entry.model_name


def model_folders(config: Config, entries: Iterable[ModelEntry]) -> list[Path]:
    """The folders of those models that have one, by the manifest or by the config."""
    named = config.predictions_dir is not None
    return [_predictions_dir(config, e) for e in entries if named or e.predictions_dir is not None]


def find_prediction_files(config: Config, entry: ModelEntry) -> tuple[list[str], list[Problem]]:
    """The files of one model, and what is wrong with them (absent, empty, there twice).

    ``near_files.with_hints`` says of absent ones what lies near; most callers pass over them.
    """
    folder = os.fspath(_predictions_dir(config, entry))
    record = f"model {entry.model_name!r}, {entry.condition}, seed {entry.seed}"
    files: list[str] = []
    problems: list[Problem] = []
    for split in config.splits:
        there = [
            (name, size)
            for suffix in SUFFIXES
            if (size := _size(name := f"{folder}/{split}_predictions{suffix}")) is not None
        ]
        plain = f"{folder}/{split}_predictions.json"
        if not there:
            problems.append(
                Problem("missing-predictions", plain, "no such file", "predictions", record)
            )
        elif len(there) > 1:
            problems.append(
                Problem(
                    "ambiguous-predictions",
                    plain,
                    "this file and the same with .gz",
                    "one of the two",
                    record,
                )
            )
        elif there[0][1] == 0:
            problems.append(
                Problem(
                    "empty-predictions",
                    there[0][0],
                    "an empty file",
                    "predictions",
                    record,
                    cause="a model that predicts nothing has a file with []",
                )
            )
        else:
            files.append(there[0][0])
    return files, problems


def _size(name: str) -> int | None:
    try:
        status = os.stat(name)  # noqa: PTH116  (thousands of files each load)
    except OSError:
        return None
    return status.st_size


def predictions_file(predictions_dir: str | Path, split: str) -> Path:
    """The split's file in a model's folder: ``<split>_predictions.json`` or the same with ``.gz``.

    ``InputError`` when neither or both exist.
    """
    plain = Path(predictions_dir) / f"{split}_predictions.json"
    packed = plain.with_name(f"{plain.name}.gz")
    found = [path for path in (plain, packed) if path.exists()]
    if len(found) == 2:
        raise InputError(
            [
                Problem(
                    "ambiguous-predictions",
                    str(plain),
                    f"{plain.name} and {packed.name}",
                    "only one of the two",
                    cause="a stale copy; nothing tells which one is meant",
                )
            ]
        )
    if not found:
        from benchmark_eval.inputs.path_hints import absence

        what, cause = absence(predictions_dir, split)
        wanted = f"the model's detections on {split} (an empty list [] if it found nothing)"
        raise InputError([Problem("missing-file", str(plain), what, wanted, cause=cause)])
    return found[0]
