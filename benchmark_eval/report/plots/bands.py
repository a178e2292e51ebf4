"""Detection recall by distance band and density."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark_eval.core.shares import MIN_IMAGES
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.report import figures
from benchmark_eval.report.looks import BAND_LOOK, Look
from benchmark_eval.report.lookup import label
from benchmark_eval.report.plots.text import interval, signed
from benchmark_eval.report.plots.view import View, ends
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.summaries import DISJOINT_STRATA
from benchmark_eval.sweep.table_rows import BandGapRow, ShareRow

_KNOWN = (
    Look(SPLIT_LABEL["iid_test"], "#222222", "o"),
    Look(SPLIT_LABEL["inat_test"], "#999999", "s", "--"),
)


def band_density(view: View, title: str) -> Figure:
    """Recall by specimens on the image: known species by split, unseen species by band."""
    best = {name: row.condition for name, row in view.chosen.items()}
    cells: dict[tuple[str, str, str, str], ShareRow] = {
        (row.architecture, row.split, row.band, row.stratum): row
        for row in view.table.pooled_shares
        if row.share == "detection_recall" and best.get(row.architecture) == row.condition
    }
    names = [name for name in view.shown if any(key[0] == name for key in cells)]
    if not names:
        return figures.blank(title, _why(view))
    gaps: dict[tuple[str, str], BandGapRow] = {
        (row.architecture, row.other_band): row
        for row in view.table.band_gaps
        if row.weighting == "species" and best.get(row.architecture) == row.condition
    }
    several = len(view.architectures) > 1
    page = figures.Page(
        len(names),
        3,
        height=1.8 if len(names) == 1 else 1.4,
        right=0.3 if several else 0.12,
        ratios=(1, 1, 1.05),
        gap=0.12,
    )
    places = (
        [(_KNOWN[0], "iid_test", ""), (_KNOWN[1], "inat_test", "")],
        [(BAND_LOOK[band], "semantic_ood", band) for band in OOD_BANDS],
    )
    values: list[float] = []
    for at, (line, name) in enumerate(zip(page.axes, names, strict=True)):
        for panel, shown in zip(line, places, strict=False):
            for moved, (look, split, band) in zip(figures.shifts(len(shown)), shown, strict=True):
                found = [cells.get((name, split, band, s)) for s in DISJOINT_STRATA]
                values += _line(panel, found, look, moved, f"{name}|{split}/{band or 'all'}")
            panel.set_xlim(-0.5, len(DISJOINT_STRATA) - 0.5)
            last = line is page.axes[-1]
            ticks = [
                "\n".join([stratum, _images(cells, names, shown, stratum)])
                for stratum in DISJOINT_STRATA
            ]
            panel.set_xticks(range(len(DISJOINT_STRATA)), ticks)
            panel.tick_params(labelbottom=last)
            if last:
                panel.set_xlabel("specimens per image / images")
        line[0].set_ylabel("detection recall,\nmean over species")
        figures.only_left_labels(line[:2])
        _gaps(line[2], gaps, name, last=line is page.axes[-1])
        if several:
            page.row_label(at, view.look.short(name))
    figures.fit_y([panel for line in page.axes for panel in line[:2]], values, 0.0, 1.0)
    page.below = 0.5
    for panel, text in zip(
        page.axes[0],
        ("trained species", SPLIT_LABEL["semantic_ood"], "near minus other, equal density"),
        strict=True,
    ):
        panel.set_title(text)
    conditions = "; ".join(f"{view.look.short(n)}: {label(best[n])}" for n in names)
    hollow = Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        markerfacecolor="white",
        color=figures.INK,
        label=f"fewer than {MIN_IMAGES} images",
    )
    return page.headings(
        title,
        [*_KNOWN, *BAND_LOOK.values(), hollow],
        "Means over species, each with the same weight, at the best condition "
        f"({conditions if several else label(best[names[0]])}). Bar: 95 % interval over species "
        f"and "
        f"retraining, where there are 3 species. A stratum with fewer than {MIN_IMAGES} images has "
        "no line and no interval. Right: standardised to the density of near species, over the "
        f"strata that both bands fill.{view.others_note('Rows: ')}",
    )


def _why(view: View) -> str:
    if view.table.without_evidence:
        return "Not shown: no model has an evidence file (<model>_evidence.npz); evaluate again."
    return "Not shown: detection recall by density is undefined for every model of this sweep."


def _images(
    cells: dict[tuple[str, str, str, str], ShareRow],
    names: list[str],
    shown: list[tuple[Look, str, str]],
    stratum: str,
) -> str:
    """The images of a stratum, as ``620/55``."""
    numbers = []
    for _, split, band in shown:
        row = next(
            (cells[n, split, band, stratum] for n in names if (n, split, band, stratum) in cells),
            None,
        )
        numbers.append(f"{row.n_images}" if row is not None else "0")
    return "/".join(numbers)


def _line(
    panel: Axes, found: list[ShareRow | None], look: Look, moved: float, key: str
) -> list[float]:
    """Draw one line over the strata; returns its values."""
    points = [
        (x + moved, row.species_mean, row)
        for x, row in enumerate(found)
        if row is not None and row.species_mean is not None
    ]
    enough = [(x, y, row) for x, y, row in points if row.n_images >= MIN_IMAGES]
    few = [(x, y) for x, y, row in points if row.n_images < MIN_IMAGES]
    spans = [
        (x, *limits)
        for x, _, row in enough
        if (limits := ends(row.species_mean_ci95_low, row.species_mean_ci95_high)) is not None
    ]
    figures.bars(panel, spans, f"species|{key}", look.color, linewidth=1.0)
    gap = float("nan")  # no line across a stratum without a point
    panel.plot(
        [x for x, _, _ in points],
        [y if row.n_images >= MIN_IMAGES else gap for _, y, row in points],
        color=look.color,
        marker=look.marker,
        linestyle=look.dash,
        markeredgecolor="white",
        markeredgewidth=0.4,
        zorder=5,
        label=f"mean|{key}",
    )
    if few:
        panel.plot(
            [x for x, _ in few],
            [y for _, y in few],
            color=look.color,
            marker=look.marker,
            markerfacecolor="white",
            linestyle="none",
            zorder=5,
            label=f"few|{key}",
        )
    return [y for _, y, _ in points] + [v for _, low, high in spans for v in (low, high)]


def _gaps(panel: Axes, gaps: dict[tuple[str, str], BandGapRow], name: str, *, last: bool) -> None:
    """The differences between bands at equal density, as numbers and intervals."""
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)
    panel.grid(visible=False)
    figures.zero_line(panel, vertical=True)
    panel.set_xlim(-0.62, 0.62)
    panel.set_xticks([-0.5, 0, 0.5], ["\N{MINUS SIGN}0.5", "0", "0.5"])
    panel.tick_params(labelbottom=last)
    others = OOD_BANDS[1:]
    panel.set_ylim(len(others) - 0.4, -0.75)
    for y, band in enumerate(others):
        row = gaps.get((name, band))
        look = BAND_LOOK[band]
        head = f"near − {look.label.split(' ')[0]}"
        if row is None or row.near_minus_other is None:
            why = "not evaluated" if row is None or row.reason is None else str(row.reason)
            text = figures.wrapped(f"{head}: no number, {why}", 1.9, figures.SMALL)
            panel.text(
                -0.6,
                y - 0.3,
                text,
                fontsize=figures.SMALL,
                va="top",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=3,
            )
            continue
        panel.text(
            -0.6,
            y - 0.3,
            f"{head}: {signed(row.near_minus_other)}{interval(row.ci95_low, row.ci95_high)}",
            fontsize=figures.SMALL,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            zorder=3,
        )
        limits = ends(row.ci95_low, row.ci95_high)
        if limits is not None:
            figures.bars(
                panel,
                [(y, *limits)],
                f"gap|{name}|{band}",
                look.color,
                linewidth=1.0,
                horizontal=True,
            )
        panel.plot([row.near_minus_other], [y], marker=look.marker, color=look.color, zorder=5)
    if last:
        panel.set_xlabel("difference in recall")
