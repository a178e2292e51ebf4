"""Sides of a comparison: evaluations with known values by species, and independent arithmetic."""

import json

import numpy as np
from scipy import stats

from benchmark_eval import aggregate, load_benchmark
from support.factories import TRAINED, evaluation, manifest_text, write_benchmark, write_evaluation

DIGESTS = {"detection/annotations_coco/iid_test.json": "a" * 64, "species_taxonomy.csv": "b" * 64}


def write_side(folder, name, table, *, files=None, **changes):
    """One model per column of ``table`` (5 species x seeds: AP on iid_test); returns the folder.

    ``files`` are the digests of their prediction files, by default all distinct.
    """
    for seed, column in enumerate(np.asarray(table, float).T):
        digest = files[seed] if files else f"{name} {seed}"
        item = evaluation(
            f"{name}_s{seed}",
            float(column.mean()),
            species_ap=dict(zip(TRAINED, column.tolist(), strict=True)),
            benchmark=changes.get("benchmark", DIGESTS),
            predictions={
                split: f"{digest} {split}" for split in ("iid_test", "inat_test", "semantic_ood")
            },
            **{key: value for key, value in changes.items() if key != "benchmark"},
        )
        write_evaluation(folder / name, item)
    return folder / name


def random_side(seed, shift=0.0, n_seeds=3):
    """5 species x seeds; species differ more than seeds."""
    rng = np.random.default_rng(seed)
    level = np.linspace(0.2, 0.6, 5)[:, None]
    return level + rng.normal(0, 0.02, (5, n_seeds)) + shift


def aggregated(folder, sides, *, subsets=True, budget="5", infix=""):
    """Sides as two architectures of a sweep with tables: ``models`` and ``aggregated``.

    ``sides`` maps an architecture to its table; models of one seed were trained on the same subset.
    ``infix`` stands in the names of the models before the seed. Returns the results folder.
    """
    results = folder / "results"
    benchmark = write_benchmark(folder / "benchmark")
    rows = []
    for architecture, table in sides.items():
        side = write_side(
            results, f"{architecture}{infix}", table, benchmark=load_benchmark(benchmark).digests
        )
        for seed in range(np.asarray(table).shape[1]):
            name = f"{architecture}{infix}_s{seed}"
            place = results / "models" / name
            place.mkdir(parents=True)
            (side / f"{name}_summary.json").rename(place / f"{name}_summary.json")
            subset = folder / f"subset{seed}.json"
            annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}
            subset.write_text(json.dumps({"info": {"seed": seed}, "annotations": [annotation]}))
            row = (name, architecture, "global_uniform", budget, seed)
            rows.append((*row, subset.name) if subsets else row)
        side.rmdir()
    header = "model_name,architecture,regime,k_or_p,seed" + (",train_annotations" * subsets)
    (folder / "manifest.csv").write_text(manifest_text(rows, header))
    aggregate(
        eval_dir=results / "models",
        manifest=folder / "manifest.csv",
        benchmark=benchmark,
        output_dir=results / "aggregated",
    )
    return results


def mean_squares(table):
    """MS of species, seeds and residual of a complete table, by a two-way analysis of variance."""
    n, r = table.shape
    grand, rows, columns = table.mean(), table.mean(1, keepdims=True), table.mean(0, keepdims=True)
    residual = table - rows - columns + grand
    return (
        r * ((rows - grand) ** 2).sum() / (n - 1),
        n * ((columns - grand) ** 2).sum() / (r - 1),
        (residual**2).sum() / ((n - 1) * (r - 1)),
    )


def t95(df):
    return stats.t.ppf(0.975, df)


def paired_by_hand(a, b):
    """(mean, half width) of the interval of a difference that is paired by species and seed."""
    d = np.asarray(a) - np.asarray(b)
    n, r = d.shape
    species, seeds, residual = mean_squares(d)
    variance = max(species + seeds - residual, species, seeds)
    quantile = (species * t95(n - 1) + seeds * t95(r - 1)) / (species + seeds)
    return d.mean(), quantile * np.sqrt(variance / (n * r))


def unpaired_by_hand(a, b):
    """The same with variances over seeds that add."""
    a, b = np.asarray(a), np.asarray(b)
    d = a.mean(1) - b.mean(1)
    n = len(d)
    species = d.var(ddof=1) / n
    terms = [(species, n - 1)]
    residual = 0.0
    for side in (a, b):
        _, seeds, rest = mean_squares(side)
        terms.append((seeds / side.size, side.shape[1] - 1))
        residual += rest / side.size
    seeds = sum(term for term, _ in terms[1:])
    variance = max(species + seeds - residual, species, seeds)
    quantile = sum(term * t95(df) for term, df in terms) / (species + seeds)
    return d.mean(), quantile * np.sqrt(variance)
