"""Forest plots: paired differences with their intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark_eval.report import figures
from benchmark_eval.report.plots.view import View, ends
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.comparison_rows import METRICS
from benchmark_eval.sweep.tables import ComparisonRow
from benchmark_eval.sweep.verdicts import Word

_LINE = 0.125
"""Inches of a row."""
_MOST = 60
_MARKS = (
    ((Word.HIGHER, Word.LOWER), "D", figures.INK, "different (Holm-adjusted p < 0.05)"),
    ((Word.INCONCLUSIVE, Word.INCONCLUSIVE_AFTER_CORRECTION), "o", "white", "inconclusive"),
    ((Word.NOT_TESTED,), "x", figures.INK, "not tested"),
)
_NAMES = {
    METRICS[0].name: "AP@[.5:.95]",
    METRICS[1].name: "AP@[.5:.95]",
    METRICS[2].name: "detection recall",
}

Row = tuple[str, str, dict[str, ComparisonRow]]


def architectures(view: View, title: str) -> Figure:
    """Every pair of architectures at every condition."""
    if len(view.architectures) < 2:
        return figures.blank(title, "Not shown: the sweep has one architecture only.")
    rows: dict[tuple[str, str, str], dict[str, ComparisonRow]] = {}
    for row in view.table.comparisons:
        if row.question != "architectures":
            continue
        a, b = (_without_condition(side, view) for side in (row.a, row.b))
        key = (row.a.removeprefix(f"{a} "), a, b)
        rows.setdefault(key, {})[row.metric] = row
    chosen, note = _few(rows, view)
    return _forest(
        title,
        [
            (where, f"{_short(view, a)} − {_short(view, b)}", found)
            for (where, a, b), found in chosen
        ],
        f"Mean over species and seeds of the first architecture minus the second, at the same "
        f"condition.{note}",
        "Not shown: no condition was evaluated for two architectures.",
    )


def steps(view: View, title: str) -> Figure:
    """Every step from one budget of a curve to the next."""
    rows: dict[tuple[str, str, str], dict[str, ComparisonRow]] = {}
    for row in view.table.comparisons:
        if row.question == "steps":
            rows.setdefault((row.scope, row.a, row.b), {})[row.metric] = row
    kept = {
        key: found
        for key, found in rows.items()
        if any(key[0] == name or key[0].startswith(f"{name} ") for name in view.shown)
        or not view.look.several
    }
    note = view.others_note()
    if len(kept) + len({key[0] for key in kept}) > _MOST:
        last = {key[0]: key for key in kept}
        kept = {key: found for key, found in kept.items() if last[key[0]] == key}
        note += " Only the last step of each curve; all are in comparisons.csv."
    return _forest(
        title,
        [
            (scope, f"{a.removeprefix(scope).strip()} − {b.removeprefix(scope).strip()}", found)
            for (scope, a, b), found in kept.items()
        ],
        f"Mean over species and seeds at a budget minus that at the budget before it.{note}",
        "Not shown: no curve has two budgets.",
    )


def _without_condition(side: str, view: View) -> str:
    """The architecture of ``str(condition)``."""
    names = [name for name in view.architectures if side.startswith(f"{name} ")]
    return max(names, key=len, default=side)


def _short(view: View, name: str) -> str:
    return figures.shortened(view.look.short(name), 0.75, figures.SMALL)


def _few(
    rows: dict[tuple[str, str, str], dict[str, ComparisonRow]], view: View
) -> tuple[list[tuple[tuple[str, str, str], dict[str, ComparisonRow]]], str]:
    """The comparisons that fit on a page: those at the largest budgets if there are too many."""
    shown = set(view.shown)
    chosen = [item for item in rows.items() if {item[0][1], item[0][2]} <= shown]
    note = view.others_note()
    if len(chosen) + len({key[0] for key, _ in chosen}) > _MOST:
        last: dict[str, str] = {}
        for (where, _, _), _ in chosen:
            last[where.split(" ")[0]] = where
        chosen = [item for item in chosen if item[0][0] in last.values()]
        note += " Only the largest budget of each regime; all are in comparisons.csv."
    if len(chosen) > _MOST:
        lead = max(view.shown, key=lambda name: view.best[name] or 0.0)
        chosen = [item for item in chosen if lead in item[0][1:]]
        note += f" Only pairs with {lead}, the architecture with the best condition."
    return chosen[:_MOST], note


def _forest(title: str, rows: Sequence[Row], note: str, nothing: str) -> Figure:
    """One column of panels per metric; rows are grouped by their first text."""
    metrics = [m for m in METRICS if any(m.name in found for _, _, found in rows)]
    if not metrics:
        return figures.blank(title, nothing)
    places: list[tuple[float, str, bool]] = []
    at = 0.0
    previous = None
    position = []
    for group, label, _ in rows:
        if group != previous:
            at += 0.35 if previous is not None else 0.0
            places.append((at, group, True))
            at += 1
            previous = group
        places.append((at, label, False))
        position.append(at)
        at += 1
    left = 0.16 + max(
        figures.text_width(text, figures.SMALL, bold=bold) for _, text, bold in places
    )
    page = figures.Page(
        1,
        len(metrics),
        height=_LINE * at,
        left=min(left, 2.7),
        above=0.36,
        below=0.42,
        tallest=_LINE * at + 2,
    )
    for panel, metric in zip(page.axes[0], metrics, strict=True):
        found = [
            (y, row[metric.name])
            for y, (_, _, row) in zip(position, rows, strict=True)
            if metric.name in row
        ]
        _draw(panel, found, metric.name)
        panel.set_ylim(at - 0.5, -0.7)
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
        panel.grid(visible=False)
        panel.grid(visible=True, axis="x")
        figures.zero_line(panel, vertical=True)
        panel.set_title(f"{_NAMES[metric.name]},\n{SPLIT_LABEL[metric.split]}")
        panel.set_xlabel("difference")
    first = page.axes[0][0]
    for y, text, bold in places:
        first.annotate(
            text,
            (0, y),
            xycoords=("axes fraction", "data"),
            xytext=(-4 if not bold else 0, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=figures.SMALL,
            fontweight="bold" if bold else "normal",
            annotation_clip=False,
        )
    marks = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=marker,
            markerfacecolor=fill,
            color=figures.INK,
            label=text,
        )
        for _, marker, fill, text in _MARKS
    ]
    tests = " / ".join(
        str(max((row[m.name].n_tests for _, _, row in rows if m.name in row), default=0))
        for m in metrics
    )
    first_row = next(row[m.name] for _, _, row in rows for m in metrics if m.name in row)
    note = (
        f"{note} Bar: plain 95 % interval over {first_row.covers}. Verdicts: Holm's correction "
        f"over "
        f"the tests of a question ({tests} tests per panel"
        f"{' and curve' if first_row.question == 'steps' else ''}). " + _sizes(rows)
    )
    return page.headings(title, marks, note)


def _sizes(rows: Sequence[Row]) -> str:
    """The number of species and seeds behind each panel."""
    parts = []
    for metric in METRICS:
        found = [row[metric.name] for _, _, row in rows if metric.name in row]
        if found:
            species = max(row.n_species for row in found)
            seeds = max(row.n_seeds for row in found)
            parts.append(f"{species} species, {seeds} seeds")
    return f"n, by panel: {'; '.join(parts)}."


def _draw(panel: Axes, found: Sequence[tuple[float, ComparisonRow]], metric: str) -> None:
    spans = [
        (y, *limits)
        for y, row in found
        if (limits := ends(row.ci95_low, row.ci95_high)) is not None
    ]
    figures.bars(panel, spans, f"ci95|{metric}", figures.INK, linewidth=0.8, horizontal=True)
    for words, marker, fill, _ in _MARKS:
        points = [
            (row.a_minus_b, y)
            for y, row in found
            if row.verdict in words and row.a_minus_b is not None
        ]
        if points:
            panel.plot(
                [x for x, _ in points],
                [y for _, y in points],
                linestyle="none",
                marker=marker,
                markersize=3.2,
                markerfacecolor=fill,
                color=figures.INK,
                markeredgewidth=0.7,
                zorder=5,
                label=f"{words[0]}|{metric}",
            )
