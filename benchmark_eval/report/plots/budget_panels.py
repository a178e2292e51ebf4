"""Panels with a budget axis, which most plots of a sweep consist of."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark_eval.report import figures
from benchmark_eval.report.lookup import BY_NAME, REGIME_AXIS, Lookup, Series
from benchmark_eval.report.reference import CARD, CARD_IOU, CARD_RANGES
from benchmark_eval.sweep.conditions import FULL_DATA
from benchmark_eval.sweep.tables import Aggregated


def _card_range(table: Aggregated, metric: str) -> tuple[float, float] | None:
    """The card's range of a metric; None if this sweep measures it at another IoU."""
    same = metric.endswith("AP_50") or table.inputs.options.get("iou_threshold") == CARD_IOU
    return CARD_RANGES.get(metric) if same else None


def _on_card(look: Lookup, metrics: Sequence[str]) -> bool:
    """Whether the card's range is drawn: there is one, and a condition with all training data."""
    full = any(FULL_DATA.get(regime) in look.budgets[regime] for regime in look.regimes)
    return full and any(_card_range(look.table, metric) for metric in metrics)


def reading_note(complete: int, card: bool = False) -> str:
    """The note on seeds, mean, interval and n; ``complete`` is the usual n."""
    if complete < 2:
        text = "Each point: one seed (n = 1), without an interval. Budgets are evenly spaced."
    else:
        text = (
            f"Faint dots: seeds. Marker: their mean, n = {complete} unless stated. Bar: 95 % "
            "interval of the mean over seeds (Student's t), truncated at the panel's edge. Budgets "
            "are evenly spaced."
        )
    return f"{text}\nShaded box: {CARD}." if card else text


def _card_entry(card: bool, where: str = "") -> list[Patch]:
    label = f"range on the benchmark's card{where}"
    return [Patch(facecolor=figures.GREY, alpha=0.28, label=label)] if card else []


def by_architecture(
    table: Aggregated, metrics: Sequence[str], title: str, base: float = 0.0
) -> Figure:
    """One row of panels per metric, one column per regime, one line per architecture.

    The y axis includes ``base``: 0, or the metric's value at chance.
    """
    look = Lookup(table)
    complete = look.seeds(metrics)
    if not complete:
        return figures.blank(title, "Undefined for every model of this sweep.")
    styles = figures.looks([look.counted(name, metrics) for name in look.architectures])
    figure, axes = figures.panels(
        len(metrics), len(look.regimes), height=3.2 if len(metrics) == 1 else 2.7, share_y=False
    )
    for line, metric in zip(axes, metrics, strict=True):
        drawn: list[Series] = []
        entry = BY_NAME[metric]
        for panel, regime in zip(line, look.regimes, strict=True):
            shown = [(name, metric) for name in look.architectures]
            drawn += _draw_lines(panel, look, regime, shown, styles, metrics)
            figures.budget_axis(panel, look.budgets[regime], REGIME_AXIS[regime])
        values = figures.extent(drawn) + _card(line, look, metric)
        figures.fit_y(line, values, entry.metric.low, entry.metric.high, base)
        label = entry.metric.label if len(metrics) == 1 else entry.label
        line[0].set_ylabel(label.replace(", ", ",\n"))
        _only_left_labels(line)
    for panel, regime in zip(axes[0], look.regimes, strict=True):
        panel.set_title(regime)
    entries = [] if len(styles) == 1 else styles
    card = _on_card(look, metrics)
    figures.headings(figure, title, [*entries, *_card_entry(card)], reading_note(complete, card))
    return figure


def by_part(
    table: Aggregated, parts: Sequence[tuple[str, str]], title: str, y_label: str
) -> Figure:
    """One row of panels per architecture, one column per regime, one line per (metric, label)."""
    look = Lookup(table)
    metrics = [metric for metric, _ in parts]
    complete = look.seeds(metrics)
    if not complete:
        return figures.blank(title, "Undefined for every model of this sweep.")
    styles = figures.looks([label for _, label in parts])
    figure, axes = figures.panels(len(look.architectures), len(look.regimes), height=2.2)
    drawn: list[Series] = []
    card: list[float] = []
    for line, name in zip(axes, look.architectures, strict=True):
        for panel, regime in zip(line, look.regimes, strict=True):
            shown = [(name, metric) for metric in metrics]
            drawn += _draw_lines(panel, look, regime, shown, styles, metrics)
            last = line is axes[-1]
            figures.budget_axis(panel, look.budgets[regime], REGIME_AXIS[regime] if last else "")
        for style, metric in zip(styles, metrics, strict=True):
            card += _card(line, look, metric, style.color)
        line[0].set_ylabel(y_label)
        if len(look.architectures) > 1:
            figures.row_label(line[-1], look.counted(name, metrics))
    metric_entry = BY_NAME[metrics[0]].metric
    figures.fit_y(
        [panel for line in axes for panel in line],
        figures.extent(drawn) + card,
        metric_entry.low,
        metric_entry.high,
    )
    for panel, regime in zip(axes[0], look.regimes, strict=True):
        panel.set_title(regime)
    on_card = _on_card(look, metrics)
    figures.headings(
        figure,
        title,
        [*styles, *_card_entry(on_card, ", in its line's colour")],
        reading_note(complete, on_card),
    )
    return figure


def _draw_lines(
    panel: Axes,
    look: Lookup,
    regime: str,
    shown: Sequence[tuple[str, str]],
    styles: Sequence[figures.Look],
    metrics: Sequence[str],
) -> list[Series]:
    """Draw one line per (architecture, metric), next to each other."""
    drawn = []
    for (name, metric), style, shift in zip(shown, styles, figures.shifts(len(shown)), strict=True):
        series = look.series(name, regime, metric)
        complete = look.seeds(metrics, name)
        figures.draw_series(panel, series, style, shift=shift, complete=complete)
        drawn.append(series)
    return drawn


def _card(
    line: Sequence[Axes], look: Lookup, metric: str, color: str = figures.GREY
) -> list[float]:
    """Draw the card's range at all training data; returns the values that must fit the axis."""
    span = _card_range(look.table, metric)
    shown: list[float] = []
    for panel, regime in zip(line, look.regimes, strict=True):
        budgets = look.budgets[regime]
        if span is not None and FULL_DATA.get(regime) in budgets:
            figures.card_box(panel, budgets.index(FULL_DATA[regime]), span, color)
            shown += span
    return shown


def _only_left_labels(line: Sequence[Axes]) -> None:
    for panel in line[1:]:
        panel.tick_params(labelleft=False)
