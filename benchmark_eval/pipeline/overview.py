"""What was run, for the first page of Snakemake's report (``workflow/report/workflow.rst``)."""

from __future__ import annotations

import platform
import re
from importlib import metadata

from benchmark_eval import __version__
from benchmark_eval.core.text import counted, some_of
from benchmark_eval.pipeline.plan import Plan
from benchmark_eval.protocol import REGIMES

_NAMED = 3


def overview(plan: Plan) -> tuple[str, list[tuple[str, str]]]:
    """Title, and rows of name and value, as text of reStructuredText without markup."""
    config = plan.config
    by_regime = {regime: len(plan.of_regime(regime)) for regime in REGIMES}
    counts = ", ".join(f"{regime} {count}" for regime, count in by_regime.items() if count)
    rows = [
        ("Models", f"{len(plan.models)} ({counts})"),
        ("Splits", ", ".join(config.splits)),
        ("IoU threshold", f"{config.iou:g}"),
        ("Engine of AP and AR", config.engine),
        ("Invalid predictions", "dropped" if config.on_invalid == "drop" else "not allowed"),
        ("Benchmark", str(config.benchmark_dir)),
        ("Predictions", str(config.predictions_dir or "see manifest")),
        ("Manifest", str(config.manifest)),
        (
            "Versions",
            f"benchmark-eval {__version__}, Snakemake {metadata.version('snakemake')}, "
            f"Python {platform.python_version()}",
        ),
    ]
    if plan.missing:
        missing = f"{counted(len(plan.missing), 'model')}: {some_of(plan.missing, _NAMED)}"
        rows.insert(1, ("Without predictions", missing))
    if config.custom_metrics:
        rows.append(("Custom metrics", str(config.custom_metrics)))
    prices = {"Price per image": config.price_per_image}
    prices["Price per specimen"] = config.price_per_specimen
    rows += [(name, f"{price:g}") for name, price in prices.items() if price is not None]
    title = f"Sweep in {plan.layout.results}"
    return _plain(title), [(name, _plain(value)) for name, value in rows]


def _plain(text: str) -> str:
    """Text with every character escaped that could be markup."""
    return re.sub(r"([^\w\s])", r"\\\1", text)
