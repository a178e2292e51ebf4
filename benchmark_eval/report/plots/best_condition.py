"""Plots of each architecture's best condition: confidence thresholds and density strata."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report import figures
from benchmark_eval.report.lookup import Lookup, Series, best_threshold, label
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_LABEL
from benchmark_eval.sweep.summaries import DISJOINT_STRATA
from benchmark_eval.sweep.tables import Aggregated, DensityRow, OperatingRow

CURVES = {
    "precision": "precision",
    "recall": "detection recall",
    "species_recall": "species recall (detected and correctly identified)",
    "F1": "F1 of precision and detection recall",
}


def _heading(row: OperatingRow, look: Lookup) -> str:
    return f"{look.short(row.architecture)}: {label(row.condition)}"


def operating(table: Aggregated) -> Figure:
    """Precision, recall and F1 at each confidence threshold, on each split."""
    title = "Results by confidence threshold (best condition of each architecture)"
    rows = table.operating_curves
    if not rows:
        return figures.blank(title, "AP in distribution is undefined for every condition.")
    look = Lookup(table)
    names = list(dict.fromkeys(row.architecture for row in rows))
    splits = [split for split in TEST_SPLITS if any(row.split == split for row in rows)]
    styles = [
        figures.Look(text, figures.PALETTE[at], "", figures.DASHES[at])
        for at, text in enumerate(CURVES.values())
    ]
    figure, axes = figures.panels(len(splits), len(names), height=2.1)
    for line, split in zip(axes, splits, strict=True):
        for panel, name in zip(line, names, strict=True):
            cells = [row for row in rows if (row.architecture, row.split) == (name, split)]
            for style, key in zip(styles, CURVES, strict=True):
                _curve(panel, cells, key, style)
            chosen = best_threshold(table, name)
            if chosen is not None:
                panel.axvline(
                    chosen.confidence,
                    color="#555555",
                    linewidth=1,
                    linestyle=(0, (4, 3)),
                    label=f"best threshold|{name}|{split}",
                )
            panel.set_xlim(0, 1)
            panel.set_ylim(-0.02, 1.02)
            if line is axes[0]:
                panel.set_title(_heading(cells[0], look))
        line[0].set_ylabel("fraction")
        figures.row_label(line[-1], SPLIT_LABEL[split])
    for panel in axes[-1]:
        panel.set_xlabel("confidence threshold")
    complete = max(row.metrics["recall"].n for row in rows)
    figures.headings(
        figure,
        title,
        styles,
        "Detections below the threshold are removed; those on crowd regions are ignored. Line: "
        f"mean over seeds, drawn where all n = {complete} have a value.\n"
        "Dashed vertical line: the threshold with the highest mean F1 in distribution, on every "
        "split. Species recall is 0 on unseen species by construction.",
    )
    return figure


def _curve(panel: figures.Axes, cells: list[OperatingRow], key: str, style: figures.Look) -> None:
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
        label=f"threshold|{first.architecture}|{first.split}|{key}",
    )


DETECTION_RECALL = "image_mean_recall"
SPECIES_ACCURACY = "image_mean_classification_given_detection_acc"
_WITH_TRUE_POSITIVE = "Every image with a true positive (their number: mean over seeds)"


def density(table: Aggregated, metric: str) -> Figure:
    """``DETECTION_RECALL`` or ``SPECIES_ACCURACY`` by number of specimens on the image."""
    name_of_metric = {
        DETECTION_RECALL: "Detection recall",
        SPECIES_ACCURACY: "Species accuracy given detection",
    }[metric]
    title = f"{name_of_metric} by specimens on the image (best condition of each architecture)"
    look = Lookup(table)
    chosen = {row.condition for row in table.operating_curves}
    rows = [
        row
        for row in table.density_curves
        if row.condition in chosen and row.stratum in DISJOINT_STRATA
    ]
    columns = [("iid_test", ""), ("inat_test", "")]
    if metric == DETECTION_RECALL:
        columns += [("semantic_ood", band) for band in ("", *BAND_LABEL)]
    columns = [at for at in columns if any((row.split, row.band) == at for row in rows)]
    complete = max((row.metrics[metric].n for row in rows), default=0)
    if not columns or not complete:
        return figures.blank(title, "Undefined for every model of this sweep.")
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
    short_name = name_of_metric.removesuffix(" given detection").lower()
    axes[0][0].set_ylabel(f"{short_name},\nmean over images")
    counted = {
        DETECTION_RECALL: "number of images",
        SPECIES_ACCURACY: "images with a true positive, of all",
    }
    axes[0][len(columns) // 2].set_xlabel(f"specimens on the image ({counted[metric]})")
    figures.headings(
        figure,
        title,
        styles if len(names) > 1 else [],
        ("Every image" if metric == DETECTION_RECALL else _WITH_TRUE_POSITIVE)
        + " has the same weight. "
        f"Faint dots: seeds. Marker: their mean, n = {complete} unless stated.\n"
        "Bar: 95 % interval over seeds, truncated at the panel's edge.",
    )
    return figure


def _images(rows: list[DensityRow], metric: str) -> str:
    """The number of images in a stratum's mean over images, for all that is drawn."""
    if not rows:
        return "0"
    if metric == DETECTION_RECALL:
        return f"{rows[0].n_images:,}"
    means = [row.metrics["n_images_with_tp"].mean or 0.0 for row in rows]
    ends = dict.fromkeys(f"{end:,.0f}" for end in (min(means), max(means)))
    return "\N{EN DASH}".join(ends) + f" of {rows[0].n_images:,}"
