"""Problems of inputs: collecting and rendering them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmark_eval.core.text import visible

SHOWN_PER_KIND = 20
"""Maximum number of problems of one kind listed in a table of findings; the others are counted."""
SHOWN_PER_CAUSE = 3
"""Maximum number of problems of one kind, field and cause that a message lists as examples;
``SHOWN_PER_KIND`` if no cause is known and each is in a different file (missing files)."""
PLACES_NAMED = 10
"""Maximum number of places named for the other problems."""
LISTED_COMPLETELY = frozenset({"missing-predictions", "empty-predictions"})
"""Kinds of which every problem is listed: users need the complete list of missing files."""
LISTED_PER_KIND = 1000
"""Maximum number of lines per kind in a message: swapping two folders can cause half a million
problems, with a different cause for each file."""


_ABSENT = ("no ", "not ", "missing ")
"""Prefixes of ``found`` that are printed without the word "found", as are errors of the system."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an input.

    ``kind`` is a stable identifier (``"image-id-unknown"``) by which problems are grouped;
    ``record`` is the position in the file (0-based for JSON lists, the line for CSV), ready to
    print; ``cause`` is the likely cause, if known. ``times`` is above 1 for an entry that stands
    for several problems. ``mistake`` is the name of a likely mistake.
    """

    kind: str
    file: str
    found: str
    expected: str
    record: str = ""
    field: str = ""
    cause: str = ""
    times: int = 1
    mistake: str = ""

    def __str__(self) -> str:
        text = f"{self._finding()}; expected {self.expected}"
        return visible(f"{text} ({self.cause})" if self.cause else text)

    def finding(self) -> str:
        """The place and what was found there, without what is expected."""
        return visible(self._finding())

    def _finding(self) -> str:
        where = ", ".join(part for part in (self.file, self.record, self.field) if part)
        bare = self.kind == "unreadable" or self.found.startswith(_ABSENT)
        return f"{where}: {'' if bare else 'found '}{self.found}"


class Problems:
    """Collects the problems of one or several files; falsy while there are none.

    ``file`` is the default file of ``add``. The first ``most`` problems of each kind are kept, in
    the order they are added; the others are counted.
    """

    def __init__(self, file: str = "", *, most: int | None = None) -> None:
        self.file = file
        self.most = most
        self.count: Counter[str] = Counter()
        self._kept: list[Problem] = []

    def add(
        self,
        kind: str,
        found: str,
        expected: str,
        *,
        file: str | None = None,
        record: str = "",
        field: str = "",
        cause: str = "",
    ) -> None:
        """Add one problem; the parameters are the fields of ``Problem``."""
        self.count[kind] += 1
        if self.most is None or self.count[kind] <= self.most:
            where = self.file if file is None else file
            self._kept.append(Problem(kind, where, found, expected, record, field, cause))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that were collected elsewhere."""
        for problem in problems:
            self.count[problem.kind] += problem.times
            self._kept.append(problem)

    def all(self) -> list[Problem]:
        """Every kept problem, then one for each kind with the number of those not kept."""
        kept: Counter[str] = Counter()
        expected: dict[str, str] = {}
        for problem in self._kept:
            kept[problem.kind] += problem.times
            expected.setdefault(problem.kind, problem.expected)
        more = [
            Problem(
                kind, self.file, f"{n - kept[kind]:,} more", expected[kind], times=n - kept[kind]
            )
            for kind, n in self.count.items()
            if n > kept[kind]
        ]
        return [*self._kept, *more]

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __len__(self) -> int:
        return self.count.total()


def render_problems(problems: Sequence[Problem]) -> str:
    """All problems as text, grouped by kind, field and cause, each cause printed once.

    Each group lists its first ``SHOWN_PER_CAUSE`` problems, then the number and the places of the
    others; each kind has at most ``LISTED_PER_KIND`` lines. Kinds in ``LISTED_COMPLETELY`` list
    every record.
    """
    groups: dict[tuple[str, ...], list[Problem]] = {}
    latest: dict[tuple[str, str], tuple[str, ...]] = {}
    of_kind: Counter[str] = Counter()
    for problem in problems:
        of_kind[problem.kind] += problem.times
        key: tuple[str, ...] = (problem.kind, problem.field, problem.expected, problem.cause)
        if problem.times > 1:  # counts the unlisted problems of the kind
            key = latest.get((problem.kind, problem.file), key)
        latest[problem.kind, problem.file] = key
        groups.setdefault(key, []).append(problem)
    count = of_kind.total()
    lines = [f"{count:,} problem{'s' if count != 1 else ''} found"]
    listed: Counter[str] = Counter()
    for (kind, *_), group in groups.items():
        if kind in LISTED_COMPLETELY:
            lines += _group_lines(group, of_kind[kind])
            continue
        shown = list(_group_lines(group, of_kind[kind]))[: LISTED_PER_KIND - listed[kind]]
        listed[kind] += len(shown)
        lines += shown
    for kind, times in of_kind.items():
        if listed[kind] == LISTED_PER_KIND:
            lines.append(f"  all files: {times:,} problems of kind {kind!r} in all")
    return "\n".join(map(visible, lines))


def _group_lines(group: Sequence[Problem], of_kind: int) -> Iterator[str]:
    """The lines of one group; its kind has ``of_kind`` problems."""
    single = [problem for problem in group if problem.times == 1]
    apart = not group[0].cause and len({problem.file for problem in group}) == len(group)
    most = SHOWN_PER_KIND if apart else SHOWN_PER_CAUSE
    shown, others = single[:most], single[most:]
    others += [problem for problem in group if problem.times > 1]
    for number, problem in enumerate(shown):
        yield f"  {problem if number == 0 else problem.finding()}"
    total = sum(problem.times for problem in group)
    if total == len(shown):
        return
    if group[0].kind in LISTED_COMPLETELY:
        yield f"  {total - len(shown):,} more, {total:,} problems of kind {group[0].kind!r} in all:"
        files: dict[str, list[str]] = {}
        for problem in others:
            home, _, name = problem.file.rpartition("/")
            files.setdefault(problem.record or home, []).append(name)
        yield from (f"    {record}: {', '.join(names)}" for record, names in files.items())
        return
    if len({problem.file for problem in group}) == 1:
        places = [problem.record for problem in others if problem.record]
        start = f"{group[0].file}: "
    else:
        times: Counter[str] = Counter()
        for problem in others:
            times[problem.file] += problem.times
        places = [f"{file} ({n:,})" if n > 1 else file for file, n in times.items()]
        start = ""
    named = ", ".join(places[:PLACES_NAMED]) + (", ..." if len(places) > PLACES_NAMED else "")
    yield (
        f"  {start}{total - len(shown):,} more{f': {named}' if named else ''}; "
        f"{total:,} {'problems' if total == of_kind else 'such problems'} of kind "
        f"{group[0].kind!r}{' in all' if total == of_kind else ''}"
    )
