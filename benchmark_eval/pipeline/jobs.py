"""The jobs of the workflow, one function per rule.

Each job removes outdated tables, plots and reports, reads its fingerprint, calls the library,
compares the inputs that were read with the fingerprint, writes its results, and finally its record.
A job that rejects its inputs names the command that recreates them; it never repairs them itself.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.memory import keep_freed_memory
from benchmark_eval.core.records import record_content
from benchmark_eval.core.terminal import say
from benchmark_eval.pipeline.job import job
from benchmark_eval.pipeline.outdated import remove_outdated, write_record
from benchmark_eval.pipeline.provenance_check import (
    OF_A_BENCHMARK,
    OF_A_MODEL,
    OF_A_REPORT,
    OF_A_SWEEP,
    Fingerprint,
    read_fingerprint,
    require_benchmark,
    require_code,
    require_evaluation,
    require_files,
    require_record_name,
    require_sweep,
)

if TYPE_CHECKING:
    from benchmark_eval.inputs.benchmark import Benchmark
    from benchmark_eval.inputs.predictions import OnInvalid
    from benchmark_eval.results.detections_csv import Rows
    from benchmark_eval.results.schema import Engine
    from benchmark_eval.sweep import Aggregated

INDEX_AGAIN = "To recreate the index: snakemake --forcerun index_benchmark"
MODELS_AGAIN = (
    "To evaluate all models again: snakemake --forcerun evaluate_model "
    "(to evaluate a single one again: delete its summary, then run snakemake)"
)
TABLES_AGAIN = "To recreate the tables: snakemake --forcerun aggregate"


def index_benchmark(
    *,
    benchmark_dir: str | Path,
    index: str | Path,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Read a benchmark folder, check it and write its index."""
    from benchmark_eval.inputs.benchmark_index import save_index
    from benchmark_eval.inputs.benchmark_reader import load_benchmark

    with _planned(log, fingerprint, record, "index", OF_A_BENCHMARK) as expected:
        benchmark = load_benchmark(benchmark_dir)
        found = {Path(name).name: digest for name, digest in benchmark.digests.items()}
        require_files(expected.content["files"], found, "benchmark file")
        save_index(benchmark, index)


def evaluate_model(
    *,
    index: str | Path,
    predictions_dir: str | Path,
    output_dir: str | Path,
    model_name: str,
    splits: Sequence[str],
    iou: float,
    engine: Engine,
    on_invalid: OnInvalid,
    operating_confidence: float | None,
    detections: Rows,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Score one model on all splits and write its result files.

    ``fingerprint`` is ``<state>/models/<model>.json``; that of the benchmark is expected at
    ``<state>/benchmark.json``.
    """
    keep_freed_memory()
    gc.freeze()  # imported modules stay; the garbage collector need not scan them
    from benchmark_eval.results.writers import claim_model_files, model_files
    from benchmark_eval.scoring.evaluate import (
        Options,
        evaluate,
        evaluation_inputs,
        write_results,
    )

    inputs = evaluation_inputs(index, predictions_dir, splits)
    summary = model_files(output_dir, model_name)["summary.json"]
    with (
        _planned(log, fingerprint, record, "scoring", OF_A_MODEL, summary) as expected,
        claim_model_files(output_dir, model_name, inputs=inputs, declared=True) as output,
    ):
        options = Options(tuple(splits), iou, engine, on_invalid, operating_confidence)
        benchmark = _read_index(index, expected.path.resolve().parents[1])
        evaluation, tables = evaluate(
            benchmark, predictions_dir, model_name, options, detections=detections
        )
        require_evaluation(expected, evaluation)
        write_results(evaluation, benchmark, tables, output)


def aggregate(
    *,
    eval_dir: str | Path,
    manifest: str | Path,
    index: str | Path,
    output_dir: str | Path,
    allow_missing: bool,
    custom_metrics: str | Path | None,
    price_per_image: float | None,
    price_per_specimen: float | None,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Compute the tables of the sweep from the summaries; after an error, there are no tables.

    ``fingerprint`` is ``<state>/sweep.json``, which lists the models without predictions.
    """
    from benchmark_eval.sweep import tables
    from benchmark_eval.sweep.aggregation import assemble, read_sweep
    from benchmark_eval.sweep.prices import Prices

    aggregated = Path(output_dir) / tables.AGGREGATED
    with (
        _planned(log, fingerprint, record, "sweep", OF_A_SWEEP, aggregated) as expected,
        tables.claim_tables(output_dir, inputs=[index, manifest], declared=True) as output,
    ):
        benchmark = _read_index(index, expected.path.parent)
        with _remedy(MODELS_AGAIN, eval_dir):
            read = read_sweep(
                eval_dir=eval_dir,
                manifest=manifest,
                benchmark=benchmark,
                allow_missing=allow_missing,
                exclude=expected.content["missing"],
                custom_metrics=custom_metrics,
                prices=Prices(price_per_image, price_per_specimen),
            )
            require_sweep(expected, read)
        tables.write(assemble(read), output)


def plot_sweep(
    *,
    aggregated: str | Path,
    output_dir: str | Path,
    formats: Sequence[str],
    jobs: int,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Draw the plots of the sweep from its tables."""
    from benchmark_eval.report import write_plots

    with _planned(log, fingerprint, record, "report", OF_A_REPORT):
        table = _read_tables(aggregated)
        write_plots(table, output_dir, formats, jobs=jobs, declared=True)


def report(
    *,
    aggregated: str | Path,
    output_dir: str | Path,
    plot_format: str,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Write the report of the sweep from its tables."""
    from benchmark_eval.report import write_report

    with _planned(log, fingerprint, record, "report", OF_A_REPORT):
        table = _read_tables(aggregated)
        write_report(table, output_dir, plot_format=plot_format, declared=True)


def page(
    *,
    aggregated: str | Path,
    eval_dir: str | Path,
    output: str | Path,
    fingerprint: str | Path,
    record: str | Path,
    log: str | Path,
) -> None:
    """Write the page of the sweep from its tables."""
    from benchmark_eval.report import write_page

    with _planned(log, fingerprint, record, "report", OF_A_REPORT):
        table = _read_tables(aggregated)
        tables_dir = Path(aggregated).parent
        write_page(table, output, tables_dir=tables_dir, eval_dir=eval_dir, declared=True)


@contextlib.contextmanager
def _planned(
    log: str | Path,
    fingerprint: str | Path,
    record: str | Path,
    part: str,
    keys: Sequence[str],
    result: str | Path | None = None,
) -> Iterator[Fingerprint]:
    """Run a job with its log and its fingerprint; write the record if the job succeeds.

    The record has the digest of ``result``, so that later jobs refuse it if it was edited.
    """
    of_model = part == "scoring"
    with job(log):
        remove_outdated(Path(fingerprint).parents[of_model], _announce)
        expected = read_fingerprint(fingerprint, *keys)
        require_code(expected, part)
        if not of_model:
            require_record_name(expected, record)
        Path(record).unlink(missing_ok=True)  # results without a record are made again
        yield expected
        content = record_content(expected.data, result)
        (write_bytes_atomic if of_model else write_record)(record, content)


def _announce(line: str) -> None:
    """Write a line to the job's log and to the terminal."""
    logging.getLogger(__name__).info(line)
    say(line, err=True)


def _read_index(index: str | Path, state: Path) -> Benchmark:
    """Read the benchmark from ``index`` and compare it with its fingerprint in ``state``."""
    from benchmark_eval.inputs.benchmark_index import read_index

    with _remedy(INDEX_AGAIN, index):
        benchmark = read_index(index)
        fingerprint = read_fingerprint(state / "benchmark.json", *OF_A_BENCHMARK)
        require_benchmark(fingerprint, benchmark.digests, index)
    return benchmark


def _read_tables(aggregated: str | Path) -> Aggregated:
    """Read the tables of the last run."""
    from benchmark_eval.sweep import load_current_tables

    with _remedy(TABLES_AGAIN, aggregated):
        return load_current_tables(aggregated)


@contextlib.contextmanager
def _remedy(command: str, place: str | Path) -> Iterator[None]:
    """Add ``command`` as a note to errors about ``place`` or a file in it."""
    try:
        yield
    except InputError as error:
        files = [Path(problem.file) for problem in error.problems]
        if any(Path(place) in (file, *file.parents) for file in files):
            error.add_note(command)
        raise
