"""``benchmark-eval check``: every problem in a benchmark, a manifest, a config and predictions.

Problems of a single file are found by its reader in ``benchmark_eval.inputs``. This package
collects them, adds warnings and notes about the benchmark, and reports all findings by kind.
"""

from __future__ import annotations

from benchmark_eval.check.report import CheckReport
from benchmark_eval.check.run import check_inputs

__all__ = ["CheckReport", "check_inputs"]
