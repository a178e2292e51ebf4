"""Check prediction files in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.memory import keep_freed_memory
from benchmark_eval.core.problems import Problem
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.predictions import check_predictions
from benchmark_eval.scoring.diagnostics import EXPECTED, named_warnings
from benchmark_eval.scoring.diagnostics.evidence import Evidence
from benchmark_eval.scoring.diagnostics.ids import with_likely_causes

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Task:
    """One prediction file to check. ``size`` is in bytes.

    ``twin`` is true if another file of the split has the same size, so that both may be identical.
    """

    path: Path
    split: str
    model: str
    size: int
    twin: bool = False


@dataclass(frozen=True, slots=True)
class FileResult:
    """Findings in one file; ``sha256`` is blank if it was not needed or could not be computed."""

    task: Task
    n_detections: int
    sha256: str
    findings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What every file is compared with.

    ``sound`` is true if the benchmark has no problems, ``drop`` if an evaluation drops invalid
    records.
    """

    benchmark: Benchmark
    sound: bool
    drop: bool = False


def check_file(task: Task, context: Context) -> FileResult:
    """Read one file as an evaluation would, and look for likely mistakes in its valid records.

    If fewer than half of the records are valid and an evaluation would refuse the file, likely
    mistakes are not reported: the valid records are not a representative sample.
    """
    try:
        checked = check_predictions(task.path, context.benchmark, task.split, digest=task.twin)
    except InputError as error:
        return FileResult(task, 0, "", error.problems)
    predictions, problems = checked.predictions, checked.problems
    if context.sound:  # a benchmark with problems cannot be evidence for a likely cause
        problems = with_likely_causes(checked, context.benchmark, task.split)
    n = len(predictions) + predictions.n_out_of_vocabulary
    warnings: list[tuple[str, str]] = []
    if context.sound and (context.drop or sum(predictions.dropped.values()) <= n):
        predictions = replace(predictions, dropped={})  # already reported one by one
        truth = context.benchmark.split(task.split)
        evidence = Evidence(predictions, truth, context.benchmark)
        warnings = named_warnings(evidence, of_benchmark=False)
    mistakes = [
        Problem(
            "likely-mistake",
            str(task.path),
            text,
            EXPECTED[mistake],
            f"model {task.model!r}",
            mistake=mistake,
        )
        for mistake, text in warnings
    ]
    return FileResult(task, n, "" if problems else predictions.sha256, (*problems, *mistakes))


_context: Context | None = None


def _start(context: Context) -> None:
    """Keep ``context`` in every process, so that it is sent once and not with each file."""
    global _context  # noqa: PLW0603
    keep_freed_memory()
    _context = context


def _check_here(task: Task) -> FileResult:
    assert _context is not None
    return check_file(task, _context)


def usable_cores() -> int:
    """Number of CPU cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


def check_files(
    tasks: Sequence[Task], context: Context, jobs: int | None, progress: Progress | None
) -> list[FileResult]:
    """Check all files; results are in the order of ``tasks`` for any number of ``jobs``.

    ``jobs`` defaults to one per core. ``progress`` is called with (what, kB done, kB in total).
    """
    total = sum(task.size for task in tasks)
    done = 0
    results: dict[int, FileResult] = {}
    for number, result in _results(tasks, context, jobs):
        results[number] = result
        done += result.task.size
        if progress is not None:
            progress("prediction files, kB", done // 1000, -(-total // 1000))
    return [results[number] for number in range(len(tasks))]


def _results(
    tasks: Sequence[Task], context: Context, jobs: int | None
) -> Iterator[tuple[int, FileResult]]:
    workers = min(jobs or usable_cores(), len(tasks))
    if workers <= 1:
        for number, task in enumerate(tasks):
            yield number, check_file(task, context)
        return
    # largest files first, so that no large file runs alone at the end
    order = sorted(range(len(tasks)), key=lambda number: -tasks[number].size)
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(context,)) as pool:
        running: dict[Future[FileResult], int] = {
            pool.submit(_check_here, tasks[number]): number for number in order
        }
        try:
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise UsageError(
                f"one of {workers} processes was killed, most likely because memory ran out; "
                "try again with a smaller --jobs"
            ) from None
