"""Whether results still belong together, and to the files that they were made from.

Everything that can be made again from what lies there is made again and compared: a model's
tables and report from its summary, the tables of the sweep from the summaries, their CSV files and
the report from ``aggregated.json``. Digests that results carry are compared with the files they
name. Nothing is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import open_input
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_index import open_benchmark
from benchmark_eval.inputs.config import Config, read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.prediction_files import find_prediction_files
from benchmark_eval.results.schema import Evaluation, decode_summary
from benchmark_eval.results.writers import model_files, per_species_csv, summary_csv, summary_json
from benchmark_eval.sweep.summaries import find_summaries
from benchmark_eval.sweep.tables import (
    AGGREGATED,
    CSV_FILES,
    Aggregated,
    encode,
    load_tables,
    to_csv,
)

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Verified:
    """What does not agree, what could not be compared, and how much was looked at."""

    problems: list[Problem] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    n_models: int = 0
    n_files: int = 0

    def add(self, kind: str, file: Path, found: str, wanted: str, cause: str = "") -> None:
        """One thing that does not agree."""
        self.problems.append(Problem(kind, str(file), found, wanted, cause=cause))

    def compare(self, path: Path, wanted: bytes, source: str) -> None:
        """Compare a file with the bytes that it must hold; ``source`` says what gives them."""
        try:
            data = path.read_bytes()
        except OSError as fault:
            self.add("unreadable", path, fault.strerror or str(fault), "a readable file")
            return
        self.n_files += 1
        if data != wanted:
            pairs = enumerate(zip_longest(data.splitlines(), wanted.splitlines()), 1)
            line = next((at for at, (there, should) in pairs if there != should), 1)
            self.add(
                "differs",
                path,
                f"another line {line}",
                f"what {source}",
                "edited, damaged, or left from another run or version",
            )


def verify_results(
    results: str | Path, config: str | Path | None = None, *, progress: Progress | None = None
) -> Verified:
    """Compare results with each other and with the files they were computed from.

    Parameters
    ----------
    results : str or Path
        The results folder of the workflow (with ``models/`` and ``aggregated/``), or a folder
        with ``<model>_summary.json`` files.
    config : str or Path, optional
        The YAML configuration of the sweep. Without it, or if it names no data, prediction
        files and manifest are not compared.
    progress : callable, optional
        Called with (what, done, total) after each model.

    Returns
    -------
    Verified
        ``problems`` lists every file that differs, ``not_compared`` what could not be compared
        and why; ``n_models`` and ``n_files`` count what was compared.

    Raises
    ------
    UsageError
        ``results`` is not a folder with results.
    InputError
        The config is not valid.

    Notes
    -----
    Whatever can be computed again from the files in the folder is computed again and compared
    byte by byte: the tables and the report of a model from its summary, the tables of the sweep
    from the summaries. Other inputs are compared by their SHA-256. Nothing is written. The page
    "Trust" of the documentation lists what is found.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmark_eval import evaluate_to_files, make_synthetic, verify_results
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> _ = evaluate_to_files(
    ...     benchmark=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...     output_dir=folder.name,
    ...     model_name="alder_gu_kall_s0",
    ... )
    >>> verify_results(folder.name).problems
    []
    >>> table = Path(folder.name, "alder_gu_kall_s0_summary.csv")
    >>> _ = table.write_text(table.read_text().replace("AP_50", "AP50"))
    >>> [Path(problem.file).name for problem in verify_results(folder.name).problems]
    ['alder_gu_kall_s0_summary.csv']
    >>> folder.cleanup()
    """
    known = None if config is None else read_config(config)
    return _verify(results, None if known is None or known.unset() else known, progress)


def _verify(results: str | Path, config: Config | None, progress: Progress | None) -> Verified:
    root = Path(results)
    eval_dir = root / "models" if (root / "models").is_dir() else root
    if not eval_dir.is_dir():
        raise UsageError(f"{root} is no folder of results")
    verified = Verified()
    duplicates = Problems()
    summaries = find_summaries(eval_dir, duplicates)
    verified.problems += duplicates.all()
    tables = next((p for p in (root / "aggregated", root) if (p / AGGREGATED).is_file()), None)
    if not summaries and tables is None:
        raise UsageError(f"{root} holds no <model>_summary.json and no {AGGREGATED}")
    benchmark = _benchmark(root, config, verified)
    digests: dict[str, str] = {}
    for done, (model, path) in enumerate(sorted(summaries.items()), 1):
        digests[model] = _model(model, path, benchmark, verified)
        if progress is not None:
            progress("models", done, len(summaries))
    if config is None or config.manifest is None:
        verified.not_compared.append("predictions and manifest: no config names them")
    else:
        _predictions(config, summaries, verified, progress)
    if tables is not None:
        _tables(tables, eval_dir, digests, benchmark, config, verified)
    return verified


def _benchmark(root: Path, config: Config | None, verified: Verified) -> Benchmark | None:
    """The benchmark: of the config, else the index that the workflow left."""
    index = root / "benchmark" / "index.npz"
    sources = [config.benchmark_dir if config is not None else None]
    sources.append(index if index.is_file() else None)
    loaded: list[Benchmark] = []
    for source in (source for source in sources if source is not None):
        try:
            loaded.append(open_benchmark(source))
        except InputError as fault:
            verified.problems += fault.problems
    if len(loaded) == 2 and loaded[0].digest != loaded[1].digest:
        verified.add(
            "digest",
            index,
            f"the benchmark {loaded[1].digest[:12]}...",
            f"{loaded[0].digest[:12]}..., that of {sources[0]}",
            "the benchmark changed since",
        )
    if not loaded:
        verified.not_compared.append("per_species.csv and tables of the sweep: no benchmark")
    return loaded[0] if loaded else None


def _model(model: str, path: Path, benchmark: Benchmark | None, verified: Verified) -> str:
    """One model's files against its summary; returns the summary's digest."""
    verified.n_models += 1
    data = b""
    try:
        data = path.read_bytes()
        evaluation = decode_summary(data, str(path))
    except OSError as fault:
        verified.add("unreadable", path, fault.strerror or str(fault), "a readable summary")
        return ""
    except InputError as fault:
        verified.problems += fault.problems
        return hashlib.sha256(data).hexdigest()
    if evaluation.model != model:
        verified.add("other-model", path, repr(evaluation.model), repr(model), "a renamed summary")
        return hashlib.sha256(data).hexdigest()
    _check_benchmark_digests(path, evaluation, benchmark, verified)
    if evaluation.provenance.scoring_code != code_digest("scoring"):
        verified.add(
            "other-code",
            path,
            f"made by the scoring code {evaluation.provenance.scoring_code[:12]}...",
            f"the present one, {code_digest('scoring')[:12]}...",
            "evaluate the model again",
        )
        return hashlib.sha256(data).hexdigest()
    from benchmark_eval.results.model_report import render_text

    files = model_files(path.parent, model)
    verified.compare(path, summary_json(evaluation), "its own numbers give")
    verified.compare(files["summary.csv"], summary_csv(evaluation).encode(), f"{path.name} gives")
    verified.compare(files["report.txt"], render_text(evaluation).encode(), f"{path.name} gives")
    if benchmark is not None:
        wanted = per_species_csv(evaluation, benchmark).encode()
        verified.compare(files["per_species.csv"], wanted, f"{path.name} and the benchmark give")
    _count_true_positives(files["detections.csv"], evaluation, verified)
    return hashlib.sha256(data).hexdigest()


def _check_benchmark_digests(
    path: Path, evaluation: Evaluation, benchmark: Benchmark | None, verified: Verified
) -> None:
    for name, digest in sorted((benchmark.digests if benchmark is not None else {}).items()):
        recorded = evaluation.provenance.inputs.get(f"benchmark/{name}")
        if recorded is not None and recorded != digest:
            verified.add(
                "digest",
                path,
                f"scored on a {name} with SHA-256 {recorded[:12]}...",
                f"{digest[:12]}..., that of the present one",
                "the benchmark changed since: evaluate the model again",
            )


def _count_true_positives(path: Path, evaluation: Evaluation, verified: Verified) -> None:
    """The table of hits cannot be made again without matching; its number of rows is known."""
    hits = sum(split.decomposition.n_matched_tp for split in evaluation.per_split.values())
    try:
        rows = path.read_bytes().count(b"\n") - 1
    except FileNotFoundError:
        return  # not asked for
    except OSError as fault:
        verified.add("unreadable", path, fault.strerror or str(fault), "a readable table")
        return
    verified.n_files += 1
    if rows != hits:
        verified.add("differs", path, f"{rows:,} rows", f"{hits:,}, a row a hit of the summary")


def _predictions(
    config: Config, summaries: dict[str, Path], verified: Verified, progress: Progress | None
) -> None:
    """Prediction files against the digests in the summaries."""
    assert config.manifest is not None
    try:
        manifest = read_manifest(config.manifest)
    except InputError as fault:
        verified.problems += fault.problems
        return
    entries = manifest.in_table_order()
    for done, entry in enumerate(entries, 1):
        if progress is not None:
            progress("prediction files", done, len(entries))
        path = summaries.get(entry.model_name)
        if path is None:
            if not config.allow_missing:
                verified.add("missing-summary", Path(entry.model_name), "no summary", "one a model")
            continue
        files, faults = find_prediction_files(config, entry)
        verified.problems += faults
        try:
            recorded = decode_summary(path.read_bytes(), str(path)).provenance.inputs
        except (OSError, InputError):
            continue  # told with the model
        for name in map(Path, files):
            split = name.name.partition("_predictions.json")[0]
            verified.n_files += 1
            try:
                with open_input(name) as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as fault:
                verified.add("unreadable", name, fault.strerror or str(fault), "a readable file")
                continue
            if recorded.get(f"predictions/{split}", digest) != digest:
                verified.add(
                    "digest",
                    name,
                    f"SHA-256 {digest[:12]}...",
                    f"{recorded[f'predictions/{split}'][:12]}..., which {path.name} was made from",
                    "predictions that changed since: evaluate the model again",
                )


def _tables(
    folder: Path,
    eval_dir: Path,
    digests: dict[str, str],
    benchmark: Benchmark | None,
    config: Config | None,
    verified: Verified,
) -> None:
    """The sweep's tables against the summaries, their CSV files and report against them."""
    path = folder / AGGREGATED
    try:
        table = load_tables(path)
    except InputError as fault:
        verified.problems += fault.problems
        return
    for model, recorded in table.inputs.summaries.items():
        if digests.get(model) != recorded:
            found = "no summary" if model not in digests else f"SHA-256 {digests[model][:12]}..."
            verified.add(
                "digest",
                path,
                f"made from another summary of {model!r} than the one that is there ({found})",
                f"{recorded[:12]}...",
                "aggregate again",
            )
    for name, layout in CSV_FILES.items():
        verified.compare(folder / name, to_csv(*layout(table)).encode(), f"{AGGREGATED} gives")
    _report(folder, table, verified)
    if benchmark is not None and config is not None and config.manifest is not None:
        _again(path, table, eval_dir, benchmark, config, verified)
    else:
        verified.compare(path, encode(table), "its own numbers give")


def _report(folder: Path, table: Aggregated, verified: Verified) -> None:
    from benchmark_eval.report.document import REPORT, render

    path = folder / REPORT
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        verified.not_compared.append(f"{path}: there is none")
        return
    texts = {render(table, plot_format=kind).encode() for kind in ("svg", "png")}
    texts.add(render(table, plots=None).encode())
    verified.compare(path, text if text in texts else min(texts), f"{AGGREGATED} gives")


def _again(
    path: Path,
    table: Aggregated,
    eval_dir: Path,
    benchmark: Benchmark,
    config: Config,
    verified: Verified,
) -> None:
    """Aggregate again and compare every number."""
    from benchmark_eval.sweep.aggregation import build
    from benchmark_eval.sweep.custom_metrics import load_custom_metrics

    assert config.manifest is not None
    custom = None if config.custom_metrics is None else load_custom_metrics(config.custom_metrics)
    try:
        again = build(
            eval_dir=eval_dir,
            manifest=read_manifest(config.manifest),
            benchmark=benchmark,
            allow_missing=True,
            exclude=[cell.model for cell in table.missing if cell.model],
            custom=custom,
        )
    except InputError as fault:
        told = set(verified.problems)
        verified.problems += [problem for problem in fault.problems if problem not in told]
        return
    verified.compare(path, encode(again), "the summaries, the manifest and the benchmark give")


def differences(verified: Verified) -> Iterator[str]:
    """What ``verify`` says, line by line."""
    from benchmark_eval.core.problems import render_problems

    if verified.problems:
        yield render_problems(verified.problems)
    yield from (f"not compared: {text}" for text in verified.not_compared)
    state = "do not agree" if verified.problems else "agree"
    yield f"{verified.n_models:,} models, {verified.n_files:,} files compared: they {state}"
