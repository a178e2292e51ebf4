"""``benchmark_eval.compare``: intervals, verdicts, pairing and everything that is refused."""

import json
from itertools import combinations

import msgspec
import numpy as np
import pytest
from scipy import stats
from support.factories import evaluation, write_evaluation
from support.sides import (
    DIGESTS,
    aggregated,
    paired_by_hand,
    random_side,
    unpaired_by_hand,
    write_side,
)

from benchmark_eval import InputError, UsageError, compare
from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.sweep.compare import HOLM, STUDENTISED_RANGE, Pairing
from benchmark_eval.sweep.verdicts import Word


def problems(*sides, **options):
    with pytest.raises(InputError) as caught:
        compare(*sides, **options)
    return caught.value.problems


def first(result, metric="iid_AP_50_95"):
    return next(row for row in result.differences if row.metric == metric)


# ------------------------------------------------------------------ numbers


def test_two_single_models_by_hand(tmp_path):
    # differences by species 0.1, 0.2, 0.3, 0.0, 0.4: mean 0.2, standard deviation 0.158114
    a = write_side(tmp_path, "a", [[0.5], [0.6], [0.7], [0.4], [0.9]])
    b = write_side(tmp_path, "b", [[0.4], [0.4], [0.4], [0.4], [0.5]])
    row = first(compare(a, b))
    assert (row.a, row.b, row.n_species, row.n_seeds) == ("A", "B", 5, 1)
    assert row.a_minus_b == pytest.approx(0.2)
    half = 2.7764451 * 0.158113883 / 5**0.5
    assert (row.ci95_low, row.ci95_high) == pytest.approx((0.2 - half, 0.2 + half))
    assert (row.covers, row.verdict, row.reason) == (
        Covers.SPECIES,
        Word.NOT_TESTED,
        Reason.FEW_SEEDS,
    )
    assert (row.p, row.p_holm, row.n_tests) == (None, None, 0)


def test_three_single_models_may_be_seeds_of_one_side(tmp_path):
    sides = [write_side(tmp_path, name, random_side(i, 0, 1)) for i, name in enumerate("abc")]
    assert "If some of these are seeds of one method" in str(compare(*sides).notes)
    assert "If some of these are seeds of one method" not in str(compare(*sides[:2]).notes)


def test_two_single_models_come_with_a_sentence_that_says_why_there_is_no_verdict(tmp_path):
    result = compare(write_side(tmp_path, "a", random_side(1, 0.3, 1)),
                     write_side(tmp_path, "b", random_side(2, 0, 1)))  # fmt: skip
    (note,) = [note for note in result.notes if "one model" in note]
    assert note.startswith("Each side is one model, so the intervals cover other species but not")
    assert "give at least 3 seeds of each side" in note
    assert all(row.verdict is Word.NOT_TESTED for row in result.differences)


@pytest.mark.parametrize("n_seeds", [(3, 3), (3, 5), (2, 4)])
def test_unknown_training_sets_are_not_paired(tmp_path, n_seeds):
    sides = [random_side(i, 0.15 * i, n) for i, n in enumerate(n_seeds)]
    row = first(compare(*(write_side(tmp_path, "ab"[i], t) for i, t in enumerate(sides))))
    mean, half = unpaired_by_hand(*sides)
    assert row.paired_by is Pairing.SPECIES
    assert (row.a_minus_b, row.ci95_low, row.ci95_high) == pytest.approx(
        (mean, mean - half, mean + half)
    )
    assert row.n_seeds == min(n_seeds)
    assert row.verdict is (Word.LOWER if min(n_seeds) > 2 else Word.NOT_TESTED)


def test_equal_training_sets_are_paired(tmp_path):
    a, b = random_side(1, 0.05), random_side(2)
    results = aggregated(tmp_path, {"a": a, "b": b})
    result = compare(f"{results}/models/a_s*", f"{results}/models/b_s*")
    row = first(result)
    mean, half = paired_by_hand(a, b)
    assert row.paired_by is Pairing.SPECIES_AND_SEEDS
    assert (row.a_minus_b, row.ci95_low, row.ci95_high) == pytest.approx(
        (mean, mean - half, mean + half)
    )
    assert all(len(digest) == 64 for side in result.sides for digest in side.trained_on)
    assert not [note for note in result.notes if "paired" in note]
    table = json.loads((results / "aggregated/aggregated.json").read_bytes())
    (of_sweep,) = [
        c for c in table["comparisons"]
        if c["question"] == "architectures" and c["metric"] == "iid_AP_50_95"
    ]  # fmt: skip
    assert [of_sweep[key] for key in ("a_minus_b", "ci95_low", "ci95_high", "p")] == pytest.approx(
        [row.a_minus_b, row.ci95_low, row.ci95_high, row.p]
    )


def test_seeds_trained_on_one_file_are_not_paired(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    path = results / "aggregated/aggregated.json"
    table = json.loads(path.read_bytes())
    trained = table["inputs"]["train_annotations"]
    table["inputs"]["train_annotations"] = dict.fromkeys(trained, "f" * 64)
    path.write_text(json.dumps(table))
    (path.parent / ".benchmark-eval.json").unlink()
    result = compare(f"{results}/models/a_s*", f"{results}/models/b_s*")
    assert first(result).paired_by is Pairing.SPECIES
    assert "their training annotations do not match one to one" in str(result.notes)


def test_edited_tables_are_refused(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    path = results / "aggregated/aggregated.json"
    path.write_bytes(path.read_bytes() + b"\n")
    (problem,) = problems(f"{results}/models/a_s*", f"{results}/models/b_s*")
    assert (problem.kind, problem.file) == ("digest", str(path))


def test_a_model_without_a_partner_leaves_the_pair(tmp_path):
    a, b = random_side(1, 0.05, 4), random_side(2, 0, 3)
    results = aggregated(tmp_path, {"a": a, "b": b})
    row = first(compare(f"{results}/models/a_s*", f"{results}/models/b_s*"))
    assert (row.n_seeds, row.paired_by) == (3, Pairing.SPECIES_AND_SEEDS)
    assert row.a_minus_b == pytest.approx(paired_by_hand(a[:, :3], b)[0])


def test_the_values_of_each_side(tmp_path):
    table = random_side(1)
    result = compare(write_side(tmp_path, "a", table), write_side(tmp_path, "b", random_side(2)))
    assert list(dict.fromkeys(value.metric for value in result.values)) == [
        "iid_AP_50_95",
        "inat_AP_50_95",
        "ood_class_agnostic_AR_100",
        "ood_species_mean_detection_recall",
    ]
    value = result.values[0]
    mean, half = paired_by_hand(table, np.zeros_like(table))
    assert (value.side, value.n_models, value.n_species) == ("A", 3, 5)
    assert (value.mean, value.ci95_low, value.ci95_high) == pytest.approx(
        (mean, mean - half, mean + half)
    )
    recall = next(v for v in result.values if v.metric == "ood_class_agnostic_AR_100")
    seeds = table.mean(0)
    half = stats.t.ppf(0.975, 2) * seeds.std(ddof=1) / 3**0.5
    assert recall.covers is Covers.RETRAINING
    assert (recall.ci95_low, recall.ci95_high) == pytest.approx(
        (seeds.mean() - half, seeds.mean() + half)
    )


def test_p_values_are_adjusted_over_all_pairs_of_a_metric(tmp_path):
    sides = [random_side(i, shift) for i, shift in enumerate((0.0, 0.03, 0.3))]
    result = compare(*(write_side(tmp_path, "abc"[i], t) for i, t in enumerate(sides)))
    rows = [row for row in result.differences if row.metric == "iid_AP_50_95"]
    assert [(row.a, row.b) for row in rows] == list(combinations("ABC", 2))
    ordered = sorted(rows, key=lambda row: row.p)
    adjusted = [min(1, (3 - i) * row.p) for i, row in enumerate(ordered)]
    assert [row.p_holm for row in ordered] == pytest.approx(
        [max(adjusted[: i + 1]) for i in range(3)]
    )
    assert {row.n_tests for row in rows} == {3}
    assert [row.verdict for row in rows][1:] == [Word.LOWER, Word.LOWER]


@pytest.mark.parametrize(("paired", "method"), [(True, STUDENTISED_RANGE), (False, HOLM)])
def test_three_sides_are_ranked_with_the_tie_group_of_the_best(tmp_path, paired, method):
    tables = {name: random_side(i, s) for i, (name, s) in enumerate(
        {"a": 0.0, "b": 0.3, "c": 0.302}.items())}  # fmt: skip
    if paired:
        results = aggregated(tmp_path, tables)
        result = compare(*(f"{results}:{name} global_uniform k=5" for name in tables))
    else:
        result = compare(*(write_side(tmp_path, name, table) for name, table in tables.items()))
    ranking = result.rankings[0]
    means = {letter: tables[name].mean() for letter, name in zip("ABC", tables, strict=True)}
    assert ranking.order == sorted("ABC", key=lambda s: -means[s])
    assert (set(ranking.tied), ranking.method, ranking.reason) == ({"B", "C"}, method, None)
    # recall on unseen species is 1 for every species of every model
    assert set(result.rankings[2].tied) == set("ABC")
    assert result.rankings[2].reason == Reason.NO_VARIATION


def test_custom_metrics_have_an_interval_over_seeds_and_no_verdict(tmp_path):
    code = "def custom_metrics(e):\n    return {'first': e.per_split['iid_test'].coco.AP_50}\n"
    (tmp_path / "mine.py").write_text(code)
    table = random_side(1)
    result = compare(write_side(tmp_path, "a", table), write_side(tmp_path, "b", random_side(2)),
                     custom_metrics=tmp_path / "mine.py")  # fmt: skip
    mine = [value for value in result.values if value.metric == "custom_first"]
    assert [(v.side, v.label, v.split, v.covers) for v in mine] == [
        ("A", "first", None, Covers.RETRAINING),
        ("B", "first", None, Covers.RETRAINING),
    ]
    seeds = table.mean(0)
    half = stats.t.ppf(0.975, 2) * seeds.std(ddof=1) / 3**0.5
    assert (mine[0].ci95_low, mine[0].ci95_high) == pytest.approx(
        (seeds.mean() - half, seeds.mean() + half)
    )
    assert not [row for row in result.differences if row.metric == "custom_first"]


# ------------------------------------------------------------------ which models a side has


def test_ways_to_name_a_side(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    models = results / "models"
    by_condition = compare(f"{results}:a global_uniform k=5", f"{results}:b global_uniform k=5")
    by_pattern = compare(f"{models}/a_s*", f"{models}/b_s?/*_summary.json")
    by_name = compare(*(f"first={models}/a_s{i}" for i in range(3)), f"{models}/b_s*")
    assert by_condition.differences == by_pattern.differences == by_name.differences
    assert [side.name for side in by_condition.sides] == [
        "a global_uniform k=5",
        "b global_uniform k=5",
    ]
    assert by_condition.sides == by_pattern.sides
    assert by_name.sides[0].name == "first"
    assert by_name.sides[0].models == ["a_s0", "a_s1", "a_s2"]


def test_sides_of_two_sweeps(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    one = aggregated(tmp_path / "x", {"a": random_side(1)})
    other = aggregated(tmp_path / "y", {"a": random_side(2)}, subsets=False)
    result = compare(f"mine={one}", f"theirs={other}")
    assert [side.name for side in result.sides] == ["mine", "theirs"]
    assert first(result).paired_by is Pairing.SPECIES
    (note,) = [note for note in result.notes if "not paired" in note]
    assert "training annotations of B are unknown" in note


def test_a_single_model_is_named_by_its_name(tmp_path):
    result = compare(write_side(tmp_path, "a", random_side(1, 0, 1)) / "a_s0_summary.json",
                     write_side(tmp_path, "b", random_side(2, 0, 1)))  # fmt: skip
    assert [side.name for side in result.sides] == ["a_s0", "b_s0"]
    assert result.title == "a_s0 (A) and b_s0 (B)"


def test_fewer_than_two_sides_and_too_many(tmp_path):
    side = write_side(tmp_path, "a", random_side(1))
    for given in ((), (side,), (f"x={side}", f"x={side}")):
        with pytest.raises(UsageError, match=r"found [01] sides?; expected 2 to 26"):
            compare(*given)
    with pytest.raises(UsageError, match="put the pattern of their names in quotes"):
        compare(*[side] * 27)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("nothing", "nothing: no such file; expected a <model>_summary.json, a folder"),
        ("empty", "empty: no summary of any model"),
        ("none_*", "none_*: no summary that matches this pattern"),
        ("x" * 300, "no such file"),
        ("nul\0", "nul"),
        ("empty:a global_uniform k=5", "no aggregated.json of a sweep"),
    ],
)
def test_places_without_a_summary(tmp_path, monkeypatch, place, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_side(tmp_path, "a", random_side(1))
    (problem,) = problems("a", place)
    assert expected in str(problem)


def test_all_places_are_reported_at_once(tmp_path):
    assert len(problems(tmp_path / "x", tmp_path / "y", tmp_path / "z")) == 3


def test_an_unknown_condition_names_the_nearest(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    (problem,) = problems(f"{results}:a global_uniform k=5", f"{results}:b global_uniform k=50")
    assert "no condition 'b global_uniform k=50'" in str(problem)
    assert "did you mean 'b global_uniform k=5'?" in str(problem)


def test_a_whole_sweep_is_not_one_side(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    side = write_side(tmp_path, "c", random_side(3))
    kinds = [problem.kind for problem in problems(results, side)]
    assert kinds[0] == "several-conditions"


# ------------------------------------------------------------------ what is refused


def test_the_same_model_on_two_sides(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    found = problems(a, f"{a}/*_s0_summary.json")
    assert [problem.kind for problem in found] == ["same-model"]
    assert "'a_s0' on side B, which is also on side A" in str(found[0])
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "a_s0_summary.json").write_bytes((a / "a_s0_summary.json").read_bytes())
    assert [problem.kind for problem in problems(a, copy)] == ["same-model"]


def test_the_same_predictions_under_two_names_are_not_tested(tmp_path):
    a = write_side(tmp_path, "a", random_side(1), files=["0", "1", "2"])
    b = write_side(tmp_path, "b", random_side(1, 0.2), files=["0", "8", "9"])
    row = first(compare(a, b))
    assert (row.verdict, row.reason) == (Word.NOT_TESTED, Reason.IDENTICAL_RUNS)


def test_identical_predictions_within_a_side_count_once(tmp_path):
    a = write_side(tmp_path, "a", random_side(1), files=["0", "1", "1"])
    result = compare(a, write_side(tmp_path, "b", random_side(2)))
    assert first(result).n_seeds == 2
    assert "A: 3 models have 2 different prediction files for iid_test; identical ones" in str(
        result.notes
    )


def test_another_benchmark_is_refused(tmp_path):
    other = DIGESTS | {"species_taxonomy.csv": "c" * 64}
    a = write_side(tmp_path, "a", random_side(1))
    (problem,) = problems(a, write_side(tmp_path, "b", random_side(2, 0, 1), benchmark=other))
    assert problem.kind == "other-benchmark"
    assert "values of 'b_s0' on another benchmark (other species_taxonomy.csv)" in str(problem)


def test_another_scoring_version_is_refused(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    b = write_side(tmp_path, "b", random_side(2, 0, 1), provenance__scoring_code="d" * 64)
    (problem,) = problems(a, b)
    assert problem.kind == "other-code"
    assert "by scoring code dddddddddddd..." in str(problem)
    assert "evaluated with another version of benchmark-eval" in str(problem)


def test_another_schema_version_is_refused(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    b = write_side(tmp_path, "b", random_side(2, 0, 1), schema_version=2)
    (problem,) = problems(a, b)
    assert problem.kind == "schema-version"


def test_other_options_stand_in_the_title(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    b = write_side(tmp_path, "b", random_side(2, 0.4), config__iou_threshold=0.75)
    result = compare(a, b)
    assert result.title == "a (A) and b (B); localisation IoU: 0.5 (A), 0.75 (B)"
    assert first(result).verdict is Word.LOWER  # AP does not depend on it
    recall = first(result, "ood_species_mean_detection_recall")
    assert recall.verdict is Word.NOT_TESTED


def test_a_side_with_two_options_is_refused(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    item = evaluation("z", 0.5, benchmark=DIGESTS, config__iou_threshold=0.75)
    write_evaluation(a, item)
    found = problems(a, write_side(tmp_path, "b", random_side(2)))
    assert [problem.kind for problem in found] == ["other-options"]
    assert "0.5 and 0.75 on side A" in str(found[0])


def test_sides_without_a_common_split_are_refused(tmp_path):
    for name, split in (("a", "iid_test"), ("b", "inat_test")):
        write_evaluation(tmp_path / name, evaluation(name, benchmark=DIGESTS, splits=(split,)))
    (problem,) = problems(tmp_path / "a", tmp_path / "b")
    assert "no test split that all sides have (A: iid_test; B: inat_test)" in str(problem)


def test_only_common_splits_are_compared(tmp_path):
    a = write_side(tmp_path, "a", random_side(1))
    write_evaluation(tmp_path / "b", evaluation("b", benchmark=DIGESTS, splits=("iid_test",)))
    result = compare(a, tmp_path / "b")
    assert [row.split for row in result.differences] == ["iid_test"]
    assert "unseen species: B was not evaluated on semantic_ood." in result.notes
    values = [v.mean for v in result.values if v.split == "inat_test"]
    assert values[0] is not None
    assert values[1] is None


def test_an_edited_summary_is_refused(tmp_path):
    """One that ``evaluate`` wrote, by the record beside it."""
    a = write_side(tmp_path, "a", random_side(1, 0, 1))
    b = write_side(tmp_path, "b", random_side(2, 0, 1))
    record = {"version": 1, "files": {"a_s0_summary.json": ["0" * 64]}}
    (a / ".benchmark-eval.json").write_text(json.dumps(record))
    (problem,) = problems(a, b)
    assert (problem.kind, "edited manually" in problem.cause) == ("digest", True)


def test_a_summary_that_differs_from_the_tables_of_its_sweep_is_refused(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    path = results / "models/a_s0/a_s0_summary.json"
    path.write_bytes(path.read_bytes() + b"\n")
    (problem,) = problems(f"{results}/models/a_s*", f"{results}/models/b_s*")
    assert problem.file == str(path)
    assert "as in the tables of its sweep" in str(problem)


def test_results_of_an_earlier_run_are_refused(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    state = results / ".state/models"
    state.mkdir(parents=True)
    path = results / "models/a_s0/a_s0_summary.json"
    (state / "a_s0.json").write_text("planned\n")
    sides = f"{results}/models/a_s*", f"{results}/models/b_s*"
    (problem,) = problems(*sides)
    assert (problem.kind, problem.file) == ("earlier-run", str(path))
    (state / "a_s0.made").write_text("before\n" + "0" * 64 + "\n")
    assert [problem.kind for problem in problems(*sides)] == ["earlier-run"]
    (state / "a_s0.made").write_text("planned\n" + "0" * 64 + "\n")
    assert [problem.kind for problem in problems(*sides)] == ["digest"]


def test_tables_of_an_earlier_run_are_refused(tmp_path):
    results = aggregated(tmp_path, {"a": random_side(1), "b": random_side(2)})
    (results / ".state").mkdir()
    (results / ".state/sweep.json").write_text("planned\n")
    (problem,) = problems(f"{results}/models/a_s*", f"{results}/models/b_s*")
    assert (problem.kind, problem.file) == (
        "earlier-run",
        str(results / "aggregated/aggregated.json"),
    )


def test_evidence_of_another_evaluation_is_refused(tmp_path):
    a = write_side(tmp_path, "a", random_side(1, 0, 1))
    (a / "a_s0_evidence.npz").write_bytes(b"damaged")
    (problem,) = problems(a, write_side(tmp_path, "b", random_side(2)))
    assert problem.kind == "evidence-broken"


def test_one_species(tmp_path):
    sides = []
    for name, value in (("a", 0.5), ("b", 0.7)):
        for seed in range(3):
            item = evaluation(
                f"{name}{seed}", value + seed / 100, benchmark=DIGESTS, splits=("iid_test",)
            )
            scores = item.per_split["iid_test"].per_species
            for number in list(scores)[1:]:
                del scores[number]
            write_evaluation(tmp_path / name, item)
        sides.append(tmp_path / name)
    (row,) = compare(*sides).differences
    assert (row.n_species, row.ci95_low, row.verdict) == (1, None, Word.NOT_TESTED)
    assert row.reason == Reason.FEW_SPECIES
    assert row.a_minus_b == pytest.approx(-0.2)


def test_a_metric_that_is_undefined_everywhere(tmp_path):
    for name in "ab":
        item = evaluation(name, None, benchmark=DIGESTS)
        write_evaluation(tmp_path / name, item)
    result = compare(tmp_path / "a", tmp_path / "b")
    assert [row.reason for row in result.differences][:2] == [Reason.NO_VALUES] * 2
    assert all(value.mean is None for value in result.values[:6])


def test_the_result_does_not_depend_on_the_working_folder(tmp_path, monkeypatch):
    a, b = (write_side(tmp_path, name, random_side(i)) for i, name in enumerate("ab"))
    absolute = compare(a, b)
    monkeypatch.chdir(tmp_path)
    assert msgspec.json.encode(compare("a", "b")) == msgspec.json.encode(absolute)
    monkeypatch.chdir(a)
    assert msgspec.json.encode(compare(".", "../b")) == msgspec.json.encode(absolute)
