"""Which results are up to date, and which process may change them.

A fingerprint describes the inputs that results should be computed from; a record, those that they
were computed from. Only records decide what runs; modification times do not matter.

The record of the index, the tables, the plots, the report or the page has the digest of its
fingerprint in its name. If the fingerprint changes, the record of that name does not exist, so
Snakemake schedules the job that writes it. The record of a model (``models/<model>.made``) begins
with a copy of its fingerprint; the planner compares the two. If a change is reverted before
anything ran, the records match again and nothing is rerun. The records of models and tables also
have the digest of the summary and of ``aggregated.json``, so that later jobs refuse these files if
they were edited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.locks import lock
from benchmark_eval.core.records import SUFFIX, current_record
from benchmark_eval.core.text import some_of
from benchmark_eval.report.page.file import PAGE, foreign_page

TABLES = (
    "aggregated.json",
    "learning_curves.csv",
    "differences.csv",
    "target_species_curves.csv",
    "target_vs_nontarget.csv",
    "budget_curves.csv",
    "density_curves.csv",
    "operating_curves.csv",
    "species.csv",
    "comparisons.csv",
    "budget_planning.csv",
    "species_curves.csv",
    "tiers.csv",
    "target_gains.csv",
    "retention.csv",
    "pooled_shares.csv",
    "band_gaps.csv",
    "error_types.csv",
    "confusions.csv",
    "genus_confusions.csv",
    "labels.csv",
    "confusion_by_chance.csv",
    "reliability.csv",
    "risk_coverage.csv",
    "novelty.csv",
    "novelty_histograms.csv",
    "models.csv",
)
"""The files of ``sweep.tables``, whose import takes too long while the workflow is loaded."""
PLOT_FORMATS = ("svg", "png")
LOCK = "lock"

_held: dict[Path, TextIO] = {}


def hold(state: str | Path) -> None:
    """Lock the folder of the fingerprints until this process ends.

    Raises UsageError if another process holds the lock: its jobs were planned with its
    fingerprints. The kernel releases the lock when the process ends for any reason. If the lock
    file cannot be written or the file system does not support locks, nothing is locked.
    """
    path = Path(state).resolve() / LOCK
    if path in _held:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a")
    except OSError:
        return
    locked = lock(stream)
    if locked:
        _held[path] = stream
        return
    stream.close()
    if locked is False:
        raise UsageError(
            f"another Snakemake process is using {Path(state).parent}; nothing was run. "
            "Wait until it has finished, then run again"
        )


def results_of(part: str, results: str | Path, formats: Sequence[str] = PLOT_FORMATS) -> list[Path]:
    """The files of ``index``, ``sweep`` (the tables), ``plots``, ``report`` or ``page``.

    ``results`` is the results folder, ``formats`` are those of the plots.
    """
    folder = Path(results)
    if part == "index":
        return [folder / "benchmark/index.npz"]
    if part == "sweep":
        return [folder / "aggregated" / name for name in TABLES]
    if part == "report":
        return [folder / "aggregated/report.md"]
    if part == "page":
        return [folder / PAGE]
    from benchmark_eval.report.captions import PLOTS

    return [folder / f"plots/{plot.name}.{kind}" for plot in PLOTS for kind in formats]


def write_record(record: str | Path, content: bytes) -> None:
    """Write a record and remove those of the same results with other digests."""
    write_bytes_atomic(record, content)
    for other in _others(Path(record)):
        other.unlink(missing_ok=True)


def remove_outdated(state: str | Path, log: Callable[[str], None]) -> None:
    """Remove tables, plots, report and page that do not match the fingerprints in ``state``.

    Called by every job before it starts: Snakemake keeps old results if a job that they depend on
    fails, and they could be mistaken for new ones. ``log`` is called with what was removed and why.
    """
    state = Path(state)
    for part in ("sweep", "plots", "report", "page"):
        record = current_record(state, part)
        if record.exists():
            continue
        others = _others(record)
        removed = []
        try:
            for other in others:
                other.unlink(missing_ok=True)
            for result in results_of(part, state.parent):
                if part == "page" and foreign_page(result):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    result.unlink()
                    removed.append(str(result))
        except OSError as error:
            raise UsageError(f"cannot remove outdated results: {error}") from error
        if removed:
            why = "inputs, options or code changed" if others else "no record of their inputs"
            log(
                f"removed {some_of(removed, 1)}: {why}; "
                "run snakemake without a target to create everything that is missing"
            )


def _others(record: Path) -> list[Path]:
    """Records of the same results with other digests."""
    part = record.name.partition(".")[0]
    return [path for path in record.parent.glob(f"{part}.*{SUFFIX}") if path != record]
