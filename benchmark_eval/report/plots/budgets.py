"""All regimes on one axis: metrics by number of training images or specimens."""

from __future__ import annotations

from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmark_eval.report import figures
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.tables import Aggregated, BudgetRow

LABEL = {
    "n_images": "distinct training images (log scale)",
    "n_specimens": "annotated training specimens (log scale)",
}


def cost(table: Aggregated, unit: Literal["n_images", "n_specimens"]) -> Figure:
    """Headline metrics by cost: one row per architecture, one line per regime."""
    title = {
        "n_images": "All regimes by number of training images",
        "n_specimens": "All regimes by number of training specimens",
    }[unit]
    rows = [row for row in table.budget_curves if getattr(row, unit)]
    complete = max((row.headline[m].n for row in rows for m in HEADLINE), default=0)
    if not complete:
        return figures.blank(
            title, "Budgets are unknown: there is no train.json and no training annotations."
        )
    look = Lookup(table)
    styles = dict(zip(look.regimes, figures.looks(look.regimes), strict=True))
    figure, axes = figures.panels(len(look.architectures), len(HEADLINE), height=2.2, share_y=False)
    for column, metric in enumerate(HEADLINE):
        shown = []
        for line, name in zip(axes, look.architectures, strict=True):
            for regime, style in styles.items():
                cells = [
                    row
                    for row in rows
                    if (row.architecture, row.regime) == (name, regime) and row.headline[metric].n
                ]
                shown += _draw(line[column], cells, unit, metric, style)
            shown += _dots(line[column], look, name, rows, unit, metric, styles)
        panels = [line[column] for line in axes]
        figures.fit_y(panels, shown, BY_NAME[metric].metric.low, BY_NAME[metric].metric.high)
        _log_axis(panels, [getattr(row, unit) for row in rows], LABEL[unit])
        axes[0][column].set_title(BY_NAME[metric].label)
    for line, name in zip(axes, look.architectures, strict=True):
        if len(look.architectures) > 1:
            figures.row_label(line[-1], look.short(name))
    sources = {row.source for row in rows}
    note = {
        frozenset({"exact"}): "Numbers are counted in each condition's training annotations.",
        frozenset({"expected"}): "Numbers are expected values over the random draw of images.",
    }.get(frozenset(sources), "Numbers are counted where training annotations are given, "
        "otherwise expected values.")  # fmt: skip
    figures.headings(
        figure,
        title,
        list(styles.values()),
        f"Faint dots: seeds. Marker: their mean (n = {complete} if all were evaluated). Bar: 95 % "
        f"interval of the mean over seeds (Student's t), truncated at the panel's edge.\n{note}",
    )
    return figure


def _draw(
    panel: Axes, cells: list[BudgetRow], unit: str, metric: str, style: figures.Look
) -> list[float]:
    """A line over cost; conditions of equal cost are in budget order."""
    if not cells:
        return []
    means = [row.headline[metric].mean or 0.0 for row in cells]
    key = f"{cells[0].architecture}|{cells[0].regime}|{metric}"
    points = [(getattr(row, unit), row.headline[metric]) for row in cells]
    bars = figures.interval_bars(panel, points, key, style.color, linewidth=1.2, alpha=0.6)
    panel.plot(
        [getattr(row, unit) for row in cells],
        means,
        color=style.color,
        marker=style.marker,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=4,
        label=f"cost|{key}",
    )
    return [*means, *(end for _, low, high in bars for end in (low, high))]


def _dots(
    panel: Axes,
    look: Lookup,
    name: str,
    rows: list[BudgetRow],
    unit: str,
    metric: str,
    styles: dict[str, figures.Look],
) -> list[float]:
    shown = []
    costs = {row.condition: row for row in rows if row.architecture == name}
    for regime, style in styles.items():
        points = [
            (getattr(row, unit), value)
            for model in look.table.models
            if model.regime == regime
            and (row := costs.get(model.condition)) is not None
            and (value := model.values[metric]) is not None
        ]
        panel.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker="o",
            markersize=3.2,
            markeredgewidth=0,
            color=style.color,
            alpha=0.45,
            zorder=2,
            label=f"seeds|{metric}|{regime}",
        )
        shown += [y for _, y in points]
    return shown


def _log_axis(panels: list[Axes], values: list[float], label: str) -> None:
    """A log axis with plain numbers at 1, 2 and 5 times powers of ten."""
    low, high = min(values), max(values)
    ticks = [m * 10.0**e for e in range(-1, 9) for m in (1, 2, 5)]
    shown = [t for t in ticks if low / 1.3 <= t <= high * 1.3]
    while len(shown) > 6:
        shown = shown[::2]
    if len(shown) < 2:  # costs close to each other become ticks themselves
        shown = [low, high] if high > 1.5 * low else [high]
    for panel in panels:
        panel.set_xscale("log")
        panel.set_xlim(low / 1.35, high * 1.35)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticks(shown)
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panels[-1].set_xlabel(label)
