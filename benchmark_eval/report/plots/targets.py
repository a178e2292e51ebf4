"""Plots about target species: what their images bring them, and what they do to all others."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.report import figures
from benchmark_eval.report.looks import BAND_LOOK, RELATION_LOOK, Look
from benchmark_eval.report.plots.budget_panels import budget_axis, draw_series
from benchmark_eval.report.plots.text import number
from benchmark_eval.report.plots.view import REGIME_AXIS, Budgets, Point, Series, View, ends
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.tables import TARGET_REGIME, TargetRow

SPLIT = "iid_test"
_MOST_COLUMNS = 3
_NO_TARGETS = f"Not shown: this sweep has no model of {TARGET_REGIME} with scored target species."


def grid(view: View, title: str) -> Figure:
    """AP of each band's target species at each k, as number and shade."""
    rows = [row for row in view.table.target_species_curves if row.split == SPLIT]
    if not any(row.AP_50_95.n for row in rows):
        return figures.blank(title, _NO_TARGETS)
    names = [name for name in view.shown if any(row.architecture == name for row in rows)]
    budgets = view.look.budgets[TARGET_REGIME]
    columns = min(3, len(names))
    several = len(view.architectures) > 1
    page = figures.Page(
        -(-len(names) // columns),
        columns,
        height=1.05,
        left=0.98,
        above=0.22 if several else 0.06,
    )
    top = max(row.AP_50_95.mean or 0.0 for row in rows) or 1.0
    complete = max(row.AP_50_95.n for row in rows)
    for panel, name in zip(page.flat, names, strict=False):
        for row in rows:
            if row.architecture == name:
                x, y = budgets.index(row.k), OOD_BANDS.index(row.band)
                _cell(panel, (x, y), row, top, complete)
        panel.set_xticks(range(len(budgets)), budgets)
        panel.set_xlabel(REGIME_AXIS[TARGET_REGIME])
        panel.set_xlim(-0.5, len(budgets) - 0.5)
        panel.set_ylim(len(OOD_BANDS) - 0.5, -0.5)
        panel.set_yticks(
            range(len(OOD_BANDS)), [BAND_LABEL[band].replace(" (", "\n(") for band in OOD_BANDS]
        )
        panel.tick_params(length=0)
        panel.grid(visible=False)
        for spine in panel.spines.values():
            spine.set_visible(False)
        if several:
            panel.set_title(view.look.short(name))
    _hide_rest(page, len(names))
    for line in page.axes:
        figures.only_left_labels(line)
    species = {
        band: max((r.n_species for r in rows if r.band == band), default=0) for band in OOD_BANDS
    }
    counts = ", ".join(f"{BAND_LABEL[band]}: {species[band]}" for band in OOD_BANDS)
    return page.headings(
        title,
        [],
        f"Each cell: AP@[.5:.95], mean over n = {complete} seeds (unless stated) of the mean "
        f"over the band's "
        f"target species ({counts}). Brighter is higher. Hatched: 0 by construction, because no "
        f"image of a target was used.{view.others_note('Panels: ')}",
    )


def _hide_rest(page: figures.Page, used: int) -> None:
    for panel in page.flat[used:]:
        panel.set_visible(False)


def _cell(panel: Axes, at: tuple[int, int], row: TargetRow, top: float, complete: int) -> None:
    x, y = at
    value = row.AP_50_95
    fixed = "AP_50_95" in row.by_construction
    level = None if value.mean is None or fixed else value.mean / top
    panel.add_patch(
        figures.Rectangle(
            (x - 0.48, y - 0.46),
            0.96,
            0.92,
            facecolor="#F2F2F2" if level is None else mpl.colormaps["cividis"](level),
            edgecolor="#BBBBBB" if fixed else "none",
            hatch="////" if fixed else None,
            linewidth=0,
        )
    )
    text = "–" if value.mean is None else "0" if fixed else number(value.mean)
    if value.n < complete:
        text += f"\nn={value.n}"
    ink = "black" if level is None or level > 0.5 else "white"
    panel.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        color=ink,
        fontsize=figures.SMALL,
        bbox={"facecolor": "#F2F2F2", "edgecolor": "none", "pad": 1} if fixed else None,
    )


def gains(view: View, title: str) -> Figure:
    """What k images of each target change: for the targets by band, for other species by kind."""
    budgets = Budgets([k for k in view.look.budgets.get(TARGET_REGIME, []) if k != "0"] or ["1"])
    own = {name: _own(view, name, budgets) for name in view.shown}
    names = [name for name in view.shown if any(series.points for series in own[name])]
    if not names:
        return figures.blank(title, f"{_NO_TARGETS[:-1]}, at k = 0 and at one more budget.")
    names = names[:_MOST_COLUMNS]
    others = {name: _others(view, name, budgets) for name in names}
    ceilings = {
        (row.architecture, row.band): row.gain_of_all
        for row in view.table.target_gains
        if (row.split, row.level) == (SPLIT, "band") and row.gain_of_all is not None
    }
    page = figures.Page(2, len(names), height=1.4, left=0.72, gap=0.2)
    top, bottom = page.axes
    for panel, name in zip(top, names, strict=True):
        _lines(panel, own[name], list(BAND_LOOK.values()), budgets)
        for band, look in BAND_LOOK.items():
            if (name, band) in ceilings:
                panel.axhline(
                    ceilings[name, band],
                    color=look.color,
                    linewidth=0.6,
                    linestyle=":",
                    label=f"all|{name}|{band}",
                )
        if len(view.architectures) > 1:
            panel.set_title(view.look.short(name))
    for panel, name in zip(bottom, names, strict=True):
        _lines(panel, others[name], list(RELATION_LOOK.values()), budgets)
    levels = [level for (name, _), level in ceilings.items() if name in names]
    for line, drawn, more in ((top, own, levels), (bottom, others, [])):
        for panel in line:
            axis, shown = REGIME_AXIS[TARGET_REGIME], line is bottom
            budget_axis(panel, budgets, axis, page.panel_width(), shown=shown)
        values = [v for name in names for series in drawn[name] for v in series.extent()]
        figures.fit_y(line, values + more, -1.0, 1.0)
        figures.only_left_labels(line)
    top[0].set_ylabel("targets:\nAP(k) − AP(0)")
    bottom[0].set_ylabel("others:\nAP(k) − AP(0)")
    rows = [row for row in view.table.target_gains if (row.split, row.level) == (SPLIT, "band")]
    species = ", ".join(
        f"{BAND_LABEL[band]}: {max((r.n_species for r in rows if r.band == band), default=0)}"
        for band in OOD_BANDS
    )
    note = (
        "AP@[.5:.95] in distribution, paired by species and seed. Bar: 95 % interval over species "
        f"and retraining, n = {max(row.n_seeds for row in rows)} seeds; target species: {species}. "
        "AP(0) of a target is 0 by construction. Dotted line: the gain with all images. Other "
        "species keep their images: their AP changes because specimens of targets get other labels "
        "once these are known."
    )
    if len(names) < len(view.architectures):
        note += f" {len(names)} of {len(view.architectures)} architectures."
    return page.headings(title, [*BAND_LOOK.values(), *RELATION_LOOK.values()], note)


def _own(view: View, name: str, budgets: Budgets) -> list[Series]:
    """The gain of the target species, by band."""
    found: dict[str, list[Point]] = {band: [] for band in OOD_BANDS}
    for row in view.table.target_gains:
        mine = (row.architecture, row.split, row.level) == (name, SPLIT, "band")
        if mine and row.gain is not None and not row.by_construction and row.k in budgets.at:
            interval = ends(row.gain_ci95_low, row.gain_ci95_high)
            found[row.band].append(Point(budgets.at[row.k], row.gain, row.n_seeds, None, interval))
    return [
        Series(f"{name}|target|{band}", tuple(sorted(points, key=lambda point: point.x)))
        for band, points in found.items()
    ]


def _others(view: View, name: str, budgets: Budgets) -> list[Series]:
    """The change of the species that are no targets, by their relation to them."""
    found: dict[str, list[Point]] = {str(relation): [] for relation in RELATION_LOOK}
    for row in view.table.comparisons:
        if (row.question, row.scope) != ("other_species", name) or row.a_minus_b is None:
            continue
        side, _, relation = row.a.rpartition(", ")
        k = side.rpartition("k=")[2]
        if relation in found and k in budgets.at:
            found[relation].append(
                Point(
                    budgets.at[k],
                    row.a_minus_b,
                    row.n_seeds,
                    None,
                    ends(row.ci95_low, row.ci95_high),
                )
            )
    return [
        Series(f"{name}|other|{relation}", tuple(sorted(points, key=lambda point: point.x)))
        for relation, points in found.items()
    ]


def _lines(panel: Axes, drawn: Sequence[Series], looks: Sequence[Look], budgets: Budgets) -> None:
    for series, look, shift in zip(drawn, looks, figures.shifts(len(drawn)), strict=True):
        if series.points:
            draw_series(
                panel, series, look, shift=shift * min(1.0, budgets.spacing), apart=budgets.apart
            )
