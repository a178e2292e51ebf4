"""Draws the plots of a sweep from its tables."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.fonts import lacking_note
from benchmark_eval.core.outputs import Input, claim
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
    *,
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> list[Path]:
    """Draw all plots, or those in ``names``, into ``output_dir``; returns the files.

    ``core.outputs.claim`` describes ``inputs``, ``force`` and ``declared``. Raises UsageError if an
    existing file must not be replaced.
    """
    from benchmark_eval.report import figures

    known = [plot.name for plot in PLOTS]
    selected = known if names is None else list(names)
    unknown = [name for name in selected if name not in known]
    if unknown:
        raise UsageError(f"unknown plot: {', '.join(unknown)}; expected {', '.join(known)}")
    paint = painters()
    files = [f"{name}.{kind}" for name in selected for kind in formats]
    lacking: set[str] = set()
    with claim(output_dir, files, inputs=inputs, force=force, declared=declared) as output:
        for name in selected:
            with figures.house_style():
                figures.save(paint[name](table), output.path(name), formats, lacking)
        output.publish()
    if lacking:
        _LOG.warning(
            "plots: %s; SVG files show them if the reader has the font", lacking_note(lacking)
        )
    return [Path(output_dir) / name for name in files]
