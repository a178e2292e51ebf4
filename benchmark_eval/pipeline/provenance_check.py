"""Compares the inputs that a job read with its fingerprint.

Fingerprints are written when the workflow is planned. If a file is replaced before its job reads it
and restored later, the result matches its fingerprint but is wrong. Jobs therefore compare the
digests of the files they read with their fingerprints, and the tables of the sweep accept only
summaries that were computed from the inputs in the fingerprints.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.records import SUFFIX, edited, record_name
from benchmark_eval.core.safe_read import read_input

if TYPE_CHECKING:
    from benchmark_eval.results.schema import Evaluation, Provenance, RunConfig
    from benchmark_eval.sweep.aggregation import SweepInputs
    from benchmark_eval.sweep.summaries import ModelResult

OF_A_BENCHMARK = ("code", "files")
OF_A_MODEL = ("code", "iou", "engine", "on_invalid", "operating_confidence", "predictions")
OF_A_SWEEP = ("code", "benchmark", "models", "missing", "custom_metrics", "prices")
OF_A_REPORT = ("code", "plot_formats", "sweep")
"""The keys of each kind of fingerprint."""
CHANGED = "input-changed"
STALE = "stale-summary"
AGAIN = "it changed after snakemake planned this job; run snakemake again"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint file: its path, its bytes, their SHA-256 and the decoded content."""

    path: Path
    data: bytes
    digest: str
    content: Mapping[str, Any]


class _Scored(Protocol):
    """A result of one model, with its options and provenance."""

    @property
    def config(self) -> RunConfig: ...
    @property
    def provenance(self) -> Provenance: ...


def read_fingerprint(path: str | Path, *keys: str) -> Fingerprint:
    """Read a fingerprint; UsageError unless it exists and has all ``keys``."""
    path = Path(path)
    found, data, content = "other content", b"", None
    try:
        data = read_input(path)
        content = json.loads(data)
    except OSError as error:
        found = error.strerror or type(error).__name__
    except ValueError:
        pass
    if not isinstance(content, dict) or not content.keys() >= set(keys):
        raise UsageError(
            f"{path}: found {found}; expected a fingerprint of this workflow with the keys "
            f"{', '.join(keys)} (likely cause: edited manually, or written by another version); "
            "run snakemake again to rewrite the fingerprints"
        )
    return Fingerprint(path, data, hashlib.sha256(data).hexdigest(), content)


def require_record_name(fingerprint: Fingerprint, record: str | Path) -> None:
    """Raise InputError unless the name of a job's record matches its current fingerprint."""
    name = Path(record).name
    if name != record_name(name.partition(".")[0], fingerprint.digest):
        raise InputError([_another(fingerprint.path)])


def require_code(fingerprint: Fingerprint, part: str) -> None:
    """Raise InputError unless this process runs the code of the fingerprint.

    ``part`` is a key of ``core.code_digest.ROOMS``.
    """
    expected, found = fingerprint.content["code"], code_digest(part)
    _require_equal({f"code of benchmark_eval ({part})": (found, expected)})


def require_files(expected: Mapping[str, str], found: Mapping[str, str], what: str) -> None:
    """Raise InputError unless both list the same files with the same SHA-256.

    ``what`` describes the files in the message.
    """
    names = sorted({*expected, *found})
    _require_equal({f"{what} {name}": (found.get(name), expected.get(name)) for name in names})


def require_benchmark(
    fingerprint: Fingerprint, digests: Mapping[str, str], index: str | Path
) -> None:
    """Raise InputError unless an index was computed from the benchmark of ``fingerprint``.

    ``digests`` are those of the benchmark's files in ``index``.
    """
    found = {Path(name).name: digest for name, digest in digests.items()}
    if found != fingerprint.content["files"]:
        raise InputError(
            [
                Problem(
                    CHANGED,
                    str(index),
                    "an index of another benchmark",
                    f"an index of the benchmark in {fingerprint.path}",
                    cause="edited manually, restored from a backup, or the benchmark changed "
                    "after snakemake planned this job",
                )
            ]
        )


def require_evaluation(fingerprint: Fingerprint, evaluation: Evaluation) -> None:
    """Raise InputError unless inputs and options of an evaluation match its fingerprint."""
    _require_equal(
        {
            f"evaluation of {evaluation.model}, {name}": pair
            for name, pair in _compared(evaluation, fingerprint.content).items()
        }
    )


def require_sweep(fingerprint: Fingerprint, read: SweepInputs) -> None:
    """Raise InputError unless all inputs of the tables are as planned.

    Compares the rows of the manifest, the training annotations, the custom metrics, the prices and
    the fingerprints of benchmark and models with the fingerprint of the sweep, and the summaries
    with the fingerprints of their models. Every model must have its evidence.
    """
    state, sweep = fingerprint.path.parent, fingerprint.content
    benchmark = read_fingerprint(state / "benchmark.json", *OF_A_BENCHMARK)
    problems = []
    if benchmark.digest != sweep["benchmark"]:
        problems.append(_another(benchmark.path))
    for model in read.collected.models:
        name = model.entry.model_name
        of_model = read_fingerprint(state / "models" / f"{name}.json", *OF_A_MODEL)
        if of_model.digest != sweep["models"].get(name, [None])[-1]:
            problems.append(_another(of_model.path))
        else:
            path = f"{read.eval_dir}/{name}/{name}_summary.json"
            problems += _stale(path, model, of_model.content, benchmark.content["files"])
            changed = edited(path, model.digest, state / "models" / f"{name}{SUFFIX}")
            problems += [changed] if changed else []
            if name not in read.counts:
                problems.append(_no_evidence(str(model.evidence)))
    problems += _unequal(dict(_manifest_and_files(read, sweep)))
    if problems:
        raise InputError(problems)


def _manifest_and_files(
    read: SweepInputs, sweep: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[object, object]]]:
    """Description -> (value that was read, value in the fingerprint of the sweep)."""
    rows = {
        entry.model_name: [entry.architecture, entry.regime, entry.k_or_p, entry.seed]
        for entry in read.manifest.models
    }
    for model, row in sweep["models"].items():
        yield f"manifest, model {model}", (rows.get(model), row[:4])
    trained = {
        entry.model_name: read.exact[entry.train_annotations].digest
        for entry in read.manifest.models
        if entry.train_annotations is not None
    }
    expected = {model: row[4] for model, row in sweep["models"].items() if row[4] is not None}
    for model in sorted({*trained, *expected}):
        yield f"train_annotations of {model}", (trained.get(model), expected.get(model))
    own = None if read.custom is None else read.custom.digest
    yield "custom_metrics", (own, next(iter(sweep["custom_metrics"]), None))
    prices = (read.prices.per_image, read.prices.per_specimen)
    for name, found, expected in zip(
        ("price_per_image", "price_per_specimen"), prices, sweep["prices"], strict=True
    ):
        yield name, (found, expected)


def _compared(made: _Scored, fingerprint: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Description -> (value of a result, value in the fingerprint of its model)."""
    read = made.provenance.inputs
    return {
        "scoring code": (made.provenance.scoring_code, fingerprint["code"]),
        "iou": (made.config.iou_threshold, float(fingerprint["iou"])),
        "engine": (made.config.engine, fingerprint["engine"]),
        "on_invalid": (made.config.on_invalid, fingerprint["on_invalid"]),
        "operating_confidence": (
            made.config.operating_confidence,
            fingerprint["operating_confidence"],
        ),
        "splits": (sorted(made.config.splits), sorted(fingerprint["predictions"])),
        **{
            f"predictions of {split}": (read.get(f"predictions/{split}"), digest)
            for split, digest in fingerprint["predictions"].items()
        },
    }


def _stale(
    path: str, model: ModelResult, fingerprint: Mapping[str, Any], benchmark: Mapping[str, str]
) -> Iterator[Problem]:
    """Inputs and options of a summary that differ from its fingerprint."""
    read = model.provenance.inputs
    pairs = _compared(model, fingerprint)
    of_benchmark = {Path(n).name: d for n, d in read.items() if n.startswith("benchmark/")}
    pairs["benchmark"] = (of_benchmark, dict(benchmark))
    for name, (found, expected) in pairs.items():
        if found != expected:
            yield Problem(
                STALE,
                path,
                f"computed with {name} {_short(found)}",
                f"{_short(expected)}, as planned",
                cause="edited manually, restored from a backup, or kept by snakemake --touch",
            )


def _require_equal(pairs: Mapping[str, tuple[object, object]]) -> None:
    problems = _unequal(pairs)
    if problems:
        raise InputError(problems)


def _unequal(pairs: Mapping[str, tuple[object, object]]) -> list[Problem]:
    """A problem for each pair whose found and expected values differ."""
    return [
        Problem(CHANGED, what, _short(found), f"{_short(expected)}, as planned", cause=AGAIN)
        for what, (found, expected) in pairs.items()
        if found != expected
    ]


def _no_evidence(file: str) -> Problem:
    expected = "the evidence of the model, from which the tables are computed"
    cause = "deleted since the evaluation"
    return Problem("missing-file", file, "no such file", expected, cause=cause)


def _another(path: Path) -> Problem:
    return Problem(
        CHANGED, str(path), "a different fingerprint", "the planned fingerprint", cause=AGAIN
    )


def _short(value: object) -> str:
    """A value as text for a message; digests are abbreviated."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "other files"
    text = str(value)
    is_digest = len(text) == hashlib.sha256().digest_size * 2 and " " not in text
    return f"SHA-256 {text[:12]}..." if is_digest else text
