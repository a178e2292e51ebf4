"""The one exception family, and how a fault in an input is told.

A fault names where it is (file, record, field), what was found there, what is wanted, and the
likely cause where one can be told. All faults of a run are collected and raised together.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmark_eval.core.problems import Problem, render_problems

EXIT_PROBLEMS = 1
"""The inputs were read and something in them is wrong."""
EXIT_COULD_NOT_RUN = 2
"""The command could not run: bad usage, a missing or unreadable file."""


class BenchmarkEvalError(Exception):
    """Base class of every error that this package raises on purpose.

    Examples
    --------
    >>> from benchmark_eval import BenchmarkEvalError, load_benchmark
    >>> try:
    ...     load_benchmark("no/such/folder")
    ... except BenchmarkEvalError as error:
    ...     print(type(error).__name__)
    InputError
    """


class UsageError(BenchmarkEvalError):
    """An option of a call or a config is not allowed or makes no sense.

    Examples
    --------
    >>> from benchmark_eval import UsageError, run_evaluation
    >>> try:
    ...     run_evaluation("benchmark", "predictions", iou=2)
    ... except UsageError as error:
    ...     print("iou" in str(error))
    True
    """


def exit_code(fault: BenchmarkEvalError) -> int:
    """What a process ends with that was stopped by ``fault``."""
    return EXIT_COULD_NOT_RUN if isinstance(fault, UsageError) else EXIT_PROBLEMS


def unwritable(fault: UnicodeEncodeError) -> UsageError:
    """What to tell where Python cannot write a name, as its locale has no such letter."""
    letter = fault.object[fault.start]
    name = fault.object[max(0, fault.start - 60) : fault.start + 60]
    return UsageError(
        f"{name!a}: found {letter!a}, which file names cannot hold while Python takes them to be "
        f"{fault.encoding}; expected UTF-8 (set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8)"
    )


class InputError(BenchmarkEvalError):
    """Inputs are not valid; the message lists all problems.

    Parameters
    ----------
    problems : iterable of Problem
        Every problem found, in file order.

    Attributes
    ----------
    problems : tuple of Problem
        Every problem found, in file order. Each has ``kind``, ``file``, ``record``, ``field``,
        ``found`` and the likely ``cause`` where it can be told.

    Examples
    --------
    >>> from benchmark_eval import InputError, load_benchmark
    >>> try:
    ...     load_benchmark("no/such/folder")
    ... except InputError as error:
    ...     print([(problem.kind, problem.file) for problem in error.problems])
    [('missing-folder', 'no/such/folder')]
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(render_problems(self.problems))
