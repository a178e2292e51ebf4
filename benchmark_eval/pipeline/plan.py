"""The plan of a sweep for the workflow: its models, their files and their fingerprints.

The Snakefile contains only rules; everything that must be known before Snakemake can plan is here.
The main process (``main=True``) checks that all prediction files exist, hashes them and writes the
fingerprints. The processes that Snakemake starts for single jobs only look up names and write
nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted, some_of
from benchmark_eval.inputs.config import Config
from benchmark_eval.inputs.manifest import Manifest, ModelEntry, read_manifest
from benchmark_eval.inputs.prediction_files import (
    find_prediction_files,
    model_folders,
    pattern_problems,
)
from benchmark_eval.pipeline.fingerprints import (
    DigestCache,
    fingerprint_text,
    text_digest,
    write_fingerprint,
)
from benchmark_eval.pipeline.outdated import record_name
from benchmark_eval.protocol import ANNOTATIONS, TAXONOMY

_NAMED = 3
"""Number of models that a message names."""
NOTHING_SET = (
    "nothing to score: {keys} not set. Set them in config/config.yaml (see config/README.md) or in "
    "the file given with --configfile, or try the demo: make demo"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of the results and fingerprints of a sweep, relative to the working directory."""

    results: Path

    @property
    def state(self) -> Path:
        """The folder of the fingerprints, the records and the digest cache."""
        return self.results / ".state"

    def fingerprint(self, part: str) -> Path:
        """Fingerprint of ``benchmark``, ``sweep`` or ``report``."""
        return self.state / f"{part}.json"

    # str instead of Path for speed: called for every model each time the workflow is loaded
    def model_fingerprint(self, model: str) -> str:
        """Fingerprint of one model."""
        return f"{self.results}/.state/models/{model}.json"

    def summary(self, model: str) -> str:
        """Summary of one model."""
        return f"{self.results}/models/{model}/{model}_summary.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep that can run. ``models`` are those with all prediction files, in table order.

    ``missing`` are the models of the manifest without them (only with ``allow_missing``); ``files``
    are the prediction files that the main process found; ``digests`` are the SHA-256 of the
    fingerprints of sweep and report on disk. If the config names no benchmark and no manifest,
    there are no models, and requesting a file is an error.
    """

    config: Config
    layout: Layout
    entries: Mapping[str, ModelEntry]
    models: tuple[str, ...]
    missing: tuple[str, ...]
    files: Mapping[str, list[str]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    def record(self, part: str) -> str:
        """Name of the record of ``sweep`` (the tables), ``plots`` or ``report``."""
        return record_name(part, self.digests.get("sweep" if part == "sweep" else "report"))

    def require_set(self) -> None:
        """Raise UsageError if the config names no data."""
        unset = self.config.unset()
        if unset:
            raise UsageError(NOTHING_SET.format(keys=" and ".join(unset)))

    def entry(self, model: str) -> ModelEntry:
        """A model's row of the manifest; UsageError if the manifest does not list it."""
        self.require_set()
        if model not in self.entries:
            near = difflib.get_close_matches(model, self.entries, n=1)
            raise UsageError(
                f"{self.config.manifest} has no model {model!r}"
                + (f"; did you mean {near[0]!r}?" if near else "")
            )
        return self.entries[model]

    def prediction_files(self, model: str) -> list[str]:
        """A model's prediction files, one per split; InputError if one is missing."""
        if model in self.files:
            return self.files[model]
        files, problems = find_prediction_files(self.config, self.entry(model))
        if problems:
            raise _with_hints(problems, self.config, self.entries.values())
        return files

    def benchmark_files(self) -> list[str]:
        """Every file of the benchmark that the index is computed from."""
        self.require_set()
        assert self.config.benchmark_dir is not None
        return _benchmark_files(self.config.benchmark_dir)

    def manifest_files(self) -> list[str]:
        """The manifest and the training annotations that it names."""
        self.require_set()
        trained = [entry.train_annotations for entry in self.entries.values()]
        return [str(self.config.manifest), *(str(path) for path in trained if path is not None)]

    def of_regime(self, regime: str) -> list[str]:
        """The models of one regime that have predictions."""
        return [name for name in self.models if self.entries[name].regime == regime]


def load_plan(
    config: Config,
    results: str | Path,
    *,
    main: bool,
    log: Callable[[str], None] | None = None,
) -> Plan:
    """Find the models of a sweep and their files; in the main process also write all fingerprints.

    ``log`` is called with the progress. Raises InputError with every problem of the manifest, with
    every missing, empty or duplicate prediction file of every model, or with every unreadable file;
    UsageError if the fingerprints cannot be written.
    """
    layout = Layout(Path(results))
    if config.unset():
        return Plan(config, layout, {}, (), ())
    assert config.manifest is not None
    manifest = read_manifest(config.manifest)
    patterns = pattern_problems(config, manifest)
    if patterns:
        raise InputError(patterns)
    ordered = manifest.in_table_order()
    entries = {entry.model_name: entry for entry in ordered}
    if not main:
        # the fingerprint lists what the main process found; jobs do not search again
        missing = _recorded_missing(layout.fingerprint("sweep")) if config.allow_missing else ()
        models = tuple(name for name in entries if name not in set(missing))
        plan = Plan(config, layout, entries, models, tuple(missing))
    else:
        files = _find_predictions(config, manifest, ordered)
        plan = Plan(
            config,
            layout,
            entries,
            models=tuple(name for name in entries if name in files),
            missing=tuple(name for name in entries if name not in files),
            files=files,
        )
        try:
            _write_fingerprints(plan, files, log)
        except OSError as error:
            raise UsageError(f"cannot write the fingerprints: {error}") from error
    return replace(plan, digests=_digests_on_disk(layout))


def _find_predictions(
    config: Config, manifest: Manifest, ordered: Sequence[ModelEntry]
) -> dict[str, list[str]]:
    """The files of each model with a complete set; InputError for problems not allowed."""
    found: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for entry in ordered:
        files, of_model = find_prediction_files(config, entry)
        if not of_model:
            found[entry.model_name] = files
        allowed = {"missing-predictions", "empty-predictions"} if config.allow_missing else set()
        problems += [problem for problem in of_model if problem.kind not in allowed]
    if config.allow_missing and not problems and not found:
        problems.append(
            Problem(
                "no-predictions",
                str(manifest.path),
                f"none of its {len(ordered)} models has all prediction files",
                "predictions of at least one model",
                cause=f"check predictions_dir, which is {config.predictions_dir}",
            )
        )
    if problems:
        raise _with_hints(problems, config, ordered)
    return found


def _with_hints(
    problems: Sequence[Problem], config: Config, entries: Iterable[ModelEntry]
) -> InputError:
    """An error with these problems; for missing files, with similar paths that exist."""
    from benchmark_eval.inputs.path_hints import (
        with_hints,  # imports numpy, which is not needed without problems
    )

    return InputError(with_hints(problems, model_folders(config, entries)))


def _benchmark_files(folder: Path) -> list[str]:
    """Annotation files of every split and the taxonomy; InputError if they do not exist."""
    annotations = folder / ANNOTATIONS
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(annotations) if name.endswith(".json"))  # noqa: PTH208
    problems = []
    if not names:
        from benchmark_eval.inputs.path_hints import benchmark_hint

        problems.append(
            Problem(
                "no-annotations",
                str(annotations),
                "no annotation file (*.json)",
                "the benchmark's COCO files",
                cause=benchmark_hint(folder),
            )
        )
    taxonomy = folder / TAXONOMY
    if not taxonomy.is_file():
        problems.append(
            Problem("no-taxonomy", str(taxonomy), "no such file", "the benchmark's taxonomy")
        )
    if problems:
        raise InputError(problems)
    return [*(str(annotations / name) for name in names), str(taxonomy)]


def _write_fingerprints(
    plan: Plan, files: Mapping[str, Sequence[str]], log: Callable[[str], None] | None
) -> None:
    """Hash the files that jobs will read and write the fingerprints that changed."""
    config, layout = plan.config, plan.layout
    benchmark_files = plan.benchmark_files()
    manifest_files = plan.manifest_files()
    own = [] if config.custom_metrics is None else [str(config.custom_metrics)]
    cache = DigestCache(layout.state / "digests.json")
    try:
        digests = cache.digests(
            [
                *benchmark_files,
                *manifest_files[1:],
                *own,
                *(n for names in files.values() for n in names),
            ],
            log,
        )
    finally:
        cache.save()
    benchmark = fingerprint_text(
        {
            "code": code_digest("index"),
            "files": {Path(name).name: digests[name] for name in benchmark_files},
        }
    )
    write_fingerprint(
        layout.fingerprint("benchmark"), benchmark, layout.results / "benchmark/index.npz"
    )
    common = {
        "benchmark": text_digest(benchmark),
        "code": code_digest("scoring"),
        "iou": config.iou,
        "engine": config.engine,
        "on_invalid": config.on_invalid,
        "operating_confidence": config.operating_confidence,
        "detections": config.detections,
    }
    of_models: dict[str, str] = {}
    for model in plan.models:
        found = [digests[name] for name in files[model]]
        predictions = dict(zip(config.splits, found, strict=True))
        text = fingerprint_text({**common, "predictions": predictions})
        of_models[model] = text_digest(text)
        write_fingerprint(layout.model_fingerprint(model), text, layout.summary(model))
    rows = {
        entry.model_name: [
            entry.architecture,
            entry.regime,
            entry.k_or_p,
            entry.seed,
            digests[str(entry.train_annotations)] if entry.train_annotations else None,
            of_models.get(entry.model_name),
        ]
        for entry in plan.entries.values()
    }
    sweep = fingerprint_text(
        {
            "benchmark": text_digest(benchmark),
            "code": code_digest("sweep"),
            "models": rows,
            "missing": sorted(plan.missing),
            "custom_metrics": [digests[name] for name in own],
        }
    )
    write_fingerprint(
        layout.fingerprint("sweep"), sweep, layout.results / "aggregated/aggregated.json"
    )
    report = fingerprint_text(
        {
            "code": code_digest("report"),
            "plot_formats": list(config.plot_formats),
            "sweep": text_digest(sweep),
        }
    )
    write_fingerprint(layout.fingerprint("report"), report)


def _digests_on_disk(layout: Layout) -> dict[str, str]:
    """SHA-256 of the existing fingerprints of sweep and report, by part."""
    found: dict[str, str] = {}
    for part in ("sweep", "report"):
        with contextlib.suppress(OSError):
            data = layout.fingerprint(part).read_bytes()
            found[part] = hashlib.sha256(data).hexdigest()
    return found


def _recorded_missing(fingerprint: Path) -> tuple[str, ...]:
    """The models for which the main process found no predictions."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return tuple(json.loads(fingerprint.read_bytes())["missing"])
    return ()


def not_evaluated(models: Sequence[str], logs: str | Path) -> str:
    """Message at the end of a failed run: the planned evaluations that were not done."""
    return (
        f"{counted(len(models), 'model')} not evaluated: {some_of(sorted(models), _NAMED)}. "
        f"See the errors above and {logs}/<model>.log. "
        "The next run evaluates only these models."
    )
