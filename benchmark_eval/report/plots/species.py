"""Every trained species of a sweep: its result, interval and reliance mark."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark_eval.report import figures
from benchmark_eval.report.looks import OTHER, Look
from benchmark_eval.report.plots.view import View, ends
from benchmark_eval.sweep.table_rows import SpeciesRow

_LINE = 0.118
"""Inches of a species."""
_MOST = 3 * 68
_RECALL = "species recall at the operating threshold"


def dots(view: View, title: str) -> Figure:
    """AP of each species scored in distribution, sorted, in up to three columns."""
    rows = [(row.iid_AP_50_95, row) for row in view.table.species if row.iid_AP_50_95 is not None]
    if not rows:
        return figures.blank(title, "Not shown: no species has an AP in distribution.")
    rows.sort(key=lambda item: (-item[0], item[1].species))
    total = len(rows)
    rows = rows[-_MOST:]
    columns = 1 if total <= 30 else 2 if total <= 110 else 3
    deep = -(-len(rows) // columns)
    longest = max(figures.text_width(row.species, figures.SMALL) for _, row in rows)
    names = min(longest + 0.1, 1.75 if columns < 3 else 1.25)
    page = figures.Page(
        1,
        columns,
        height=_LINE * deep + 0.1,
        left=names + 0.1,
        between=names + 0.16,
        above=0.06,
        below=0.4,
        tallest=_LINE * deep + 3,
    )
    marked = 0
    for column, panel in enumerate(page.axes[0]):
        part = rows[column * deep : (column + 1) * deep]
        for y, (value, row) in enumerate(part):
            marked += bool(row.do_not_rely)
            _species(panel, y, value, row, view)
        panel.set_ylim(deep - 0.4, -0.6)
        panel.set_xlim(0, 1)
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        panel.set_yticks(
            range(len(part)),
            [figures.shortened(row.species, names - 0.06, figures.SMALL) for _, row in part],
        )
        for tick in panel.yaxis.get_major_ticks():
            tick.label1.set_fontstyle("italic")
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=True, axis="x")
        panel.set_xlabel("AP@[.5:.95], in-distribution")
    used = {row.best_architecture for _, row in rows}
    looks = [look for name, look in view.looks.items() if name in used]
    entries: list[Look | Line2D] = list(looks if len(view.architectures) > 1 else ())
    entries.append(_mark("|", figures.INK, _RECALL))
    if marked:
        entries.append(_mark("x", figures.INK, "do not rely on it (see report.md)"))
    seeds = sorted({row.n_seeds for _, row in rows})
    note = (
        "Marker: mean at the best condition of the architecture with the highest AP for the "
        "species "
        "(its colour and marker; chosen on the same images, so slightly optimistic). Bar: 95 % "
        f"interval over retraining, n = {', '.join(map(str, seeds))} seeds; none if all seeds "
        f"agree. "
        "Other images of the species are not covered."
    )
    if len(rows) < total:
        note += f" The {len(rows)} of {total} species with the lowest AP; species.csv has all."
    return page.headings(title, entries, note, lines=False)


def _mark(marker: str, color: str, text: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=color, label=text)


def _species(panel: figures.Axes, y: int, value: float, row: SpeciesRow, view: View) -> None:
    look = view.looks.get(row.best_architecture) or Look("", OTHER, "o")
    limits = ends(row.iid_AP_50_95_ci95_retraining_low, row.iid_AP_50_95_ci95_retraining_high)
    key = str(row.category_id)
    if limits is not None:
        low, high = max(0.0, limits[0]), min(1.0, limits[1])
        figures.bars(
            panel, [(y, low, high)], f"retraining|{key}", look.color, linewidth=0.8, horizontal=True
        )
    panel.plot(
        [value],
        [y],
        marker=look.marker,
        color=look.color,
        linestyle="none",
        zorder=5,
        label=f"mean|{key}",
        clip_on=False,
    )
    if row.iid_species_recall_operating is not None:
        panel.plot(
            [row.iid_species_recall_operating],
            [y],
            marker="|",
            color=figures.INK,
            markersize=4.5,
            linestyle="none",
            zorder=4,
            clip_on=False,
        )
    if row.do_not_rely:
        panel.plot([0.985], [y], marker="x", color=figures.INK, markersize=3.4, zorder=6)
