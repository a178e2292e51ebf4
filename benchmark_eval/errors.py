"""The one exception family, and how a fault in an input is told.

A fault names where it is (file, record, field), what was found there, what is wanted, and the
likely cause where one can be told. All faults of a run are collected and raised together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN_PER_KIND = 20
"""How many problems of one kind in one file a message lists before it only counts them."""
LISTED_PER_KIND = 1000
"""The same over all files: two folders that were swapped can make half a million problems."""


class BenchmarkEvalError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(BenchmarkEvalError):
    """A call or a config asks for something that does not exist or makes no sense."""

    exit_code = 2
    """The command line could not run."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an input.

    ``kind`` is a short stable slug (``"unknown-image-id"``) by which equal faults are grouped;
    ``record`` is the position in the file (0-based for JSON lists, the line for CSV), ready to
    print; ``cause`` is the likely cause, where it can be told. ``times`` is above 1 where one
    stands for several that are not told one by one.
    """

    kind: str
    file: str
    found: str
    wanted: str
    record: str = ""
    field: str = ""
    cause: str = ""
    times: int = 1

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.file, self.record, self.field) if part)
        text = f"{where}: found {self.found}; wanted {self.wanted}"
        return f"{text} ({self.cause})" if self.cause else text


class InputError(BenchmarkEvalError):
    """Inputs are not valid. ``problems`` holds every fault found, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(render_problems(self.problems))


def render_problems(problems: Sequence[Problem], shown: int = SHOWN_PER_KIND) -> str:
    """All problems as text, one a line.

    Of each (file, kind) the first ``shown`` and the count, of each kind ``LISTED_PER_KIND``.
    """
    total: Counter[tuple[str, str]] = Counter()
    of_kind: Counter[str] = Counter()
    for problem in problems:
        total[problem.file, problem.kind] += problem.times
        of_kind[problem.kind] += problem.times
    count = total.total()
    lines = [f"{count:,} problem{'s' if count != 1 else ''} found"]
    seen: Counter[tuple[str, str]] = Counter()
    listed: Counter[str] = Counter()
    for problem in problems:
        if listed[problem.kind] == LISTED_PER_KIND:
            continue
        key = (problem.file, problem.kind)
        if seen[key] < shown and problem.times == 1:
            listed[problem.kind] += 1
            lines.append(f"  {problem}")
        seen[key] += problem.times
        if seen[key] == total[key] > shown:
            lines.append(
                f"  {problem.file}: {total[key]:,} problems of kind {problem.kind!r} in all"
            )
    for kind, times in of_kind.items():
        if listed[kind] == LISTED_PER_KIND:
            lines.append(f"  all files: {times:,} problems of kind {kind!r} in all")
    return "\n".join(lines)
