"""Plots of a ``MapResult``: one curve per class, and bar charts over classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark_eval.core.fonts import FAMILY, fallback_for, quiet
from benchmark_eval.core.text import counted
from benchmark_eval.voc.results import ClassScore, MapResult, headline
from benchmark_eval.voc.text import Progress

# Okabe and Ito's palette, distinguishable with common colour vision deficiencies
BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#B0B0B0"
SKY = "#9CCFEC"

MAX_BARS = 200
"""Maximum number of classes in a bar chart; the CSV has all of them."""
MAX_NAME = 40


def draw_plots(result: MapResult, folder: Path, progress: Progress | None = None) -> None:
    """Write all plots as PNG into ``folder``: four bar charts and ``precision_recall/``.

    The files of curves are numbered in the order of the table, because class names may differ only
    in characters that file names cannot contain.
    """
    curves = folder / "precision_recall"
    curves.mkdir(parents=True)
    fallback = fallback_for(score.name for score in result.classes)
    with _style(fallback.families):
        _save(_ap_bars(result), folder / "average_precision.png")
        _save(_object_bars(result), folder / "ground_truth_counts.png")
        _save(_detection_bars(result), folder / "detection_counts.png")
        _save(_miss_rate_bars(result), folder / "miss_rates.png")
        digits = len(str(len(result.classes)))
        for number, score in enumerate(result.classes, start=1):
            if score.name in result.curves:
                slug = re.sub(r"[^A-Za-z0-9.-]+", "_", score.name)[:60]
                path = curves / f"{number:0{digits}}_{slug}.png"
                _save(_curve(result, score), path)
            if progress:
                progress("draw curves", number, len(result.classes))


@contextmanager
def _style(families: Sequence[str]) -> Iterator[None]:
    settings: Any = {
        "font.family": [FAMILY, *families],
        "text.parse_math": False,  # a class may be named $x$
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "legend.frameon": False,
        "savefig.dpi": 120,
    }
    with mpl.rc_context(settings), quiet():
        yield


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, metadata={"Software": None})


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _curve(result: MapResult, score: ClassScore) -> Figure:
    """The measured curve, its envelope, and AP as the area under the envelope."""
    points = result.curves[score.name]
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    # extend the envelope to recall 0, and drop to 0 at the maximum recall
    recall = np.concatenate(([0.0], points.recall, points.recall[-1:]))
    envelope = np.concatenate((points.envelope[:1], points.envelope, [0.0]))
    if len(points.recall):
        axes.fill_between(
            recall, envelope, step="pre", color=SKY, alpha=0.5, linewidth=0, label="area = AP"
        )
        axes.step(recall, envelope, where="pre", color=BLUE, linewidth=1.8, label="envelope")
        axes.plot(
            points.recall,
            points.precision,
            color=VERMILION,
            linewidth=1,
            marker="o" if len(points.recall) <= 60 else "",
            markersize=3,
            label="measured",
        )
        axes.legend(loc="lower left")
    else:
        axes.text(0.5, 0.5, "no detection", ha="center", va="center")
    axes.set(xlim=(0, 1.02), ylim=(0, 1.05), xlabel="recall", ylabel="precision")
    axes.set_title(
        f"{_short(score.name)}: AP = {100 * (score.AP or 0):.2f}%\n"
        f"IoU ≥ {score.iou_threshold:g}, {counted(score.n_objects, 'object')}, "
        f"{counted(score.n_detections, 'detection')}",
        loc="left",
    )
    return figure


def _ap_bars(result: MapResult) -> Figure:
    """AP of each class, best first, and their mean."""
    scores = sorted(_with_ap(result), key=lambda score: -(score.AP or 0))
    values = [100 * (score.AP or 0) for score in scores]
    title = f"{headline(result)} over {counted(result.n_classes, 'class', 'classes')}"
    bars = Series("AP", values, BLUE)
    label = "AP (%); number of objects after each class name"
    figure, axes = _bars(_with_objects(scores), [bars], title, label, "{:.1f}")
    axes.set_xlim(0, 108)
    axes.set_xticks(range(0, 101, 20))
    if result.mAP_percent is not None:
        axes.axvline(result.mAP_percent, color=VERMILION, linestyle="--", label="mAP")
        _legend_below(figure, axes)
    return figure


def _miss_rate_bars(result: MapResult) -> Figure:
    """Log-average miss rate of each class, best first."""
    scores = sorted(_with_ap(result), key=lambda score: score.log_average_miss_rate or 0)
    values = [score.log_average_miss_rate or 0 for score in scores]
    title = "Log-average miss rate over 0.01 to 1 false positives per image (lower is better)"
    bars = Series("miss rate", values, BLUE)
    label = "log-average miss rate; number of objects after each class name"
    figure, axes = _bars(_with_objects(scores), [bars], title, label, "{:.2f}")
    axes.set_xlim(0, 1.08)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    return figure


def _object_bars(result: MapResult) -> Figure:
    """Objects of each class, in descending order."""
    scores = sorted(result.classes, key=lambda score: -(score.n_objects + score.n_difficult))
    series = [
        Series("scored", [score.n_objects for score in scores], BLUE),
        Series("difficult, not scored", [score.n_difficult for score in scores], GREY),
    ]
    n_objects = sum(score.n_objects + score.n_difficult for score in scores)
    title = (
        f"Ground truth: {counted(n_objects, 'object')} of "
        f"{counted(len(scores), 'class', 'classes')} in {counted(result.n_images, 'image')}"
    )
    figure, axes = _bars([_short(score.name) for score in scores], series, title, "objects", "{:,}")
    _legend_below(figure, axes)
    return figure


def _detection_bars(result: MapResult) -> Figure:
    """Detections of each class by verdict, in descending order."""
    rows = [
        (s.name, (s.n_true_positives, s.n_false_positives, s.n_on_difficult, 0))
        for s in result.classes
    ]
    rows += [(name, (0, 0, 0, count)) for name, count in result.detections_without_class.items()]
    rows.sort(key=lambda row: -sum(row[1]))
    labels = [
        ("true positives", BLUE),
        ("false positives", VERMILION),
        ("on difficult objects, not counted", GREY),
        ("of classes without ground truth, excluded from AP", ORANGE),
    ]
    series = [
        Series(label, [counts[place] for _, counts in rows], color)
        for place, (label, color) in enumerate(labels)
    ]
    n_detections = sum(sum(counts) for _, counts in rows)
    title = f"{counted(n_detections, 'detection')} of {counted(len(rows), 'class', 'classes')}"
    figure, axes = _bars([_short(row[0]) for row in rows], series, title, "detections", "{:,}")
    _legend_below(figure, axes)
    return figure


class Series(NamedTuple):
    """One colour of a bar chart, with one value per class."""

    label: str
    values: Sequence[float]
    color: str


def _with_objects(scores: Sequence[ClassScore]) -> list[str]:
    return [f"{_short(score.name)} ({score.n_objects:,})" for score in scores]


def _with_ap(result: MapResult) -> list[ClassScore]:
    return [score for score in result.classes if score.AP is not None]


def _bars(
    names: Sequence[str], series: Sequence[Series], title: str, label: str, number: str
) -> tuple[Figure, Axes]:
    """Horizontal stacked bars from the top, each labelled with its total.

    A series without nonzero values is omitted, unless it is the first.
    """
    shown = names[:MAX_BARS]
    if len(shown) < len(names):
        title += f"\n(the first {MAX_BARS} of {len(names):,} classes)"
    figure = Figure(figsize=(8, 1.6 + 0.24 * max(len(shown), 3)), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(shown))
    left = np.zeros(len(shown))
    for one in series:
        values = np.array(one.values[:MAX_BARS], dtype=float)
        if values.any() or one is series[0]:
            axes.barh(rows, values, left=left, height=0.72, color=one.color, label=one.label)
            left += values
    for row, total in enumerate(left.tolist()):
        text = number.format(round(total) if "," in number else total)
        axes.annotate(
            text,
            (total, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5},  # keeps text legible
        )
    axes.set_yticks(rows, shown)
    axes.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    axes.set_xlim(0, 1.1 * max(left.max(initial=0), 1))
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.set_title(title, loc="left")
    return figure, axes


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
