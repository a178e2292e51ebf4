"""The input files of a command, stated before it writes (``core.outputs.claim``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmark_eval.core.outputs import Input, Listing
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.protocol import ANNOTATIONS, FILE_LIST, LICENCES, TAXONOMY, file_names


def benchmark_inputs(source: str | Path | Benchmark) -> list[Input]:
    """The files of a benchmark folder, or its index file; none for a benchmark in memory."""
    if isinstance(source, Benchmark):
        return []
    path = Path(source)
    if path.suffix == ".npz":
        return [path]
    folder = path / ANNOTATIONS
    tables = [path / name for name in (TAXONOMY, FILE_LIST, LICENCES, "README.md")]
    return [*tables, Listing(folder, (".json",))]


def prediction_inputs(predictions_dir: str | Path, splits: Iterable[str]) -> list[Input]:
    """The prediction files of a model."""
    return [Path(predictions_dir) / name for split in splits for name in file_names(split)]
