"""Draws the plots of a sweep from its tables."""

from __future__ import annotations

import html
import importlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.fonts import lacking_note
from benchmark_eval.core.outputs import Input, claim
from benchmark_eval.report.captions import PLOTS, Plot
from benchmark_eval.sweep.tables import Aggregated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmark_eval.report.plots.view import View

FORMATS = ("svg", "png")
_LOG = logging.getLogger(__name__)
_MARKUP = re.compile(r"\\(.)|\*\*|`|(?<!\w)\*|\*(?!\w)")


def painters() -> dict[str, Callable[[Aggregated], Figure]]:
    """The function that draws each plot of ``captions.PLOTS``, with its descriptive title."""
    return {plot.name: _painter(plot) for plot in PLOTS}


def _painter(plot: Plot) -> Callable[[Aggregated], Figure]:
    def paint(table: Aggregated) -> Figure:
        from benchmark_eval.report.plots.view import View

        return _paint(plot, View(table), plot.title)

    return paint


def _paint(plot: Plot, view: View, title: str) -> Figure:
    place, *arguments = plot.painter
    module, function = place.split(".")
    paint = getattr(importlib.import_module(f"benchmark_eval.report.plots.{module}"), function)
    figure: Figure = paint(view, title, *arguments)
    return figure


def titles(table: Aggregated) -> dict[str, str]:
    """The heading of each plot: the conclusion of its question, or else what it shows."""
    from benchmark_eval.report.conclusions import conclusions

    found = conclusions(table)
    return {plot.name: plain(found.get(plot.name) or plot.title) for plot in PLOTS}


def plain(markdown: str) -> str:
    r"""A sentence of the report without its markup.

    Examples
    --------
    >>> print(plain(r"**k=5** of \\_a\\_ &lt; `b`"))
    k=5 of _a_ < b
    """
    return html.unescape(_MARKUP.sub(lambda found: found[1] or "", markdown))


def write_plots(
    table: Aggregated,
    output_dir: str | Path,
    formats: Sequence[str] = FORMATS,
    names: Iterable[str] | None = None,
    *,
    jobs: int = 1,
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> list[Path]:
    """Draw all plots, or those in ``names``, into ``output_dir``; returns the files.

    ``jobs`` is the number of processes; the files do not depend on it. ``core.outputs.claim``
    describes ``inputs``, ``force`` and ``declared``. Raises UsageError if an existing file must not
    be replaced.
    """
    known = {plot.name: plot for plot in PLOTS}
    selected = list(known) if names is None else list(names)
    unknown = [name for name in selected if name not in known]
    if unknown:
        raise UsageError(f"unknown plot: {', '.join(unknown)}; expected {', '.join(known)}")
    files = [f"{name}.{kind}" for name in selected for kind in formats]
    lacking: set[str] = set()
    with claim(output_dir, files, inputs=inputs, force=force, declared=declared) as output:
        tasks = [(known[name], output.path(name)) for name in selected]
        for missing in _drawn(table, tasks, formats, jobs):
            lacking |= missing
        output.publish()
    if lacking:
        _LOG.warning(
            "plots: %s; SVG files show them if the reader has the font", lacking_note(lacking)
        )
    return [Path(output_dir) / name for name in files]


def _drawn(
    table: Aggregated, tasks: Sequence[tuple[Plot, Path]], formats: Sequence[str], jobs: int
) -> Iterator[set[str]]:
    """Draw every plot; yields the characters without a font."""
    workers = min(jobs, len(tasks))
    _start(table, titles(table), formats)
    if workers <= 1:
        yield from map(_draw, tasks)
        return
    given = (table, _WORK["titles"], formats)
    with ProcessPoolExecutor(workers, initializer=_start, initargs=given) as pool:
        try:
            yield from pool.map(_draw, tasks)
        except BrokenProcessPool:
            raise UsageError(
                f"one of {workers} processes was killed, most likely because memory ran out"
            ) from None


_WORK: dict[str, Any] = {}
"""What the tasks of a process share."""


def _start(table: Aggregated, headings: Mapping[str, str], formats: Sequence[str]) -> None:
    from benchmark_eval.report.plots.view import View

    _WORK.update(view=View(table), titles=headings, formats=formats)


def _draw(task: tuple[Plot, Path]) -> set[str]:
    from benchmark_eval.report import figures

    plot, stem = task
    lacking: set[str] = set()
    with figures.house_style():
        figure = _paint(plot, _WORK["view"], _WORK["titles"][plot.name])
        figures.save(figure, stem, _WORK["formats"], lacking)
    return lacking
