"""Aggregates a small sweep of artificial evaluations."""

import csv

from benchmark_eval import aggregate, load_benchmark
from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation


def run_sweep(folder, rows, **options):
    """Aggregate models of (name, architecture, regime, budget, seed) and evaluation arguments.

    ``options`` are those of ``aggregate``.
    """
    folder.mkdir(exist_ok=True)
    benchmark = write_benchmark(folder / "benchmark")
    digests = load_benchmark(benchmark).digests
    (folder / "eval").mkdir()
    for row, made in rows:
        write_evaluation(folder / "eval", evaluation(row[0], benchmark=digests, **made))
    header = "model_name,architecture,regime,k_or_p,seed"
    (folder / "manifest.csv").write_text(manifest_text([row for row, _ in rows], header))
    table = aggregate(
        eval_dir=folder / "eval",
        manifest=folder / "manifest.csv",
        benchmark=benchmark,
        output_dir=folder / "out",
        **options,
    )
    with (folder / "out/learning_curves.csv").open(newline="") as stream:
        return table, list(csv.DictReader(stream))
