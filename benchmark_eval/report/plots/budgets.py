"""Regimes at equal cost: metrics by number of training images or specimens."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark_eval.inputs.manifest import ONE_ARCHITECTURE
from benchmark_eval.report import figures
from benchmark_eval.report.looks import REGIME_LOOK, Look
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.plots.budget_panels import draw_series, points_note
from benchmark_eval.report.plots.text import verdict_text
from benchmark_eval.report.plots.view import Series, View, point
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.comparison_rows import METRICS
from benchmark_eval.sweep.tables import BudgetRow, ComparisonRow

Unit = Literal["n_images", "n_specimens"]
LABEL = {"n_images": "distinct training images", "n_specimens": "annotated training specimens"}
_NO_COST = (
    "Not shown: budgets are unknown, because there is no train.json and no training annotations."
)
_SHADE = "#EDEDED"


class _Costs:
    """The conditions of known cost, by architecture and regime."""

    def __init__(self, view: View, unit: Unit) -> None:
        self.view, self.unit = view, unit
        self.rows: dict[tuple[str, str], list[BudgetRow]] = defaultdict(list)
        for row in view.table.budget_curves:
            if getattr(row, unit):
                self.rows[row.architecture, row.regime].append(row)

    @property
    def values(self) -> list[float]:
        """Every cost."""
        return [getattr(row, self.unit) for rows in self.rows.values() for row in rows]

    @property
    def length(self) -> float:
        """The length of the axis of log2 costs."""
        low, high = _ends(self.values)
        return high - low

    def series(self, architecture: str, regime: str, metric: str, *, dots: bool = True) -> Series:
        """One headline metric over log2 of the cost."""
        rows = self.rows[architecture, regime]
        at = {row.k_or_p: math.log2(getattr(row, self.unit)) for row in rows}
        curves = {row.k_or_p: row for row in self.view.conditions(architecture, regime)}
        points = [
            found for k, x in at.items() if (found := point(curves[k], metric, x)) is not None
        ]
        seeds = [
            (at[model.k_or_p], value)
            for model in (self.view.models(architecture, regime) if dots else ())
            if model.k_or_p in at and (value := model.values[metric]) is not None
        ]
        points.sort(key=lambda each: each.x)
        return Series(f"{architecture}|{regime}|{metric}", tuple(points), tuple(seeds))

    def note(self) -> str:
        """Where the costs come from."""
        sources = {row.source for rows in self.rows.values() for row in rows}
        return {
            frozenset({"exact"}): "Costs are counted in each condition's training annotations.",
            frozenset({"expected"}): "Costs are expected values over the random draw of images.",
        }.get(
            frozenset(sources),
            "Costs are counted where training annotations are given, otherwise expected values.",
        )


def cost(view: View, title: str, unit: Unit) -> Figure:
    """Headline metrics by cost: one row per architecture, one line per regime."""
    costs = _Costs(view, unit)
    complete = view.seeds(HEADLINE)
    if not costs.values or not complete:
        return figures.blank(title, view.why_undefined(HEADLINE) if costs.values else _NO_COST)
    looks = {regime: REGIME_LOOK[regime] for regime in view.regimes}
    several = len(view.architectures) > 1
    page = figures.Page(
        len(view.shown),
        len(HEADLINE),
        height=1.75 if len(view.shown) == 1 else 1.3,
        right=0.3 if several else 0.12,
        between=0.4,
        gap=0.12,
    )
    for column, metric in enumerate(HEADLINE):
        drawn: list[Series] = []
        panels = [line[column] for line in page.axes]
        for panel, name in zip(panels, view.shown, strict=True):
            for regime, look in looks.items():
                series = costs.series(name, regime, metric)
                draw_series(
                    panel, series, look, complete=view.seeds([metric], name), length=costs.length
                )
                drawn.append(series)
        values = [value for series in drawn for value in series.extent()]
        figures.fit_y(panels, values, BY_NAME[metric].metric.low, BY_NAME[metric].metric.high)
        log_axis(panels, costs.values, f"{LABEL[unit]} (log2)", page.panel_width())
        panels[0].set_title(figures.wrapped(BY_NAME[metric].label, page.panel_width()))
        if not values:
            panels[0].text(0.03, 0.5, "not evaluated", transform=panels[0].transAxes)
    page.above = 0.34
    if several:
        for row, name in enumerate(view.shown):
            page.row_label(row, view.look.short(name))
    return page.headings(
        title,
        list(looks.values()),
        f"{points_note(complete, HEADLINE)} {costs.note()}{view.others_note()}",
    )


def equal_budget(view: View, title: str) -> Figure:
    """Each pair of regimes over images, with the range of costs that both cover shaded."""
    costs = _Costs(view, "n_images")
    metric = METRICS[0]
    pairs = list(combinations(view.regimes, 2))
    complete = view.seeds([metric.name])
    if not pairs:
        return figures.blank(title, "Not shown: the sweep has one regime only.")
    if not costs.values or not complete:
        return figures.blank(title, view.why_undefined([metric.name]) if costs.values else _NO_COST)
    several = len(view.architectures) > 1
    page = figures.Page(
        len(view.shown),
        len(pairs),
        height=1.75 if len(view.shown) == 1 else 1.35,
        right=0.3 if several else 0.12,
        gap=0.12,
    )
    rows = {
        (row.question, row.a.split(", ")[0], row.b.split(", ")[0]): row
        for row in view.table.comparisons
        if row.metric == metric.name and row.question.startswith("equal_budget_")
    }
    drawn: list[Series] = []
    for at, (line, name) in enumerate(zip(page.axes, view.shown, strict=True)):
        for panel, pair in zip(line, pairs, strict=True):
            both = [costs.series(name, regime, metric.name, dots=False) for regime in pair]
            _shade(panel, both)
            for series, regime in zip(both, pair, strict=True):
                draw_series(panel, series, REGIME_LOOK[regime])
            drawn += both
            panel.text(
                0.03,
                0.97,
                _differences(rows, name, pair),
                transform=panel.transAxes,
                va="top",
                fontsize=figures.SMALL,
                linespacing=1.15,
            )
        figures.only_left_labels(line)
        if several:
            page.row_label(at, view.look.short(name))
    values = [value for series in drawn for value in series.extent()]
    entry = BY_NAME[metric.name].metric
    figures.fit_y(page.flat, [*values, 1.45 * max(values, default=1.0)], entry.low, None)
    for column, pair in enumerate(pairs):
        label = f"{LABEL['n_images']} (log2)"
        panels = [line[column] for line in page.axes]
        log_axis(panels, costs.values, label, page.panel_width())
        panels[0].set_title(figures.wrapped(" minus ".join(pair), page.panel_width()))
    page.above = 0.34
    for line in page.axes:
        line[0].set_ylabel(figures.wrapped(entry.label, 1.3))
    looks: list[Look | Patch] = [REGIME_LOOK[regime] for regime in view.regimes]
    return page.headings(
        title,
        [*looks, Patch(facecolor=_SHADE, label="costs that both regimes cover")],
        "Numbers: mean difference of the curves (first regime minus second) over the shaded costs, "
        "with the plain 95 % interval over species and retraining; the verdict is by Holm's test. "
        "im.: at equal images; sp.: at equal specimens. Bars: as in the plots by images. "
        f"{costs.note()}{view.others_note()}",
    )


def _shade(panel: Axes, both: Sequence[Series]) -> None:
    """The costs that both series cover, and the area between them."""
    ranges = [[each.x for each in series.points] for series in both]
    if not all(ranges):
        return
    low, high = max(min(r) for r in ranges), min(max(r) for r in ranges)
    if low < high:
        panel.axvspan(low, high, facecolor=_SHADE, edgecolor="none", zorder=0, label="common")


def _differences(
    rows: dict[tuple[str, str, str], ComparisonRow], architecture: str, pair: tuple[str, str]
) -> str:
    a, b = (
        regime if architecture == ONE_ARCHITECTURE else f"{architecture} {regime}"
        for regime in pair
    )
    lines = []
    for unit, short in (("images", "im."), ("specimens", "sp.")):
        row = rows.get((f"equal_budget_{unit}", a, b))
        if row is not None:
            lines.append(f"{short} {verdict_text(row)}")
    return "\n".join(lines) or "not compared"


def _ends(costs: Sequence[float]) -> tuple[float, float]:
    """The limits of an axis of log2 costs."""
    return math.log2(min(costs) / 1.15), math.log2(max(costs) * 1.15)


def log_axis(panels: Sequence[Axes], costs: Sequence[float], label: str, width: float) -> None:
    """A log2 axis of positions log2(cost), with plain numbers at its ticks."""
    low, high = min(costs), max(costs)
    first, last = _ends(costs)
    most = max(2, int(width / 0.38))
    ticks = [2.0**e for e in range(math.ceil(first), math.floor(last) + 1)]
    ticks = ticks[:: -(-len(ticks) // most)] if ticks else []
    if len(ticks) < 3:  # costs close to each other: round numbers at equal steps
        step = 10 ** math.floor(math.log10(max(high * 1.15 - low / 1.15, 1e-9)))
        ticks = [n * step for n in range(math.ceil(low / 1.15 / step), int(high * 1.15 / step) + 1)]
        ticks = [tick for tick in ticks if tick > 0]
        ticks = ticks[:: -(-len(ticks) // min(most, 4))] if ticks else [low]
    for panel in panels:
        panel.set_xlim(first, last)
        panel.set_xticks([])
    panels[-1].set_xticks(
        [math.log2(tick) for tick in ticks],
        [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in ticks],
    )
    panels[-1].set_xlabel(label)
