"""Draws the plots of a sweep from its tables."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.fonts import lacking_note
from benchmark_eval.report.captions import PLOTS
from benchmark_eval.sweep.tables import Aggregated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
_LOG = logging.getLogger(__name__)


def painters() -> dict[str, Callable[[Aggregated], Figure]]:
    """The function that draws each plot of ``captions.PLOTS``."""
    return {plot.name: _painter(*plot.painter) for plot in PLOTS}


def _painter(place: str, *arguments: str) -> Callable[[Aggregated], Figure]:
    module, function = place.split(".")
    paint = getattr(importlib.import_module(f"benchmark_eval.report.plots.{module}"), function)
    return lambda table: paint(table, *arguments)


def write_plots(
    table: Aggregated,
    output_dir: str | Path,
    formats: Sequence[str] = FORMATS,
    names: Iterable[str] | None = None,
) -> list[Path]:
    """Draw all plots, or those in ``names``, into ``output_dir``; returns the files."""
    from benchmark_eval.report import figures

    known = [plot.name for plot in PLOTS]
    selected = known if names is None else list(names)
    unknown = [name for name in selected if name not in known]
    if unknown:
        raise UsageError(f"unknown plot: {', '.join(unknown)}; expected {', '.join(known)}")
    paint = painters()
    written: list[Path] = []
    lacking: set[str] = set()
    for name in selected:
        with figures.house_style():
            written += figures.save(paint[name](table), Path(output_dir) / name, formats, lacking)
    if lacking:
        _LOG.warning(
            "plots: %s; SVG files show them if the reader has the font", lacking_note(lacking)
        )
    return written
