"""Evaluation of object detectors on the Bark and Ambrosia Beetle Detection Benchmark.

The names in ``__all__`` are the public API; everything else may change. They are
imported on first use, so that ``import benchmark_eval`` loads neither numpy nor pandas.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing takes longer to import than the rest, and Ctrl-C must not wait
if TYPE_CHECKING:
    from typing import Any

    from benchmark_eval.check.run import check_inputs
    from benchmark_eval.check.verify import verify_results
    from benchmark_eval.core.errors import BenchmarkEvalError, InputError, UsageError
    from benchmark_eval.formats.conversion import convert_annotations
    from benchmark_eval.inputs.benchmark_reader import load_benchmark
    from benchmark_eval.inputs.predictions import read_predictions
    from benchmark_eval.results.frames import read_summary
    from benchmark_eval.scoring.evaluate import evaluate_to_files, run_evaluation
    from benchmark_eval.sweep.aggregation import aggregate
    from benchmark_eval.sweep.compare import compare
    from benchmark_eval.sweep.frames import read_aggregated
    from benchmark_eval.synthetic.tree import make_synthetic
    from benchmark_eval.training.subsets import write_subsets
    from benchmark_eval.voc.scoring import score_voc_folders

__version__ = "0.2.0"
"""Version of this package."""

__all__ = [  # noqa: RUF022 - the order of the API page
    "run_evaluation",
    "evaluate_to_files",
    "load_benchmark",
    "read_predictions",
    "aggregate",
    "compare",
    "read_summary",
    "read_aggregated",
    "convert_annotations",
    "write_subsets",
    "check_inputs",
    "verify_results",
    "score_voc_folders",
    "make_synthetic",
    "BenchmarkEvalError",
    "InputError",
    "UsageError",
    "__version__",
]

_MODULES = {
    "run_evaluation": "scoring.evaluate",
    "evaluate_to_files": "scoring.evaluate",
    "load_benchmark": "inputs.benchmark_reader",
    "read_predictions": "inputs.predictions",
    "aggregate": "sweep.aggregation",
    "compare": "sweep.compare",
    "read_summary": "results.frames",
    "read_aggregated": "sweep.frames",
    "convert_annotations": "formats.conversion",
    "write_subsets": "training.subsets",
    "check_inputs": "check.run",
    "verify_results": "check.verify",
    "score_voc_folders": "voc.scoring",
    "make_synthetic": "synthetic.tree",
    "BenchmarkEvalError": "core.errors",
    "InputError": "core.errors",
    "UsageError": "core.errors",
}
"""Maps each public name to its module, which is imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
