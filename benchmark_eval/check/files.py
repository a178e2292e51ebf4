"""Checking prediction files, several side by side."""

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
    """One prediction file to look at. ``size`` is in bytes.

    ``twin`` says that another file of the split has this size, so that it may be the same.
    """

    path: Path
    split: str
    model: str
    size: int
    twin: bool = False


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found in one file; ``sha256`` is blank where it was not needed or not readable."""

    task: Task
    n_detections: int
    sha256: str
    findings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What every file is held against.

    ``sound`` says whether the benchmark is without fault, ``drop`` whether an evaluation leaves
    invalid records out.
    """

    benchmark: Benchmark
    sound: bool
    drop: bool = False


def check_file(task: Task, context: Context) -> FileResult:
    """Read one file as an evaluation would, and look for likely mistakes in its valid records.

    Where less than half of them are valid, and an evaluation refuses the file, no mistake is told:
    what is left is no fair sample of what was written.
    """
    try:
        checked = check_predictions(task.path, context.benchmark, task.split, digest=task.twin)
    except InputError as fault:
        return FileResult(task, 0, "", fault.problems)
    predictions, faults = checked.predictions, checked.problems
    if context.sound:  # the records of a faulty benchmark tell nothing of each other
        faults = with_likely_causes(checked, context.benchmark, task.split)
    n = len(predictions) + predictions.n_out_of_vocabulary
    looked_at = context.sound and (context.drop or sum(predictions.dropped.values()) <= n)
    told: list[tuple[str, str]] = []
    if looked_at:
        predictions = replace(predictions, dropped={})  # told one by one
        truth = context.benchmark.split(task.split)
        evidence = Evidence(predictions, truth, context.benchmark)
        told = named_warnings(evidence, of_benchmark=False)
    mistakes = [
        Problem(
            "likely-mistake",
            str(task.path),
            text,
            EXPECTED[mistake],
            f"model {task.model!r}",
            mistake=mistake,
        )
        for mistake, text in told
    ]
    return FileResult(task, n, "" if faults else predictions.sha256, (*faults, *mistakes))


_context: Context | None = None


def _start(context: Context) -> None:
    """What every process keeps, so that it is sent once and not with each file."""
    global _context  # noqa: PLW0603
    keep_freed_memory()
    _context = context


def _check_here(task: Task) -> FileResult:
    assert _context is not None
    return check_file(task, _context)


def usable_cores() -> int:
    """Processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def check_files(
    tasks: Sequence[Task], context: Context, jobs: int | None, progress: Progress | None
) -> list[FileResult]:
    """All files, in the order of ``tasks`` whatever the number of ``jobs`` (all cores if None).

    ``progress`` is told (what, kB done, kB in all).
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
    # the largest files first, so that none is left to run alone at the end
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
                f"one of {workers} processes was killed, most likely for want of memory; "
                "try again with a smaller --jobs"
            ) from None
