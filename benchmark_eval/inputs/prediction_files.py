"""Finding the prediction files of models."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import absent, dead_link
from benchmark_eval.inputs.config import Config
from benchmark_eval.inputs.manifest import Manifest, ModelEntry
from benchmark_eval.protocol import file_names

_PATH_KEYS = ("benchmark_dir", "predictions_dir", "manifest")
_PREDICTIONS = "_predictions.json"
_WILDCARD = re.compile(r"[{}<>]")


def pattern_problems(config: Config, manifest: Manifest) -> list[Problem]:
    """Report names and paths that Snakemake would read as wildcards: {this}, <that>."""
    problems = Problems()
    named = [(f"config, {key}", getattr(config, key)) for key in _PATH_KEYS]
    for entry in manifest.models:
        row = f"{manifest.path}, row {entry.row} (line {entry.line})"
        named += [
            (f"{row}, model_name", entry.model_name),
            (f"{row}, predictions_dir", entry.predictions_dir),
            (f"{row}, train_annotations", entry.train_annotations),
        ]
    for where, value in named:
        mark = _WILDCARD.search(str(value or ""))
        if mark:
            problems.add(
                "wildcard-character",
                repr(str(value)),
                f"a name without {mark.group()!r}",
                file=where,
                cause="Snakemake reads {...} and <...> in file names as wildcards",
            )
    return problems.all()


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
    """The folders of the models for which the manifest or the config names one."""
    named = config.predictions_dir is not None
    return [_predictions_dir(config, e) for e in entries if named or e.predictions_dir is not None]


def find_prediction_files(config: Config, entry: ModelEntry) -> tuple[list[str], list[Problem]]:
    """The prediction files of one model, and a problem for each split without a usable one.

    ``path_hints.with_hints`` adds hints to missing files; callers that allow missing files skip it.
    """
    folder = os.fspath(_predictions_dir(config, entry))
    record = f"model {entry.model_name!r}, {entry.condition}, seed {entry.seed}"
    found = [_find(folder, split, record) for split in config.splits]
    return (
        [path for path in found if isinstance(path, str)],
        [problem for problem in found if isinstance(problem, Problem)],
    )


def predictions_file(predictions_dir: str | Path, split: str) -> Path:
    """The split's file in a model's folder: ``<split>_predictions.json`` or the same with ``.gz``.

    Raises ``InputError`` if neither or both exist, or if it is empty.
    """
    found = _find(os.fspath(predictions_dir), split)
    if isinstance(found, Problem):
        from benchmark_eval.inputs.path_hints import with_hints

        raise InputError(with_hints([found]))
    return Path(found)


def holds_predictions(folder: Path) -> bool:
    """Whether a folder has prediction files of any split."""
    try:
        return any(_PREDICTIONS in path.name for path in listed(folder))
    except OSError:
        return False


def _find(folder: str, split: str, record: str = "") -> str | Problem:
    """The path of the split's prediction file in a folder, or why there is no usable one."""
    plain, packed = (os.path.join(folder, name) for name in file_names(split))  # noqa: PTH118
    sizes = {path: size for path in (plain, packed) if (size := _size(path)) is not None}
    if not sizes:
        expected = "the model's detections (an empty list [] if there are none)"
        found = dead_link(packed) or absent(plain)
        return Problem("missing-predictions", plain, found, expected, record)
    if len(sizes) == 2:
        return Problem(
            "ambiguous-predictions",
            plain,
            f"this file and {os.path.basename(packed)}",  # noqa: PTH119
            "only one of the two",
            record,
            cause="one of them is probably a stale copy",
        )
    ((path, size),) = sizes.items()
    if size == 0:
        return Problem(
            "empty-predictions",
            path,
            "an empty file",
            "a JSON list of detections",
            record,
            cause="a model without detections needs a file with an empty list []",
        )
    return path


def _size(path: str) -> int | None:
    """Bytes of a regular file; None if nothing exists there, -1 for anything but a file."""
    try:
        status = os.stat(path)  # noqa: PTH116  (thousands of files per run)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else -1
