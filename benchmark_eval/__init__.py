"""Evaluation of detectors on the Bark and Ambrosia Beetle Detection Benchmark.

``run_evaluation`` scores one model; ``benchmark-eval --help`` lists what the command line does.
Names are loaded when they are asked for, so that a job pays only for what it uses.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "run_evaluation": "benchmark_eval.scoring.evaluate",
    "BenchmarkEvalError": "benchmark_eval.core.errors",
    "InputError": "benchmark_eval.core.errors",
}

__all__ = ["BenchmarkEvalError", "InputError", "__version__", "run_evaluation"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
