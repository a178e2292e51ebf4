"""Forest plot of the differences between the sides of a comparison."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark_eval.report import figures
from benchmark_eval.report.comparison import difference_cell, verdict_words
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.compare import Comparison, SideDifference
from benchmark_eval.sweep.verdicts import Word

_MOST_PAIRS = 10
_COLOR = "#333333"
_LONGEST = 60
_NOTE_WIDTH = 150


def differences(result: Comparison) -> Figure:
    """One panel per metric, one line per pair of sides; a filled marker is a verdict."""
    groups = [
        (rows[0], _shown(rows, result))
        for _, found in groupby(result.differences, key=lambda row: row.metric)
        if (rows := list(found))
    ]
    longest = max(len(rows) for _, rows in groups)
    figure, axes = figures.panels(
        len(groups), 1, height=0.65 + 0.3 * longest, extra=0.6, share_y=False
    )
    for (first, rows), (panel,) in zip(groups, axes, strict=True):
        panel.set_title(f"{first.label}, {SPLIT_LABEL[first.split]}")
        _panel(panel, rows)
    note = (
        "Bars: 95 % intervals, not corrected for the number of tests. Filled marker: a verdict "
        "(Holm, p < 0.05); hollow: inconclusive; cross: not tested. Panels differ in scale."
    )
    if any(len(rows) < _n_pairs(result) for _, rows in groups):
        note += " Only the differences to the best side of each metric are shown."
    lines = textwrap.wrap(note, _NOTE_WIDTH)
    for side in result.sides:
        lines.append(f"{side.letter}: {_short(side.name)}")
    figures.headings(figure, textwrap.shorten(_title(result), 110), [], "\n".join(lines))
    return figure


def _n_pairs(result: Comparison) -> int:
    return len(result.sides) * (len(result.sides) - 1) // 2


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


def _panel(panel: figures.Axes, rows: Sequence[SideDifference]) -> None:
    panel.axvline(0, color=figures.GREY, linewidth=0.9, zorder=1)
    for at, row in enumerate(rows):
        if row.a_minus_b is None:
            continue
        key = f"{row.metric}|{row.a}|{row.b}"
        if row.ci95_low is not None and row.ci95_high is not None:
            panel.hlines(
                at, row.ci95_low, row.ci95_high, color=_COLOR, linewidth=1.6, label=f"ci95|{key}"
            )
        decided = row.verdict in (Word.HIGHER, Word.LOWER)
        panel.plot(
            [row.a_minus_b],
            [at],
            marker="x" if row.verdict is Word.NOT_TESTED else "o",
            markersize=6.5,
            color=_COLOR,
            markerfacecolor=_COLOR if decided else "white",
            linestyle="none",
            zorder=3,
            label=f"mean|{key}",
        )
    panel.set_yticks(range(len(rows)), [f"{row.a} \N{MINUS SIGN} {row.b}" for row in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")
    panel.margins(x=0.08)
    panel.xaxis.set_major_locator(MaxNLocator(7))
    right = panel.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), [f"{difference_cell(r)}  {verdict_words(r)}" for r in rows])
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
