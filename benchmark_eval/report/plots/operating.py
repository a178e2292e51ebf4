"""Precision, recall and F1 of each architecture's best condition by confidence threshold."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report import figures
from benchmark_eval.report.looks import QUANTITY_LOOK
from benchmark_eval.report.lookup import best_threshold, label
from benchmark_eval.report.plots.view import View
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.tables import OperatingRow

_CURVES = ("precision", "recall", "species_recall", "F1")
_FEWEST = 10
"""Fewest detections, as a mean over seeds, of which a precision is drawn."""


def operating(view: View, title: str) -> Figure:
    """One row per architecture, one column per split."""
    rows: dict[tuple[str, str], list[OperatingRow]] = {}
    for row in view.table.operating_curves:
        rows.setdefault((row.architecture, row.split), []).append(row)
    names = [name for name in view.shown if any(key[0] == name for key in rows)]
    splits = [split for split in TEST_SPLITS if any(key[1] == split for key in rows)]
    if not names:
        return figures.blank(
            title, "Not shown: no headline metric is defined, so no condition is best."
        )
    several = len(view.architectures) > 1
    page = figures.Page(
        len(names),
        len(splits),
        height=1.75 if len(names) == 1 else 1.35,
        right=0.3 if several else 0.12,
        gap=0.12,
    )
    for at, (line, name) in enumerate(zip(page.axes, names, strict=True)):
        chosen = best_threshold(view.table, name)
        for panel, split in zip(line, splits, strict=True):
            cells = rows.get((name, split), [])
            for key in _CURVES:
                _curve(panel, cells, key, view)
            if chosen is not None:
                panel.axvline(
                    chosen.confidence,
                    color=figures.GREY,
                    linewidth=0.8,
                    linestyle=(0, (4, 3)),
                    label=f"best threshold|{name}|{split}",
                )
                same = next((row for row in cells if row.confidence == chosen.confidence), None)
                _counted(panel, same, view)
            panel.set_xlim(0, 1)
            panel.set_ylim(-0.02, 1.38)
            panel.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
            panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
            panel.tick_params(labelbottom=line is page.axes[-1])
        line[0].set_ylabel("fraction")
        figures.only_left_labels(line)
        if several:
            page.row_label(at, f"{view.look.short(name)}")
    for panel, split in zip(page.axes[0], splits, strict=True):
        facts = view.table.benchmark.splits[split]
        panel.set_title(f"{SPLIT_LABEL[split]}: {facts.n_scored:,} specimens")
    for panel in page.axes[-1]:
        panel.set_xlabel("confidence threshold")
    conditions = "; ".join(
        f"{view.look.short(name)}: {label(next(iter(rows[name, splits[0]])).condition)}"
        if several
        else label(next(iter(rows[name, splits[0]])).condition)
        for name in names
        if (name, splits[0]) in rows
    )
    complete = max(row.metrics["recall"].n for cells in rows.values() for row in cells)
    return page.headings(
        title,
        [QUANTITY_LOOK[key] for key in _CURVES],
        f"Best condition of each architecture ({conditions}). Lines: means over n = {complete} "
        f"seeds, where all have a value; precision and F1 only where at least {_FEWEST} detections "
        "per seed remain. Dashed vertical line: the threshold with the highest mean F1 in "
        "distribution; the numbers are the detections that remain there, per seed. Species recall "
        f"on unseen species is 0 by construction and not drawn.{view.others_note('Rows: ')}",
        lines=True,
    )


def _detections(row: OperatingRow, view: View) -> tuple[float, float] | None:
    """The true and false positives at a threshold, means over seeds."""
    facts = view.table.benchmark.splits[row.split]
    recall, false = row.metrics["recall"].mean, row.metrics["false_positives_per_image"].mean
    if recall is None or false is None:
        return None
    return recall * facts.n_scored, false * facts.n_images


def _counted(panel: figures.Axes, row: OperatingRow | None, view: View) -> None:
    found = None if row is None else _detections(row, view)
    if found is None:
        return
    text = f"{found[0]:,.0f} true, {found[1]:,.0f} false"
    panel.text(
        0.97,
        0.97,
        text,
        transform=panel.transAxes,
        ha="right",
        va="top",
        fontsize=figures.SMALL,
    )


def _curve(panel: figures.Axes, cells: Sequence[OperatingRow], key: str, view: View) -> None:
    if not cells:
        return
    first = cells[0]
    complete = first.metrics["recall"].n
    drawn = []
    for row in cells:
        mean = row.metrics[key].mean
        if row.metrics[key].n != complete or mean is None or key in row.by_construction:
            continue
        if key in ("precision", "F1"):
            counts = _detections(row, view)
            if counts is not None and sum(counts) < _FEWEST:
                continue
        drawn.append((row.confidence, mean))
    if drawn:
        look = QUANTITY_LOOK[key]
        panel.plot(
            [x for x, _ in drawn],
            [y for _, y in drawn],
            color=look.color,
            linestyle=look.dash,
            linewidth=1.2,
            marker=look.marker,
            markevery=(0.04 * (1 + _CURVES.index(key)), 0.3),
            markersize=2.8,
            label=f"threshold|{first.architecture}|{first.split}|{key}",
        )
