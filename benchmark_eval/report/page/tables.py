"""The tables of the page, which are read, sorted and searched without charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmark_eval.core.csv_text import csv_cell
from benchmark_eval.core.text import percent
from benchmark_eval.inputs.manifest import budget_text
from benchmark_eval.report.facts import SHORT, Facts, effect
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.markdown import MISSING
from benchmark_eval.results.registry import HEADLINE, SPLIT_LABEL
from benchmark_eval.sweep.tables import (
    RETRAINING,
    SPECIES_RETRAINING,
    ComparisonRow,
    CurveRow,
    PlanningRow,
)
from benchmark_eval.sweep.verdicts import Word

LEADING = (HEADLINE[0], "iid_AP_50", *HEADLINE[1:])
"""The metrics that the leaderboard shows first."""
CHOICE = (
    "iid_AP_75",
    "iid_AR_100",
    "iid_detection_recall",
    "iid_classification_given_detection_acc",
    "iid_species_recall",
    "iid_ECE",
    "iid_head_minus_tail_AP_50",
    "inat_AP_50",
    "inat_detection_recall",
    "inat_classification_given_detection_acc",
    "inat_species_recall",
    "ood_detection_recall",
    "ood_near_genus_AR_100",
    "ood_mid_tribe_AR_100",
    "ood_far_tribe_AR_100",
    "photography_robustness_gap_AP_50_95_shared_species",
    "novelty_det_AUROC",
    "novelty_det_FPR@95TPR",
)
"""Metrics that can be added to the leaderboard."""
PARTS = ("mean", "n", *SPECIES_RETRAINING, *RETRAINING)
"""The CSV columns of a metric."""


@dataclass(frozen=True, slots=True)
class Head:
    """A column: its label, its names in the CSV file, whether it is shown at first.

    ``pick`` adds a selection of its values above the table.
    """

    label: str
    names: tuple[str, ...]
    number: bool = False
    shown: bool = True
    pick: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, further lines by kind, its value to sort by and its CSV cells."""

    text: str
    lines: tuple[tuple[str, str], ...] = ()
    value: float | None = None
    data: tuple[float | int | str | None, ...] | None = None
    mark: str = ""

    @property
    def csv(self) -> str:
        """The cell or cells in the CSV file."""
        cells = (self.text,) if self.data is None else self.data
        return ",".join("" if c is None else csv_cell(str(c)) for c in cells)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a caption. ``names`` are what each row is found by in the toolbox."""

    id: str
    caption: str
    head: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    names: Sequence[str]
    note: str = ""
    intervals: bool = False
    empty: str = "No rows."


def compact(value: float | None) -> float | None:
    """A number to five significant digits, as the page holds it."""
    return None if value is None else float(f"{value:.5g}")


def shown(value: float | None, digits: int = 3) -> str:
    """A number to three decimals."""
    return MISSING if value is None else f"{value:.{digits}f}"


def between(low: float | None, high: float | None, reason: object = None) -> str:
    """``[0.527, 0.547]``, or why there is no interval."""
    if low is None or high is None:
        return f"none ({reason})" if reason else "none"
    return f"[{shown(low)}, {shown(high)}]"


def leaderboard(facts: Facts) -> Grid:
    """Every condition of every architecture with both intervals and the tie groups of the best."""
    ties = [(metric, split) for metric, split in facts.metrics if facts.best(metric)]
    names = [name for name in (*LEADING, *CHOICE) if _any(facts, name)]
    head = [
        *([Head("Architecture", ("architecture",), pick=True)] if facts.look.several else []),
        Head("Regime", ("regime",), pick=True),
        Head("Budget", ("k_or_p",)),
        Head("Images", ("n_images",), number=True),
    ]
    for metric, split in ties:
        head.append(
            Head(f"Tied with the best: {_tied_by(metric, split)}", (f"tie_group_{metric}",))
        )
    head += [
        Head(
            BY_NAME[name].label,
            tuple(f"{name}_{part}" for part in PARTS),
            number=True,
            shown=name in LEADING,
        )
        for name in names
    ]
    words = [_tie_words(facts, metric) for metric, _ in ties]
    lead = next((name for name in names if name in HEADLINE), None)
    ordered = sorted(
        facts.data.learning_curves,
        key=lambda row: -((row.metrics[lead].mean if lead else None) or 0.0),
    )
    rows, found = [], []
    for row in ordered:
        budget = budget_text(row.regime, row.k_or_p)
        cost = facts.cost[row.condition]
        about = "about " if cost.source == "expected" else ""
        cells = [Cell(row.architecture)] if facts.look.several else []
        cells += [
            Cell(row.regime),
            Cell(budget, tuple(_state(facts, row)), cost.n_images, (row.k_or_p,)),
            Cell(
                MISSING if cost.n_images is None else f"{about}{cost.n_images:,.0f}",
                value=cost.n_images,
                data=(cost.n_images,),
            ),
        ]
        for each in words:
            word = each.get(str(row.condition), "not compared")
            cells.append(Cell(word, mark=word if word in {"best", "tied"} else ""))
        cells += [_level(row, name) for name in names]
        rows.append(cells)
        found.append(_found_by(row))
    return Grid(
        "leaderboard-table",
        "All conditions, by descending mean of the first metric",
        head,
        rows,
        found,
        note="Means over n seeds with 95 % intervals: S+R covers other species and retraining, R "
        "retraining only; S+R none: the metric is not a mean over species. A tie group holds the "
        "best condition and all that do not differ from it (Tukey's range test over all "
        "conditions); not compared: fewer than 3 seeds in common with the others, or the same "
        "training set as another condition.",
        intervals=True,
    )


def _tied_by(metric: str, split: str) -> str:
    return f"{SHORT[metric].replace('species-mean ', '')}, {SPLIT_LABEL[split]}"


def _any(facts: Facts, name: str) -> bool:
    return any(row.metrics[name].n for row in facts.data.learning_curves)


def _tie_words(facts: Facts, metric: str) -> dict[str, str]:
    best = facts.best(metric)
    if best is None:
        return {}
    if best.reason is not None:
        return {str(c): "not tested" for c in best.group}
    words = {str(c): "tied" for c in best.tied} | {str(c): "lower" for c in best.lower}
    return {str(best.condition): "best"} | words


def _state(facts: Facts, row: CurveRow) -> Iterable[tuple[str, str]]:
    if row.missing:
        yield "state", f"incomplete: {len(row.missing)} missing"
    if row.identical:
        yield "state", "seeds with the same files"
    if facts.warned(row):
        yield "state", "warnings"


def _level(row: CurveRow, name: str) -> Cell:
    estimate, narrow = row.metrics[name], row.retraining[name]
    wide = row.species_retraining.get(name)
    fixed = name in row.by_construction
    if estimate.mean is None:
        return Cell(MISSING, (("n", "n=0"),), None, (None, 0, None, None, None, None))
    lines = [("n", f"n={estimate.n}" + (", by construction" if fixed else ""))]
    if wide is not None:
        lines.append(("sr", f"S+R {between(wide.low, wide.high, wide.reason)}"))
    else:
        lines.append(("sr", "S+R none"))
    lines.append(("r", f"R {between(narrow.low, narrow.high, narrow.reason)}"))
    data = (
        compact(estimate.mean),
        estimate.n,
        compact(wide.low) if wide else None,
        compact(wide.high) if wide else None,
        compact(narrow.low),
        compact(narrow.high),
    )
    return Cell(shown(estimate.mean), tuple(lines), compact(estimate.mean), data)


def _found_by(row: CurveRow) -> str:
    return f"{row.architecture} {row.regime} {budget_text(row.regime, row.k_or_p)}"


def comparisons(facts: Facts, id_: str, caption: str, questions: Sequence[str]) -> Grid:
    """The comparisons of some questions with their verdicts."""
    rows = [row for row in facts.data.comparisons if row.question in questions]
    head = [
        Head("Metric", ("metric",), pick=True),
        Head("A", ("a",)),
        Head("B", ("b",)),
        Head("A minus B", ("a_minus_b", "ci95_low", "ci95_high", "covers"), number=True),
        Head("Verdict", ("verdict",), pick=True),
        Head("p (Holm)", ("p_holm",), number=True),
        Head("Species", ("n_species",), number=True),
        Head("Seeds", ("n_seeds",), number=True),
    ]
    return Grid(
        id_,
        caption,
        head,
        [_compared(row) for row in rows],
        [f"{row.a} {row.b}" for row in rows],
        note="Differences are paired by species and seed; the plain 95 % interval covers species "
        "and retraining unless it says otherwise. Verdicts are corrected for the number of tests "
        "of their question. From comparisons.csv.",
        empty="Nothing was compared.",
    )


def _compared(row: ComparisonRow) -> list[Cell]:
    value = compact(row.a_minus_b)
    data = (value, compact(row.ci95_low), compact(row.ci95_high), str(row.covers))
    word = str(row.verdict)
    return [
        Cell(f"{SHORT.get(row.metric, row.metric)}, {SPLIT_LABEL.get(row.split, row.split)}"),
        Cell(row.a),
        Cell(row.b),
        Cell(effect(row), value=value, data=data),
        Cell(
            word,
            ((("reason", str(row.reason)),) if row.reason else ()),
            mark=word if row.verdict in {Word.HIGHER, Word.LOWER} else "",
        ),
        Cell(shown(row.p_holm), value=compact(row.p_holm), data=(compact(row.p_holm),)),
        Cell(f"{row.n_species:,}", value=row.n_species, data=(row.n_species,)),
        Cell(f"{row.n_seeds:,}", value=row.n_seeds, data=(row.n_seeds,)),
    ]


def planning(facts: Facts) -> Grid:
    """The cost at which a regime reaches a share of what all images reach."""
    head = [
        *([Head("Architecture", ("architecture",), pick=True)] if facts.look.several else []),
        Head("Regime", ("regime",), pick=True),
        Head("Metric", ("metric",), pick=True),
        Head("Share of the result with all images", ("fraction",), number=True),
        Head("Unit", ("unit",), pick=True),
        Head("Cost", ("cost",), number=True),
        Head("95 % interval (retraining)", ("ci95_low", "ci95_high")),
    ]
    rows = []
    for row in facts.data.budget_planning:
        cost = _cost(row.cost, row.cost_beyond, row)
        interval = (
            f"{_cost(row.ci95_low, row.low_beyond, row)} to "
            f"{_cost(row.ci95_high, row.high_beyond, row)}"
            if row.reason is None
            else f"none ({row.reason})"
        )
        cells = [Cell(row.architecture)] if facts.look.several else []
        cells += [
            Cell(row.regime),
            Cell(BY_NAME[row.metric].label if row.metric in BY_NAME else row.metric),
            Cell(percent(round(100 * row.fraction), 100), value=row.fraction, data=(row.fraction,)),
            Cell(row.unit),
            Cell(cost, value=row.cost, data=(compact(row.cost),)),
            Cell(interval, data=(compact(row.ci95_low), compact(row.ci95_high))),
        ]
        rows.append(cells)
    return Grid(
        "planning-table",
        "Cost at which a regime reaches a share of the result with all images",
        head,
        rows,
        [f"{row.architecture} {row.regime}" for row in facts.data.budget_planning],
        note="Read from the isotonic mean curve; < smallest and > largest lie beyond the budgets "
        "of the regime. From budget_planning.csv.",
        empty="No cost is known: the benchmark has no train.json, or no metric has a ceiling.",
    )


def _cost(value: float | None, beyond: str, row: PlanningRow) -> str:
    if value is not None:
        return f"{value:,.0f}"
    if beyond:
        bound = row.smallest if beyond.startswith("<") else row.largest
        return f"{beyond} ({bound:,.0f})"
    return f"undefined ({row.reason})" if row.reason else MISSING
