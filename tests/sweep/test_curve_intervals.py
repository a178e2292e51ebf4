"""The intervals of learning_curves.csv, against an independent computation of the formulas."""

import math

import numpy as np
import pytest
from scipy.stats import t
from support.factories import BUDGETS
from support.small_sweep import run_sweep

from benchmark_eval.sweep.by_construction import FIXED_CURVES
from benchmark_eval.sweep.species_tables import SPECIES_MEANS

GU, IN, _ = BUDGETS
AP = {
    0: {1: 0.2, 2: 0.4, 3: 0.6, 4: 0.9, 5: 0.1},
    1: {1: 0.3, 2: 0.5, 3: 0.5, 4: 0.8, 5: 0.2},
    2: {1: 0.1, 2: 0.6, 3: 0.7, 4: 0.9, 5: 0.0},
}
"""AP of each species by seed."""


def seeds(condition, **changes):
    """Three seeds of a condition whose mean over species agrees with ``AP``."""
    for seed, ap in AP.items():
        mean = math.fsum(ap.values()) / len(ap)
        inat = (ap[1] + ap[2]) / 2
        made = {
            f"per_split__{split}__{block}__{key}": value
            for split, value in (("iid_test", mean), ("inat_test", inat))
            for block, key in (
                ("coco", "AP_50"),
                ("coco", "AP_50_95"),
                ("decomposition", "joint_AP_50"),
            )
        }
        made |= {"species_ap": ap, **changes}
        yield (f"{'_'.join(condition)}_{seed}", *condition, seed), made


def limits(row, name, kind):
    cells = [row[f"{name}_ci95_{kind}_{end}"] for end in ("low", "high")]
    return [float(cell) if cell else None for cell in cells]


def test_three_seeds_against_the_formulas(tmp_path):
    table, (row,) = run_sweep(tmp_path, [*seeds(("a", GU, "all"))])
    cells = np.array([list(ap.values()) for ap in AP.values()])
    n_seeds, n_species = cells.shape
    by_seed, by_species, mean = cells.mean(1), cells.mean(0), cells.mean()

    half = t.ppf(0.975, 2) * by_seed.std(ddof=1) / math.sqrt(3)
    expected = pytest.approx([max(0, mean - half), mean + half], abs=1e-12)
    assert limits(row, "iid_AP_50_95", "retraining") == expected

    ms_species = n_seeds * ((by_species - mean) ** 2).sum() / (n_species - 1)
    ms_seed = n_species * ((by_seed - mean) ** 2).sum() / (n_seeds - 1)
    rest = cells - by_species - by_seed[:, None] + mean
    ms_rest = (rest**2).sum() / (n_species - 1) / (n_seeds - 1)
    variance = max(ms_species + ms_seed - ms_rest, ms_species, ms_seed)
    quantile = (t.ppf(0.975, 4) * ms_species + t.ppf(0.975, 2) * ms_seed) / (ms_species + ms_seed)
    half = quantile * math.sqrt(variance / cells.size)
    for name in ("iid_AP_50_95", "iid_AP_50", "iid_joint_AP_50"):
        expected = pytest.approx([max(0, mean - half), mean + half], abs=1e-9)
        assert limits(row, name, "species_retraining") == expected

    # two species on inat_test: none, and the reason
    assert limits(row, "inat_AP_50_95", "species_retraining") == [None, None]
    curve = table.learning_curves[0]
    assert curve.species_retraining["inat_AP_50_95"].reason == "fewer than 3 species"
    assert set(curve.species_retraining) == set(SPECIES_MEANS)
    for name in FIXED_CURVES:
        assert curve.retraining[name].reason == "fixed by construction"
        assert limits(row, name, "retraining") == [None, None]


def test_one_seed_covers_species_only(tmp_path):
    table, (row,) = run_sweep(tmp_path, [next(seeds(("a", GU, "all")))])
    ap = np.array(list(AP[0].values()))
    half = t.ppf(0.975, 4) * ap.std(ddof=1) / math.sqrt(5)
    expected = pytest.approx([max(0, ap.mean() - half), ap.mean() + half], abs=1e-12)
    assert limits(row, "iid_AP_50_95", "species_retraining") == expected
    assert limits(row, "iid_AP_50_95", "retraining") == [None, None]
    assert table.learning_curves[0].retraining["iid_AP_50_95"].reason == "only one seed"


def test_no_interval_for_seeds_with_the_same_file(tmp_path):
    rows = [*seeds(("a", GU, "all"), predictions={"iid_test": "e" * 64})]
    table, (row,) = run_sweep(tmp_path, rows)
    assert row["iid_AP_50_95_ci95_low"] == ""
    for kind in ("retraining", "species_retraining"):
        assert limits(row, "iid_AP_50_95", kind) == [None, None]
    curve = table.learning_curves[0]
    reason = "seeds with the same prediction file"
    assert curve.retraining["iid_AP_50_95"].reason == reason
    assert curve.species_retraining["iid_AP_50_95"].reason == reason


def test_no_interval_around_another_mean_than_the_printed_one(tmp_path):
    """A summary whose species do not agree with its mean is not given a centre of its own."""
    rows = [*seeds(("a", GU, "all"), per_split__iid_test__coco__AP_50=0.9)]
    table, (row,) = run_sweep(tmp_path, rows)
    assert limits(row, "iid_AP_50", "species_retraining") == [None, None]
    assert table.learning_curves[0].species_retraining["iid_AP_50"].reason is not None
    assert limits(row, "iid_AP_50_95", "species_retraining") != [None, None]


def test_nothing_defined(tmp_path):
    nothing = {"value": None, "species_ap": dict.fromkeys(range(1, 9))}
    table, (row,) = run_sweep(tmp_path, [(("a0", "a", GU, "1", 0), nothing)])
    assert table.learning_curves[0].retraining["iid_AP_50"].reason == "no defined value"
    assert not any(value for key, value in row.items() if "_ci95_" in key)
