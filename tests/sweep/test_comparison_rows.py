"""comparisons.csv: planted truths, values of an independent computation, and what is not tested."""

import csv
import math
import random

import numpy as np
import pytest
from scipy.stats import t
from support.factories import BUDGETS
from support.small_sweep import run_sweep

from benchmark_eval import read_aggregated
from benchmark_eval.sweep.conditions import best_conditions

GU, IN, TA = BUDGETS
BUDGET_SHIFTS = (("1", 0.0), ("2", 0.1))


def models(conditions, n_seeds=3, rng=None, **changes):
    """Models of (architecture, regime, budget): shift of each species' AP; the noise is shared."""
    rng = rng or random.Random(4)
    base = {species: 0.2 + 0.1 * species for species in range(1, 6)}
    noise = {s: {n: rng.uniform(-0.02, 0.02) for n in base} for s in range(n_seeds)}
    for condition, shift in conditions.items():
        for seed in range(n_seeds):
            own = {n: base[n] + shift + noise[seed][n] + rng.uniform(-0.01, 0.01) for n in base}
            name = "_".join((*condition, str(seed)))
            yield (name, *condition, seed), {"species_ap": own, **changes}


def comparisons(table, question, metric="iid_AP_50_95"):
    return [r for r in table.comparisons if (r.question, r.metric) == (question, metric)]


def test_a_planted_difference_is_found_and_no_other_one(tmp_path):
    shifts = {("a", GU, "1"): 0.0, ("b", GU, "1"): 0.0, ("c", GU, "1"): 0.2}
    rows = [*models(shifts)]
    table, _ = run_sweep(tmp_path, rows)
    found = comparisons(table, "architectures")
    assert [(r.a, r.b) for r in found] == [
        (f"a {GU} k=1", f"b {GU} k=1"),
        (f"a {GU} k=1", f"c {GU} k=1"),
        (f"b {GU} k=1", f"c {GU} k=1"),
    ]
    assert [r.verdict for r in found] == ["inconclusive", "lower", "lower"]
    assert {r.n_tests for r in found} == {3}
    best = comparisons(table, "best")
    assert {r.a for r in best} == {f"c {GU} k=1"}
    assert {r.verdict for r in best} == {"higher"}
    assert all(r.p is None for r in best)

    # species x seed differences of the first pair, and the seed variance of all three, by numpy
    ap = {
        name: np.array([m["species_ap"][n] for r, m in rows if r[1] == name for n in range(1, 6)])
        for name in "abc"
    }
    cells = {name: values.reshape(3, 5) for name, values in ap.items()}
    pairs = [cells["a"] - cells["b"], cells["a"] - cells["c"], cells["b"] - cells["c"]]
    seed_squares = [5 * d.mean(1).var(ddof=1) for d in pairs]
    d = pairs[0]
    ms_species = 3 * d.mean(0).var(ddof=1)
    rest = d - d.mean(0) - d.mean(1)[:, None] + d.mean()
    ms_rest = (rest**2).sum() / 8
    ms_seed = max(seed_squares[0], np.mean(seed_squares))
    variance = max(ms_species + ms_seed - ms_rest, ms_species, ms_seed)
    # three pairs of three sides: (R - 1) tr(G)^2 / |G|^2 = 2 * 6^2 / 18 = 4
    q_species, q_seed = t.ppf(0.975, 4), t.ppf(0.975, 4)
    quantile = (q_species * ms_species + q_seed * ms_seed) / (ms_species + ms_seed)
    half = quantile * math.sqrt(variance / d.size)
    assert found[0].a_minus_b == pytest.approx(d.mean(), abs=1e-12)
    expected = pytest.approx([d.mean() - half, d.mean() + half], abs=1e-9)
    assert [found[0].ci95_low, found[0].ci95_high] == expected
    p = 2 * t.sf(abs(d.mean()) / math.sqrt(variance / d.size), 4)
    assert found[0].p == pytest.approx(p, abs=1e-9)
    assert found[0].p_holm == pytest.approx(p, abs=1e-9)  # the largest of three


def test_steps_enter_each_design_once_and_the_file_has_the_same_rows(tmp_path):
    # the species have 1 to 7 images: k = 10 draws all of them, as k = all and p = 1 do
    budgets = {("a", GU, k): shift for k, shift in (("1", 0), ("2", 0.2), ("10", 0.2), ("all", 0))}
    table, _ = run_sweep(tmp_path, [*models({**budgets, ("a", IN, "1"): 0.1})])
    steps = comparisons(table, "steps")
    assert [(r.a, r.b, r.scope) for r in steps] == [
        (f"a {GU} k=2", f"a {GU} k=1", f"a {GU}"),
        (f"a {GU} k=10", f"a {GU} k=2", f"a {GU}"),
    ]
    assert [r.verdict for r in steps] == ["higher", "inconclusive"]
    assert [r.n_tests for r in steps] == [2, 2]
    costs = {row.k_or_p: row for row in table.budget_curves if row.regime == GU}
    for row, (after, before) in zip(steps, [("2", "1"), ("10", "2")], strict=True):
        for unit in ("images", "specimens"):
            ratio = getattr(costs[after], f"n_{unit}") / getattr(costs[before], f"n_{unit}")
            gain = row.a_minus_b / math.log2(ratio)
            assert getattr(row, f"per_doubling_{unit}") == pytest.approx(gain, abs=1e-12)
    best = comparisons(table, "best")
    assert len(best) == 2
    assert {row.per_doubling_images for row in best} == {None}
    with (tmp_path / "out/comparisons.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [(r["a"], r["verdict"], r["reason"]) for r in written] == [
        (r.a, r.verdict, r.reason or "") for r in table.comparisons
    ]
    frame = read_aggregated(tmp_path / "out")["comparisons"]
    assert frame["a_minus_b"].dtype == "float64"
    assert frame["verdict"].tolist() == [r["verdict"] for r in written]
    assert str(frame["n_tests"].dtype) == "Int64"


def test_equal_budgets_name_the_common_range(tmp_path):
    shifts = {("a", GU, "1"): 0.0, ("a", GU, "2"): 0.1, ("a", IN, "0.5"): 0.0, ("a", IN, "1"): 0.4}
    table, _ = run_sweep(tmp_path, [*models(shifts)])
    (row,) = comparisons(table, "equal_budget_images")
    costs = {(r.regime, r.k_or_p): r.n_images for r in table.budget_curves}
    low = max(costs[GU, "1"], costs[IN, "0.5"])
    high = min(costs[GU, "2"], costs[IN, "1"])
    assert row.a == f"a {GU}, {low:.0f} to {high:.0f} images"
    assert row.a_minus_b is not None
    assert comparisons(table, "equal_budget_specimens")


def test_targets_are_never_tested_and_their_relatives_are(tmp_path):
    table, _ = run_sweep(tmp_path, [*models({("a", TA, "0"): 0.0, ("a", TA, "5"): 0.3})])
    assert comparisons(table, "targets")
    assert {r.verdict for r in comparisons(table, "targets")} == {"not tested"}
    others = comparisons(table, "other_species")
    assert {(r.verdict, r.reason) for r in others} == {("not tested", "fewer than 3 species")}
    assert all(r.a_minus_b == pytest.approx(0.3, abs=0.05) for r in others)


@pytest.mark.parametrize("n_seeds", [1, 2])
def test_few_seeds_are_not_tested(tmp_path, n_seeds):
    conditions = {("a", GU, "1"): 0.0, ("b", GU, "1"): 0.3}
    table, _ = run_sweep(tmp_path, [*models(conditions, n_seeds)])
    (row,) = comparisons(table, "architectures")
    assert (row.verdict, row.reason, row.p) == ("not tested", "fewer than 3 seeds", None)
    assert row.ci95_low is not None
    assert row.covers == ("species" if n_seeds == 1 else "species and retraining")
    assert comparisons(table, "best") == []


def renumbered(rows, seed_of):
    """The rows with other seeds: ``seed_of`` gives that of an architecture, condition and seed."""
    for (name, architecture, regime, budget, seed), made in rows:
        yield (name, architecture, regime, budget, seed_of(architecture, budget, seed)), made


def test_one_renumbered_seed_leaves_out_one_condition_and_no_other(tmp_path):
    shifts = {(name, GU, k): s + 0.2 * (name == "c") for name in "abc" for k, s in BUDGET_SHIFTS}
    rows = [*models(shifts)]

    def seeds(name, budget, seed):
        return 7 if (name, budget, seed) == ("a", "1", 2) else seed

    whole = comparisons(run_sweep(tmp_path / "whole", rows)[0], "best")
    found = comparisons(run_sweep(tmp_path / "own", [*renumbered(rows, seeds)])[0], "best")
    assert len(found) == len(whole) == 5
    left_out = [r for r in found if r.verdict == "not tested"]
    assert [(r.a, r.b) for r in left_out] == [(f"c {GU} k=2", f"a {GU} k=1")]
    assert (left_out[0].reason, left_out[0].n_seeds) == ("fewer than 3 seeds in common", 2)
    assert left_out[0].a_minus_b == pytest.approx(0.3, abs=0.03)
    assert left_out[0].ci95_low is left_out[0].ci95_high is None
    verdicts = {r.b: r.verdict for r in whole}
    rest = [r for r in found if r not in left_out]
    assert {r.b: r.verdict for r in rest} == {b: verdicts[b] for b in (r.b for r in rest)}
    assert {r.n_tests for r in found} == {4}


def test_architectures_with_other_seed_numbers(tmp_path):
    rows = [*models({(name, GU, k): s for name in "ab" for k, s in BUDGET_SHIFTS})]
    later = renumbered(rows, lambda name, _, seed: seed + 3 * (name == "b"))
    table, _ = run_sweep(tmp_path, [*later])
    for question, n in (("architectures", 2), ("best", 3)):
        found = comparisons(table, question)
        reasons = {(r.verdict, r.reason, r.n_tests) for r in found}
        assert (len(found), reasons) == (n, {("not tested", "fewer than 3 seeds in common", 0)})
    best = comparisons(table, "best")
    assert len({r.a for r in best}) == 1
    assert all(r.a_minus_b >= 0 for r in best)
    # a step along the curve of either one is tested as ever
    assert {r.verdict for r in comparisons(table, "steps")} == {"higher"}


def test_a_single_lucky_run_is_no_best_condition(tmp_path):
    rows = []
    for name, k, n_seeds, value in (
        *(("a", "1", 3, 0.4), ("a", "2", 3, 0.5), ("a", "5", 1, 0.9)),
        *(("b", "1", 1, 0.4), ("b", "2", 2, 0.5)),
    ):
        at = (name, GU, k)
        rows += [((f"{name}_{k}_{s}", *at, s), {"value": value}) for s in range(n_seeds)]
    best = best_conditions(run_sweep(tmp_path, rows)[0].learning_curves)
    assert {name: row.k_or_p for name, row in best.items()} == {"a": "2", "b": "2"}


def test_seeds_with_the_same_predictions_count_once(tmp_path):
    copied = {"predictions": {"iid_test": "e" * 64}}
    rows = [*models({("a", GU, "1"): 0.0}), *models({("b", GU, "1"): 0.3}, **copied)]
    (row,) = comparisons(run_sweep(tmp_path, rows)[0], "architectures")
    assert (row.n_seeds, row.verdict, row.covers) == (1, "not tested", "species")


def test_a_band_of_one_species_is_not_compared(tmp_path):
    table, _ = run_sweep(tmp_path, [*models({("a", GU, "1"): 0.0})])
    bands = comparisons(table, "bands", "ood_species_mean_detection_recall")
    assert len(bands) == 2
    assert {(r.verdict, r.reason) for r in bands} == {("not tested", "fewer than 3 species")}


def test_nothing_to_compare(tmp_path):
    """One model, no split of unseen species, no value."""
    nothing = {"value": None, "species_ap": dict.fromkeys(range(1, 9)), "splits": ["iid_test"]}
    table, _ = run_sweep(tmp_path, [(("a0", "a", GU, "1", 0), nothing)])
    assert table.comparisons == []
