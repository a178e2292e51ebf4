"""Plots about target species: the band x k grid, and target against non-target species."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmark_eval.report import figures
from benchmark_eval.report.lookup import REGIME_AXIS, Lookup, Series
from benchmark_eval.report.plots.budget_panels import reading_note
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.tables import GAP_SIDES, TARGET_REGIME, Aggregated

SPLIT = "iid_test"
_NO_TARGETS = f"This sweep has no model of {TARGET_REGIME} with scored target species."
SIDES = {
    "target": "target species",
    "nontarget": "non-target species",
    "gap": "target minus non-target",
}


def grid(table: Aggregated) -> Figure:
    """AP of each band's target species at each k, as number, n and colour."""
    title = "AP@.5 of target species by distance band and number of images, in-distribution"
    rows = [row for row in table.target_species_curves if row.split == SPLIT]
    if not any(row.AP_50.n for row in rows):
        return figures.blank(title, _NO_TARGETS)
    look = Lookup(table)
    names = list(dict.fromkeys(row.architecture for row in rows))
    budgets = look.budgets[TARGET_REGIME]
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure, axes = figures.panels(lines, columns, height=2.9)
    flat = [panel for line in axes for panel in line]
    top = max(row.AP_50.mean or 0.0 for row in rows) or 1.0
    colours = mpl.colormaps["cividis"]
    for panel, name in zip(flat, names, strict=False):
        for row in rows:
            if row.architecture != name:
                continue
            x, y = budgets.index(row.k), list(BAND_LABEL).index(row.band)
            _grid_cell(panel, (x, y), row.AP_50, top, colours)
        figures.budget_axis(panel, budgets, REGIME_AXIS[TARGET_REGIME])
        panel.set_xlim(-0.5, len(budgets) - 0.5)  # cells fill the panel, however few
        panel.set_ylim(len(BAND_LABEL) - 0.5, -0.5)
        panel.set_yticks(range(len(BAND_LABEL)), list(BAND_LABEL.values()))
        panel.tick_params(length=0)
        panel.grid(visible=False)
        for spine in panel.spines.values():
            spine.set_visible(False)
        if len(names) > 1:
            panel.set_title(look.short(name))
    for panel in flat[len(names) :]:
        panel.set_visible(False)
    species = {band: max(r.n_species for r in rows if r.band == band) for band in BAND_LABEL}
    counts = ", ".join(f"{label}: {species[band]}" for band, label in BAND_LABEL.items())
    figures.headings(
        figure,
        title,
        [],
        f"Each cell: mean over seeds of the mean over the band's target species ({counts}); "
        "n: seeds. Brighter is better.",
    )
    return figure


def _grid_cell(
    panel: figures.Axes,
    at: tuple[int, int],
    value: figures.Estimate,
    top: float,
    colours: mpl.colors.Colormap,
) -> None:
    x, y = at
    level = None if value.mean is None else value.mean / top
    panel.add_patch(
        figures.Rectangle(
            (x - 0.48, y - 0.46),
            0.96,
            0.92,
            facecolor="#EEEEEE" if level is None else colours(level),
            edgecolor="none",
        )
    )
    text = "–" if value.mean is None else f"{value.mean:.2f}"
    ink = "black" if level is None or level > 0.5 else "white"
    panel.text(x, y - 0.08, text, ha="center", va="center", color=ink, fontsize=11)
    panel.text(x, y + 0.27, f"n={value.n}", ha="center", va="center", color=ink, fontsize=8)


def target_vs_nontarget(table: Aggregated) -> Figure:
    """Target species, non-target species and their difference, by k."""
    title = "AP@.5 of target and non-target species, in-distribution"
    rows = [row for row in table.target_vs_nontarget if row.split == SPLIT]
    if not any(row.target_AP_50.n for row in rows):
        return figures.blank(title, _NO_TARGETS)
    look = Lookup(table)
    budgets = look.budgets[TARGET_REGIME]
    names = list(dict.fromkeys(row.architecture for row in rows))
    styles = figures.looks(list(SIDES.values()))
    # small, so that two lines meet where their difference crosses 0
    shift = [0.25 * step for step in figures.shifts(len(styles))]
    complete = max(row.target_AP_50.n for row in rows)
    columns = min(3, len(names))
    figure, axes = figures.panels(-(-len(names) // columns), columns)
    flat = [panel for line in axes for panel in line]
    drawn = []
    for panel, name in zip(flat, names, strict=False):
        for at, side in enumerate(GAP_SIDES):
            series = Series(
                f"{name}|{TARGET_REGIME}|{SPLIT}/{side}/AP_50",
                tuple(
                    (budgets.index(row.k), value)
                    for row in rows
                    if row.architecture == name and (value := getattr(row, f"{side}_AP_50")).n
                ),
                look.target_dots(name, f"{SPLIT}/{side}/AP_50", budgets),
            )
            figures.draw_series(panel, series, styles[at], shift=shift[at], complete=complete)
            drawn.append(series)
        figures.budget_axis(panel, budgets, REGIME_AXIS[TARGET_REGIME])
        if len(names) > 1:
            panel.set_title(look.short(name))
    for panel in flat[len(names) :]:
        panel.set_visible(False)
    figures.fit_y(flat[: len(names)], figures.extent(drawn), -1.0, 1.0)
    for line in axes:
        line[0].set_ylabel("AP@.5")
    figures.headings(figure, title, styles, reading_note(complete))
    return figure
