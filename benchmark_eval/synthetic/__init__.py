"""Synthetic data: an invented benchmark with the real counts and layout, and simulated models.

It stands in for the real benchmark and real predictions in the demo, in tests and for a first try.
Nothing in it describes a real beetle or a real detector.
"""

from __future__ import annotations

from benchmark_eval.synthetic.detector import Detector, Quality
from benchmark_eval.synthetic.ground_truth import SyntheticBenchmark, synthetic_benchmark
from benchmark_eval.synthetic.taxonomy import Species, invented_species
from benchmark_eval.synthetic.tree import SyntheticTree, make_synthetic

__all__ = [
    "Detector",
    "Quality",
    "Species",
    "SyntheticBenchmark",
    "SyntheticTree",
    "invented_species",
    "make_synthetic",
    "synthetic_benchmark",
]
