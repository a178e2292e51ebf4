"""Aggregates a small sweep of artificial evaluations."""

import csv
import math
import random

from benchmark_eval import aggregate, load_benchmark
from benchmark_eval.protocol import TEST_SPLITS
from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation


def noisy(conditions, n_seeds=3, **changes):
    """Models of (architecture, regime, budget): the shift of every species' AP, with noise.

    Species differ, seeds share part of their noise, and nothing is equal by chance.
    """
    rng = random.Random(7)
    base = {species: 0.2 + 0.1 * species for species in range(1, 6)}
    shared = {s: {n: rng.uniform(-0.02, 0.02) for n in base} for s in range(n_seeds)}
    for condition, shift in conditions.items():
        for seed in range(n_seeds):
            own = {n: base[n] + shift + shared[seed][n] + rng.uniform(-0.01, 0.01) for n in base}
            ap = {n: min(max(value, 0.0), 1.0) for n, value in own.items()}
            made = {"species_ap": ap, "value": 0.5 + 0.001 * seed}
            for split, ids in (("iid_test", base), ("inat_test", (1, 2))):
                if split in changes.get("splits", TEST_SPLITS):
                    mean = math.fsum(ap[n] for n in ids) / len(ids)
                    made[f"per_split__{split}__coco__AP_50_95"] = mean
            yield ("_".join((*condition, str(seed))), *condition, seed), {**made, **changes}


def run_sweep(folder, rows, without=(), **options):
    """Aggregate models of (name, architecture, regime, budget, seed) and evaluation arguments.

    ``without`` are splits that the benchmark lacks, ``options`` those of ``aggregate``.
    """
    folder.mkdir(exist_ok=True)
    benchmark = write_benchmark(folder / "benchmark")
    for split in without:
        (benchmark / "detection/annotations_coco" / f"{split}.json").unlink()
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
