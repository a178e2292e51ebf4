"""What a stamp says a job reads, held against what it has read.

Stamps are written while the workflow is planned. A file that is exchanged before its job reads it,
and put back later, would leave a result that fits its stamp and is wrong all the same. So jobs
compare digests of what they have read with their stamps, and the sweep's tables take only
summaries that were made from what the stamps say.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem

if TYPE_CHECKING:
    from benchmark_eval.results.schema import Evaluation

OF_A_MODEL = ("code", "iou", "engine", "on_invalid", "predictions")
"""The keys of a model's stamp."""
AGAIN = "it changed while the workflow ran; run again"


def read_stamp(path: str | Path, *wanted: str) -> dict[str, Any]:
    """The content of a stamp; ``UsageError`` on a file that is none or lacks a ``wanted`` key."""
    return _stamp_and_digest(Path(path), *wanted)[0]


def require_promised_options(promised: Mapping[str, Any], made: Evaluation) -> None:
    """``InputError`` unless an evaluation ran with the options and the code of its stamp."""
    problems = [
        Problem(
            "changed-meanwhile",
            f"evaluation of {made.model}",
            f"made with another {name} than its stamp says",
            "the one of the stamp",
            cause=AGAIN,
        )
        for name, (found, wanted) in _options(made, promised).items()
        if found != wanted
    ]
    if problems:
        raise InputError(problems)


def require_promised(promised: Mapping[str, str], read: Mapping[str, str], what: str) -> None:
    """``InputError`` unless both name the same files with the same SHA-256.

    ``what`` says what the names are, for the message.
    """
    problems = [
        Problem(
            "changed-meanwhile",
            f"{what} {name}",
            f"SHA-256 {read.get(name, 'of no such file')[:16]}",
            f"{promised.get(name, 'no such file')[:16]}, as when the workflow was planned",
            cause=AGAIN,
        )
        for name in sorted({*promised, *read})
        if promised.get(name) != read.get(name)
    ]
    if problems:
        raise InputError(problems)


def require_promised_benchmark(
    state: str | Path, digests: Mapping[str, str], source: str | Path | object
) -> None:
    """``InputError`` unless an index was made from the benchmark that its stamp names.

    ``digests`` are those that the index ``source`` keeps of the benchmark's files.
    """
    promised = read_stamp(Path(state) / "benchmark.json", "files")["files"]
    if {Path(name).name: digest for name, digest in digests.items()} != promised:
        where = str(source) if isinstance(source, str | Path) else "the benchmark"
        raise InputError(
            [
                Problem(
                    "changed-meanwhile",
                    where,
                    "made from another benchmark than the one that is there now",
                    "what this workflow makes from the present one",
                    cause="put there by hand or from a backup, or it changed while the workflow "
                    "ran; run again",
                )
            ]
        )


class _Provenance(msgspec.Struct):
    scoring_code: str
    inputs: dict[str, str]


class _Config(msgspec.Struct):
    iou_threshold: float
    engine: str
    on_invalid: str
    splits: list[str]


class _Origin(msgspec.Struct):
    config: _Config
    provenance: _Provenance


def require_fresh_summaries(
    summaries: Iterable[str | Path], state: str | Path, manifest_rows: Mapping[str, list[Any]]
) -> None:
    """``InputError`` unless summaries and manifest are what the stamps below ``state`` say.

    ``summaries`` are ``<model>/<model>_summary.json``; ``manifest_rows`` maps a model to its
    [architecture, regime, k_or_p, seed] as the manifest has them now.
    """
    state = Path(state)
    sweep = read_stamp(state / "sweep.json", "benchmark", "models")
    benchmark, digest = _stamp_and_digest(state / "benchmark.json", "files")
    problems = _stamp_faults(state / "benchmark.json", digest, sweep["benchmark"])
    for summary in map(Path, summaries):
        name = summary.parent.name
        path = state / "models" / f"{name}.json"
        stamp, digest = _stamp_and_digest(path, *OF_A_MODEL)
        changed = _stamp_faults(path, digest, sweep["models"].get(name, [None])[-1])
        problems += changed or _summary_faults(summary, stamp, benchmark["files"])
    for model, row in sweep["models"].items():
        if manifest_rows.get(model) != row[:4]:
            found = manifest_rows.get(model, "no such row")
            wanted = f"{row[:4]}, as when the workflow was planned"
            problems.append(
                Problem(
                    "changed-meanwhile", f"manifest, model {model}", f"{found}", wanted, cause=AGAIN
                )
            )
    if problems:
        raise InputError(problems)


def require_fresh_extras(
    stamp: str | Path, train_annotations: Mapping[str, str], custom_metrics: str | None
) -> None:
    """``InputError`` unless the sweep's other files are what its stamp says.

    ``train_annotations`` maps a model to the SHA-256 of its training annotations, as read;
    ``custom_metrics`` is that of the user's own metrics, None without them.
    """
    sweep = read_stamp(stamp, "models", "custom_metrics")
    promised = {model: row[4] for model, row in sweep["models"].items() if row[4] is not None}
    require_promised(promised, train_annotations, "train_annotations of")
    read = [] if custom_metrics is None else [custom_metrics]
    # at most one file, which has no name in the stamp
    require_promised(
        dict(zip(["file"], sweep["custom_metrics"], strict=False)),
        dict(zip(["file"], read, strict=False)),
        "custom_metrics",
    )


def _stamp_and_digest(path: Path, *wanted: str) -> tuple[dict[str, Any], str]:
    data = path.read_bytes()
    content: object = None
    with contextlib.suppress(ValueError):
        content = json.loads(data)
    if not isinstance(content, dict) or not content.keys() >= set(wanted):
        raise UsageError(
            f"{path}: found something else than the stamp of the workflow that is wanted here "
            f"({', '.join(wanted)}); the next snakemake writes its stamps anew"
        )
    return content, hashlib.sha256(data).hexdigest()


def _options(made: _Origin | Evaluation, stamp: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Name -> what an evaluation was made with, and what its stamp says."""
    return {
        "scoring code": (made.provenance.scoring_code, stamp["code"]),
        "iou": (made.config.iou_threshold, float(stamp["iou"])),
        "engine": (made.config.engine, stamp["engine"]),
        "on_invalid": (made.config.on_invalid, stamp["on_invalid"]),
        "splits": (sorted(made.config.splits), sorted(stamp["predictions"])),
    }


def _stamp_faults(path: Path, digest: str, promised: str | None) -> list[Problem]:
    """A stamp that is not the one that the sweep was planned with says nothing of a result."""
    if digest == promised:
        return []
    wanted = "the stamp that the workflow was planned with"
    return [Problem("changed-meanwhile", str(path), "another stamp", wanted, cause=AGAIN)]


def _summary_faults(
    summary: Path, stamp: Mapping[str, Any], benchmark: Mapping[str, str]
) -> Iterator[Problem]:
    """What a summary was made from, where that is not what its stamp says."""
    try:
        origin = msgspec.json.decode(summary.read_bytes(), type=_Origin)
    except (OSError, msgspec.DecodeError):
        return  # the reader of summaries says what is wrong with it
    read = origin.provenance.inputs
    pairs: dict[str, tuple[Any, Any]] = {
        **_options(origin, stamp),
        **{
            f"predictions of {split}": (read.get(f"predictions/{split}"), digest)
            for split, digest in stamp["predictions"].items()
        },
        "benchmark": (
            {Path(n).name: d for n, d in read.items() if n.startswith("benchmark/")},
            dict(benchmark),
        ),
    }
    for name, (found, wanted) in pairs.items():
        if found != wanted:
            yield Problem(
                "stale-summary",
                str(summary),
                f"made with another {name} than the one that is there now",
                "a summary that this workflow has made from the present inputs",
                cause="put there by hand or from a backup, kept by --touch, or an input changed "
                "while the workflow ran; the next run makes it again",
            )
