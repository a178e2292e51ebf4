"""Forest plot of the differences between the sides of a comparison."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark_eval.report.comparison import difference_cell, verdict_words
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.compare import Comparison, SideDifference
from benchmark_eval.sweep.verdicts import Word

_MOST_PAIRS = 10
_INK, _GREY = "#333333", "#777777"
# inches: the text width of a page, and what is kept free around the panels
_WIDTH, _LEFT, _RIGHT = 7.2, 0.55, 3.05
_ROW, _ABOVE, _BELOW, _LINE = 0.17, 0.27, 0.25, 0.135
_TITLE, _BODY, _SMALL = 9.0, 7.5, 7.0
"""Points in print."""
_COLUMNS = 115
"""Characters of a line of the note."""


def differences(result: Comparison) -> Figure:
    """One panel per metric, one line per pair of sides; a filled marker is a verdict."""
    groups = [
        (rows[0], _shown(rows, result))
        for _, found in groupby(result.differences, key=lambda row: row.metric)
        if (rows := list(found))
    ]
    note = (
        "Bars: 95 % intervals, not corrected for the number of tests. Diamond: a verdict (Holm, "
        "p < 0.05); circle: inconclusive; cross: not tested. Panels differ in scale."
    )
    if any(len(rows) < len(result.sides) * (len(result.sides) - 1) // 2 for _, rows in groups):
        note += " Only the differences to the best side of each metric are shown."
    foot = textwrap.wrap(note, _COLUMNS)
    foot += [textwrap.shorten(f"{side.letter}: {side.name}", _COLUMNS) for side in result.sides]
    head = textwrap.wrap(_title(result), 90)
    rest = 0.12 + 0.16 * len(head) + 0.1 + _LINE * len(foot)
    tall = round(rest + sum(_ABOVE + _BELOW + _ROW * len(rows) for _, rows in groups), 2)
    figure = Figure(figsize=(_WIDTH, tall))
    FigureCanvasBase(figure)
    figure.set_layout_engine("none")
    top = tall - 0.12 - 0.16 * len(head)
    for first, rows in groups:
        height = _ROW * len(rows)
        top -= _ABOVE + height
        # names in an SVG depend on the last bits of the position
        place = (_LEFT / _WIDTH, top / tall, 1 - (_LEFT + _RIGHT) / _WIDTH, height / tall)
        panel = figure.add_axes(tuple(round(side, 5) for side in place))  # type: ignore[arg-type]
        panel.set_title(f"{first.label}, {SPLIT_LABEL[first.split]}", fontsize=_BODY)
        _panel(panel, rows)
        top -= _BELOW
    inset = 0.08 / _WIDTH
    figure.suptitle(
        "\n".join(head), x=inset, y=1 - 0.07 / tall, ha="left", va="top", fontsize=_TITLE
    )
    figure.text(
        inset, 0.06 / tall, "\n".join(foot), ha="left", va="bottom", fontsize=_SMALL,
        color="#555555",
    )  # fmt: skip
    return figure


def _title(result: Comparison) -> str:
    """What is shown, and the options that differ."""
    what = f"Differences between {len(result.sides)} sides, paired by species"
    if len(result.sides) == 2:
        what = "Difference A \N{MINUS SIGN} B, paired by species"
    return "; ".join([what, *result.other_options])


def _shown(rows: Sequence[SideDifference], result: Comparison) -> list[SideDifference]:
    """All pairs, or those with the best side if there are many."""
    if len(rows) <= _MOST_PAIRS:
        return list(rows)
    best = next(r.order[0] for r in result.rankings if r.metric == rows[0].metric)
    return [row for row in rows if best in (row.a, row.b)]


def _panel(panel: Axes, rows: Sequence[SideDifference]) -> None:
    panel.axvline(0, color=_GREY, linewidth=0.7, zorder=1)
    for at, row in enumerate(rows):
        if row.a_minus_b is None:
            continue
        key = f"{row.metric}|{row.a}|{row.b}"
        if row.ci95_low is not None and row.ci95_high is not None:
            panel.hlines(
                at, row.ci95_low, row.ci95_high, color=_INK, linewidth=1.1, label=f"ci95|{key}"
            )
        decided = row.verdict in (Word.HIGHER, Word.LOWER)
        panel.plot(
            [row.a_minus_b],
            [at],
            marker="D" if decided else "x" if row.verdict is Word.NOT_TESTED else "o",
            markersize=4,
            color=_INK,
            markerfacecolor=_INK if decided else "white",
            markeredgewidth=0.8,
            linestyle="none",
            zorder=3,
            label=f"mean|{key}",
        )
    pairs = [f"{row.a} \N{MINUS SIGN} {row.b}" for row in rows]
    panel.set_yticks(range(len(rows)), pairs, fontsize=_SMALL)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.tick_params(axis="both", labelsize=_SMALL, length=2.5, pad=2)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")
    panel.margins(x=0.08)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    for at, row in enumerate(rows):
        words = "not tested" if row.verdict is Word.NOT_TESTED else verdict_words(row)
        panel.annotate(
            f"{difference_cell(row)}   {words}",
            (1, at),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=_SMALL,
            color=_INK,
            annotation_clip=False,
        )
