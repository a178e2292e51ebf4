"""Drawing the plots of a sweep from its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.errors import UsageError
from benchmark_eval.report.captions import PLOTS
from benchmark_eval.sweep.tables import Aggregated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")


def painters() -> dict[str, Callable[[Aggregated], Figure]]:
    """The function that draws each plot of ``captions.PLOTS``."""
    from benchmark_eval.report.plots import curves

    return {
        "learning_iid_AP_50_95": lambda table: curves.learning(table, "iid_AP_50_95"),
        "learning_inat_AP_50_95": lambda table: curves.learning(table, "inat_AP_50_95"),
        "learning_ood_class_agnostic_AR_100": lambda table: curves.learning(
            table, "ood_class_agnostic_AR_100"
        ),
    }


def write_plots(
    table: Aggregated,
    output_dir: str | Path,
    formats: Sequence[str] = FORMATS,
    names: Iterable[str] | None = None,
) -> list[Path]:
    """Draw all plots, or those in ``names``, into ``output_dir``; returns the files."""
    from benchmark_eval.report import figures

    known = [plot.name for plot in PLOTS]
    wanted = known if names is None else list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"no such plot: {', '.join(unknown)}; there are {', '.join(known)}")
    paint = painters()
    written: list[Path] = []
    for name in wanted:
        with figures.house_style():
            written += figures.save(paint[name](table), Path(output_dir) / name, formats)
    return written
