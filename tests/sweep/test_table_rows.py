"""Rules of the tables by hand, and input that they have little to say about."""

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.evaluated_sweep import GU, IN, TA, build
from support.factories import TRAINED
from support.small_sweep import run_sweep

import benchmark_eval
from benchmark_eval.core.chance import correct_by_chance
from benchmark_eval.core.errors import InputError
from benchmark_eval.sweep.best_evidence import Pairs
from benchmark_eval.sweep.confidence_rows import equal_mass
from benchmark_eval.sweep.confusion_rows import labels_of
from benchmark_eval.sweep.reliance import reliance
from benchmark_eval.sweep.table_rows import SpeciesRow
from benchmark_eval.sweep.tables import FLAT, column_kinds

ROOT = Path(benchmark_eval.__file__).parents[1]


@pytest.mark.parametrize("name", sorted({"species", *FLAT} - {"comparisons", "budget_planning"}))
def test_every_column_is_documented(name):
    text = (ROOT / "docs/sweep_more.md").read_text()
    assert f"### `{name}.csv`" in text
    words = set(re.findall(r"`([A-Za-z0-9_]+)`", text))
    columns = set(column_kinds({"species": SpeciesRow, **FLAT}[name])) - {"budgets"}
    assert columns - words == set()


@pytest.mark.parametrize(
    ("n", "recalls", "absorbed", "mark", "words"),
    [
        (9, [1.0, 1.0], [{}, {}], True, "fewer than 10 scored specimens"),
        (10, [1.0, 1.0], [{}, {}], False, ""),
        (10, [0.49, 0.5, 0.9], [{}] * 3, False, ""),
        (10, [0.49, 0.4, 0.9], [{}] * 3, True, "species recall below 0.5 in 2 of 3 seeds"),
        (10, [0.6, 0.6], [{"x": 0.3}, {"x": 0.29}], False, ""),
        (10, [0.6, 0.6], [{"x": 0.3}, {"y": 0.3}], False, ""),
        (10, [0.6, 0.6], [{"x": 0.3}, {"x": 0.4}], True, "30 % of its specimens are labelled x"),
        (10, [0.1], [{}], None, "1 seed with an operating threshold; 2 have to agree"),
        (10, [None, None], [], None, "0 seeds with an operating threshold"),
        (None, [], [], None, "iid_test is not evaluated"),
    ],
)
def test_do_not_rely_on(n, recalls, absorbed, mark, words):
    found, reason = reliance(n, recalls, absorbed)
    assert found is mark
    assert words in reason
    assert bool(reason) == (mark is not False)


def test_a_confusion_is_named_if_seeds_agree_and_nothing_ties():
    n = np.zeros((3, 4, 4), int)
    n[:, 0, 1] = [3, 3, 0]  # named
    n[:, 0, 2] = [9, 2, 0]  # more specimens, but only one seed
    n[:, 1, 0] = n[:, 1, 2] = [5, 5, 5]  # tied
    n[:, 1, 3] = [3, 3, 3]
    pairs = Pairs(None, "iid_test", "all", n, n[:, 0], n[:, 0], n[:, 0], n[0, 0])
    first = labels_of(pairs, 0)
    assert [(c.label, c.n, c.n_seeds, c.rank, c.reason) for c in first] == [
        (2, 11 / 3, 1, 1, "fewer than 3 specimens in 2 seeds"),
        (1, 2.0, 2, 2, ""),
    ]
    second = labels_of(pairs, 1)
    assert [(c.label, c.rank, c.reason) for c in second] == [
        (0, 1, "tied with another label"),
        (2, 1, "tied with another label"),
        (3, 3, ""),
    ]
    assert labels_of(pairs, 3) == []


def test_chance_by_hand():
    # four species: two of genus 0, one of genus 1, one of no known genus; labels given 5, 3, 2, 0
    found = correct_by_chance(
        np.array([5, 3, 2, 0]), np.array([0, 1, 2, 3]), np.array([0, 0, 1, -1])
    )
    assert found.tolist() == pytest.approx([0.3 / 0.5, 0.5 / 0.7, 0, 0])
    # two ids of one name count once; the only label leaves nothing to chance
    found = correct_by_chance(np.array([4]), np.array([0, 0]), np.array([0, 0]))
    assert found.tolist() == [0, 0]


def test_bins_of_equal_mass():
    assert equal_mass(np.array([1] * 20), 10).tolist() == [n // 2 for n in range(20)]
    assert equal_mass(np.array([0, 100, 0, 1, 1]), 10).tolist() == [0, 0, 1, 1, 1]
    assert equal_mass(np.zeros(3, int), 10).tolist() == [0, 0, 0]


def finite(table):
    """No cell of any table is NaN or infinite, which JSON cannot hold."""
    for name in ("species", *FLAT):
        for row in getattr(table, name):
            for field in row.__struct_fields__:
                value = getattr(row, field)
                assert not (isinstance(value, float) and not math.isfinite(value)), (name, field)


def test_one_seed_of_one_model(tmp_path):
    place = build(tmp_path / "s", architectures="a", conditions=[(GU, "all")], seeds=[0])
    table = place.aggregate()
    finite(table)
    assert {row.n_seeds for row in table.pooled_shares} == {1}
    assert {row.covers for row in table.pooled_shares} == {"species"}
    assert {row.no_verdict for row in table.pooled_shares} <= {
        *("fewer than 3 seeds", "fewer than 3 species", "exactly 0 or 1"),
        *("fewer than 10 images", "no defined value", "no variation"),
    }
    assert {row.per_100_images_reason for row in table.error_types} == {"only one seed"}
    assert all(not row.named for row in table.confusions)
    marks = [row.do_not_rely for row in table.species if row.role == "known"]
    assert set(marks) == {None}
    reasons = {row.do_not_rely_reason for row in table.species if row.role == "known"}
    assert reasons == {"1 seed with an operating threshold; 2 have to agree"}
    assert table.target_gains == []
    assert [r for r in table.comparisons if r.verdict != "not tested"] == []


def test_known_species_only(tmp_path):
    place = build(
        tmp_path / "s",
        architectures="a",
        conditions=[(GU, "1"), (IN, "1")],
        seeds=[0, 1],
        splits=["iid_test"],
    )
    table = place.aggregate()
    finite(table)
    assert table.novelty == table.band_gaps == table.retention == []
    assert {row.group for row in table.novelty_histograms} == {"known, correct", "known, wrong"}
    assert {row.split for row in table.pooled_shares} == {"iid_test"}
    assert {row.inat_n_specimens for row in table.species} == {None}
    assert {row.role for row in table.species} == {"known"}


def test_unseen_species_only(tmp_path):
    place = build(
        tmp_path / "s",
        architectures="a",
        conditions=[(GU, "1")],
        seeds=[0, 1],
        splits=["semantic_ood"],
    )
    table = place.aggregate()
    finite(table)
    # without iid_test, no condition is best
    assert table.confusions == table.reliability == table.novelty == []
    assert table.pooled_shares
    known = [row for row in table.species if row.role == "known"]
    assert {row.do_not_rely_reason for row in known} == {"iid_test is not evaluated"}
    assert {row.best_architecture for row in table.species} == {""}


def test_without_train_json_and_with_missing_evidence(tmp_path):
    place = build(
        tmp_path / "s", architectures="a", conditions=[(GU, "all"), (TA, "0")], seeds=[0, 1]
    )
    path = place.folder / "benchmark/detection/annotations_coco/train.json"
    path.unlink()
    with pytest.raises(InputError, match="train"):  # another benchmark than that of the summaries
        place.aggregate()
    other = build_without_train(place)
    table = other.aggregate()
    finite(table)
    assert table.tiers == []
    assert {row.n_train_images for row in table.species} == {None}
    assert {row.tier for row in table.species} == {""}
    assert {row.price for row in table.budget_curves} == {None}
    # evidence of one seed: the other one is named
    gone = other.models[0][0]
    (other.folder / f"eval/{gone}/{gone}_evidence.npz").unlink()
    table = other.aggregate()
    finite(table)
    assert table.without_evidence == [gone]
    rows = [r for r in table.pooled_shares if r.regime == GU]
    assert {r.n_seeds for r in rows} == {1}
    # a copy of another model's evidence is refused
    left = other.models[1][0]
    shutil.copy(
        other.folder / f"eval/{left}/{left}_evidence.npz",
        other.folder / f"eval/{gone}/{gone}_evidence.npz",
    )
    with pytest.raises(InputError, match="a renamed or copied file"):
        other.aggregate()


def build_without_train(place):
    """The same models, evaluated again on the benchmark as it is now."""
    benchmark = benchmark_eval.load_benchmark(place.folder / "benchmark")
    for model, *_ in place.models:
        benchmark_eval.evaluate_to_files(
            benchmark=benchmark,
            predictions_dir=place.folder / "predictions" / model,
            output_dir=place.folder / "eval" / model,
            model_name=model,
        )
    return place


def test_summaries_without_evidence_and_undefined_metrics(tmp_path):
    rows = [((f"m{seed}", "a", GU, "1", seed), {"value": None}) for seed in range(3)]
    table, _ = run_sweep(tmp_path / "none", rows)
    finite(table)
    assert table.without_evidence == ["m0", "m1", "m2"]
    assert table.pooled_shares == table.confusions == table.novelty == []
    assert {row.best_architecture for row in table.species} == {""}
    assert {row.AP_50_95 for row in table.species_curves} == {None}
    assert {row.mean for row in table.tiers} == {None}
    assert {row.reason for row in table.tiers} == {"no defined value"}
    assert {row.retention for row in table.retention} <= {None, 1.0}
    rows = [((f"m{seed}", "a", GU, "1", seed), {"value": 0.5}) for seed in range(3)]
    table, _ = run_sweep(tmp_path / "some", rows)
    known = [row for row in table.species if row.category_id in TRAINED]
    assert {row.do_not_rely_reason for row in known} == {"fewer than 10 scored specimens"}
    assert {row.confused_reason for row in known} == {"no evidence of the split"}
