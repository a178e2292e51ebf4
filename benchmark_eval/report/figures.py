"""Layout and saving of every plot.

Artists have labels (``mean|...``, ``seeds|...``, ``ci95|...``) by which tests find the plotted
numbers; legends are made separately.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Literal

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.textpath import TextPath

from benchmark_eval.core import fonts
from benchmark_eval.core.intervals import Estimate
from benchmark_eval.core.text import visible
from benchmark_eval.report.lookup import Series

__all__ = ["Axes", "Estimate", "Figure", "Rectangle"]

FORMATS = ("svg", "png")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
Dash = Literal["-", "--", ":", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")
GREY = "#777777"
_STYLE = str(resources.files("benchmark_eval.report") / "style.mplstyle")
_METADATA = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
SVG_FAMILIES = b"'DejaVu Sans', Verdana, 'Noto Sans', Arial, Helvetica, sans-serif"
_MOST_TICKS = 12
# inches: the page, a legend's handle with its gaps
_WIDTH, _HANDLE = 10.8, 0.68
_SEED_STEP = 0.07
# inches kept free above and below the panels
_TITLE, _LEGEND_LINE, _FOOT, _FOOT_LINE = 0.42, 0.26, 0.3, 0.15


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a series: colour, marker and line style."""

    label: str
    color: str
    marker: str
    dash: Dash = "-"


def looks(labels: Sequence[str]) -> list[Look]:
    """A look for each label; line styles change when the colours repeat."""
    return [
        Look(
            label,
            PALETTE[i % len(PALETTE)],
            MARKERS[i % len(MARKERS)],
            DASHES[(i // len(PALETTE)) % len(DASHES)],
        )
        for i, label in enumerate(labels)
    ]


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of this package, whatever the user's matplotlibrc says."""
    with plt.style.context(["default", _STYLE]), fonts.quiet():
        yield


def save(
    figure: Figure, stem: Path, formats: Sequence[str] = FORMATS, lacking: set[str] | None = None
) -> None:
    """Write a figure in each format; the same figure gives the same bytes.

    The layout uses one font, which is part of matplotlib, and so does SVG, which keeps text as
    text: neither depends on the fonts of the system. PNG and PDF use others for the characters that
    it lacks; those that no font has are added to ``lacking``.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, so that every format looks the same
    for axes in figure.axes:
        # the solver's last bits depend on memory addresses, and names in an SVG depend on them
        left, bottom, width, height = (round(v, 5) for v in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    for kind in formats:
        stream = io.BytesIO()
        for text in texts:
            fallback = fonts.fallback_for([] if kind == "svg" else [text.get_text()])
            text.set_fontfamily([fonts.FAMILY, *fallback.families])
            if lacking is not None:
                lacking.update(fallback.lacking)
        figure.dpi = plt.rcParams["savefig.dpi"]  # vector formats change it and do not restore it
        # savefig would draw twice, the first time only for the layout
        canvas = get_registered_canvas_class(kind)(figure)
        getattr(canvas, f"print_{kind}")(stream, metadata=_METADATA[kind])
        path = stem.with_name(f"{stem.name}.{kind}")
        data = stream.getvalue()
        path.write_bytes(_finished_svg(data) if kind == "svg" else data)
    plt.close(figure)


def _finished_svg(svg: bytes) -> bytes:
    """The SVG without characters that XML cannot contain, and with fonts for other viewers.

    Viewers without DejaVu Sans use a font of similar width.
    """
    svg = _NOT_IN_XML.sub(lambda found: visible(found[0].decode()).encode(), svg)
    named = f"'{fonts.FAMILY}'".encode()
    return re.sub(
        rb"<(?:text|tspan|g)\b[^>]*>", lambda tag: tag[0].replace(named, SVG_FAMILIES), svg
    )


def panels(
    rows: int, columns: int, *, height: float = 3.2, extra: float = 1.2, share_y: bool = True
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of rows x columns axes, as wide as a landscape page; ``height`` inches per row."""
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(_WIDTH + 0.2, height * rows + extra),
        sharey=share_y,
        squeeze=False,
        layout="constrained",
    )
    return figure, [list(row) for row in axes]


def headings(
    figure: Figure, title: str, entries: Iterable[Look | Patch], note: str, *, lines: bool = True
) -> None:
    """Title at the top left, legend below it, reading note at the foot."""
    handles = [
        Line2D(
            [],
            [],
            color=entry.color,
            marker=entry.marker,
            linestyle=entry.dash if lines else "none",
            label=entry.label,
        )
        if isinstance(entry, Look)
        else entry
        for entry in entries
    ]
    tall = figure.get_figheight()
    columns = _legend_columns([str(handle.get_label()) for handle in handles])
    foot = _FOOT + _FOOT_LINE * note.count("\n")
    head = _TITLE + _LEGEND_LINE * -(-len(handles) // columns)
    figure.suptitle(title, x=0.01, y=1 - 0.1 / tall, ha="left", va="top")
    if handles:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.004, 1 - (_TITLE - 0.06) / tall),
            borderaxespad=0,
            ncols=columns,
        )
    figure.text(0.01, 0.1 / tall, note, ha="left", fontsize=8.5, color="#555555")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(0.006, foot / tall, 0.988, 1 - (head + foot) / tall))  # type: ignore[call-arg]


def _legend_columns(labels: Sequence[str]) -> int:
    """The largest number of columns that fits the page; matplotlib fills legends by column."""
    font = FontProperties(size=mpl.rcParams["legend.fontsize"])
    # in points; an empty label has no path
    widths = [TextPath((0, 0), text, prop=font).get_extents().width if text.strip() else 0.0
              for text in labels]  # fmt: skip
    for columns in range(len(labels), 1, -1):
        deep, over = divmod(len(labels), columns)
        starts = [i * deep + min(i, over) for i in range(columns + 1)]
        widest = [max(widths[a:b]) for a, b in pairwise(starts)]
        if sum(_HANDLE + width / 72 for width in widest) <= _WIDTH:
            return columns
    return 1


def budget_axis(axes: Axes, budgets: Sequence[str], label: str) -> None:
    """Evenly spaced budgets, including 0 and "all"."""
    step = -(-len(budgets) // _MOST_TICKS)
    shown = [i for i in range(len(budgets)) if i % step == 0 or i == len(budgets) - 1]
    axes.set_xticks(shown, [budgets[i] for i in shown])
    # one or two budgets are centred, so that shifted series do not look like other budgets
    margin = max(0.5, (4 - len(budgets)) / 2)
    axes.set_xlim(-margin, len(budgets) - 1 + margin)
    axes.set_xlabel(label)


def interval_bars(
    axes: Axes,
    points: Iterable[tuple[float, Estimate]],
    key: str,
    color: str,
    *,
    linewidth: float,
    alpha: float,
) -> list[tuple[float, float, float]]:
    """Draw the interval of each estimate that has one as a vertical bar; returns (x, low, high).

    ``key`` names the line that the bars belong to.
    """
    bars = [
        (x, value.ci95_low, value.ci95_high)
        for x, value in points
        if value.ci95_low is not None and value.ci95_high is not None
    ]
    if bars:
        axes.vlines(
            *zip(*bars, strict=True),
            color=color,
            linewidth=linewidth,
            alpha=alpha,
            zorder=3,
            label=f"ci95|{key}",
        )
    return bars


def draw_series(axes: Axes, series: Series, look: Look, *, shift: float, complete: int) -> None:
    """Draw means as a line, intervals as bars and, to their left, each seed as a dot.

    ``shift`` separates series at one budget. A mean of fewer than ``complete`` seeds is annotated
    with its n.
    """
    if series.dots:
        axes.plot(
            [x + shift - _SEED_STEP for x, _ in series.dots],
            [y for _, y in series.dots],
            linestyle="none",
            marker="o",
            markersize=3.4,
            markeredgewidth=0,
            color=look.color,
            alpha=0.5,
            clip_on=False,
            zorder=2,
            label=f"seeds|{series.key}",
        )
    moved = [(x + shift, value) for x, value in series.points]
    interval_bars(axes, moved, series.key, look.color, linewidth=1.3, alpha=0.75)
    for x, value in series.points:
        if value.n < complete and value.mean is not None:
            axes.annotate(
                f"n={value.n}",
                (x + shift, value.mean),
                xytext=(5, -10),
                textcoords="offset points",
                fontsize=8,
                color=look.color,
                path_effects=[withStroke(linewidth=2, foreground="white")],
                zorder=6,
            )
    drawn = [(x + shift, value.mean) for x, value in series.points if value.mean is not None]
    axes.plot(
        [x for x, _ in drawn],
        [y for _, y in drawn],
        color=look.color,
        marker=look.marker,
        linestyle=look.dash,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=4,
        label=f"mean|{series.key}",
    )


def shifts(count: int) -> list[float]:
    """Small horizontal shifts so that ``count`` series at one budget do not overlap."""
    width = min(0.6, 0.2 * (count - 1))
    return [0.0] if count == 1 else [i * width / (count - 1) - width / 2 for i in range(count)]


def fit_y(
    axes: Iterable[Axes],
    values: Iterable[float],
    low: float | None,
    high: float | None,
    base: float = 0.0,
) -> None:
    """Set limits that include all values and ``base``, within the range ``low`` to ``high``."""
    kept = [
        min(max(v, low if low is not None else v), high if high is not None else v) for v in values
    ]
    bottom, top = min([base, *kept]), max([base, *kept])
    span = (top - bottom) or 1.0
    for each in axes:
        each.set_ylim(bottom - 0.03 * span, top + 0.06 * span)
        if bottom < 0:
            each.axhline(0, color=GREY, linewidth=0.9, zorder=1)


def extent(series: Iterable[Series]) -> list[float]:
    """Every number that a plot of these series must include."""
    values: list[float] = []
    for one in series:
        values += [y for _, y in one.dots]
        for _, point in one.points:
            values += [v for v in (point.mean, point.ci95_low, point.ci95_high) if v is not None]
    return values


def row_label(axes: Axes, text: str) -> None:
    """Label a row of panels at its right edge."""
    axes.annotate(
        text,
        (1.0, 0.5),
        xycoords="axes fraction",
        xytext=(10, 0),
        textcoords="offset points",
        rotation=270,
        va="center",
        ha="left",
        fontweight="bold",
        annotation_clip=False,
    )


def card_box(axes: Axes, at: int, span: tuple[float, float], color: str) -> None:
    """The range on the benchmark's card, at the budget of all training data."""
    axes.add_patch(
        Rectangle(
            (at - 0.42, span[0]),
            0.84,
            span[1] - span[0],
            facecolor=color,
            edgecolor=color,
            alpha=0.28,
            linewidth=0.8,
            zorder=1,
            label="card",
        )
    )


def blank(title: str, why: str) -> Figure:
    """A placeholder for a plot without data."""
    figure = plt.figure(figsize=(11, 1.6))
    figure.suptitle(title, x=0.01, ha="left")
    figure.text(0.01, 0.35, why, color="#555555")
    return figure
