"""Verify that results are consistent with each other and with their inputs.

Everything that can be recomputed from the results folder is recomputed and compared: a model's
tables and report from its summary, the tables of the sweep from the summaries, their CSV files and
the report from ``aggregated.json``. Recorded digests are compared with the files they name. Nothing
is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.records import from_earlier_run
from benchmark_eval.core.safe_read import (
    absent,
    file_sha256,
    read_input,
    read_or_report,
    unreadable,
)
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_index import open_benchmark
from benchmark_eval.inputs.config import Config, read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.prediction_files import find_prediction_files
from benchmark_eval.report.page.file import PAGE, foreign_page
from benchmark_eval.results.detections_csv import ALL_COLUMNS
from benchmark_eval.results.evidence import SUFFIX as EVIDENCE
from benchmark_eval.results.evidence import content_problems
from benchmark_eval.results.schema import Evaluation, decode_summary, load_summary
from benchmark_eval.results.writers import model_files, per_species_csv, summary_csv, summary_json
from benchmark_eval.sweep.summaries import find_summaries
from benchmark_eval.sweep.tables import AGGREGATED, CSV_FILES, Aggregated, encode, load_tables

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Verified:
    """The differences, what could not be compared, and how much was compared."""

    collected: Problems = field(default_factory=Problems)
    not_compared: list[str] = field(default_factory=list)
    n_models: int = 0
    n_files: int = 0

    @property
    def problems(self) -> list[Problem]:
        """All problems, in the order they were found."""
        return self.collected.all()

    def compare(self, path: Path, expected: bytes, source: str, *, page: bool = False) -> None:
        """Compare a file with its ``expected`` bytes, which were computed from ``source``.

        Only a ``page`` is expected to be HTML; elsewhere, that is a login page saved by mistake.
        """
        data = read_or_report(path, self.collected, text=not page)
        if data is None:
            return
        self.n_files += 1
        if data != expected:
            pairs = enumerate(zip_longest(data.splitlines(), expected.splitlines()), 1)
            line = next((number for number, (left, right) in pairs if left != right), 1)
            self.collected.add(
                "differs",
                f"different content in line {line}",
                f"the content computed from {source}",
                file=str(path),
                cause="edited, damaged, or from another run or version",
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
    Everything that can be recomputed from the files in the folder is recomputed and compared
    byte by byte: the tables and the report of a model from its summary, the tables of the sweep
    from the summaries. Other inputs are compared by their SHA-256. Nothing is written. The page
    "Trust" of the documentation lists what is reported.

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
        raise UsageError(f"{root}: {absent(root, 'not a results folder')}")
    verified = Verified()
    summaries = find_summaries(eval_dir, verified.collected)
    tables = next((p for p in (root / "aggregated", root) if (p / AGGREGATED).is_file()), None)
    if not summaries and tables is None:
        raise UsageError(f"{root} contains neither <model>_summary.json nor {AGGREGATED}")
    benchmark = _benchmark(root, config, verified)
    digests: dict[str, str] = {}
    for done, (model, path) in enumerate(sorted(summaries.items()), 1):
        digests[model] = _model(model, path, benchmark, verified)
        if progress is not None:
            progress("models", done, len(summaries))
    if config is None or config.manifest is None:
        verified.not_compared.append("prediction files and manifest: no config names them")
    else:
        _predictions(config, summaries, verified, progress)
    _require_last_run(root, verified)
    if tables is not None:
        table = _tables(tables, eval_dir, digests, benchmark, config, verified)
        if table is not None:
            _page(root, tables, table, eval_dir, verified)
    return verified


def _require_last_run(root: Path, verified: Verified) -> None:
    """Report tables, plots and report that the last run of the workflow did not update."""
    made = {
        "sweep": f"aggregated/{AGGREGATED}",
        "plots": "plots",
        "report": "aggregated/report.md",
        "page": PAGE,
    }
    for part, name in made.items():
        problem = from_earlier_run(root, part, root / name) if (root / name).exists() else None
        if problem is not None:
            verified.collected.extend([problem])


def _benchmark(root: Path, config: Config | None, verified: Verified) -> Benchmark | None:
    """The benchmark named in the config, or else the index written by the workflow."""
    index = root / "benchmark" / "index.npz"
    sources = [config.benchmark_dir if config is not None else None]
    sources.append(index if index.is_file() else None)
    loaded: list[Benchmark] = []
    for source in (source for source in sources if source is not None):
        try:
            loaded.append(open_benchmark(source))
        except InputError as error:
            verified.collected.extend(error.problems)
    if len(loaded) == 2 and loaded[0].digest != loaded[1].digest:
        verified.collected.add(
            "digest",
            f"benchmark {loaded[1].digest[:12]}...",
            f"benchmark {loaded[0].digest[:12]}..., as in {sources[0]}",
            file=str(index),
            cause="the benchmark changed after the index was written",
        )
    if not loaded:
        verified.not_compared.append("per_species.csv and the tables of the sweep: no benchmark")
    return loaded[0] if loaded else None


def _model(model: str, path: Path, benchmark: Benchmark | None, verified: Verified) -> str:
    """Compare a model's files with its summary; returns the digest of the summary."""
    verified.n_models += 1
    data = read_or_report(path, verified.collected, "a readable summary")
    if data is None:
        return ""
    digest = hashlib.sha256(data).hexdigest()
    try:
        evaluation = decode_summary(data, str(path))
    except InputError as error:
        verified.collected.extend(error.problems)
        return digest
    if evaluation.model != model:
        verified.collected.add(
            "other-model",
            f"model {evaluation.model!r}",
            f"model {model!r}",
            file=str(path),
            cause="a renamed file",
        )
        return digest
    _check_benchmark_digests(path, evaluation, benchmark, verified)
    if evaluation.provenance.scoring_code != code_digest("scoring"):
        verified.collected.add(
            "other-code",
            f"scoring code {evaluation.provenance.scoring_code[:12]}...",
            f"the installed scoring code, {code_digest('scoring')[:12]}...",
            file=str(path),
            cause="scored by another version: evaluate the model again",
        )
        return digest
    from benchmark_eval.results.model_report import render_text

    files = model_files(path.parent, model)
    verified.compare(path, summary_json(evaluation), "its own values")
    verified.compare(files["summary.csv"], summary_csv(evaluation).encode(), path.name)
    verified.compare(files["report.txt"], render_text(evaluation).encode(), path.name)
    if benchmark is not None:
        expected = per_species_csv(evaluation, benchmark).encode()
        verified.compare(files["per_species.csv"], expected, f"{path.name} and the benchmark")
    _check_evidence(files[EVIDENCE], evaluation, verified)
    _count_detections(files["detections.csv"], evaluation, verified)
    return digest


def _check_benchmark_digests(
    path: Path, evaluation: Evaluation, benchmark: Benchmark | None, verified: Verified
) -> None:
    for name, digest in sorted((benchmark.digests if benchmark is not None else {}).items()):
        recorded = evaluation.provenance.inputs.get(f"benchmark/{name}")
        if recorded is not None and recorded != digest:
            verified.collected.add(
                "digest",
                f"values scored on a {name} with SHA-256 {recorded[:12]}...",
                f"SHA-256 {digest[:12]}..., as in the current file",
                file=str(path),
                cause="the benchmark changed after the evaluation: evaluate the model again",
            )


def _check_evidence(path: Path, evaluation: Evaluation, verified: Verified) -> None:
    """Compare the evidence with its digest in the summary."""
    data = read_or_report(path, verified.collected, "the evidence of the model", text=False)
    if data is None:
        return
    verified.n_files += 1
    digest = hashlib.sha256(data).hexdigest()
    if digest != evaluation.provenance.evidence:
        verified.collected.extend(content_problems(path, digest, evaluation))


def _count_detections(path: Path, evaluation: Evaluation, verified: Verified) -> None:
    """Compare the number of rows: the rows themselves cannot be recomputed without matching."""
    try:
        data = read_input(path)
    except FileNotFoundError:
        return  # the file is optional
    except OSError as error:
        verified.collected.extend([unreadable(path, error, "a readable table")])
        return
    verified.n_files += 1
    splits = evaluation.per_split.values()
    expected = sum(s.decomposition.n_matched_tp for s in splits)
    # a name may contain line breaks, which are in quotes: every other part is outside of them
    rows = sum(part.count(b"\n") for part in data.split(b'"')[::2]) - 1
    what = "true positive"
    if data.partition(b"\n")[0] == ",".join(ALL_COLUMNS).encode():
        expected = sum(s.calibration.n_predictions + s.errors.missed.n for s in splits)
        what = "true positive, false positive and missed specimen"
    if rows != expected:
        verified.collected.add(
            "differs",
            counted(rows, "row"),
            f"{expected:,}, one row per {what} of the summary",
            file=str(path),
        )


def _predictions(
    config: Config, summaries: dict[str, Path], verified: Verified, progress: Progress | None
) -> None:
    """Compare prediction files with the digests recorded in the summaries."""
    assert config.manifest is not None
    try:
        manifest = read_manifest(config.manifest)
    except InputError as error:
        verified.collected.extend(error.problems)
        return
    entries = manifest.in_table_order()
    for done, entry in enumerate(entries, 1):
        if progress is not None:
            progress("prediction files", done, len(entries))
        path = summaries.get(entry.model_name)
        if path is None:
            if not config.allow_missing:
                verified.collected.add(
                    "missing-summary", "no summary", "one summary per model", file=entry.model_name
                )
            continue
        files, problems = find_prediction_files(config, entry)
        verified.collected.extend(problems)
        try:
            recorded = load_summary(path).provenance.inputs
        except InputError:
            continue  # reported with the model
        for name in map(Path, files):
            split = name.name.partition("_predictions.json")[0]
            verified.n_files += 1
            try:
                digest = file_sha256(name)
            except OSError as error:
                verified.collected.extend([unreadable(name, error)])
                continue
            if recorded.get(f"predictions/{split}", digest) != digest:
                verified.collected.add(
                    "digest",
                    f"SHA-256 {digest[:12]}...",
                    f"SHA-256 {recorded[f'predictions/{split}'][:12]}..., as in {path.name}",
                    file=str(name),
                    cause="predictions changed after the evaluation: evaluate the model again",
                )


def _tables(
    folder: Path,
    eval_dir: Path,
    digests: dict[str, str],
    benchmark: Benchmark | None,
    config: Config | None,
    verified: Verified,
) -> Aggregated | None:
    """Compare the tables of the sweep with the summaries, and their CSV files and report.

    Returns the tables; None if they cannot be read.
    """
    path = folder / AGGREGATED
    try:
        table = load_tables(path)
    except InputError as error:
        verified.collected.extend(error.problems)
        return None
    for model, recorded in table.inputs.summaries.items():
        if digests.get(model) != recorded:
            found = f"values from another summary of {model!r} (SHA-256 {recorded[:12]}...)"
            expected = f"values from the current one (SHA-256 {digests.get(model, '')[:12]}...)"
            if model not in digests:
                found = f"values of model {model!r}, which has no summary"
                expected = "values of models with a summary"
            verified.collected.add(
                "digest", found, expected, file=str(path), cause="stale tables: aggregate again"
            )
    for name, layout in CSV_FILES.items():
        verified.compare(folder / name, csv_text(*layout(table)).encode(), AGGREGATED)
    _report(folder, table, verified)
    if benchmark is not None and config is not None and config.manifest is not None:
        _aggregate_again(path, table, eval_dir, benchmark, config, verified)
    else:
        verified.compare(path, encode(table), "its own values")
    return table


def _report(folder: Path, table: Aggregated, verified: Verified) -> None:
    from benchmark_eval.report.document import REPORT, render

    path = folder / REPORT
    try:
        text = read_input(path)
    except FileNotFoundError:
        verified.not_compared.append(f"{path}: {absent(path, 'the file does not exist')}")
        return
    except OSError as error:
        verified.collected.extend([unreadable(path, error, "a readable report")])
        return
    texts = {render(table, plot_format=kind).encode() for kind in ("svg", "png")}
    texts.add(render(table, plots=None).encode())
    verified.compare(path, text if text in texts else min(texts), AGGREGATED)


def _page(root: Path, tables: Path, table: Aggregated, eval_dir: Path, verified: Verified) -> None:
    """Compare the page of the workflow, which may be absent, with the tables."""
    path = root / PAGE
    if not path.is_file() or foreign_page(path):
        return
    from benchmark_eval.report.page.document import render

    text = render(table, folder=root, tables_dir=tables, eval_dir=eval_dir)
    verified.compare(path, text.encode(), AGGREGATED, page=True)


def _aggregate_again(
    path: Path,
    table: Aggregated,
    eval_dir: Path,
    benchmark: Benchmark,
    config: Config,
    verified: Verified,
) -> None:
    """Aggregate the summaries again and compare every value."""
    from benchmark_eval.sweep.aggregation import assemble, read_sweep
    from benchmark_eval.sweep.prices import Prices

    assert config.manifest is not None
    try:
        read = read_sweep(
            eval_dir=eval_dir,
            manifest=config.manifest,
            benchmark=benchmark,
            allow_missing=True,
            exclude=[cell.model for cell in table.missing if cell.model],
            custom_metrics=config.custom_metrics,
            prices=Prices(config.price_per_image, config.price_per_specimen),
        )
    except InputError as error:
        reported = set(verified.problems)
        verified.collected.extend(p for p in error.problems if p not in reported)
        return
    models = {model.entry.model_name for model in read.collected.models}
    if models - read.counts.keys() - set(table.without_evidence):
        verified.not_compared.append(f"{path}: the evidence of some models is missing")
        return
    again = encode(assemble(read))
    verified.compare(path, again, "the summaries, the manifest and the benchmark")


def verification_lines(verified: Verified) -> Iterator[str]:
    """The output of ``verify``, line by line."""
    from benchmark_eval.core.problems import render_problems

    if verified.problems:
        yield from render_problems(verified.problems).split("\n")
    yield from (f"not compared: {text}" for text in verified.not_compared)
    verdict = "differences found" if verified.problems else "all consistent"
    n_models, n_files = counted(verified.n_models, "model"), counted(verified.n_files, "file")
    yield f"{n_models}, {n_files} compared: {verdict}"
