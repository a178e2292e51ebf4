"""Overhead of the workflow in a full-size sweep (part of ``make bench``).

Measures whole process trees: 153 models with nine distinct sets of predictions (hard links, to
save disk space) on two cores, from planning to the report; and a second call with nothing to do,
compared with a trivial Snakefile with as many inputs and outputs per job. Adds its sections to
``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measure import environment, median, run

from benchmark_eval.synthetic import invented_species, synthetic_benchmark
from benchmark_eval.synthetic.conditions import sweep_models
from benchmark_eval.synthetic.files import write_benchmark, write_manifest
from benchmark_eval.synthetic.tree import write_model

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DISTINCT = 9


@dataclass(frozen=True)
class Tree:
    """A folder of predictions and the Snakemake commands that use it."""

    folder: Path
    n_models: int

    def snakemake(self, results: Path, *more: str) -> list[str]:
        """The command that runs the sweep in the folder ``results``."""
        return [
            str(BIN / "snakemake"),
            *("--snakefile", str(ROOT / "Snakefile"), "--directory", str(results)),
            *("--quiet", "all", *more),
            "--config",
            f"benchmark_dir={self.folder / 'benchmark'}",
            f"predictions_dir={self.folder / 'predictions'}",
            f"manifest={self.folder / 'manifest.csv'}",
        ]


def make_tree(folder: Path, scale: float, detections_per_specimen: float, copies: int) -> Tree:
    """A benchmark and ``copies`` times the 153 models of a sweep, nine of which are distinct."""
    benchmark = synthetic_benchmark(invented_species(), seed=0, scale=scale, test_scale=scale)
    write_benchmark(folder / "benchmark", benchmark)
    models = list(sweep_models())
    write_manifest(folder / "manifest.csv", models)
    predictions = folder / "predictions"
    distinct = models[:: len(models) // DISTINCT][:DISTINCT]
    for model in distinct:
        write_model(benchmark, model, predictions, detections_per_specimen)
    header, *rows = (folder / "manifest.csv").read_text().splitlines()
    lines = [header]
    for copy in range(copies):
        for number, row in enumerate(rows):
            name, *rest = row.split(",")
            name = f"{name}c{copy}" if copy else name
            rest[-1] = f"{rest[-1]}{copy}" if copy else rest[-1]
            lines.append(",".join([name, *rest]))
            source, target = predictions / distinct[number % DISTINCT].name, predictions / name
            if not target.exists():
                shutil.copytree(source, target, copy_function=os.link)
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return Tree(folder, copies * len(models))


def tree_cost(command: list[str]) -> tuple[float, float]:
    """Wall time and CPU time (s) of a command with all its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        check=True,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def one_evaluation(tree: Tree, benchmark: Path, output: Path) -> float:
    """CPU time (s) of the evaluation of one model, the mean over all distinct models."""
    names = sorted(p.name for p in (tree.folder / "predictions").iterdir())
    command = [str(BIN / "benchmark-eval"), "evaluate", "--quiet"]
    command += ["--benchmark-dir", str(benchmark), "--output-dir", str(output)]
    runs = [
        run(
            [
                *(*command, "--model-name", name),
                *("--predictions-dir", str(tree.folder / "predictions" / name)),
            ]
        )
        for name in names[:: len(names) // DISTINCT]
    ]
    return statistics.fmean(cost.cpu for cost in runs)


SWEEP_NOTES = (
    "With all cores busy, wall / CPU is 1 divided by the number of cores. CPU time relative to",
    "that of single evaluations shows the overhead of hashing, workflow, tables, plots and",
    "report; 1 means no overhead. The ratio to evaluations that read the benchmark's index, as",
    "the jobs of a sweep do, has no target: it shows how much could still be saved.",
)
NO_OP_NOTES = (
    "A ratio of 1 is the cost of plain Snakemake, which does not compare file contents. Anything",
    "above 1 is the cost of checking that no input has changed.",
)


def with_target(ratio: float, target: float) -> str:
    """A ratio with its target."""
    verdict = "met" if ratio <= target else "NOT met"
    return f"{ratio:.2f} (target: at most {target:.2f}, {verdict})"


def full_sweep(scratch: Path, scale: float, cores: int) -> list[str]:
    """The whole sweep compared with as many single evaluations."""
    tree = make_tree(scratch / "full", scale, 21.0, 1)
    results = scratch / "results"
    results.mkdir()
    first_load, _ = tree_cost(tree.snakemake(results, "--dry-run"))
    tree_cost(tree.snakemake(results, "--cores", "1", "--until", "index_benchmark"))
    size = sum(f.stat().st_size for f in tree.folder.glob("predictions/*/*"))
    single, indexed = (
        one_evaluation(tree, benchmark, scratch / "one")
        for benchmark in (tree.folder / "benchmark", results / "results/benchmark/index.npz")
    )
    cold = scratch / "cold"
    cold.mkdir()
    wall, cpu = tree_cost(tree.snakemake(cold, "--cores", str(cores)))
    n = tree.n_models
    return [
        "## The sweep",
        "",
        f"{n} full-size models, {DISTINCT} of them distinct ({size / 1e9:.1f} GB of predictions), "
        f"on {cores} cores: hashing, index, evaluations, tables, plots and report. One run "
        f"(`python benchmarks/sweep.py --scale {scale:g} --cores {cores}`).",
        "",
        "| | |",
        "|---|---|",
        f"| hashing all inputs and planning (separate run), wall | {first_load:.0f} s |",
        f"| whole sweep, wall | {wall:.0f} s |",
        f"| whole sweep, CPU (user + sys) | {cpu:.0f} s |",
        f"| wall / CPU | {with_target(wall / cpu, 1.2 / cores)} |",
        f"| one `evaluate`, CPU (mean of {DISTINCT}) | {single:.2f} s |",
        f"| CPU / ({n} x one `evaluate`) | {with_target(cpu / (n * single), 1.25)} |",
        f"| one `evaluate` with the index of the benchmark, CPU | {indexed:.2f} s |",
        f"| CPU / ({n} x one `evaluate` with the index) | {cpu / (n * indexed):.2f} |",
        "",
        *SWEEP_NOTES,
        "",
    ]


TRIVIAL = """
N = {n}
rule all:
    input: expand("out/{{i}}/e.txt", i=range(N))
rule work:
    input: "in/index"
    output: multiext("out/{{i}}/", "a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt")
    log: "logs/{{i}}.log"
    benchmark: "benchmarks/{{i}}.tsv"
    shell: "touch {{output}}"
"""


def make_trivial(folder: Path, n: int) -> list[str]:
    """A finished workflow of ``n`` jobs that touch files; returns the command for a no-op run."""
    folder.mkdir()
    (folder / "Snakefile").write_text(TRIVIAL.format(n=n))
    (folder / "in").mkdir()
    (folder / "in" / "index").touch()
    command = [str(BIN / "snakemake"), "--directory", str(folder), "--quiet", "all"]
    command += ["--snakefile", str(folder / "Snakefile"), "--cores", "2"]
    # a real run, as Snakemake has no records of other files and would compare nothing
    subprocess.run(command, check=True, capture_output=True)
    return command


def nothing_to_do(scratch: Path, runs: int) -> list[str]:
    """Second calls of both finished workflows, alternating."""
    rows = []
    for copies in (1, 10):
        tree = make_tree(scratch / f"tiny{copies}", 0.005, 1.0, copies)
        results = scratch / f"done{copies}"
        results.mkdir()
        tree_cost(tree.snakemake(results, "--cores", "2"))
        ours_command = tree.snakemake(results, "--cores", "2")
        trivial_command = make_trivial(scratch / f"trivial{copies}", tree.n_models)
        ours, trivial = [], []
        for _ in range(runs):
            ours.append(run(ours_command))
            trivial.append(run(trivial_command))
        a, b = median(ours), median(trivial)
        rows.append(
            f"| {tree.n_models:,} | {a.wall:.2f} | {b.wall:.2f} "
            f"| {with_target(a.wall / b.wall, 1.3)} | {a.cpu / b.cpu:.2f} |"
        )
    return [
        "## No-op runs",
        "",
        "A second run of `snakemake` on a finished sweep, compared with a trivial Snakefile with "
        f"the same number of inputs and outputs per job; median of {runs} alternating runs.",
        "",
        "| models | sweep, wall (s) | trivial, wall (s) | wall ratio | CPU ratio |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *NO_OP_NOTES,
        "",
    ]


def main() -> None:
    """Measure and append the sections to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the full sweep's data")
    parser.add_argument("--runs", type=int, default=3, help="runs of the second call")
    parser.add_argument("--cores", type=int, default=2, help="cores of the full sweep")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "performance.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = nothing_to_do(Path(folder), args.runs)
        print("\n".join(lines), flush=True)
        lines = full_sweep(Path(folder), args.scale, args.cores) + lines
        print("\n".join(lines), flush=True)
    page = (
        args.output.read_text().split("\n## The sweep")[0].rstrip() if args.output.exists() else ""
    )
    args.output.write_text(f"{page}\n\n" + "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
