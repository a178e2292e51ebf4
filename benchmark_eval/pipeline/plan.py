"""What a sweep consists of, as the workflow needs it: models, their files, their stamps.

The Snakefile holds rules only; whatever has to be found out before Snakemake can plan stands
here. The process that plans (``main=True``) checks that every prediction file is there, digests
them and writes the stamps; the processes that Snakemake starts for single jobs only look names
up and write nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import some_of
from benchmark_eval.inputs.config import Config
from benchmark_eval.inputs.manifest import Manifest, ModelEntry, read_manifest
from benchmark_eval.inputs.prediction_files import (
    find_prediction_files,
    model_folders,
    pattern_problems,
)
from benchmark_eval.pipeline.fingerprints import DigestCache, stamp_text, text_digest, write_stamp
from benchmark_eval.pipeline.kept_index import mend_index

ANNOTATIONS = Path("detection", "annotations_coco")
TAXONOMY = "species_taxonomy.csv"
NOTHING_SET = (
    "nothing to score: {keys} not set. Set them in config/config.yaml (config/README.md says how; "
    "a file given by --configfile takes its place), or try the demo: make demo"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where results and stamps of a sweep lie; ``results`` is relative to the working directory."""

    results: Path

    @property
    def state(self) -> Path:
        """The folder of the stamps and of the digest cache."""
        return self.results / ".state"

    def stamp(self, part: str) -> Path:
        """Stamp of ``benchmark``, ``sweep`` or ``report``."""
        return self.state / f"{part}.json"

    # text rather than Path for what is made once a model, each time the workflow is loaded
    def model_stamp(self, model: str) -> str:
        """Stamp of one model."""
        return f"{self.results}/.state/models/{model}.json"

    def summary(self, model: str) -> str:
        """The summary that one model's evaluation leaves."""
        return f"{self.results}/models/{model}/{model}_summary.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep that can run. ``models`` are those with all prediction files, in table order.

    ``missing`` are models of the manifest without them (``allow_missing`` only); ``files`` are what
    the planning process found, ``stamps`` the SHA-256 of the stamps of sweep and report that it
    left (none in other processes, nor where another run works here). Without a benchmark and a
    manifest in the config there is no model, and whoever asks for a file is told.
    """

    config: Config
    layout: Layout
    entries: Mapping[str, ModelEntry]
    models: tuple[str, ...]
    missing: tuple[str, ...]
    files: Mapping[str, list[str]] = field(default_factory=dict)
    stamps: Mapping[str, str] = field(default_factory=dict)

    def require_set(self) -> None:
        """Raise UsageError where the config names no data."""
        unset = self.config.unset()
        if unset:
            raise UsageError(NOTHING_SET.format(keys=" and ".join(unset)))

    def require_unchanged(self) -> None:
        """Raise UsageError if another call of snakemake came between this plan and its first job.

        A dry run with other options is enough: jobs would hold what they read against its stamps.
        """
        if self.config.unset():
            return
        for part in ("sweep", "report"):
            found = _content(self.layout.stamp(part))
            if found is None or hashlib.sha256(found).hexdigest() != self.stamps.get(part):
                raise UsageError(
                    f"another call of snakemake works in {self.layout.results}, or has planned "
                    "there since this one began; nothing was run: wait for its end and run again "
                    f"({self.layout.state / 'running.json'} names the process that runs, if any)"
                )

    def entry(self, model: str) -> ModelEntry:
        """A model's row of the manifest; UsageError for a name that is not in it."""
        self.require_set()
        if model not in self.entries:
            near = difflib.get_close_matches(model, self.entries, n=1)
            raise UsageError(
                f"{self.config.manifest} has no model {model!r}"
                + (f"; did you mean {near[0]!r}?" if near else "")
            )
        return self.entries[model]

    def prediction_files(self, model: str) -> list[str]:
        """A model's prediction files, one a split; InputError where one is not there."""
        if model in self.files:
            return self.files[model]
        files, problems = find_prediction_files(self.config, self.entry(model))
        if problems:
            raise _with_hints(problems, self.config, self.entries.values())
        return files

    def benchmark_files(self) -> list[str]:
        """Every file of the benchmark that the index is made from."""
        self.require_set()
        assert self.config.benchmark_dir is not None
        return _benchmark_files(self.config.benchmark_dir)

    def manifest_files(self) -> list[str]:
        """The manifest and the training annotations that it names."""
        self.require_set()
        trained = [entry.train_annotations for entry in self.entries.values()]
        return [str(self.config.manifest), *(str(path) for path in trained if path is not None)]

    def of_regime(self, regime: str) -> list[str]:
        """The models of one regime that run."""
        return [name for name in self.models if self.entries[name].regime == regime]


def load_plan(
    config: Config,
    results: str | Path,
    *,
    main: bool,
    tell: Callable[[str], None] | None = None,
) -> Plan:
    """Find the models of a sweep and their files; in the main process also write all stamps.

    ``tell`` gets lines of progress. Raises InputError with every problem of the manifest, or
    every missing, empty or doubled prediction file of every model, or what cannot be read;
    UsageError where stamps cannot be written.
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
        # what the planning process has found stands in the stamp; a job does not look again
        missing = _recorded_missing(layout.stamp("sweep")) if config.allow_missing else ()
        models = tuple(name for name in entries if name not in set(missing))
        return Plan(config, layout, entries, models, tuple(missing))
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
        return replace(plan, stamps=_write_stamps(plan, files, tell))
    except OSError as fault:
        raise UsageError(f"cannot keep what results are made from: {fault}") from fault


def _find_predictions(
    config: Config, manifest: Manifest, ordered: Sequence[ModelEntry]
) -> dict[str, list[str]]:
    """The prediction files of each model that has them all; InputError as the config wants."""
    found: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for entry in ordered:
        files, faults = find_prediction_files(config, entry)
        if not faults:
            found[entry.model_name] = files
        allowed = {"missing-predictions", "empty-predictions"} if config.allow_missing else set()
        problems += [fault for fault in faults if fault.kind not in allowed]
    if config.allow_missing and not problems and not found:
        problems.append(
            Problem(
                "no-predictions",
                str(manifest.path),
                f"not one of its {len(ordered)} models with all prediction files",
                "predictions of at least one model",
                cause=f"is predictions_dir right? It is {config.predictions_dir}",
            )
        )
    if problems:
        raise _with_hints(problems, config, ordered)
    return found


def _with_hints(
    problems: Sequence[Problem], config: Config, entries: Iterable[ModelEntry]
) -> InputError:
    """The error of these problems; of absent files, what lies near them."""
    from benchmark_eval.inputs.path_hints import (
        with_hints,  # with numpy, which a sound sweep can spare
    )

    return InputError(with_hints(problems, model_folders(config, entries)))


def _benchmark_files(folder: Path) -> list[str]:
    """Annotation files of every split and the taxonomy; InputError where there is none."""
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


def _write_stamps(
    plan: Plan, files: Mapping[str, Sequence[str]], tell: Callable[[str], None] | None
) -> dict[str, str]:
    """Digest what jobs will read and write the stamps that changed; SHA-256 of the last two.

    Between them, the index of the benchmark is made again where it is not as it should be.
    """
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
            tell,
        )
        benchmark = stamp_text(
            {
                "code": code_digest("index"),
                "files": {Path(name).name: digests[name] for name in benchmark_files},
            }
        )
        stamp, index = layout.stamp("benchmark"), layout.results / "benchmark/index.npz"
        write_stamp(stamp, benchmark, index)
        assert config.benchmark_dir is not None
        record = layout.state / "benchmark.made.json"
        line = mend_index(config.benchmark_dir, index, stamp, record, cache)
    finally:
        cache.save()
    if line is not None and tell is not None:
        tell(line)
    common = {
        "benchmark": text_digest(benchmark),
        "code": code_digest("scoring"),
        "iou": config.iou,
        "engine": config.engine,
        "on_invalid": config.on_invalid,
        "detections": config.detections,
    }
    stamps: dict[str, str] = {}
    for model in plan.models:
        found = [digests[name] for name in files[model]]
        text = stamp_text({**common, "predictions": dict(zip(config.splits, found, strict=True))})
        stamps[model] = text_digest(text)
        write_stamp(layout.model_stamp(model), text, layout.summary(model))
    rows = {
        entry.model_name: [
            entry.architecture,
            entry.regime,
            entry.k_or_p,
            entry.seed,
            digests[str(entry.train_annotations)] if entry.train_annotations else None,
            stamps.get(entry.model_name),
        ]
        for entry in plan.entries.values()
    }
    sweep = stamp_text(
        {
            "benchmark": text_digest(benchmark),
            "code": code_digest("sweep"),
            "models": rows,
            "missing": sorted(plan.missing),
            "custom_metrics": [digests[name] for name in own],
        }
    )
    write_stamp(layout.stamp("sweep"), sweep, layout.results / "aggregated/aggregated.json")
    report = stamp_text(
        {
            "code": code_digest("report"),
            "plot_formats": list(config.plot_formats),
            "sweep": text_digest(sweep),
        }
    )
    write_stamp(layout.stamp("report"), report)
    return {"sweep": text_digest(sweep), "report": text_digest(report)}


def _recorded_missing(stamp: Path) -> tuple[str, ...]:
    """The models that the planning process found without predictions."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return tuple(json.loads(stamp.read_bytes())["missing"])
    return ()


def park_outdated(made: Iterable[tuple[str | Path, str | Path]]) -> None:
    """Move aside each record that is not the present stamp; put it back where it is again.

    ``made`` has (record, stamp) for each set of results. The workflow does this before Snakemake
    plans: a record that is missing is planned to be made, and its results with it, in a dry run
    just as in a real one, wherever the targets need it. No result is touched here, because nobody
    knows yet whether anything will run at all. Raises UsageError where a record cannot be moved.
    """
    for record, stamp in made:
        now, made_from, aside = map(_content, (stamp, record, _parked(record)))
        try:
            if now is not None and made_from is not None and made_from != now:
                os.replace(record, _parked(record))  # noqa: PTH105
            elif now is not None and made_from is None and aside == now:
                os.replace(_parked(record), record)  # noqa: PTH105
        except OSError as fault:
            raise UsageError(f"cannot keep what results are made from: {fault}") from fault


def settle_outdated(
    made: Iterable[tuple[str | Path, str | Path, Sequence[str | Path]]],
    planned: Collection[str],
    *,
    trusted: bool = False,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Remove results whose record of what they were made from is not the present stamp.

    ``made`` has (record, stamp, results) for each set of results, ``planned`` are the files that
    the jobs about to start will make. Snakemake leaves old results in place when a job before them
    fails; nobody could tell them from new ones. ``tell`` gets a line on what was removed and why.
    With ``trusted`` (``--touch``: the user vouches for what is there) nothing is removed, and the
    record is brought up to date where it is planned.
    """
    for record, stamp, results in made:
        now, made_from, aside = map(_content, (stamp, record, _parked(record)))
        current = now is not None and made_from == now
        if trusted and not current:
            if str(record) not in planned or now is None or (made_from, aside) == (None, None):
                continue
            Path(record).write_bytes(now)
            current = True
        removed = []
        for result in (_parked(record), *([] if current else [record, *results])):
            with contextlib.suppress(FileNotFoundError):
                Path(result).unlink()
                removed.append(str(result))
        kept_notes = (str(record), _parked(record))
        gone = [name for name in removed if name not in kept_notes]
        if gone and tell is not None:
            again = "this run" if str(record) in planned else "a run of the whole sweep"
            why = "made from other inputs than the present ones"
            if made_from is None and aside is None:
                why = "nobody knows what they were made from"
            when = f"{again} makes them again, if all its jobs succeed"
            tell(f"removed, as {why}: {some_of(gone, 1)}; {when}")


def _parked(record: str | Path) -> str:
    """Where a record lies that is not of the present stamp."""
    return f"{record}.old"


def _content(path: str | Path) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None
