"""Layout, marks and saving of every plot.

Artists have labels (``mean|...``, ``seeds|...``, ``retraining|...``, ``species|...``) by which
tests find the plotted numbers; legends are made separately.

Sizes are in inches and points on paper: a figure is as wide as a page with margins, so that text
of 7 pt is 7 pt in print. Margins are fixed, which saves laying out each figure twice.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase, get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from benchmark_eval.core import fonts
from benchmark_eval.core.text import visible
from benchmark_eval.report.looks import Fill, Look

__all__ = ["Axes", "Figure", "Patch", "Rectangle"]

FORMATS = ("svg", "png")
WIDTH = 7.2
"""Inches: the text width of a page."""
INK, GREY, FAINT = "#333333", "#777777", "#E3E3E3"
TITLE, BODY, SMALL = 9.0, 7.5, 7.0
"""Points: titles, legends and labels, everything else. No text is smaller than ``SMALL``."""
_STYLE = str(resources.files("benchmark_eval.report") / "style.mplstyle")
_METADATA = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
SVG_FAMILIES = b"'DejaVu Sans', Verdana, 'Noto Sans', Arial, Helvetica, sans-serif"
_MARGIN = 0.08
_TITLE_LINE, _LEGEND_LINE, _NOTE_LINE = 0.165, 0.155, 0.125
_HANDLE, _HANDLE_GAP = 0.3, 0.62
_TALLEST = 9.3
"""Inches: panels shrink so that a figure fits on a page, down to ``_LOWEST``."""
_LOWEST = 0.62


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of this package, whatever the user's matplotlibrc says."""
    with matplotlib.style.context(["default", _STYLE]), fonts.quiet():
        yield


def save(
    figure: Figure, stem: Path, formats: Sequence[str] = FORMATS, lacking: set[str] | None = None
) -> None:
    """Write a figure in each format; the same figure gives the same bytes.

    The layout uses one font, which is part of matplotlib, and so does SVG, which keeps text as
    text: neither depends on the fonts of the system. PNG and PDF use others for the characters that
    it lacks; those that no font has are added to ``lacking``.
    """
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    foreign = [text for text in texts if not text.get_text().isascii()]
    for kind in formats:
        stream = io.BytesIO()
        for text in foreign:
            fallback = fonts.fallback_for([] if kind == "svg" else [text.get_text()])
            text.set_fontfamily([fonts.FAMILY, *fallback.families])
            if lacking is not None:
                lacking.update(fallback.lacking)
        # vector formats change it and do not restore it
        figure.dpi = mpl.rcParams["savefig.dpi"]
        # savefig would draw twice, the first time only for the layout
        canvas = get_registered_canvas_class(kind)(figure)
        quick = {"pil_kwargs": {"compress_level": 4}} if kind == "png" else {}
        getattr(canvas, f"print_{kind}")(stream, metadata=_METADATA[kind], **quick)
        path = stem.with_name(f"{stem.name}.{kind}")
        data = stream.getvalue()
        path.write_bytes(_finished_svg(data) if kind == "svg" else data)


def _finished_svg(svg: bytes) -> bytes:
    """The SVG without characters that XML cannot contain, and with fonts for other viewers.

    Viewers without DejaVu Sans use a font of similar width.
    """
    svg = _NOT_IN_XML.sub(lambda found: visible(found[0].decode()).encode(), svg)
    named = f"'{fonts.FAMILY}'".encode()
    return re.sub(
        rb"<(?:text|tspan|g)\b[^>]*>", lambda tag: tag[0].replace(named, SVG_FAMILIES), svg
    )


@lru_cache(maxsize=4096)
def _width(text: str, size: float, bold: bool) -> float:
    """The width of a text without line breaks, in inches."""
    font = FontProperties(family=fonts.FAMILY, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, False)
    return float(width) / 72


def text_width(text: str, size: float = BODY, *, bold: bool = False) -> float:
    """The width of one line in inches: that of its words, so that few texts are measured."""
    return sum(_width(word, size, bold) for word in text.split(" ") if word) + (
        text.count(" ") * _width(".", size, bold)
    )


def wrapped(text: str, width: float, size: float = BODY, *, bold: bool = False) -> str:
    """A text in lines of at most ``width`` inches; existing line breaks stay."""
    width *= 0.97  # hinted letters are a little wider
    text = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size, bold=bold) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return "\n".join(lines)


def shortened(text: str, width: float, size: float = BODY) -> str:
    """A text cut to ``width`` inches, with an ellipsis if it was longer."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


@dataclass(slots=True)
class Page:
    """A figure of rows x columns panels, with their sizes in inches until ``headings`` places them.

    ``left`` and ``right`` are the margins, ``above`` and ``below`` the space around each row
    (panel titles, tick labels), ``between`` that between columns. ``ratios`` are the relative
    widths of the columns.
    """

    rows: int
    columns: int
    height: float = 1.6
    left: float = 0.52
    right: float = 0.12
    above: float = 0.22
    below: float = 0.4
    between: float = 0.14
    ratios: Sequence[float] | None = None
    tallest: float = _TALLEST
    gap: float | None = None
    """Space between rows, if it is less than ``above`` and ``below``."""
    figure: Figure = field(init=False)
    axes: list[list[Axes]] = field(init=False)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH, 1.0))
        FigureCanvasBase(self.figure)
        self.axes = [
            [self.figure.add_axes((0.1, 0.1, 0.5, 0.5)) for _ in range(self.columns)]
            for _ in range(self.rows)
        ]

    @property
    def flat(self) -> list[Axes]:
        """All panels, row by row."""
        return [panel for line in self.axes for panel in line]

    def panel_width(self, column: int = 0) -> float:
        """The width of the panels of a column in inches."""
        ratios = self.ratios or [1.0] * self.columns
        free = WIDTH - self.left - self.right - self.between * (self.columns - 1)
        return free * ratios[column] / sum(ratios)

    def row_label(self, row: int, text: str) -> None:
        """Label a row of panels at its right edge; needs a right margin of 0.3."""
        self.axes[row][-1].annotate(
            shortened(text, max(self.height, 0.9)),
            (1.0, 0.5),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            rotation=270,
            va="center",
            ha="left",
            fontsize=BODY,
            fontweight="bold",
            annotation_clip=False,
        )

    def headings(
        self,
        title: str,
        entries: Iterable[Look | Fill | Patch | Line2D],
        note: str,
        *,
        lines: bool = True,
    ) -> Figure:
        """Title at the top left, legend below it, reading note at the foot; returns the figure."""
        handles = [_handle(entry, lines) for entry in entries]
        title = wrapped(title, WIDTH - 2 * _MARGIN, TITLE, bold=True)
        note = wrapped(note, WIDTH - 2 * _MARGIN, SMALL)
        columns = _legend_columns([str(handle.get_label()) for handle in handles])
        legend_rows = -(-len(handles) // columns)
        head = 0.1 + _TITLE_LINE * (title.count("\n") + 1)
        legend_top = head + 0.02
        head += _LEGEND_LINE * legend_rows + (0.06 if legend_rows else 0.0)
        foot = 0.08 + _NOTE_LINE * (note.count("\n") + 1) if note else 0.06
        tall = self._place(head, foot)
        self.figure.suptitle(title, x=_MARGIN / WIDTH, y=1 - 0.07 / tall, ha="left", va="top")
        if handles:
            self.figure.legend(
                handles=handles,
                loc="upper left",
                bbox_to_anchor=(_MARGIN / WIDTH, 1 - legend_top / tall),
                borderaxespad=0,
                borderpad=0,
                ncols=columns,
            )
        if note:
            self.figure.text(
                _MARGIN / WIDTH, 0.06 / tall, note, ha="left", fontsize=SMALL, color="#555555"
            )
        return self.figure

    def _place(self, head: float, foot: float) -> float:
        """Give the figure its height and the panels their places; returns the height."""
        gap = self.above + self.below if self.gap is None else self.gap
        rest = head + foot + self.above + self.below + gap * (self.rows - 1)
        height = max(min(self.height, (self.tallest - rest) / self.rows), min(_LOWEST, self.height))
        tall = math.ceil(100 * (rest + height * self.rows)) / 100
        self.figure.set_size_inches(WIDTH, tall)
        for row, line in enumerate(self.axes):
            bottom = foot + self.below + (self.rows - 1 - row) * (height + gap)
            left = self.left
            for column, axes in enumerate(line):
                width = self.panel_width(column)
                # names in an SVG depend on the last bits of the position
                axes.set_position(
                    (
                        round(left / WIDTH, 5),
                        round(bottom / tall, 5),
                        round(width / WIDTH, 5),
                        round(height / tall, 5),
                    )
                )
                left += width + self.between
        return tall


def _handle(entry: Look | Fill | Patch | Line2D, lines: bool) -> Patch | Line2D:
    """The legend handle of a look."""
    if isinstance(entry, Look):
        return Line2D(
            [],
            [],
            color=entry.color,
            marker=entry.marker,
            linestyle=entry.dash if lines else "none",
            label=entry.label,
        )
    if isinstance(entry, Fill):
        return filled(Patch(), entry)
    return entry


def filled(patch: Patch, fill: Fill) -> Patch:
    """The patch with the colour, hatching and label of a look."""
    patch.set(
        facecolor=fill.color,
        hatch=fill.hatch or None,
        edgecolor="#777777",
        linewidth=0.4,
        label=fill.label,
    )
    return patch


def _legend_columns(labels: Sequence[str]) -> int:
    """The largest number of columns that fits the page; matplotlib fills legends by column."""
    widths = [text_width(label) for label in labels]
    for columns in range(len(labels), 1, -1):
        deep, over = divmod(len(labels), columns)
        starts = [i * deep + min(i, over) for i in range(columns + 1)]
        widest = [max(widths[a:b]) for a, b in pairwise(starts)]
        if sum(_HANDLE_GAP + width for width in widest) <= WIDTH - 2 * _MARGIN:
            return columns
    return 1


def blank(title: str, why: str) -> Figure:
    """A placeholder for a plot without data."""
    page = Page(1, 1, height=0.3, above=0.0, below=0.0)
    panel = page.axes[0][0]
    panel.set_axis_off()
    return page.headings(title, [], why)


def bars(
    axes: Axes,
    spans: Sequence[tuple[float, float, float]],
    label: str,
    color: str,
    *,
    linewidth: float,
    horizontal: bool = False,
) -> None:
    """Draw intervals (position, low, high) as bars with a common label."""
    if not spans:
        return
    draw = axes.hlines if horizontal else axes.vlines
    draw(*zip(*spans, strict=True), color=color, linewidth=linewidth, zorder=3, label=label)


def halo(axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float],
         color: str = INK, **options: object) -> None:  # fmt: skip
    """A small text beside a point, readable on lines."""
    axes.annotate(
        text,
        at,
        xytext=offset,
        textcoords="offset points",
        fontsize=SMALL,
        color=color,
        path_effects=[withStroke(linewidth=1.6, foreground="white")],
        zorder=6,
        **options,  # type: ignore[arg-type]
    )


def shifts(count: int, widest: float = 0.6) -> list[float]:
    """Small horizontal shifts so that ``count`` series at one position do not overlap."""
    width = min(widest, 0.2 * (count - 1))
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
            zero_line(each)


def zero_line(axes: Axes, *, vertical: bool = False) -> None:
    """The line of no difference."""
    (axes.axvline if vertical else axes.axhline)(0, color=GREY, linewidth=0.7, zorder=1)


def only_left_labels(line: Sequence[Axes]) -> None:
    """Tick labels of a row at its first panel only."""
    for panel in line[1:]:
        panel.tick_params(labelleft=False)
