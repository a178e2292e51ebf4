"""Drawing the plots of a sweep from its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.errors import UsageError
from benchmark_eval.report.captions import PLOTS
from benchmark_eval.sweep.tables import Aggregated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")


def painters() -> dict[str, Callable[[Aggregated], Figure]]:
    """The function that draws each plot of ``captions.PLOTS``."""
    from benchmark_eval.report.plots import best_condition, budgets, curves, targets

    return {
        "learning_iid_AP_50_95": lambda table: curves.learning(table, "iid_AP_50_95"),
        "learning_inat_AP_50_95": lambda table: curves.learning(table, "inat_AP_50_95"),
        "learning_ood_class_agnostic_AR_100": lambda table: curves.learning(
            table, "ood_class_agnostic_AR_100"
        ),
        "learning_iid_AP_50": lambda table: curves.learning(table, "iid_AP_50"),
        "budget_images": lambda table: budgets.cost(table, "n_images"),
        "budget_specimens": lambda table: budgets.cost(table, "n_specimens"),
        "generalization_gaps": curves.generalization_gaps,
        "ood_bands": curves.bands,
        "ood_band_taxonomic_agreement": curves.band_naming,
        "density_detection_recall": lambda table: best_condition.density(
            table, best_condition.FOUND
        ),
        "density_species_accuracy": lambda table: best_condition.density(
            table, best_condition.NAMED
        ),
        "imbalance_tiers": curves.tiers,
        "imbalance_gap": curves.tier_gap,
        "decomposition_iid": lambda table: curves.finding_and_naming(table, "iid_test"),
        "decomposition_inat": lambda table: curves.finding_and_naming(table, "inat_test"),
        "operating_curve": best_condition.operating,
        "target_grid": targets.grid,
        "target_vs_nontarget": targets.against_others,
        "confidence": curves.confidence,
        "calibration_error": curves.calibration_error,
        "novelty": curves.novelty,
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
