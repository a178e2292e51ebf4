"""Plots of each architecture's best condition: confidence cuts and density strata."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report import figures
from benchmark_eval.report.lookup import Lookup, Series
from benchmark_eval.report.sentences import label
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_LABEL
from benchmark_eval.sweep.best import best_threshold
from benchmark_eval.sweep.summaries import DISJOINT_STRATA
from benchmark_eval.sweep.tables import Aggregated, DensityRow, OperatingRow

CUTS = {
    "precision": "precision",
    "recall": "recall (found)",
    "species_recall": "found and named right",
    "F1": "F1",
}


def _heading(row: OperatingRow, look: Lookup) -> str:
    return f"{look.short(row.architecture)}: {label(row.condition)}"


def operating(table: Aggregated) -> Figure:
    """What a user gets at each confidence cut, on each split."""
    title = "What a confidence cut leaves, best condition of each architecture"
    rows = table.operating_curves
    if not rows:
        return figures.blank(title, "No condition has a defined AP in distribution.")
    look = Lookup(table)
    names = list(dict.fromkeys(row.architecture for row in rows))
    splits = [split for split in TEST_SPLITS if any(row.split == split for row in rows)]
    styles = [
        figures.Look(text, figures.PALETTE[at], "", figures.DASHES[at])
        for at, text in enumerate(CUTS.values())
    ]
    figure, axes = figures.panels(len(splits), len(names), height=2.1)
    for line, split in zip(axes, splits, strict=True):
        for panel, name in zip(line, names, strict=True):
            cells = [row for row in rows if (row.architecture, row.split) == (name, split)]
            for style, key in zip(styles, CUTS, strict=True):
                _cut_line(panel, cells, key, style)
            chosen = best_threshold(table, name)
            if chosen is not None:
                panel.axvline(
                    chosen.confidence,
                    color="#555555",
                    linewidth=1,
                    linestyle=(0, (4, 3)),
                    label=f"best cut|{name}|{split}",
                )
            panel.set_xlim(0, 1)
            panel.set_ylim(-0.02, 1.02)
            if line is axes[0]:
                panel.set_title(_heading(cells[0], look))
        line[0].set_ylabel("share")
        figures.row_label(line[-1], SPLIT_LABEL[split])
    for panel in axes[-1]:
        panel.set_xlabel("confidence cut")
    complete = max(row.metrics["recall"].n for row in rows)
    figures.headings(
        figure,
        title,
        styles,
        f"Boxes below the cut are put aside; crowd regions count neither for nor against. Line: "
        f"mean over seeds, drawn where all n = {complete} have a value.\n"
        "Upright dashes: the cut with the highest mean F1 in distribution, on every split. "
        "No species of the unseen split can be named right.",
    )
    return figure


def _cut_line(
    panel: figures.Axes, cells: list[OperatingRow], key: str, style: figures.Look
) -> None:
    first = cells[0]
    complete = first.metrics["recall"].n
    drawn = [
        (row.confidence, mean)
        for row in cells
        if row.metrics[key].n == complete and (mean := row.metrics[key].mean) is not None
    ]
    if not drawn or (first.split == "semantic_ood" and key == "species_recall"):
        return
    panel.plot(
        [x for x, _ in drawn],
        [y for _, y in drawn],
        color=style.color,
        linestyle=style.dash,
        linewidth=1.7,
        label=f"cut|{first.architecture}|{first.split}|{key}",
    )


FOUND = "image_mean_recall"
NAMED = "image_mean_classification_given_detection_acc"


def density(table: Aggregated, metric: str) -> Figure:
    """Finding (``FOUND``) or naming (``NAMED``) by specimens on the image."""
    title = {
        FOUND: "Found, by specimens on the image (best condition of each architecture)",
        NAMED: "Named right of those found, by specimens on the image (best condition)",
    }[metric]
    look = Lookup(table)
    chosen = {row.condition for row in table.operating_curves}
    rows = [
        row
        for row in table.density_curves
        if row.condition in chosen and row.stratum in DISJOINT_STRATA
    ]
    columns = [("iid_test", ""), ("inat_test", "")]
    if metric == FOUND:
        columns += [("semantic_ood", band) for band in ("", *BAND_LABEL)]
    columns = [at for at in columns if any((row.split, row.band) == at for row in rows)]
    complete = max((row.metrics[metric].n for row in rows), default=0)
    if not columns or not complete:
        return figures.blank(title, "Not defined for any model of this sweep.")
    names = list(dict.fromkeys(row.architecture for row in rows))
    most = {
        name: max(row.metrics[metric].n for row in rows if row.architecture == name)
        for name in names
    }
    styles = figures.looks(
        [
            look.short(name) + ("" if most[name] == complete else f" (n={most[name]})")
            for name in names
        ]
    )
    shift = figures.shifts(len(names))
    figure, axes = figures.panels(1, len(columns), height=2.9)
    drawn = []
    for panel, (split, band) in zip(axes[0], columns, strict=True):
        here = [row for row in rows if (row.split, row.band) == (split, band)]
        for at, name in enumerate(names):
            place = f"{split}/{band or 'all'}"
            series = Series(
                f"{name}|{place}|{metric}",
                tuple(
                    (DISJOINT_STRATA.index(row.stratum), row.metrics[metric])
                    for row in here
                    if row.architecture == name and row.metrics[metric].n
                ),
                look.density_dots(name, place, metric, DISJOINT_STRATA),
            )
            figures.draw_series(panel, series, styles[at], shift=shift[at], complete=most[name])
            drawn.append(series)
        counts = [
            _images([row for row in here if row.stratum == s], metric) for s in DISJOINT_STRATA
        ]
        panel.set_xticks(
            range(len(DISJOINT_STRATA)),
            [f"{s}\n({n})" for s, n in zip(DISJOINT_STRATA, counts, strict=True)],
        )
        panel.set_xlim(-0.5, len(DISJOINT_STRATA) - 0.5)
        panel.set_title(
            f"{SPLIT_LABEL[split]},\n{BAND_LABEL[band]}" if band else SPLIT_LABEL[split]
        )
    figures.fit_y(axes[0], figures.extent(drawn), 0.0, 1.0)
    axes[0][0].set_ylabel("share, mean over images")
    counted = {FOUND: "number of images", NAMED: "images with a hit, mean over seeds, of all"}
    axes[0][len(columns) // 2].set_xlabel(f"specimens on the image ({counted[metric]})")
    figures.headings(
        figure,
        title,
        styles if len(names) > 1 else [],
        f"Every image{' with a hit' * (metric == NAMED)} counts once. Faint dots: seeds. Marker: "
        f"their mean, n = {complete} unless another is written. Bar: 95 % interval over seeds, "
        "cut at the edge of the panel.",
    )
    return figure


def _images(rows: list[DensityRow], metric: str) -> str:
    """How many images of a stratum a mean over images has, over all that is drawn."""
    if not rows:
        return "0"
    if metric == FOUND:
        return f"{rows[0].n_images:,}"
    means = [row.metrics["n_images_with_tp"].mean or 0.0 for row in rows]
    ends = dict.fromkeys(f"{end:,.0f}" for end in (min(means), max(means)))
    return "\N{EN DASH}".join(ends) + f" of {rows[0].n_images:,}"
