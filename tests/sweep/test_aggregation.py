"""The tables of a sweep against values computed by hand, and every input that is rejected."""

import csv
import errno
import json
import math
import shutil

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation

from benchmark_eval.cli.main import cli, main
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.outputs import RECORD, claim
from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE
from benchmark_eval.sweep import aggregate, tables

GU, IN, TA = BUDGETS


@pytest.fixture(scope="session")
def benchmark_dir(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="session")
def digest(benchmark_dir):
    return load_benchmark(benchmark_dir).digests


@pytest.fixture
def sweep(tmp_path, benchmark_dir, digest):
    """Writes and aggregates a sweep of (row, value or evaluation keywords or None)."""

    class Sweep:
        eval_dir, output = tmp_path / "eval", tmp_path / "out"
        manifest = tmp_path / "manifest.csv"
        benchmark = benchmark_dir

        def lay(self, cells, header="model_name,architecture,regime,k_or_p,seed"):
            self.eval_dir.mkdir(exist_ok=True)
            rows = []
            for row, made in cells:
                rows.append(row)
                if made is not None:
                    kwargs = dict(made) if isinstance(made, dict) else {"value": made}
                    kwargs.setdefault("benchmark", digest)
                    write_evaluation(self.eval_dir, evaluation(row[0], **kwargs))
            self.manifest.write_text(manifest_text(rows, header))
            return self

        def run(self, **options):
            return aggregate(
                eval_dir=self.eval_dir,
                manifest=self.manifest,
                benchmark=self.benchmark,
                output_dir=self.output,
                **options,
            )

        def table(self, name):
            with (self.output / name).open(newline="") as stream:
                return list(csv.DictReader(stream))

        def problems(self, **options):
            with pytest.raises(InputError) as caught:
                self.run(**options)
            return caught.value.problems

    return Sweep()


def number(text):
    return None if text == "" else float(text)


def test_curves_of_two_architectures_three_regimes_a_missing_seed_and_an_undefined_metric(sweep):
    undefined = {"value": 0.4, "per_split__iid_test__coco__AP_50": None}
    sweep.lay(
        [
            (("b0", "b", GU, "10", 0), 0.9),
            (("a0", "a", GU, "10", 0), 0.50),
            (("a1", "a", GU, "10.0", 1), 0.54),
            (("a2", "a", GU, "1e1", 2), 0.58),
            (("a3", "a", GU, "all", 0), 0.6),
            (("a4", "a", GU, "all", 1), undefined),
            (("a5", "a", GU, "all", 2), None),
            (("a6", "a", GU, "2", 0), 0.1),
            (("a7", "a", IN, "0.10", 0), 0.2),
            (("a8", "a", IN, "0.1", 1), 0.4),
            (("a9", "a", TA, "0", 0), 0.3),
        ]
    )
    sweep.run(allow_missing=True)
    rows = sweep.table("learning_curves.csv")
    assert [(r["architecture"], r["regime"], r["k_or_p"], r["n_seeds"]) for r in rows] == [
        ("a", GU, "2", "1"),
        ("a", GU, "10", "3"),
        ("a", GU, "all", "2"),
        ("a", IN, "0.1", "2"),
        ("a", TA, "0", "1"),
        ("b", GU, "10", "1"),
    ]
    two, ten, everything, p, zero, b = rows
    assert number(ten["iid_AP_50_95_mean"]) == pytest.approx(0.54, abs=1e-15)
    assert number(ten["iid_AP_50_95_std"]) == pytest.approx(0.04, abs=1e-15)
    assert ten["iid_AP_50_95_n"] == "3"
    half = 4.302652729749464 * 0.04 / math.sqrt(3)
    assert number(ten["iid_AP_50_95_ci95_low"]) == pytest.approx(0.54 - half, abs=1e-12)
    assert two["ood_class_agnostic_AR_100_mean"] == "0.1"
    assert [two[f"ood_class_agnostic_AR_100_{s}"] for s in ("std", "ci95_low", "ci95_high")] == (
        ["", "", ""]
    )
    # one of two seeds has no AP_50: mean and n are those of the other
    assert (everything["iid_AP_50_mean"], everything["iid_AP_50_n"]) == ("0.6", "1")
    assert everything["iid_AP_50_std"] == ""
    assert everything["iid_AP_50_95_n"] == "2"
    assert everything["missing_models"] == "a5"
    assert number(p["novelty_det_FPR@95TPR_mean"]) == pytest.approx(0.3, abs=1e-15)
    assert zero["iid_tail_AP_50_mean"] == "0.15"
    assert b["iid_head_AP_50_mean"] == "0.9"
    header = list(rows[0])
    assert header[:4] == ["architecture", "regime", "k_or_p", "n_seeds"]
    assert header[-3:] == ["missing_models", "identical_predictions", "by_construction"]
    parts = ["mean", "std", "n", "ci95_low", "ci95_high", "ci95_retraining_low"]
    parts.append("ci95_retraining_high")
    over_species = ["ci95_species_retraining_low", "ci95_species_retraining_high"]
    means = {f"{split}_{key}" for split in ("iid", "inat") for key in ("AP_50", "AP_50_95")}
    means |= {"iid_joint_AP_50", "inat_joint_AP_50"}
    assert header[4:-3] == [
        f"{m.name}_{part}"
        for m in CURVE_METRICS
        for part in (*parts, *(over_species if m.name in means else ()))
    ]


PLACES = {
    "iid": "iid_test", "inat": "inat_test", "ood": "semantic_ood",
    **{f"ood_{band}": f"semantic_ood/{band}" for band in ("near_genus", "mid_tribe", "far_tribe")},
}  # fmt: skip
BLOCKS = {
    "AP_50_95": "coco", "AP_50": "coco", "AP_75": "coco", "AR_100": "coco",
    "ECE": "calibration", "mean_confidence": "calibration",
    "correct_genus": "hierarchical", "correct_tribe": "hierarchical",
    **dict.fromkeys(("head_AP_50", "medium_AP_50", "tail_AP_50", "head_minus_tail_AP_50",
                     "AP_50_train_count_correlation"), "class_imbalance"),
}  # fmt: skip


def value_of(tree, name):
    """The number in a summary that a column of the sweep's tables reports, by its name alone."""
    prefix = max((p for p in PLACES if name.startswith(f"{p}_")), key=len, default="")
    if not prefix or name in tree["summary"]:
        return tree["summary"][name]
    key = name.removeprefix(f"{prefix}_")
    split, _, band = PLACES[prefix].partition("/")
    block = tree["per_split"][split]
    if band:
        spelled = {"AP_50": "class_agnostic_AP_50", "AR_100": "class_agnostic_AR_100"}
        return block["ood_by_band"]["by_band"][band][spelled.get(key, key)]
    if key == "class_agnostic_AR_100":
        return block["class_agnostic"]["AR_100"]
    return block[BLOCKS.get(key, "decomposition")][key]


def test_every_column_reads_its_own_metric(sweep, digest):
    sweep.lay([(("m", "a", GU, "1", 0), {"value": 0.5, "distinct": True})]).run()
    tree = json.loads((sweep.eval_dir / "m_summary.json").read_text())
    curves, models = sweep.table("learning_curves.csv")[0], sweep.table("models.csv")[0]
    read = {metric.name: number(models[metric.name]) for metric in CURVE_METRICS}
    assert read == {name: value_of(tree, name) for name in read}
    assert {name: number(curves[f"{name}_mean"]) for name in read} == read
    shares = [v for name, v in read.items() if not name.startswith("n_") and "joint_AP" not in name]
    assert len(set(shares)) == len(shares)  # so that no two can be confused

    rows = sweep.table("density_curves.csv")
    assert len(rows) == 4 * (3 + 3)  # strata x (splits + bands)
    cells = []
    for row in rows:
        density = tree["per_split"][row["split"]]["density"]
        strata = density["by_band"][row["band"]] if row["band"] else density["strata"]
        expected = strata[row["stratum"]]
        for name in ("recall", "species_recall", "image_mean_recall",
                     "image_mean_classification_given_detection_acc"):  # fmt: skip
            assert number(row[f"{name}_mean"]) == expected[name]
            cells.append(expected[name])
    assert len(set(cells)) == len(cells)

    rows = sweep.table("operating_curves.csv")
    assert len(rows) == 3 * 101
    for row in rows[7::20]:
        curve = tree["per_split"][row["split"]]["operating_point"]["curve"]
        at = curve["confidence"].index(number(row["confidence"]))
        for name in ("precision", "recall", "F1", "species_recall", "false_positives_per_image"):
            assert number(row[f"{name}_mean"]) == curve[name][at]


def test_differences_within_a_model(sweep):
    def made(**more):
        ood, iid = "per_split__semantic_ood__density__strata__", "per_split__iid_test__"
        return {
            f"{iid}decomposition__classification_loss": 0.3,
            f"{iid}decomposition__localisation_loss": 0.1,
            f"{ood}1__image_mean_recall": 0.9,
            f"{ood}>10__image_mean_recall": 0.5,
            **more,
        }

    sweep.lay(
        [
            (("m0", "a", TA, "5", 0), {**made(), "species_ap": {1: 0.6, 5: 0.5}}),
            (("m1", "a", TA, "5", 1), {**made(), "species_ap": {1: 0.9, 5: 0.5}}),
            (
                ("m2", "a", GU, "5", 0),
                made(per_split__iid_test__decomposition__localisation_loss=None),
            ),
        ]
    )
    sweep.run()
    rows = {(r["regime"], r["difference"]): r for r in sweep.table("differences.csv")}
    assert len(rows) == 8
    near = rows[TA, "iid_target_near_minus_far_AP_50"]
    assert number(near["mean"]) == pytest.approx(0.25)
    assert number(near["std"]) == pytest.approx(math.sqrt(2 * 0.15**2))
    assert near["n"] == "2"
    assert number(rows[TA, "ood_image_mean_recall_1_minus_over_10"]["mean"]) == pytest.approx(0.4)
    assert number(rows[TA, "iid_classification_minus_localisation_loss"]["mean"]) == pytest.approx(
        0.2
    )
    for name in ("iid_classification_minus_localisation_loss", "iid_target_near_minus_far_AP_50"):
        assert (rows[GU, name]["mean"], rows[GU, name]["n"]) == ("", "0")


def test_identical_prediction_files_are_reported_in_table_and_log(sweep, caplog):
    def made(iid, ood="x"):
        return {"value": 0.5, "predictions": {"iid_test": iid, "semantic_ood": ood}}

    sweep.lay(
        [
            (("m0", "a", GU, "1", 0), made("d", "e")),
            (("m1", "a", GU, "1", 1), made("d", "e")),
            (("m2", "a", GU, "1", 2), made("f")),
            (("m3", "a", GU, "5", 0), made("d")),
            (("m4", "a", GU, "5", 1), made("g", "y")),
        ]
    )
    table = sweep.run()
    assert [(item.splits, item.models) for item in table.identical] == [
        (["iid_test"], ["m0", "m1", "m3"]),
        (["semantic_ood"], ["m0", "m1"]),
        (["semantic_ood"], ["m2", "m3"]),
    ]
    one, five = sweep.table("learning_curves.csv")
    assert one["identical_predictions"] == "iid_test; semantic_ood"
    assert five["identical_predictions"] == ""
    assert "identical prediction files on iid_test for m0, m1, m3" in caplog.text


def test_seeds_with_the_same_prediction_file_have_no_interval_in_any_table(sweep):
    def made(iid, value):
        files = {"iid_test": iid, "semantic_ood": "e" if iid == "d" else iid}
        return {"value": value, "predictions": files, "species_ap": {1: 0.2, 3: 0.3, 5: 0.4}}

    copies = [((f"c{s}", "a", TA, "1", s), made("d", 0.5 + s / 100)) for s in range(3)]
    seeds = [((f"s{s}", "a", TA, "5", s), made(f"f{s}", 0.3 + s / 100)) for s in range(3)]
    table = sweep.lay([*copies, *seeds]).run()
    assert tables.load_tables(sweep.output / tables.AGGREGATED) == table
    copied, independent = table.learning_curves
    for name, has_interval in (
        ("iid_AP_50", False), ("inat_AP_50", True), ("novelty_det_AUROC", False),
    ):  # fmt: skip
        assert copied.metrics[name].n == 3
        assert (copied.metrics[name].ci95_low is not None) is has_interval, name
        assert independent.metrics[name].ci95_low is not None, name
    assert all(value.ci95_low is None for value in copied.differences.values())
    one, five = sweep.table("learning_curves.csv")
    for end in ("ci95_low", "ci95_high"):
        assert one[f"iid_AP_50_{end}"] == ""
        assert one[f"inat_AP_50_{end}"] != ""
        assert five[f"iid_AP_50_{end}"] != ""
    for name, stem in (
        ("density_curves.csv", "recall_"),
        ("operating_curves.csv", "recall_"),
        ("target_species_curves.csv", "AP_50_"),
        ("target_vs_nontarget.csv", "gap_AP_50_"),
    ):
        rows = [row for row in sweep.table(name) if row.get("k_or_p", row.get("k")) == "1"]
        empty = {
            row["split"] for row in rows if row[f"{stem}n"] == "3" and not row[f"{stem}ci95_low"]
        }
        assert empty == {"iid_test", "semantic_ood"} & {row["split"] for row in rows}, name


def test_a_metric_without_any_value_is_empty_with_n_0(sweep):
    gone = {"value": 0.4, "per_split__inat_test__calibration__ECE": None}
    sweep.lay([((f"m{s}", "a", GU, "1", s), gone) for s in range(3)])
    sweep.run()
    (row,) = sweep.table("learning_curves.csv")
    assert (row["inat_ECE_mean"], row["inat_ECE_std"], row["inat_ECE_n"]) == ("", "", "0")
    assert row["iid_ECE_n"] == "3"


def test_columns_of_a_split_that_was_not_evaluated_are_empty(sweep):
    only = {"value": 0.4, "splits": ("iid_test",)}
    sweep.lay([(("m", "a", TA, "1", 0), only)])
    sweep.run()
    (row,) = sweep.table("learning_curves.csv")
    assert row["iid_AP_50_mean"] == "0.4"
    assert row["ood_class_agnostic_AR_100_n"] == row["ood_near_genus_AP_50_n"] == "0"
    assert {r["split"] for r in sweep.table("target_species_curves.csv")} == {"iid_test"}


def test_target_tables(sweep):
    # targets: 1 (near), 3 (mid), 5 (far); others: 2, 4. inat_test scores 1 and 2 only
    sweep.lay(
        [
            (("m0", "a", TA, "5", 0), {"value": 0.5, "species_ap": {1: 0.2, 3: 0.3, 5: 0.4}}),
            (("m1", "a", TA, "5", 1), {"value": 0.7, "species_ap": {1: 0.4, 3: 0.3, 5: None}}),
            (("m2", "a", GU, "5", 0), 0.9),
        ]
    )
    sweep.run()
    grid = {(r["split"], r["k"], r["band"]): r for r in sweep.table("target_species_curves.csv")}
    assert [key[2] for key in grid][:3] == ["near_genus", "mid_tribe", "far_tribe"]
    assert len(grid) == 6
    near = grid["iid_test", "5", "near_genus"]
    assert number(near["AP_50_mean"]) == pytest.approx(0.3)
    assert number(near["AP_50_std"]) == pytest.approx(math.sqrt(0.02))
    assert (near["n_species"], near["AP_50_n"]) == ("1", "2")
    far = grid["iid_test", "5", "far_tribe"]
    assert (far["AP_50_mean"], far["AP_50_n"], far["AP_50_std"]) == ("0.4", "1", "")
    field = grid["inat_test", "5", "far_tribe"]
    assert (field["n_species"], field["AP_50_mean"], field["AP_50_n"]) == ("0", "", "0")

    iid, inat = sweep.table("target_vs_nontarget.csv")
    assert (iid["split"], inat["split"]) == ("iid_test", "inat_test")
    # m0: targets (.2+.3+.4)/3 = .3, others .5; m1: targets (.4+.3)/2 = .35, others .7
    assert number(iid["target_AP_50_mean"]) == pytest.approx(0.325)
    assert number(iid["nontarget_AP_50_mean"]) == pytest.approx(0.6)
    assert number(iid["gap_AP_50_mean"]) == pytest.approx((-0.2 - 0.35) / 2)
    assert number(iid["gap_AP_50_95_std"]) == pytest.approx(math.sqrt(2 * 0.075**2))
    assert number(inat["target_AP_50_mean"]) == pytest.approx(0.3)

    dots = {r["model"]: r for r in sweep.table("models.csv")}
    assert dots["m0"]["iid_test/gap/AP_50"] == repr(0.3 - 0.5)
    assert dots["m2"]["iid_test/gap/AP_50"] == ""
    assert dots["m2"]["iid_AP_50_95"] == "0.9"


def test_hand_computed_expected_budgets(sweep):
    sweep.lay(
        [
            (("g1", "a", GU, "1", 0), 0.5),
            (("ga", "a", GU, "all", 0), 0.5),
            (("n5", "a", IN, "0.5", 0), 0.5),
            (("n1", "a", IN, "0.01", 0), 0.5),
            (("t0", "a", TA, "0", 0), 0.5),
            (("t2", "a", TA, "2", 0), 0.5),
        ]
    )
    sweep.run()
    rows = {(r["regime"], r["k_or_p"]): r for r in sweep.table("budget_curves.csv")}

    def cost(key):
        assert rows[key]["source"] == "expected"
        return number(rows[key]["n_images"]), number(rows[key]["n_specimens"])

    # images of the species: 1: 4 (5 boxes), 2: 2 (4), 3: 2 (6), 4: 6 (6), 5: 1 (1);
    # image 1 holds species 1 and 2, image 7 holds 3 and 4, every other image one species
    assert cost((GU, "all")) == (13.0, 22.0)
    one = {1: 1 / 4, 2: 1 / 2, 3: 1 / 2, 4: 1 / 6, 5: 1.0}
    mixed = (1 - (1 - 1 / 4) * (1 - 1 / 2)) + (1 - (1 - 1 / 2) * (1 - 1 / 6))
    alone = 3 * one[1] + one[2] + one[3] + 5 * one[4] + one[5]
    images, specimens = cost((GU, "1"))
    assert images == pytest.approx(mixed + alone)
    assert specimens == pytest.approx(5 / 4 + 4 / 2 + 6 / 2 + 6 / 6 + 1)
    assert cost((IN, "0.01")) == cost((GU, "1"))  # at least one image of each species
    # p = 0.5: 2 of 4, 1 of 2, 1 of 2, 3 of 6, and floor(0.5 + 0.5) = 1 of 1
    images, specimens = cost((IN, "0.5"))
    assert images == pytest.approx(2 * 0.75 + 9 * 0.5 + 1 + 0.5 * 0 + 0.5)
    assert specimens == pytest.approx((5 + 4 + 6 + 6) / 2 + 1)
    # no target images: species 2 and 4 only
    assert cost((TA, "0")) == (8.0, 10.0)
    images, specimens = cost((TA, "2"))
    # species 1: 2 of 4; 3: 2 of 2; 5: 1 of 1; images 1 and 7 are in for 2 and 4 already
    assert images == pytest.approx(8 + 3 * 0.5 + 1 + 1)
    assert specimens == pytest.approx(10 + 5 / 2 + 6 + 1)


def test_exact_budgets_come_from_the_training_annotations(sweep, tmp_path):
    def train(name, images):
        on = (1, 7, 5, 1, 7, 7)  # images of train.json with as many boxes or more
        notes = [{"id": i, "image_id": on[i], "iscrowd": int(i == 5)} for i in range(images)]
        (tmp_path / name).write_text(json.dumps({"annotations": notes}))

    train("t0.json", 6)
    train("t1.json", 2)
    sweep.lay(
        [
            (("m0", "a", GU, "1", 0, "t0.json"), 0.5),
            (("m1", "a", GU, "1", 1, "t1.json"), 0.5),
            (("m2", "a", GU, "5", 0, "t0.json"), 0.5),
            (("m3", "a", GU, "5", 1, ""), 0.5),
        ],
        header="model_name,architecture,regime,k_or_p,seed,train_annotations",
    )
    table = sweep.run()
    one, five = sweep.table("budget_curves.csv")
    # t0: 5 trained boxes on 3 images; t1: 2 on 2
    assert (one["n_images"], one["n_specimens"], one["source"]) == ("2.5", "3.5", "exact")
    assert five["source"] == "expected"  # one of two seeds has no training annotations
    assert set(table.inputs.train_annotations) == {"m0", "m1", "m2"}


def test_unreadable_training_annotations_are_reported_with_all_problems(sweep, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    sweep.lay(
        [
            (("m0", "a", GU, "1", 0, "none.json"), None),
            (("m1", "a", GU, "1", 1, "bad.json"), 0.5),
        ],
        header="model_name,architecture,regime,k_or_p,seed,train_annotations",
    )
    assert sorted(p.kind for p in sweep.problems()) == ["missing-summary", "not-coco", "unreadable"]


def test_budget_is_unknown_without_training_annotations(sweep, tmp_path, benchmark_dir):
    bare = tmp_path / "bare"
    shutil.copytree(benchmark_dir, bare)
    (bare / "detection/annotations_coco/train.json").unlink()
    sweep.benchmark = bare
    sweep.lay(
        [(("m0", "a", GU, "1", 0), {"value": 0.5, "benchmark": load_benchmark(bare).digests})]
    )
    sweep.run()
    (row,) = sweep.table("budget_curves.csv")
    assert (row["n_images"], row["n_specimens"], row["source"]) == ("", "", "unknown")
    assert row[f"{HEADLINE[0]}_mean"] == "0.5"


def test_all_problems_of_the_summaries_are_raised_at_once(sweep, digest):
    names = ("ok0", "ok1", "gone", "cut", "old", "alien", "copy", "loose", "odd")
    sweep.lay([((n, "a", GU, str(k), 0), 0.5) for k, n in enumerate(names, start=1)])
    path = {n: sweep.eval_dir / f"{n}_summary.json" for n in names}
    path["gone"].unlink()
    path["cut"].write_bytes(path["cut"].read_bytes()[:999])
    path["old"].write_text(
        path["old"].read_text().replace('"schema_version":3', '"schema_version":0')
    )
    write_evaluation(
        sweep.eval_dir, evaluation("alien", benchmark={**digest, "species_taxonomy.csv": "a" * 64})
    )
    path["copy"].write_bytes(path["ok0"].read_bytes())
    write_evaluation(
        sweep.eval_dir, evaluation("loose", benchmark=digest, config__iou_threshold=0.3)
    )
    path["odd"].write_text('{"schema_version": 3, "model": "odd"}')
    problems = {p.kind: p for p in sweep.problems()}
    assert set(problems) == {
        "missing-summary", "not-json", "schema-version", "other-benchmark", "other-model",
        "other-options", "not-a-summary",
    }  # fmt: skip
    assert "'gone'" in problems["missing-summary"].found
    assert "global_uniform k=3, seed 0" in problems["missing-summary"].found
    assert problems["other-benchmark"].found.endswith("with another species_taxonomy.csv")
    assert problems["other-options"].found == "0.3 for 'loose'"
    assert problems["other-options"].field == "config.iou_threshold"
    assert "evaluate the model again" in problems["schema-version"].cause
    assert not sweep.output.exists()
    # allow_missing does not ignore other problems
    assert "missing-summary" not in {p.kind for p in sweep.problems(allow_missing=True)}


def test_another_schema_version_is_rejected(sweep):
    sweep.lay([(("m", "a", GU, "1", 0), {"value": 0.5, "schema_version": 99})])
    (problem,) = sweep.problems()
    assert (problem.kind, problem.found) == ("schema-version", "schema_version 99")


def test_summaries_that_are_not_in_the_manifest_are_listed_and_not_used(sweep, digest):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5)])
    write_evaluation(sweep.eval_dir, evaluation("other", 0.9, benchmark=digest))
    write_evaluation(sweep.eval_dir, evaluation("more", 0.9, benchmark=digest), nested=True)
    table = sweep.run()
    assert table.unlisted_summaries == ["more", "other"]
    assert sweep.table("learning_curves.csv")[0]["iid_AP_50_mean"] == "0.5"


def test_summaries_are_read_from_one_folder_or_one_per_model(sweep, digest):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5)])
    item = evaluation("m", 0.5, benchmark=digest)
    write_evaluation(sweep.eval_dir, item, nested=True)
    sweep.run()  # two equal copies are not ambiguous
    write_evaluation(sweep.eval_dir, evaluation("m", 0.6, benchmark=digest), nested=True)
    (problem,) = sweep.problems()
    assert problem.kind == "duplicate-summary"
    (sweep.eval_dir / "m_summary.json").unlink()
    sweep.run()
    assert sweep.table("learning_curves.csv")[0]["iid_AP_50_mean"] == "0.6"


def test_no_summary_at_all_is_an_error_even_with_allow_missing(sweep):
    sweep.lay([(("m", "a", GU, "1", 0), None)])
    (problem,) = sweep.problems(allow_missing=True)
    assert problem.kind == "no-summary"


def test_an_excluded_model_is_missing_even_with_a_summary(sweep):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5), (("n", "a", GU, "1", 1), 0.9)])
    table = sweep.run(allow_missing=True, exclude=["n"])
    assert [m.model for m in table.missing] == ["n"]
    assert table.unlisted_summaries == []
    assert sweep.table("learning_curves.csv")[0]["iid_AP_50_mean"] == "0.5"
    assert [p.kind for p in sweep.problems(exclude=["n"])] == ["missing-summary"]


def test_missing_cells_are_listed_with_and_without_a_row_in_the_manifest(sweep):
    sweep.lay(
        [
            (("a0", "a", GU, "1", 0), 0.5),
            (("a1", "a", GU, "1", 1), 0.5),
            (("a2", "a", GU, "5", 0), 0.5),
            (("b0", "b", GU, "1", 0), None),
            (("b1", "b", GU, "1", 1), 0.5),
        ]
    )
    table = sweep.run(allow_missing=True)
    assert [(m.architecture, m.k_or_p, m.seed, m.model) for m in table.missing] == [
        ("a", "5", 1, ""),
        ("b", "1", 0, "b0"),
        ("b", "5", 0, ""),
        ("b", "5", 1, ""),
    ]
    # every condition of the manifest has a row, and no other
    assert [(r.architecture, r.k_or_p, r.seeds) for r in table.learning_curves] == [
        ("a", "1", [0, 1]),
        ("a", "5", [0]),
        ("b", "1", [1]),
    ]


def test_a_condition_without_results_has_an_empty_row(sweep):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5), (("n", "a", GU, "5", 0), None)])
    sweep.run(allow_missing=True)
    row = sweep.table("learning_curves.csv")[1]
    assert (row["n_seeds"], row["iid_AP_50_mean"], row["iid_AP_50_n"]) == ("0", "", "0")
    assert row["missing_models"] == "n"


def test_a_failure_removes_the_tables_of_an_earlier_aggregation(sweep):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5)])
    sweep.run()
    assert sorted(p.name for p in sweep.output.iterdir()) == sorted([RECORD, *tables.FILES])
    (sweep.output / "notes.txt").write_text("mine")
    (sweep.eval_dir / "m_summary.json").write_text("{")
    sweep.problems()
    assert [p.name for p in sweep.output.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("at", range(len(tables.FILES)))
def test_a_full_disk_leaves_no_partial_tables(sweep, monkeypatch, at):
    sweep.lay([(("m", "a", GU, "1", 0), 0.5)])
    sweep.run()
    old = {p.name: p.read_bytes() for p in sweep.output.iterdir()}
    sweep.lay([(("m", "a", GU, "1", 0), 0.25)])
    written = []

    def full(number):
        written.append(number)
        if len(written) > at:
            raise OSError(errno.ENOSPC, "No space left on device")

    table = tables.load_tables(sweep.output / tables.AGGREGATED)
    with monkeypatch.context() as patched:
        patched.setattr("benchmark_eval.core.outputs.os.fsync", full)
        with (
            pytest.raises(OSError, match="No space left"),
            claim(sweep.output, tables.FILES) as output,
        ):
            tables.write(table, output)
        assert {p.name: p.read_bytes() for p in sweep.output.iterdir()} == old
        written.clear()
        with pytest.raises(OSError, match="No space left"):
            sweep.run()
    assert list(sweep.output.iterdir()) == []


def test_tables_do_not_depend_on_row_order_and_folder(sweep, tmp_path):
    cells = [((f"m{k}{s}", "a", GU, k, s), 0.1 * s + 0.3) for k in ("1", "5") for s in range(3)]
    sweep.lay(cells).run()
    first = {p.name: p.read_bytes() for p in sweep.output.iterdir()}
    sweep.manifest.write_text(manifest_text([row for row, _ in reversed(cells)]))
    index = tmp_path / "with blank" / "index.npz"
    write_index(sweep.benchmark, index)
    moved = tmp_path / "else where"
    for row, _ in cells:
        (moved / row[0]).mkdir(parents=True)
        shutil.copy(sweep.eval_dir / f"{row[0]}_summary.json", moved / row[0])
    sweep.eval_dir, sweep.benchmark, sweep.output = moved, index, tmp_path / "out 2"
    sweep.run()
    assert {p.name: p.read_bytes() for p in sweep.output.iterdir()} == first


def test_aggregated_json_follows_its_schema_and_reads_back(sweep):
    sweep.lay([((f"m{s}", "a", TA, "1", s), 0.2) for s in range(2)])
    table = sweep.run()
    path = sweep.output / tables.AGGREGATED

    def refuse(constant):
        raise AssertionError(constant)

    tree = json.loads(path.read_text(), parse_constant=refuse)
    schema = tables.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tree, schema, jsonschema.Draft202012Validator)
    assert tables.load_tables(path) == table
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="aggregate again"):
        tables.load_tables(path)
    path.write_bytes(tables.encode(msgspec.structs.replace(table, schema_version=99)))
    with pytest.raises(InputError, match="schema_version 99"):
        tables.load_tables(path)
    row = msgspec.structs.replace(table.learning_curves[0], k_or_p="five")
    path.write_bytes(tables.encode(msgspec.structs.replace(table, learning_curves=[row])))
    with pytest.raises(InputError, match=r"with k_or_p 'five'.*aggregate again"):
        tables.load_tables(path)


def test_conditions_of_rows_are_those_of_the_manifest(sweep):
    cells = [(("g", "a", GU, "all", 0), 0.5), (("i", "a", IN, "0.10", 0), 0.5)]
    table = sweep.lay([*cells, (("t", "b", TA, "5.0", 0), 0.5)]).run()
    expected = [entry.condition for entry in read_manifest(sweep.manifest).in_table_order()]
    assert [row.condition for row in table.learning_curves] == expected
    assert [row.condition for row in table.budget_curves] == expected
    assert [row.condition for row in table.models] == expected
    assert {row.condition for row in table.target_vs_nontarget} == {expected[2]}
    assert [str(condition) for condition in expected] == [
        "a global_uniform k=all", "a incremental_natural p=0.1",
        "b incremental_uniform_targets k=5",
    ]  # fmt: skip


def test_text_that_a_spreadsheet_would_execute_is_rejected(sweep):
    sweep.lay([(("=1+1", "@a", GU, "1", 0), 0.5)])
    assert [p.field for p in sweep.problems()] == ["model_name", "architecture"]


def test_names_that_look_like_values_stay_names(sweep):
    names = ("NA", "null", "nan", "None", "True", "007", "1e5")
    sweep.lay([((n, "NA", GU, str(k), 0), 0.5) for k, n in enumerate(names, start=1)])
    table = sweep.run()
    assert [m.model for m in table.models] == list(names)
    assert [r["model"] for r in sweep.table("models.csv")] == list(names)


def test_the_command_writes_the_same_bytes_as_the_function(sweep, tmp_path):
    sweep.lay([((f"m{s}", "a", GU, "1", s), 0.2) for s in range(2)]).run()
    out = tmp_path / "command"
    call = [
        "aggregate", "--eval-dir", sweep.eval_dir, "--manifest", sweep.manifest,
        "--benchmark-dir", sweep.benchmark, "--output-dir", out,
    ]  # fmt: skip
    done = CliRunner().invoke(cli, [str(part) for part in call])
    assert done.exit_code == 0, done.output
    for name in tables.FILES:
        assert (out / name).read_bytes() == (sweep.output / name).read_bytes()


def test_the_command_exits_with_1_and_one_message_on_invalid_inputs(sweep, capsys):
    sweep.lay([(("m", "a", GU, "1", 0), None)])
    with pytest.raises(SystemExit) as stop:
        main(
            ["aggregate", "--eval-dir", str(sweep.eval_dir), "--manifest", str(sweep.manifest),
             "--benchmark-dir", str(sweep.benchmark), "--output-dir", str(sweep.output)]
        )  # fmt: skip
    assert stop.value.code == 1
    assert "no summary of 'm'" in capsys.readouterr().err
