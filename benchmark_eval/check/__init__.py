"""``benchmark-eval check``: every problem of a benchmark, a manifest, a config, all predictions.

The faults themselves are found where their files are read (``benchmark_eval.inputs.benchmark``,
``predictions``, ``manifest``, ``config``, ``plan``); here they are gathered, the softer findings
about the benchmark are added, and all of it is told in blocks, one a kind.
"""

from __future__ import annotations

from benchmark_eval.check.report import CheckReport
from benchmark_eval.check.run import check_inputs

__all__ = ["CheckReport", "check_inputs"]
