"""Panels with a budget axis, which many plots of a sweep consist of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark_eval.report import figures
from benchmark_eval.report.looks import OTHER, Look
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.plots.view import REGIME_AXIS, Budgets, Point, Series, View
from benchmark_eval.report.reference import CARD, CARD_IOU, CARD_RANGES
from benchmark_eval.sweep.conditions import FULL_DATA
from benchmark_eval.sweep.species_tables import SPECIES_MEANS

_SEED_STEP = 0.012
"""Distance of the seeds from their mean, as a share of the axis."""


def points_note(complete: int, metrics: Sequence[str]) -> str:
    """The note on seeds, means, intervals and n; ``complete`` is the usual n.

    ``metrics`` decides which intervals are named.
    """
    if complete < 2:
        return "Each point: one seed (n = 1), without an interval of retraining."
    both = [name for name in metrics if name in SPECIES_MEANS]
    kind = (
        "Thick bar: 95 % interval over retraining; thin bar: over species and retraining"
        if both
        else "Bar: 95 % interval over retraining (other seeds, the same test images)"
    )
    if both and len(both) < len(metrics):
        kind += " (AP only)"
    return (
        f"Faint dots: seeds. Marker: their mean, n = {complete} seeds unless stated. {kind}; "
        "cut to the metric's range."
    )


def reading_note(complete: int, metrics: Sequence[str], *, card: bool = False) -> str:
    """The note on the points (``points_note``), the budget axis and the card's range."""
    text = (
        f"{points_note(complete, metrics)} Budgets are on a log2 scale, except 0 and all, which "
        "stand apart (dotted)."
    )
    return f"{text}\nShaded box: {CARD}." if card else text


def budget_axis(
    axes: Axes, budgets: Budgets, label: str, width: float, *, shown: bool = True
) -> None:
    """Ticks at the budgets, as many as fit into ``width`` inches from the largest down.

    An axis that is not ``shown`` has none: that of the panel below applies.
    """
    low, high = budgets.limits
    axes.set_xlim(low, high)
    if not shown:
        axes.set_xticks([])
        return
    scale = width / (high - low)
    ticks: list[tuple[float, str]] = []
    for name, x in sorted(budgets.at.items(), key=lambda item: -item[1]):
        need = figures.text_width(name, figures.SMALL) / 2 + 0.05
        if ticks:
            last_x, last = ticks[-1]
            need += figures.text_width(last, figures.SMALL) / 2
            if (last_x - x) * scale < need:
                continue
        ticks.append((x, name))
    axes.set_xticks([x for x, _ in ticks], [name for _, name in ticks])
    axes.set_xlabel(label)


def draw_series(
    axes: Axes,
    series: Series,
    look: Look,
    *,
    shift: float = 0.0,
    complete: int = 0,
    apart: Collection[float] = (),
    length: float = 8.0,
) -> None:
    """Draw means with a line, intervals as bars and, to their left, each seed as a dot.

    ``shift`` separates series at one budget. A mean of fewer than ``complete`` seeds is annotated
    with its n. Lines to points of ``apart`` are dotted. ``length`` is that of the x axis.
    """
    if series.dots:
        axes.plot(
            [x + shift - _SEED_STEP * length for x, _ in series.dots],
            [y for _, y in series.dots],
            linestyle="none",
            marker="o",
            markersize=2,
            markeredgewidth=0,
            color=look.color,
            alpha=0.45,
            zorder=2,
            label=f"seeds|{series.key}",
        )
    for kind, width in (("species", 0.5), ("retraining", 1.6)):
        spans = [
            (point.x + shift, *ends)
            for point in series.points
            if (ends := getattr(point, kind)) is not None
        ]
        figures.bars(axes, spans, f"{kind}|{series.key}", look.color, linewidth=width)
    for point in series.points:
        if point.n < complete:
            at = (point.x + shift, point.mean)
            figures.halo(axes, f"n={point.n}", at, (3, -7), look.color)
    xs = [point.x + shift for point in series.points]
    ys = [point.mean for point in series.points]
    dotted = any(point.x in apart for point in series.points)
    axes.plot(
        xs,
        ys,
        color=look.color,
        marker=look.marker,
        linestyle="none" if dotted else look.dash,
        markeredgecolor="white",
        markeredgewidth=0.4,
        zorder=5,
        label=f"mean|{series.key}",
    )
    if dotted:
        inner = [point for point in series.points if point.x not in apart]
        _line(axes, inner, shift, look, look.dash, 1.1)
        for a, b in pairwise(series.points):
            if a.x in apart or b.x in apart:
                _line(axes, [a, b], shift, look, ":", 0.7)


def _line(
    axes: Axes, points: Sequence[Point], shift: float, look: Look, dash: str, width: float
) -> None:
    axes.plot(
        [point.x + shift for point in points],
        [point.mean for point in points],
        color=look.color,
        linestyle=dash,
        linewidth=width,
        zorder=4,
    )


def by_architecture(view: View, title: str, metrics: Sequence[str], base: float = 0.0) -> Figure:
    """One row of panels per metric, one column per regime, one line per architecture.

    The y axis includes ``base``: 0, or the metric's value at chance. Architectures without a
    colour of their own are thin grey lines.
    """
    complete = view.seeds(metrics)
    if not complete:
        return figures.blank(title, view.why_undefined(metrics))
    page = figures.Page(
        len(metrics), len(view.regimes), height=1.75 if len(metrics) == 1 else 1.45,
        left=0.6 if len(metrics) == 1 else 0.68, gap=None if len(metrics) == 1 else 0.2,
    )  # fmt: skip
    shift = figures.shifts(len(view.shown))
    for line, metric in zip(page.axes, metrics, strict=True):
        drawn: list[Series] = []
        entry = BY_NAME[metric]
        for panel, regime in zip(line, view.regimes, strict=True):
            budgets = view.budgets[regime]
            for name in view.others:
                _faint(panel, view.series(name, regime, metric))
            for at, (name, look) in enumerate(view.looks.items()):
                series = view.series(name, regime, metric)
                draw_series(
                    panel,
                    series,
                    look,
                    shift=shift[at] * min(1.0, budgets.spacing),
                    complete=view.seeds(metrics, name),
                    apart=budgets.apart,
                    length=budgets.length,
                )
                drawn.append(series)
            last = line is page.axes[-1]
            budget_axis(panel, budgets, REGIME_AXIS[regime], page.panel_width(), shown=last)
        values = [value for series in drawn for value in series.extent()]
        if not values:
            line[0].text(0.02, 0.5, view.why_undefined([metric]), transform=line[0].transAxes)
        values += _card(line, view, metric)
        figures.fit_y(line, values, entry.metric.low, entry.metric.high, base)
        label = entry.metric.label if len(metrics) == 1 else entry.label
        line[0].set_ylabel(figures.wrapped(label, page.height))
        figures.only_left_labels(line)
    for panel, regime in zip(page.axes[0], view.regimes, strict=True):
        panel.set_title(regime)
    card = _on_card(view, metrics)
    entries: list[Look | Patch | Line2D] = [
        Look(_counted(view, name, metrics), look.color, look.marker)
        for name, look in (view.looks.items() if len(view.architectures) > 1 else ())
    ]
    if view.others:
        label = f"{len(view.others)} other architectures (means only)"
        entries.append(Line2D([], [], color=OTHER, linewidth=0.7, label=label))
    note = reading_note(complete, metrics, card=card) + view.others_note("Colours:")
    return page.headings(title, [*entries, *_card_entry(card)], note)


def _faint(panel: Axes, series: Series) -> None:
    panel.plot(
        [point.x for point in series.points],
        [point.mean for point in series.points],
        color=OTHER,
        linewidth=0.7,
        zorder=1.5,
        label=f"other|{series.key}",
    )


def _counted(view: View, architecture: str, metrics: Sequence[str]) -> str:
    return view.look.counted(architecture, list(metrics))


def by_part(view: View, title: str, parts: Sequence[tuple[str, Look]], y_label: str) -> Figure:
    """One row of panels per architecture, one column per regime, one line per (metric, look)."""
    metrics = [metric for metric, _ in parts]
    complete = view.seeds(metrics)
    if not complete:
        return figures.blank(title, view.why_undefined(metrics))
    rows = view.shown
    several = len(view.architectures) > 1
    page = figures.Page(
        len(rows),
        len(view.regimes),
        height=1.75 if len(rows) == 1 else 1.3,
        left=0.58,
        right=0.3 if several else 0.12,
        gap=0.12,
    )
    drawn: list[Series] = []
    card: list[float] = []
    shift = figures.shifts(len(parts), 0.3)
    for at, (line, name) in enumerate(zip(page.axes, rows, strict=True)):
        last = at == len(rows) - 1
        for panel, regime in zip(line, view.regimes, strict=True):
            budgets = view.budgets[regime]
            for (metric, look), moved in zip(parts, shift, strict=True):
                series = view.series(name, regime, metric)
                draw_series(
                    panel,
                    series,
                    look,
                    shift=moved * min(1.0, budgets.spacing),
                    complete=view.seeds(metrics, name),
                    apart=budgets.apart,
                    length=budgets.length,
                )
                drawn.append(series)
            budget_axis(panel, budgets, REGIME_AXIS[regime], page.panel_width(), shown=last)
        for metric, look in parts:
            card += _card(line, view, metric, look.color)
        line[0].set_ylabel(y_label)
        figures.only_left_labels(line)
        if several:
            page.row_label(at, _counted(view, name, metrics))
    entry = BY_NAME[metrics[0]].metric
    values = [value for series in drawn for value in series.extent()]
    figures.fit_y(page.flat, values + card, entry.low, entry.high)
    for panel, regime in zip(page.axes[0], view.regimes, strict=True):
        panel.set_title(regime)
    on_card = _on_card(view, metrics)
    return page.headings(
        title,
        [*(look for _, look in parts), *_card_entry(on_card, ", in its line's colour")],
        reading_note(complete, metrics, card=on_card) + view.others_note(),
    )


def _card_range(view: View, metric: str) -> tuple[float, float] | None:
    """The card's range of a metric; None if this sweep measures it at another IoU."""
    same = metric.endswith("AP_50") or view.table.inputs.options.get("iou_threshold") == CARD_IOU
    return CARD_RANGES.get(metric) if same else None


def _on_card(view: View, metrics: Sequence[str]) -> bool:
    """Whether the card's range is drawn: there is one, and a condition with all training data."""
    full = any(FULL_DATA.get(regime) in view.budgets[regime].at for regime in view.regimes)
    return full and any(_card_range(view, metric) for metric in metrics)


def _card_entry(card: bool, where: str = "") -> list[Patch]:
    label = f"range on the benchmark's card{where}"
    return [Patch(facecolor=figures.GREY, alpha=0.28, label=label)] if card else []


def _card(line: Sequence[Axes], view: View, metric: str, color: str = figures.GREY) -> list[float]:
    """Draw the card's range at all training data; returns the values that must fit the axis."""
    found = _card_range(view, metric)
    shown: list[float] = []
    for panel, regime in zip(line, view.regimes, strict=True):
        at = view.budgets[regime].at.get(FULL_DATA.get(regime, ""))
        if found is None or at is None:
            continue
        panel.add_patch(
            figures.Rectangle(
                (at - 0.42, found[0]),
                0.84,
                found[1] - found[0],
                facecolor=color,
                edgecolor=color,
                alpha=0.25,
                linewidth=0.6,
                zorder=1,
                label="card",
            )
        )
        shown += found
    return shown
