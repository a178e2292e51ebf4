"""What a check found: one table, as plain text, for a terminal, or as JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmark_eval.check.kinds import KINDS, Kind, Level
from benchmark_eval.errors import SHOWN_PER_KIND, Problem
from benchmark_eval.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

LEVELS: tuple[Level, ...] = ("problem", "warning", "note")
COLUMNS = ("level", "kind", "file", "record", "field", "found", "wanted", "cause")
_COLOUR = {"problem": "bold red", "warning": "yellow", "note": "dim"}
_UNKNOWN = Kind("problem", "")


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, warning or note."""

    level: Level
    problem: Problem


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; ``count`` findings stand behind it."""

    level: Level
    kind: str
    file: str
    record: str
    field: str
    found: str
    wanted: str
    cause: str
    count: int = 1

    def cells(self) -> list[str]:
        """The texts in the order of ``COLUMNS``."""
        return [getattr(self, name) for name in COLUMNS]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Everything that was found, and how much was looked at."""

    findings: tuple[Finding, ...]
    n_models: int
    n_files: int
    n_detections: int
    n_bytes: int

    def count(self, level: Level) -> int:
        """How many findings of a level there are."""
        return sum(f.problem.times for f in self.findings if f.level == level)

    @property
    def exit_code(self) -> int:
        """0 where there is no problem, 1 where there is one; warnings and notes do not count."""
        return 1 if self.count("problem") else 0

    def rows(self, shown: int = SHOWN_PER_KIND) -> Iterator[Row]:
        """The first ``shown`` findings of each kind, then how many more each file has."""
        by_kind: dict[tuple[Level, str], list[Problem]] = defaultdict(list)
        for finding in self.findings:
            by_kind[finding.level, finding.problem.kind].append(finding.problem)
        for (level, kind), problems in sorted(
            by_kind.items(), key=lambda item: LEVELS.index(item[0][0])
        ):
            n_shown = 0
            more: Counter[str] = Counter()
            for p in problems:
                if p.times == 1 and n_shown < shown:
                    n_shown += 1
                    yield Row(level, kind, p.file, p.record, p.field, p.found, p.wanted, p.cause)
                else:
                    more[p.file] += p.times
            for file, times in more.items():
                found = f"{times:,} more of this kind"
                yield Row(level, kind, file, "", "", found, problems[0].wanted, "", times)

    def kinds(self) -> Iterator[tuple[str, Level, int, int, str]]:
        """(kind, level, count, number of files, meaning) of each kind that was found."""
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
            "findings": [asdict(row) for row in self.rows()],
        }

    def summary(self) -> str:
        """One line: what was found in how much."""
        counts = ", ".join(counted(self.count(level), level) for level in LEVELS)
        return (
            f"{counts} ({counted(self.n_models, 'model')}, "
            f"{counted(self.n_files, 'prediction file')}, "
            f"{counted(self.n_detections, 'detection')}, {self.n_bytes / 1e6:,.1f} MB)"
        )

    def text(self) -> str:
        """The table as plain text: a line a finding, cells separated by `` | ``."""
        lines = []
        rows = list(self.rows())
        if rows:
            lines.append(" | ".join(COLUMNS))
            lines += [" | ".join(map(_one_line, row.cells())) for row in _causes_once(rows)]
            lines.append("")
        lines += [
            f"{level}: {count:,} x {kind} in {counted(files, 'file')}: {meaning}"
            for kind, level, count, files, meaning in self.kinds()
        ]
        return "\n".join([*lines, self.summary()]) + "\n"

    def show(self, console: Console) -> None:
        """The table on a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("", "file", "record", "field", "found", "wanted"):
            table.add_column(name, overflow="fold")
        above: Row | None = None
        for row in _causes_once(self.rows()):
            wanted = f"{row.wanted} ({row.cause})" if row.cause else row.wanted
            cells = [row.file, row.record, row.field, row.found, wanted]
            if above is not None and (row.kind, row.file) == (above.kind, above.file):
                cells[0] = ""
            above = row
            mark = Text(row.level, style=_COLOUR[row.level])
            table.add_row(mark, *(Text(_one_line(cell)) for cell in cells))
        if table.row_count:
            console.print(table)
            console.print()
        for kind, level, count, files, meaning in self.kinds():
            line = f"{count:,} x {kind} in {counted(files, 'file')}: {meaning}"
            console.print(Text(line, style=_COLOUR[level]))
        console.print(Text(self.summary(), style="bold"))


AS_ABOVE = "as above"


def _causes_once(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows for people: what is wanted and why, once for all rows of a kind that share it."""
    told: tuple[str, ...] = ()
    for row in rows:
        now = (row.level, row.kind, row.field, row.wanted, row.cause)
        rest = row.count > 1 and told[:2] == now[:2] and told[3:4] == now[3:4]
        if now == told or rest:
            yield replace(row, wanted=AS_ABOVE, cause="")
        else:
            told = now
            yield row


def _one_line(text: str) -> str:
    """Text without what would break a line or drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def findings_of(
    problems: Sequence[Problem], *, lowered: frozenset[str] | set[str] = frozenset()
) -> list[Finding]:
    """Findings with the level of their kind; a problem of a ``lowered`` kind is a warning."""
    return [
        Finding("warning" if p.kind in lowered else KINDS.get(p.kind, _UNKNOWN).level, p)
        for p in problems
    ]
