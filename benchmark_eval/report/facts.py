"""The tables of a sweep by question: what the sections of the report have in common.

Nothing is computed here. Verdicts are those of ``comparisons``; other numbers have intervals that
say what they cover, and no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import Condition, budget_text
from benchmark_eval.report.lookup import Lookup
from benchmark_eval.report.markdown import escape, listing, with_interval
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.comparison_rows import METRICS
from benchmark_eval.sweep.conditions import best_conditions
from benchmark_eval.sweep.tables import Aggregated, ComparisonRow, CurveRow
from benchmark_eval.sweep.verdicts import Word

PLACE = {
    "iid_test": "in distribution",
    "inat_test": "on field photographs",
    "semantic_ood": "on unseen species",
}
SHORT = {
    METRICS[0].name: "AP@[.5:.95]",
    METRICS[1].name: "AP@[.5:.95]",
    METRICS[2].name: "species-mean detection recall",
}
DECIDED = (Word.HIGHER, Word.LOWER)
_OPPOSITE = {Word.HIGHER: Word.LOWER, Word.LOWER: Word.HIGHER}


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the report.

    ``conclusion`` is the title of the section's figure, which is the first of ``figures`` that is
    drawn; the others, and those of ``topic`` (``captions.Plot.question``), are linked.
    """

    title: str
    answer: list[str]
    conclusion: str
    figures: tuple[str, ...] = ()
    topic: str = ""
    details: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Best:
    """The best condition by one metric, those tied with it, and those that are lower.

    ``reason`` says why nothing was tested.
    """

    metric: str
    split: str
    condition: Condition
    tied: list[Condition]
    lower: list[Condition]
    n_species: int
    n_seeds: int
    n_tests: int
    reason: Reason | None

    @property
    def n_candidates(self) -> int:
        """The number of conditions that were compared."""
        return 1 + len(self.tied) + len(self.lower)

    @property
    def group(self) -> list[Condition]:
        """The tie group."""
        return [self.condition, *self.tied]


class Facts:
    """The tables of a sweep by question."""

    def __init__(self, data: Aggregated) -> None:
        self.data = data
        self.look = Lookup(data)
        self.shown: dict[str, CurveRow] = best_conditions(data.learning_curves)
        """The best condition of each architecture, whose results are shown."""
        self.curve = {row.condition: row for row in data.learning_curves}
        self.cost = {row.condition: row for row in data.budget_curves}
        self.conditions = {str(condition): condition for condition in self.curve}
        self._curves = {
            str(c).removesuffix(f" {budget_text(c.regime, c.k_or_p)}"): (c.architecture, c.regime)
            for c in self.curve
        }
        self.with_warnings = {name for item in data.identical for name in item.models}
        self.with_warnings |= {name for item in data.warnings for name in item.models}
        """The models that the report's warnings name."""
        self._conditions_with_warnings = {
            model.condition for model in data.models if model.model in self.with_warnings
        }

    # -- names -----------------------------------------------------------------------------

    def name(self, architecture: str) -> str:
        """An architecture as text."""
        return escape(self.look.label(architecture))

    def names(self, architectures: Sequence[str]) -> str:
        """``alder, birch and cedar``."""
        return listing([self.name(each) for each in architectures])

    def label(self, condition: Condition) -> str:
        """``alder global_uniform k=5``; without the architecture if the manifest names none."""
        return escape(str(condition))

    def label_of(self, text: str) -> str:
        """A condition by its name in a comparison."""
        return self.label(self.conditions[text])

    def warned(self, row: CurveRow) -> str:
        """`` (warnings)`` if a model of the condition has warnings."""
        return " (warnings)" if row.condition in self._conditions_with_warnings else ""

    # -- comparisons -----------------------------------------------------------------------

    def rows(self, question: str, metric: str | None = None) -> list[ComparisonRow]:
        """The comparisons of a question, of one metric or of all."""
        return [
            row
            for row in self.data.comparisons
            if row.question == question and metric in (None, row.metric)
        ]

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """The metrics of the comparisons, in their fixed order, and the split of each."""
        splits = self.data.inputs.options.get("splits", [])
        return [(each.name, each.split) for each in METRICS if each.split in splits]

    def best(self, metric: str) -> Best | None:
        """The tie group of the best condition by a metric; None without two candidates."""
        every = self.rows("best", metric)
        # conditions without seeds in common were not compared; if that is all, it is the reason
        rows = [row for row in every if row.reason != Reason.NO_COMMON_SEEDS] or every
        if not rows:
            return None
        first = rows[0]

        def others(*words: Word) -> list[Condition]:
            return [self.conditions[row.b] for row in rows if row.verdict in words]

        return Best(
            metric,
            first.split,
            self.conditions[first.a],
            others(Word.INCONCLUSIVE, Word.NOT_TESTED),
            others(Word.HIGHER),
            first.n_species,
            first.n_seeds,
            first.n_tests,
            first.reason,
        )

    @cached_property
    def lead(self) -> CurveRow | None:
        """The condition whose numbers the sentences give.

        It is the best one of the architecture that is best by the first metric with a tie group.
        """
        for metric, _ in self.metrics:
            best = self.best(metric)
            if best is not None and best.condition.architecture in self.shown:
                return self.shown[best.condition.architecture]
        rows = list(self.shown.values())
        return max(
            rows, key=lambda row: [row.metrics[m].mean or 0.0 for m in HEADLINE], default=None
        )

    def side(self, text: str) -> tuple[str, str]:
        """Side a or b of a comparison: the condition or curve, and what it is restricted to."""
        if text in self.conditions or text in self._curves:
            return text, ""
        name, _, rest = text.rpartition(", ")
        return name, rest

    def curve_of(self, text: str) -> tuple[str, str]:
        """(architecture, regime) of a curve's name in ``scope`` or in a side."""
        return self._curves[text]

    # -- numbers ---------------------------------------------------------------------------

    def level(self, row: CurveRow, metric: str) -> str:
        """A metric of one condition with the widest interval that the tables have for it."""
        mean = row.metrics[metric].mean
        wide = row.species_retraining.get(metric)
        if wide is not None and wide.low is not None:
            covers = Covers.BOTH if row.metrics[metric].n > 1 else Covers.SPECIES
            return with_interval(mean, wide.low, wide.high, covers=covers)
        narrow = row.retraining[metric]
        return with_interval(
            mean, narrow.low, narrow.high, covers=Covers.RETRAINING, reason=narrow.reason
        )

    def tally(self, rows: Sequence[ComparisonRow]) -> str:
        """``Of 42 comparisons (42 tests): 3 higher or lower, 39 inconclusive``."""
        words: dict[str, int] = {}
        for row in rows:
            word = "higher or lower" if row.verdict in DECIDED else str(row.verdict)
            if row.verdict == Word.NOT_TESTED and row.reason:
                word += f" ({row.reason})"
            words[word] = words.get(word, 0) + 1
        n_tests = sum(row.verdict != Word.NOT_TESTED for row in rows)
        parts = listing([f"{n:,} {word}" for word, n in words.items()])
        return f"Of {counted(len(rows), 'comparison')} ({counted(n_tests, 'test')}): {parts}"

    def by_verdict(self, rows: Mapping[str, ComparisonRow], *, effects: bool = True) -> str:
        """``higher for alder (+0.06 [0.03, 0.09]); inconclusive for cedar (...)``.

        ``rows`` are comparisons by architecture. The effects of more than ``MOST_COLUMNS``
        architectures are in the tables only.
        """
        shown = effects and len(rows) <= MOST_COLUMNS
        groups: dict[str, list[str]] = {}
        for architecture, row in rows.items():
            groups.setdefault(verdict(row), []).append(architecture)
        if len(self.look.architectures) == 1:
            only = next(iter(rows.values()))
            return _with_effect(verdict(only), only) if shown else verdict(only)
        if not shown and len(groups) == 1 and len(rows) > 1:
            return f"{next(iter(groups))} for {_every(rows)} architectures"

        def named(architecture: str) -> str:
            name = self.name(architecture)
            return _with_effect(name, rows[architecture]) if shown else name

        return "; ".join(
            f"{text} for {listing([*map(named, names)])}" for text, names in groups.items()
        )

    def agreed(self, rows: Mapping[str, ComparisonRow]) -> str:
        """``higher for all 3 architectures``, or ``higher for 1, inconclusive for 2 of 3``."""
        counts: dict[str, int] = {}
        for row in rows.values():
            word = str(row.verdict)
            counts[word] = counts.get(word, 0) + 1
        if len(self.look.architectures) == 1:
            return next(iter(counts))
        if len(counts) == 1:
            who = f"{_every(rows)} architectures" if len(rows) > 1 else self.names([*rows])
            return f"{next(iter(counts))} for {who}"
        parts = [f"{word} for {n}" for word, n in counts.items()]
        return f"{', '.join(parts)} of {counted(len(rows), 'architecture')}"

    def columns(self) -> list[str]:
        """The architectures that tables with one column each show: at most four, best first."""
        lead = self.lead
        names = self.look.architectures
        if lead is not None and len(names) > MOST_COLUMNS:
            best = self.best(self.metrics[0][0])
            ranked = [c.architecture for c in [*best.group, *best.lower]] if best else []
            names = list(dict.fromkeys([lead.architecture, *ranked, *names]))
        return names[:MOST_COLUMNS]

    def left_out_columns(self) -> list[str]:
        """A line about the architectures that such tables do not show."""
        n = len(self.look.architectures) - len(self.columns())
        if n <= 0:
            return []
        return [f"{counted(n, 'more architecture')}: see [comparisons.csv](comparisons.csv).", ""]


MOST_COLUMNS = 4


def _every(rows: Mapping[str, ComparisonRow]) -> str:
    return "both" if len(rows) == 2 else f"all {len(rows)}"


def verdict(row: ComparisonRow) -> str:
    """``higher``, or ``not tested (fewer than 3 seeds)``."""
    return f"{row.verdict} ({row.reason})" if row.reason else str(row.verdict)


def effect(row: ComparisonRow) -> str:
    """``+0.06 [0.03, 0.09]``: side a minus side b."""
    return with_interval(
        row.a_minus_b, row.ci95_low, row.ci95_high, covers=row.covers, reason=row.reason, sign=True
    )


def _with_effect(text: str, row: ComparisonRow) -> str:
    return text if row.a_minus_b is None else f"{text} ({effect(row)})"


def judged(row: ComparisonRow) -> str:
    """``+0.06 [0.03, 0.09], higher``; the verdict alone if there is no estimate."""
    return verdict(row) if row.a_minus_b is None else f"{effect(row)}, {verdict(row)}"


def reversed_row(row: ComparisonRow) -> ComparisonRow:
    """The same comparison with its sides exchanged."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(
        row,
        a=row.b,
        b=row.a,
        a_minus_b=minus(row.a_minus_b),
        ci95_low=minus(row.ci95_high),
        ci95_high=minus(row.ci95_low),
        verdict=_OPPOSITE.get(row.verdict, row.verdict),
    )


def nothing(what: str) -> str:
    """Why a question has no answer in this sweep."""
    return f"Not available: this sweep has no {what}."
