"""What goes wrong: error types, and confusions by genus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report import figures
from benchmark_eval.report.looks import ERROR_FILL
from benchmark_eval.report.lookup import label
from benchmark_eval.report.plots.view import View, ends
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.table_rows import ErrorRow, GenusConfusionRow

_SPLIT = "iid_test"
_NO_EVIDENCE = "Not shown: no model has an evidence file (<model>_evidence.npz); evaluate again."


def types(view: View, title: str) -> Figure:
    """Left: errors per 100 images, stacked. Right: what AP gains if one type is repaired."""
    best = {name: row.condition for name, row in view.chosen.items()}
    rows: dict[tuple[str, str], dict[str, ErrorRow]] = defaultdict(dict)
    for row in view.table.error_types:
        if best.get(row.architecture) == row.condition and row.error_type in ERROR_FILL:
            rows[row.split, row.architecture][row.error_type] = row
    names = [name for name in view.shown if any(key[1] == name for key in rows)]
    splits = [split for split in TEST_SPLITS if any(key[0] == split for key in rows)]
    counted = any(
        row.per_100_images is not None for found in rows.values() for row in found.values()
    )
    if not names or not counted:
        return figures.blank(title, "Not shown: no model has errors at an operating threshold.")
    longest = max(figures.text_width(fill.label, figures.SMALL) for fill in ERROR_FILL.values())
    page = figures.Page(
        len(splits),
        2,
        height=max(1.12, 0.16 * len(names)),
        ratios=(1.25, 1),
        left=0.2 + max(figures.text_width(view.look.short(name), figures.SMALL) for name in names),
        between=longest + 0.2,
        gap=0.5,
    )
    for (left, right), split in zip(page.axes, splits, strict=True):
        found = [rows.get((split, name), {}) for name in names]
        _stack(left, found, split)
        left.set_yticks(range(len(names)), [view.look.short(name) for name in names])
        left.set_ylim(len(names) - 0.45, -0.55)
        left.set_title(SPLIT_LABEL[split])
        _gain(right, found, names, view)
        what = "class-agnostic AP@.5" if split == "semantic_ood" else "AP@.5"
        right.set_title(f"{what} gained if repaired")
    page.axes[-1][0].set_xlabel("per 100 images, at the operating threshold")
    page.axes[-1][1].set_xlabel("gain in AP@.5")
    seeds = max(row.n_seeds for found in rows.values() for row in found.values())
    return page.headings(
        title,
        [*ERROR_FILL.values(), *(view.looks[name] for name in names if len(names) > 1)],
        f"Best condition of each architecture; means over n = {seeds} seeds. Right: each type "
        f"repaired alone, so that the "
        "gains do not add up; bar: 95 % interval over "
        "retraining. On unseen species no name can be right: only boxes are judged."
        f"{view.others_note()}",
        lines=False,
    )


def _stack(panel: Axes, found: Sequence[dict[str, ErrorRow]], split: str) -> None:
    base = np.zeros(len(found))
    totals = [sum(row.per_100_images or 0.0 for row in each.values()) for each in found]
    widest = max(totals, default=0.0) or 1.0
    for kind, fill in ERROR_FILL.items():
        values = np.array(
            [(each[kind].per_100_images or 0.0) if kind in each else 0.0 for each in found]
        )
        if not values.any():
            continue
        drawn = panel.barh(
            range(len(found)), values, 0.66, left=base, label=f"errors|{split}|{kind}"
        )
        for patch in drawn:
            figures.filled(patch, fill)
            patch.set_label("")
        for y, (start, value) in enumerate(zip(base, values, strict=True)):
            if value > 0.075 * widest:
                text = panel.text(
                    start + value / 2,
                    y,
                    f"{value:.0f}",
                    ha="center",
                    va="center",
                    fontsize=figures.SMALL,
                )
                dark = kind in ("wrong_name_congener", "wrong_name_same_tribe", "poor_box")
                text.set_color("white" if dark else "black")
                if fill.hatch:
                    text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        base += values
    panel.set_xlim(0, 1.03 * widest)
    panel.grid(visible=False)
    panel.grid(visible=True, axis="x")
    panel.tick_params(axis="y", length=0)


def _gain(
    panel: Axes, found: Sequence[dict[str, ErrorRow]], names: Sequence[str], view: View
) -> None:
    kinds = [
        kind
        for kind in ERROR_FILL
        if any(kind in each and each[kind].dAP_50 is not None for each in found)
    ]
    for shift, each, name in zip(figures.shifts(len(names), 0.55), found, names, strict=True):
        look = view.looks[name]
        points = [
            (value, y + shift, each[kind])
            for y, kind in enumerate(kinds)
            if kind in each and (value := each[kind].dAP_50) is not None
        ]
        spans = [
            (y, *limits)
            for _, y, row in points
            if (limits := ends(row.dAP_50_ci95_retraining_low, row.dAP_50_ci95_retraining_high))
        ]
        figures.bars(panel, spans, f"retraining|{name}", look.color, linewidth=0.8, horizontal=True)
        panel.plot(
            [x for x, _, _ in points],
            [y for _, y, _ in points],
            linestyle="none",
            marker=look.marker,
            markersize=2.6,
            color=look.color,
            label=f"mean|{name}",
        )
    panel.set_yticks(range(len(kinds)), [ERROR_FILL[kind].label for kind in kinds])
    panel.set_ylim(len(kinds) - 0.4, -0.6)
    panel.grid(visible=False)
    panel.grid(visible=True, axis="x")
    panel.tick_params(axis="y", length=0)
    figures.zero_line(panel, vertical=True)


_FULL = 0.3
"""Share of a genus's specimens that fills a square."""
_GENUS_LINE = 0.118
_MOST_GENERA = 42


def genera(view: View, title: str) -> Figure:
    """Misidentified specimens by true and predicted genus, for the best architecture."""
    ranked = sorted(view.shown, key=lambda name: -(view.best[name] or 0.0))
    rows = [row for row in view.table.genus_confusions if row.split == _SPLIT]
    names = [name for name in ranked if any(row.architecture == name for row in rows)]
    if not names:
        why = "Not shown: no specimen is misidentified."
        return figures.blank(title, _NO_EVIDENCE if view.table.without_evidence else why)
    chosen = [row for row in rows if row.architecture == names[0]]
    lost: dict[str, float] = {row.genus: 0.0 for row in view.table.species if row.iid_n_specimens}
    scored = len(lost)
    for row in chosen:
        lost[row.true_genus] = lost.get(row.true_genus, 0.0) + row.n
    shown = sorted(sorted(lost, key=lambda name: (-lost[name], name))[:_MOST_GENERA])
    at = {name: i for i, name in enumerate(shown)}
    names_wide = max(figures.text_width(name, figures.SMALL) for name in shown) + 0.1
    left, between, side = names_wide + 0.2, 0.62, 1.05
    free = figures.WIDTH - left - between - side - 0.12
    cell = min(_GENUS_LINE, free / max(len(shown), 1))
    tall = cell * len(shown)
    page = figures.Page(
        1,
        2,
        height=max(tall, 0.8),
        left=left,
        between=between,
        right=0.12 + free - max(tall, 0.8),
        above=0.32,
        below=names_wide + 0.25,
        ratios=(max(tall, 0.8), side),
        tallest=tall + 4,
    )
    panel, right = page.axes[0]
    _matrix(panel, chosen, at)
    panel.set_xticks(range(len(shown)), shown, rotation=90, fontstyle="italic")
    panel.set_yticks(range(len(shown)), shown, fontstyle="italic")
    panel.set_xlabel("genus of the predicted species")
    panel.set_ylabel("true genus")
    panel.set_title(
        f"{view.look.short(names[0])}, {label(chosen[0].condition)}"
        if view.look.several
        else label(chosen[0].condition)
    )
    _enrichment(right, view, page.height)
    threshold = (
        "at the operating threshold" if chosen[0].threshold == "operating" else "of any confidence"
    )
    outline = figures.Rectangle(
        (0, 0),
        1,
        1,
        facecolor="none",
        edgecolor=figures.GREY,
        linewidth=0.6,
        label="correct genus, wrong species",
    )
    full = figures.Rectangle(
        (0, 0),
        1,
        1,
        facecolor=figures.INK,
        label="full square: 30 % or more of the genus's specimens",
    )
    note = (
        f"Misidentified specimens in distribution, {threshold}, mean over n = "
        f"{chosen[0].n_seeds} seeds; the "
        "area of a square is their share of the scored specimens of the true genus. Correctly "
        "identified "
        "specimens are not drawn. Right: wrong names within the correct genus or tribe relative to "
        "chance (wrong species drawn at random from the predicted ones), each architecture's best "
        "condition; bar: 95 % interval over species; dashed: chance."
    )
    if scored > len(shown):
        note += f" The {len(shown)} of {scored} genera that lose the most specimens."
    return page.headings(title, [full, outline], note, lines=False)


def _matrix(panel: Axes, rows: Sequence[GenusConfusionRow], at: dict[str, int]) -> None:
    squares = []
    for row in rows:
        if row.true_genus in at and row.predicted_genus in at:
            side = 0.94 * min(1.0, (row.share / _FULL) ** 0.5)
            x, y = at[row.predicted_genus] - side / 2, at[row.true_genus] - side / 2
            squares.append(figures.Rectangle((x, y), side, side))
    panel.add_collection(
        PatchCollection(squares, facecolor=figures.INK, edgecolor="none", label="confusions")
    )
    diagonal = [figures.Rectangle((i - 0.5, i - 0.5), 1, 1) for i in at.values()]
    panel.add_collection(
        PatchCollection(diagonal, facecolor="none", edgecolor=figures.GREY, linewidth=0.4)
    )
    panel.set_xlim(-0.6, len(at) - 0.4)
    panel.set_ylim(len(at) - 0.4, -0.6)
    panel.tick_params(length=0)
    panel.grid(visible=True, axis="both")


def _enrichment(panel: Axes, view: View, tall: float) -> None:
    best = {name: row.condition for name, row in view.chosen.items()}
    rows = [
        row
        for row in view.table.confusion_by_chance
        if row.split == _SPLIT
        and row.architecture in view.looks
        and best.get(row.architecture) == row.condition
        and row.enrichment
    ]
    names = [name for name in view.shown if any(row.architecture == name for row in rows)]
    taxa = ("genus", "tribe")
    for shift, name in zip(figures.shifts(len(names), 0.5), names, strict=True):
        look = view.looks[name]
        points = [(taxa.index(row.taxon) + shift, row) for row in rows if row.architecture == name]
        spans = [
            (y, *limits)
            for y, row in points
            if (limits := ends(row.ci95_species_low, row.ci95_species_high)) is not None
        ]
        figures.bars(panel, spans, f"species|{name}", look.color, linewidth=0.8, horizontal=True)
        panel.plot(
            [row.enrichment or 0.0 for _, row in points],
            [y for y, _ in points],
            linestyle="none",
            marker=look.marker,
            color=look.color,
            label=f"mean|{name}",
        )
    if not rows:
        panel.set_visible(False)
        return
    panel.axvline(1, color="#555555", linewidth=0.7, linestyle=(0, (4, 3)))
    panel.set_xlim(0, None)
    panel.set_yticks(range(2), ["correct\ngenus", "correct\ntribe"])
    panel.set_ylim(max(1.6, tall / 0.55), -0.6)
    panel.set_title("times as often\nas by chance")
    panel.grid(visible=False)
    panel.grid(visible=True, axis="x")
    if len(names) > 1:
        panel.legend(
            handles=[
                Line2D(
                    [],
                    [],
                    linestyle="none",
                    marker=view.looks[n].marker,
                    color=view.looks[n].color,
                    label=view.looks[n].label,
                )
                for n in names
            ],
            loc="lower left",
            borderaxespad=0.2,
            handletextpad=0.2,
        )
