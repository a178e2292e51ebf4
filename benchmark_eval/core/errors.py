"""The exceptions of this package.

A problem of an input states its place (file, record, field), what was found, what is expected and,
if known, the likely cause. All problems of a run are collected and raised together.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmark_eval.core.problems import Problem, render_problems
from benchmark_eval.core.text import visible

EXIT_PROBLEMS = 1
"""The inputs were read and have problems."""
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
    """An option of a call or a config is invalid, or options contradict each other.

    Parameters
    ----------
    *lines : str
        The lines of the message. Line breaks and control characters within a line are escaped.

    Examples
    --------
    >>> from benchmark_eval import UsageError, run_evaluation
    >>> try:
    ...     run_evaluation("benchmark", "predictions", iou=2)
    ... except UsageError as error:
    ...     print("iou" in str(error))
    True
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*map(visible, lines))

    def __str__(self) -> str:
        return "\n".join(self.args)


def exit_code(error: BenchmarkEvalError) -> int:
    """The exit code of a process that ``error`` stopped."""
    return EXIT_COULD_NOT_RUN if isinstance(error, UsageError) else EXIT_PROBLEMS


def unwritable(error: UnicodeEncodeError) -> UsageError:
    """The error for a name that cannot be encoded in the locale."""
    character = error.object[error.start]
    name = error.object[max(0, error.start - 60) : error.start + 60]
    return UsageError(
        f"{name!a}: found {character!a}, which cannot be encoded in file names with "
        f"the locale's encoding {error.encoding}; expected UTF-8 "
        "(set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8)"
    )


class InputError(BenchmarkEvalError):
    """The inputs are invalid; the message lists all problems.

    Parameters
    ----------
    problems : iterable of Problem
        Every problem found, in file order.

    Attributes
    ----------
    problems : tuple of Problem
        Every problem found, in file order. Each has ``kind``, ``file``, ``record``, ``field``,
        ``found``, ``expected`` and, if known, the likely ``cause``.

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
