"""Best conditions, pooled seeds and the comparisons of a sweep, on small tables."""

import pytest
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation

from benchmark_eval.core.intervals import UNDEFINED
from benchmark_eval.core.intervals import estimate as over_seeds
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.manifest import condition_of
from benchmark_eval.sweep import aggregate, questions
from benchmark_eval.sweep.best import best_conditions, best_threshold, defined_at_best, largest
from benchmark_eval.sweep.pooled import pooled, trains_on_all

GU, IN, TA = BUDGETS
AP = "iid_AP_50_95"


@pytest.fixture
def sweep(tmp_path):
    """Aggregates models of (architecture, regime, k_or_p, value or options), a seed per value."""
    benchmark = write_benchmark(tmp_path / "benchmark")
    digests = load_benchmark(benchmark).digests

    def run(*conditions):
        rows = []
        for architecture, regime, k, values in conditions:
            for seed, made in enumerate(values):
                rows.append((f"m{len(rows)}", architecture, regime, k, seed))
                options = made if isinstance(made, dict) else {"value": made}
                item = evaluation(rows[-1][0], benchmark=digests, **options)
                write_evaluation(tmp_path / "eval", item)
        (tmp_path / "manifest.csv").write_text(manifest_text(rows))
        return aggregate(
            eval_dir=tmp_path / "eval",
            manifest=tmp_path / "manifest.csv",
            benchmark=benchmark,
            output_dir=tmp_path / "out",
        )

    return run


def test_the_best_condition_has_the_highest_mean_in_distribution(sweep):
    table = sweep(
        ("a", GU, "1", [0.2]),
        ("a", GU, "5", [0.4]),
        ("b", IN, "0.1", [0.3]),
        ("c", GU, "1", [None]),
    )
    best = best_conditions(table.learning_curves)
    assert {name: row.k_or_p for name, row in best.items()} == {"a": "5", "b": "0.1"}


def test_the_first_condition_is_best_on_ties_at_zero(sweep):
    table = sweep(*(("a", GU, k, [0.0]) for k in ("1", "5", "10")))
    assert best_conditions(table.learning_curves)["a"].k_or_p == "1"


def test_best_conditions_with_an_undefined_metric_are_excluded(sweep):
    gone = {"value": 0.4, "per_split__inat_test__coco__AP_50": None}
    best = best_conditions(sweep(("a", GU, "1", [gone]), ("b", GU, "1", [0.3])).learning_curves)
    assert list(defined_at_best(best, "iid_AP_50", "inat_AP_50")) == ["b"]
    assert list(questions.at_best(best, "inat_AP_50")) == ["b"]


def test_the_best_threshold_has_the_highest_mean_f1_of_all_seeds(sweep):
    table = sweep(("a", GU, "1", [0.2, 0.4]))
    rows = [row for row in table.operating_curves if row.split == "iid_test"]
    means = [row.metrics["F1"].mean for row in rows if row.metrics["F1"].n == 2]
    chosen = best_threshold(table, "a")
    assert chosen.metrics["F1"].mean == max(means)
    assert chosen.confidence == min(
        row.confidence for row in rows if row.metrics["F1"].mean == max(means)
    )
    assert best_threshold(table, "b") is None


def test_largest_takes_the_first_on_ties_and_undefined_means_last():
    one = over_seeds([0.5])
    assert largest({"a": UNDEFINED, "b": one, "c": one}) == "b"
    assert largest({"a": UNDEFINED, "b": over_seeds([-1.0])}) == "b"


def test_seeds_of_the_same_training_set_under_two_names_are_pooled(sweep):
    # 0.5, 0.51, 0.52, 0.44, 0.46, 0.48: mean 0.485; t(5) = 2.5706, std 0.0308
    conditions = [("a", GU, "all", [0.5, 0.51, 0.52]), ("a", IN, "1", [0.44, 0.46, 0.48])]
    table = sweep(*conditions, ("b", GU, "all", [0.5]))
    value = pooled(table, "a", AP)
    assert (value.n, value.mean) == (6, pytest.approx(0.485))
    assert value.ci95_low == pytest.approx(0.485 - 2.5706 * 0.030822 / 6**0.5, abs=1e-5)
    assert pooled(table, "b", AP) is None
    assert trains_on_all(condition_of("a", IN, "1.0"))
    assert not trains_on_all(condition_of("a", TA, "1"))


def test_pooled_copies_of_one_file_have_no_interval(sweep):
    made = {"value": 0.5, "predictions": {"iid_test": "same"}}
    table = sweep(("a", GU, "all", [made]), ("a", IN, "1", [made]))
    value = pooled(table, "a", AP)
    assert (value.n, value.ci95_low, value.ci95_high) == (2, None, None)
    assert pooled(table, "a", "inat_AP_50").ci95_low is not None


def test_growth_compares_the_ends_and_the_last_step(sweep):
    table = sweep(
        ("a", GU, "1", [0.1, 0.11]),
        ("a", GU, "5", [0.4, 0.41]),
        ("a", GU, "all", [0.4, 0.41]),
        ("a", IN, "1", [0.7, 0.71]),
        ("b", GU, "1", [0.1]),
    )
    grown = questions.growth(table, GU, AP)
    assert list(grown) == ["a"]
    a = grown["a"]
    assert (a.first.k_or_p, a.before.k_or_p, a.last.k_or_p) == ("1", "5", "all")
    assert (a.total, a.step, a.step_pooled) == ("above", "overlap", "overlap")
    assert questions.growth(table, IN, AP) == {}


def test_ranking_compares_the_highest_with_each_other_architecture(sweep):
    table = sweep(
        ("a", GU, "1", [0.3, 0.5]), ("b", GU, "1", [0.6, 0.61]), ("c", GU, "1", [0.1, 0.11])
    )
    best = best_conditions(table.learning_curves)
    ranked = questions.ranking(best, AP)
    assert (ranked.top, ranked.others) == ("b", {"a": "overlap", "c": "above"})
    assert questions.pooled_ranking(table, best, AP) is None
    assert questions.ranking({"a": best["a"]}, AP) is None


def test_equal_cost_takes_the_most_expensive_close_pair_below_all_data(sweep):
    table = sweep(
        ("a", GU, "1", [0.2, 0.21]),
        ("a", GU, "all", [0.5, 0.51]),
        ("a", IN, "0.25", [0.5, 0.51]),
        ("a", IN, "1", [0.5, 0.51]),
        ("b", GU, "1", [0.2]),
    )
    (pair,) = questions.equal_cost(table, AP).values()
    assert (pair.uniform.k_or_p, pair.natural.k_or_p, pair.verdict) == ("1", "0.25", "below")


def test_contrasts_take_both_sides_and_the_difference_within_each_model(sweep):
    ood = "per_split__semantic_ood__"

    def made(at):
        return {
            "value": 0.5,
            f"{ood}ood_by_band__by_band__near_genus__class_agnostic_AR_100": at + 0.05,
            f"{ood}ood_by_band__by_band__far_tribe__class_agnostic_AR_100": at,
            "summary__ood_band_gap_AR_100": 0.05 + at / 1000,
            f"{ood}density__strata__1__image_mean_recall": at + 0.05 + at / 1000,
            f"{ood}density__strata__>10__image_mean_recall": at,
        }

    table = sweep(("a", GU, "1", [made(0.3), made(0.7)]))
    best = best_conditions(table.learning_curves)
    for contrast in (questions.distance(best)["a"], questions.density(table, best)["a"]):
        assert contrast.left.mean == pytest.approx(0.55, abs=1e-3)
        assert contrast.right.mean == pytest.approx(0.5)
        assert contrast.difference.value.mean == pytest.approx(0.0505)
        assert contrast.difference.verdict == "above"


def test_imbalance_at_both_ends_of_a_regime(sweep):
    table = sweep(("a", GU, "1", [0.2, 0.21]), ("a", GU, "5", [0.6, 0.61]))
    (item,) = questions.imbalance(table, GU).values()
    assert (item.first.k_or_p, item.last.k_or_p) == ("1", "5")
    assert (item.gap.verdict, item.widened) == ("above", "above")


def test_bottleneck_is_judged_by_the_difference_of_both_losses(sweep):
    def made(missed, misidentified):
        block = "per_split__iid_test__decomposition__"
        return {
            "value": 0.5,
            f"{block}localisation_loss": missed,
            f"{block}classification_loss": misidentified,
        }

    table = sweep(("a", GU, "1", [made(0.1, 0.3), made(0.4, 0.61)]))
    best = best_conditions(table.learning_curves)
    (judged,) = questions.bottleneck(best, "iid_test").values()
    assert (judged.value.mean, judged.verdict) == (pytest.approx(0.205), "above")


def test_near_and_far_target_species_are_compared_at_the_first_and_last_k(sweep):
    def made(near, far):
        return {"value": 0.5, "species_ap": {1: near, 5: far}}

    table = sweep(
        ("a", TA, "0", [made(0.1, 0.1)]),
        ("a", TA, "5", [made(0.3, 0.2)]),
        ("a", TA, "25", [made(0.4, 0.35)]),
        ("b", TA, "1", [made(0.4, 0.3)]),
        ("c", TA, "0", [made(0.4, 0.3)]),
    )
    contrasts = questions.target_contrasts(table)
    assert contrasts["a"].first[0] == "5"
    assert contrasts["a"].first[1].difference.value.mean == pytest.approx(0.1)
    assert contrasts["a"].last[0] == "25"
    assert (contrasts["b"].first[0], contrasts["b"].last) == ("1", None)
    assert (contrasts["c"].first, contrasts["c"].last[0]) == (None, "0")
    row, judged = questions.target_gaps(table)["a"]
    assert (row.k, judged.verdict) == ("25", "no interval")
