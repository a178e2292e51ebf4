"""The plan of a sweep for the workflow: its models, their files and their fingerprints.

The Snakefile contains only rules; everything that must be known before Snakemake can plan is here.
The main process (``main=True``) checks that all prediction files exist, hashes them and compares
the fingerprints with the records of existing results. Nothing is written until ``Plan.write`` is
called, which only a run does that starts jobs. The processes that Snakemake starts for single jobs
only look up names.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.listing import listed
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.records import FINGERPRINT_OF, STATE, SUFFIX, file_digest, record_name
from benchmark_eval.core.safe_read import absent, read_input
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
from benchmark_eval.pipeline.outdated import results_of
from benchmark_eval.protocol import ANNOTATIONS, TAXONOMY
from benchmark_eval.report.page.file import PAGE, foreign_page

_NAMED = 3
"""Number of models that a message names."""
_GZIP_RATIO = 5
"""Size of prediction files relative to that of their gzip files, about 4.2."""
OUTPUT_FOLDERS = ("models", "aggregated", "plots", "benchmark", "logs", "benchmarks", STATE)
"""Folders of the results that the workflow writes to."""
_PARTS = ("benchmark", "sweep", "report")
"""The fingerprints without a model."""
NOTHING_SET = (
    "nothing to score: {keys} not set. Set them in config/config.yaml (see config/README.md) or in "
    "the file given with --configfile. To start a project: benchmark-eval init FOLDER; to try the "
    "demo in a clone: make demo"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of the results and fingerprints of a sweep, relative to the working directory."""

    results: Path

    @property
    def state(self) -> Path:
        """The folder of the fingerprints, the records and the digest cache."""
        return self.results / STATE

    def fingerprint(self, part: str) -> Path:
        """Fingerprint of ``benchmark``, ``sweep`` or ``report``."""
        return self.state / f"{part}.json"

    # str instead of Path for speed: called for every model each time the workflow is loaded
    def model_fingerprint(self, model: str) -> str:
        """Fingerprint of one model."""
        return f"{self.results}/{STATE}/models/{model}.json"

    def model_record(self, model: str) -> str:
        """Record of one model: the fingerprint that its results were computed from."""
        return f"{self.results}/{STATE}/models/{model}{SUFFIX}"

    def summary(self, model: str) -> str:
        """Summary of one model."""
        return f"{self.results}/models/{model}/{model}_summary.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep that can run. ``models`` are those with all prediction files, in table order.

    ``missing`` are the models of the manifest without them (only with ``allow_missing``);
    ``digests`` are the SHA-256 of the fingerprints of benchmark, sweep and report. If the config
    names no benchmark and no manifest, there are no models, and requesting a file is an error.

    Only in the main process: ``files`` are the prediction files, ``fingerprints`` the texts of all
    fingerprints by path, ``outdated`` the models whose record differs from their fingerprint or
    does not exist (with the keys that differ; none without a record), and ``cache`` the digests of
    the files.
    """

    config: Config
    layout: Layout
    entries: Mapping[str, ModelEntry]
    models: tuple[str, ...]
    missing: tuple[str, ...]
    files: Mapping[str, list[str]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    outdated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cache: DigestCache | None = None

    def record(self, part: str) -> str:
        """Name of the record of a set of results (a key of ``FINGERPRINT_OF``)."""
        return record_name(part, self.digests.get(FINGERPRINT_OF[part]))

    def is_current(self, part: str) -> bool:
        """Whether all files of ``part`` exist and match its fingerprint (see ``record``)."""
        formats = self.config.plot_formats
        return all(
            path.exists()
            for path in (
                self.layout.state / self.record(part),
                *results_of(part, self.layout.results, formats),
            )
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The sets of results of a whole sweep, besides the files of the models."""
        return ("index", "sweep", "plots", "report", *(["page"] if self.config.page else []))

    def require_own_results(self) -> None:
        """Raise UsageError if the results folder holds results of another sweep, or other files.

        Another sweep has models, but none of the manifest: its tables would be replaced, and its
        models would remain among the results. Other files are at the places of tables, plots or
        report although the workflow has not run here.
        """
        page = self.layout.results / PAGE
        if self.config.page and foreign_page(page):
            raise UsageError(
                f"{page}: found a file that this workflow did not write; expected no file, because "
                "the page of the sweep goes there. Move it, or set page: false in the config"
            )
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = os.listdir(self.layout.results / "models")  # noqa: PTH208  (thousands)
        if any(name in self.entries for name in names):
            return
        found = sorted(name for name in names if Path(self.layout.summary(name)).exists())
        if found:
            raise UsageError(
                f"{self.layout.results} holds another sweep: its "
                f"{counted(len(found), 'model')} ({some_of(found, _NAMED)}) are not in "
                f"{self.config.manifest}; nothing was run. Use another folder for this sweep "
                f"(snakemake --directory FOLDER), or delete {self.layout.results} if its results "
                "are no longer needed"
            )
        if any(self.layout.state.glob("*.json")) or any(self.layout.state.glob(f"*{SUFFIX}")):
            return
        places = (results_of(part, self.layout.results) for part in FINGERPRINT_OF)
        foreign = [str(path) for paths in places for path in paths if os.path.lexists(path)]
        if foreign:
            raise UsageError(
                f"{self.layout.results}: found {some_of(foreign, _NAMED)}, although this workflow "
                "has not run here, and it would replace them; nothing was run. Move these files, "
                "or use another folder (snakemake --directory FOLDER)"
            )

    def why_outdated(self) -> Iterator[str]:
        """What changed since models were evaluated, one line per reason."""
        models: dict[tuple[str, ...], list[str]] = {}
        for model, keys in self.outdated.items():
            if keys:
                models.setdefault(keys, []).append(model)
        for keys, names in models.items():
            what = " and ".join("scoring code" if key == "code" else key for key in keys)
            yield (
                f"{counted(len(names), 'model')} to be evaluated again, because {what} changed: "
                f"{some_of(names, _NAMED)}"
            )

    def require_current(self) -> None:
        """Raise UsageError if tables, plots, report or page are outdated or do not exist."""
        for part, what in (
            ("sweep", "tables"),
            ("plots", "plots"),
            ("report", "report"),
            ("page", "page"),
        ):
            if part in self.parts and not self.is_current(part):
                raise UsageError(
                    f"{self.layout.results}: the {what} do not exist or are from an earlier run: "
                    "inputs, options or code changed since. Run snakemake with the same options, "
                    "then repeat this command"
                )

    def write(self) -> None:
        """Write the fingerprints that changed, which jobs read, and the digests of the files.

        Raises UsageError if they cannot be written.
        """
        try:
            if self.cache is not None:
                self.cache.save()
            for path, text in self.fingerprints.items():
                write_fingerprint(path, text)
        except OSError as error:
            raise UsageError(f"cannot write the fingerprints: {error}") from error
        self._set_back_future_times()

    def _set_back_future_times(self) -> None:
        """Set the modification times of results that are in the future to the present.

        They were written by a computer whose clock is ahead. After a job, Snakemake deletes its
        outputs if they are older than one of its inputs.
        """
        now = time.time()
        results = self.layout.results
        paths: list[str | Path] = [
            *(self.layout.summary(model) for model in self.models),
            *(self.layout.state / self.record(part) for part in FINGERPRINT_OF),
            *(path for part in FINGERPRINT_OF for path in results_of(part, results)),
        ]
        for path in paths:
            with contextlib.suppress(OSError):
                if os.stat(path).st_mtime > now:  # noqa: PTH116  (thousands of files each load)
                    os.utime(path)

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

    def prediction_mb(self, model: str) -> int:
        """Size of a model's prediction files in MB, estimated if they are compressed."""
        size = 0.0
        for path in self.prediction_files(model):
            with contextlib.suppress(OSError):
                packed = _GZIP_RATIO if path.endswith(".gz") else 1
                size += packed * os.stat(path).st_size  # noqa: PTH116  (thousands of files)
        return math.ceil(size / 1e6)

    def benchmark_files(self) -> list[str]:
        """Every file of the benchmark that the index is computed from."""
        self.require_set()
        assert self.config.benchmark_dir is not None
        return _benchmark_files(self.config.benchmark_dir)

    def training_files(self) -> list[str]:
        """The training annotations that the manifest names."""
        trained = (entry.train_annotations for entry in self.entries.values())
        return [str(path) for path in trained if path is not None]

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
    """Find the models of a sweep and their files; in the main process also compute fingerprints.

    ``log`` is called with the progress. Raises InputError with every problem of the manifest, with
    every missing, empty or duplicate prediction file of every model, or with every unreadable file.
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
    if main:
        _require_no_input_among_results(config, ordered, layout)
    entries = {entry.model_name: entry for entry in ordered}
    if not main:
        # the fingerprint lists what the main process found; jobs do not search again
        missing = _recorded_missing(layout.fingerprint("sweep")) if config.allow_missing else ()
        models = tuple(name for name in entries if name not in set(missing))
        digests = {part: file_digest(layout.fingerprint(part)) for part in _PARTS}
        known = {part: digest for part, digest in digests.items() if digest is not None}
        return Plan(config, layout, entries, models, tuple(missing), digests=known)
    files = _find_predictions(config, manifest, ordered)
    plan = Plan(
        config,
        layout,
        entries,
        models=tuple(name for name in entries if name in files),
        missing=tuple(name for name in entries if name not in files),
        files=files,
        cache=DigestCache(layout.state / "digests.json"),
    )
    texts = _fingerprints(plan, log)
    return replace(
        plan,
        fingerprints=texts,
        digests={part: text_digest(texts[str(layout.fingerprint(part))]) for part in _PARTS},
        outdated=dict(_outdated(plan, texts)),
    )


def _require_no_input_among_results(
    config: Config, entries: Sequence[ModelEntry], layout: Layout
) -> None:
    """Raise UsageError if the workflow would replace or remove one of its input files."""
    files = {config.manifest, config.custom_metrics, *(e.train_annotations for e in entries)}
    places = [os.path.realpath(layout.results / name) + os.sep for name in OUTPUT_FOLDERS]
    inside = [
        str(path)
        for path in files
        if path is not None and os.path.realpath(path).startswith(tuple(places))
    ]
    if inside:
        raise UsageError(
            f"{some_of(sorted(inside), _NAMED)}: found an input in a folder that the workflow "
            f"writes to; expected no input in {', '.join(OUTPUT_FOLDERS)} of {layout.results}"
        )


def _outdated(plan: Plan, texts: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The models whose record is not their fingerprint, with the keys that differ."""
    for model in plan.models:
        expected, made = texts[plan.layout.model_fingerprint(model)], ""
        with contextlib.suppress(OSError, ValueError):
            made = read_input(plan.layout.model_record(model)).decode()
        made = made.partition("\n")[0] + "\n"  # without the digest of the summary
        if made == expected:
            continue
        differ: tuple[str, ...] = ()
        with contextlib.suppress(ValueError, AttributeError):
            old, new = json.loads(made), json.loads(expected)
            differ = tuple(key for key in new if old.get(key) != new[key])
        yield model, differ


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
        names = [path.name for path in listed(annotations) if path.suffix == ".json"]
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
            Problem("no-taxonomy", str(taxonomy), absent(taxonomy), "the benchmark's taxonomy")
        )
    if problems:
        raise InputError(problems)
    return [*(str(annotations / name) for name in names), str(taxonomy)]


def _fingerprints(plan: Plan, log: Callable[[str], None] | None) -> dict[str, str]:
    """Hash the files that jobs will read; returns the text of each fingerprint by path."""
    config, layout, files = plan.config, plan.layout, plan.files
    assert plan.cache is not None
    benchmark_files = plan.benchmark_files()
    own = [] if config.custom_metrics is None else [str(config.custom_metrics)]
    digests = plan.cache.digests(
        [
            *benchmark_files,
            *plan.training_files(),
            *own,
            *(n for names in files.values() for n in names),
        ],
        log,
    )
    texts: dict[str, str] = {}
    benchmark = fingerprint_text(
        {
            "code": code_digest("index"),
            "files": {Path(name).name: digests[name] for name in benchmark_files},
        }
    )
    texts[str(layout.fingerprint("benchmark"))] = benchmark
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
        texts[layout.model_fingerprint(model)] = text
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
            "prices": [config.price_per_image, config.price_per_specimen],
        }
    )
    texts[str(layout.fingerprint("sweep"))] = sweep
    report = fingerprint_text(
        {
            "code": code_digest("report"),
            "plot_formats": list(config.plot_formats),
            "sweep": text_digest(sweep),
        }
    )
    texts[str(layout.fingerprint("report"))] = report
    return texts


def _recorded_missing(fingerprint: Path) -> tuple[str, ...]:
    """The models for which the main process found no predictions."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return tuple(json.loads(read_input(fingerprint))["missing"])
    return ()


def not_evaluated(models: Sequence[str], logs: str | Path) -> str:
    """Message at the end of a failed run: the planned evaluations that were not done."""
    return (
        f"{counted(len(models), 'model')} not evaluated: {some_of(sorted(models), _NAMED)}. "
        f"See the errors above and {logs}/<model>.log. "
        "The next run evaluates only these models."
    )
