"""Report of a check, grouped by kind of finding: plain text, terminal output or JSON."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmark_eval.check.kinds import KINDS, Kind, Level
from benchmark_eval.core.problems import SHOWN_PER_KIND, Problem
from benchmark_eval.core.text import counted, visible

if TYPE_CHECKING:
    from rich.console import Console

LEVELS: tuple[Level, ...] = ("problem", "warning", "note")
SHOWN_PER_MISTAKE = 6
"""How many likely mistakes of one name are shown with their evidence; JSON has all."""
FILES_NAMED = 10
"""How many files with further findings are named."""
WIDTH = 100
"""Line width in characters."""
SHORT = 80
"""Longest ``found`` text, in characters, that is printed on the line of its location."""
_COLOUR = {"problem": "bold red", "warning": "yellow", "note": "dim"}
_UNKNOWN = Kind("problem", "")


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, warning or note."""

    level: Level
    problem: Problem


@dataclass(frozen=True, slots=True)
class Row:
    """One finding, or ``count`` findings that are not listed one by one."""

    level: Level
    kind: str
    file: str
    record: str
    field: str
    found: str
    expected: str
    cause: str
    count: int = 1
    mistake: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Findings of one kind, or likely mistakes of one name."""

    level: Level
    kind: str
    mistake: str
    problems: tuple[Problem, ...]

    @property
    def count(self) -> int:
        """Number of findings."""
        return sum(problem.times for problem in self.problems)

    @property
    def n_files(self) -> int:
        """Number of files with such findings."""
        return len({problem.file for problem in self.problems})

    def shown(self, most: int) -> tuple[list[Problem], list[Problem]]:
        """``most`` problems, spread evenly over the files, and the others; both in order."""
        of_file: Counter[str] = Counter()
        turns = []
        for number, problem in enumerate(self.problems):
            if problem.times == 1:
                turns.append((of_file[problem.file], number))
                of_file[problem.file] += 1
        first = {number for _, number in sorted(turns)[:most]}
        split: tuple[list[Problem], list[Problem]] = ([], [])
        for number, problem in enumerate(self.problems):
            split[number not in first].append(problem)
        return split

    def rows(self, most: int) -> Iterator[Row]:
        """The problems shown, then the number of further problems of each file."""
        shown, others = self.shown(most)
        for p in shown:
            yield Row(
                self.level, p.kind, p.file, p.record, p.field, p.found, p.expected, p.cause,
                mistake=p.mistake,
            )  # fmt: skip
        expected = {problem.file: problem.expected for problem in reversed(others)}
        for file, times in _per_file(others).items():
            found = f"{times:,} more of this kind"
            yield Row(
                self.level, self.kind, file, "", "", found, expected[file], "", times, self.mistake
            )

    def lines(self) -> Iterator[str]:
        """Lines of text: a heading, then the problems grouped by expected value and cause."""
        meaning = KINDS.get(self.kind, _UNKNOWN).meaning
        name = f"{self.kind}, {self.mistake}" if self.mistake else self.kind
        yield f"{self.level}: {self.count:,} x {name} in {counted(self.n_files, 'file')}: {meaning}"
        shown, others = self.shown(SHOWN_PER_MISTAKE if self.mistake else SHOWN_PER_KIND)
        groups: dict[tuple[str, str], list[Problem]] = defaultdict(list)
        for problem in shown:
            groups[problem.expected, problem.cause].append(problem)
        previous = ""
        for (expected, cause), problems in groups.items():
            if expected != previous:
                yield from _wrapped(f"expected: {expected}", 2)
            previous = expected
            if cause:
                yield from _wrapped(f"cause: {cause}", 2)
            for problem in problems:
                where = ", ".join(filter(None, (problem.file, problem.record, problem.field)))
                if len(problem.found) <= SHORT:
                    yield visible(f"    {where}: {problem.found}")
                else:
                    yield visible(f"    {where}:")
                    yield from _wrapped(problem.found, 6)
        times = _per_file(others)
        if times:
            named = [f"{file} ({n:,})" if n > 1 else file for file, n in times.items()]
            if len(named) > FILES_NAMED:
                named[FILES_NAMED:] = [f"and {len(named) - FILES_NAMED:,} more files"]
            start = f"{times.total():,} more: " if shown else ""
            yield from _wrapped(start + ", ".join(named), 4)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All findings, and how much was checked."""

    findings: tuple[Finding, ...]
    n_models: int
    n_files: int
    n_detections: int
    n_bytes: int

    def count(self, level: Level) -> int:
        """Number of findings of a level."""
        return sum(f.problem.times for f in self.findings if f.level == level)

    @property
    def exit_code(self) -> int:
        """1 if there is a problem, otherwise 0; warnings and notes do not count."""
        return 1 if self.count("problem") else 0

    def blocks(self) -> list[Block]:
        """The findings by level, kind and name of mistake."""
        by_kind: dict[tuple[Level, str, str], list[Problem]] = defaultdict(list)
        for finding in self.findings:
            p = finding.problem
            by_kind[finding.level, p.kind, p.mistake].append(p)
        ordered = sorted(by_kind.items(), key=lambda item: LEVELS.index(item[0][0]))
        return [Block(*key, tuple(problems)) for key, problems in ordered]

    def rows(self, shown: int = SHOWN_PER_KIND) -> Iterator[Row]:
        """The first ``shown`` findings of each kind, then the number of further ones per file.

        Likely mistakes are all listed, as each has its own evidence.
        """
        for block in self.blocks():
            yield from block.rows(len(block.problems) if block.mistake else shown)

    def kinds(self) -> Iterator[tuple[str, Level, int, int, str]]:
        """(kind, level, count, number of files, meaning) of each kind found."""
        count: Counter[tuple[Level, str]] = Counter()
        files: dict[tuple[Level, str], set[str]] = defaultdict(set)
        for finding in self.findings:
            key = finding.level, finding.problem.kind
            count[key] += finding.problem.times
            files[key].add(finding.problem.file)
        for (level, kind), number in sorted(
            count.items(), key=lambda item: LEVELS.index(item[0][0])
        ):
            meaning = KINDS.get(kind, _UNKNOWN).meaning
            yield kind, level, number, len(files[level, kind]), meaning

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dicts and lists."""
        return {
            "problems": self.count("problem"),
            "warnings": self.count("warning"),
            "notes": self.count("note"),
            "models": self.n_models,
            "prediction_files": self.n_files,
            "detections": self.n_detections,
            "bytes": self.n_bytes,
            "kinds": [
                {"kind": kind, "level": level, "count": count, "files": files, "meaning": meaning}
                for kind, level, count, files, meaning in self.kinds()
            ],
            "mistakes": [
                {"mistake": block.mistake, "count": block.count, "files": block.n_files}
                for block in self.blocks()
                if block.mistake
            ],
            "findings": [asdict(row) for row in self.rows()],
        }

    def summary(self) -> str:
        """One line: the number of findings, and how much was checked."""
        counts = ", ".join(counted(self.count(level), level) for level in LEVELS)
        return (
            f"{counts} ({counted(self.n_models, 'model')}, "
            f"{counted(self.n_files, 'prediction file')}, "
            f"{counted(self.n_detections, 'detection')}, {self.n_bytes / 1e6:,.1f} MB)"
        )

    def text(self) -> str:
        """The report as plain text: one block per kind, then the summary line."""
        blocks = ["\n".join(block.lines()) for block in self.blocks()]
        return "\n\n".join([*blocks, self.summary()]) + "\n"

    def show(self, console: Console) -> None:
        """Print the report on a terminal, with coloured headings."""
        from rich.text import Text

        for block in self.blocks():
            heading, *lines = block.lines()
            console.print(Text(heading, style=_COLOUR[block.level]), soft_wrap=True)
            for line in lines:
                console.print(Text(line), soft_wrap=True)
            console.print()
        console.print(Text(self.summary(), style="bold"))


def _per_file(problems: Iterable[Problem]) -> Counter[str]:
    """Number of problems per file, in order of first occurrence."""
    times: Counter[str] = Counter()
    for problem in problems:
        times[problem.file] += problem.times
    return times


def _wrapped(text: str, indent: int) -> list[str]:
    """Text wrapped to ``WIDTH``, without breaking long words."""
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def findings_of(
    problems: Sequence[Problem], *, lowered: frozenset[str] | set[str] = frozenset()
) -> list[Finding]:
    """Findings with the level of their kind, or warnings if the kind is in ``lowered``."""
    return [
        Finding("warning" if p.kind in lowered else KINDS.get(p.kind, _UNKNOWN).level, p)
        for p in problems
    ]
