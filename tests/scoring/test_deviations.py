"""Each documented deviation from the benchmark's evaluator: its value and ours."""

import csv
import json
import math
from pathlib import Path

import pytest
from support import yardstick
from support.layout import record, species, write_predictions, write_split, write_taxonomy

from benchmark_eval import run_evaluation
from benchmark_eval.core.errors import InputError
from benchmark_eval.results.writers import model_files
from benchmark_eval.scoring.evaluate import evaluate_to_files

BOX = [100, 100, 100, 100]
FAR = [600, 600, 100, 100]


def both(folder, *splits, on_invalid="error"):
    """The results of the benchmark's evaluator, and ours."""
    benchmark, predictions = folder / "benchmark", folder / "predictions"
    theirs = yardstick.run(benchmark, predictions, splits)
    ours = run_evaluation(benchmark, predictions, splits, quiet=True, on_invalid=on_invalid)
    return theirs, ours


def files(folder, *splits):
    """Our output files, by suffix."""
    evaluate_to_files(
        benchmark=folder / "benchmark",
        predictions_dir=folder / "predictions",
        output_dir=folder / "out",
        model_name="m",
        splits=splits,
    )
    return model_files(folder / "out", "m")


def lay_out(folder, split, truth, rows, *, band="near_genus", **options):
    """Write one split, its predictions and the taxonomy of its species."""
    path = write_split(folder / "benchmark", split, truth, **options)
    listed = {c["id"] for c in json.loads(path.read_text())["categories"]}
    write_taxonomy(folder / "benchmark", sorted(listed | {row[1] for row in rows}), band=band)
    write_predictions(folder / "predictions", split, rows)


def test_1_undefined_is_null_not_minus_one_or_zero(tmp_path):
    # one large specimen, correctly identified; a single detection of confidence 0.95
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [[1, 1, BOX, 0.95]], listed=[1, 2])
    theirs, ours = both(tmp_path, "iid_test")
    a, b = theirs["per_split"]["iid_test"], ours["per_split"]["iid_test"]
    for key in ("AP_small", "AP_medium", "AR_small", "AR_medium"):
        assert a["coco"][key] == -1
        assert b["coco"][key] is None
    assert a["per_species"][2]["AP_50"] == 0.0
    assert b["per_species"]["2"]["AP_50"] is None
    assert a["calibration"]["accuracy_per_bin"] == [0.0] * 9 + [1.0]
    assert b["calibration"]["accuracy_per_bin"] == [None] * 9 + [1.0]
    # the count of each bin is reported as well
    assert b["calibration"]["confidence_histogram"] == [0] * 9 + [1]
    with files(tmp_path, "iid_test")["summary.csv"].open(newline="") as stream:
        cells = {(r["category"], r["metric"]): r["value"] for r in csv.DictReader(stream)}
    assert cells["coco", "AP_small"] == ""
    assert float(cells["coco", "AP_large"]) == pytest.approx(1.0, abs=1e-12)


def test_1_no_fractions_without_true_positives(tmp_path):
    lay_out(tmp_path, "semantic_ood", [[1, 101, BOX]], [[1, 101, FAR, 0.9]])
    theirs, ours = both(tmp_path, "semantic_ood")
    a, b = theirs["per_split"]["semantic_ood"], ours["per_split"]["semantic_ood"]
    assert a["hierarchical"]["correct_genus"] == 0.0
    assert b["hierarchical"]["correct_genus"] is None
    assert a["decomposition"]["acc_species_given_det"] == 0.0
    assert b["decomposition"]["acc_species_given_det"] is None
    near_a, near_b = (x["ood_by_band"]["by_band"]["near_genus"] for x in (a, b))
    assert near_a["mean_confidence_matched"] == near_a["correct_tribe"] == 0.0
    assert near_b["mean_confidence_matched"] is near_b["correct_tribe"] is None
    # defined: no specimen was detected
    assert near_a["class_agnostic_AR_100"] == near_b["class_agnostic_AR_100"] == 0.0


def test_1_a_model_without_detections(tmp_path):
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [])
    theirs, ours = both(tmp_path, "iid_test")
    a, b = theirs["per_split"]["iid_test"], ours["per_split"]["iid_test"]
    assert set(a["coco"].values()) == {0.0}
    assert b["coco"] == {
        key: None if key.endswith(("small", "medium")) else 0.0 for key in a["coco"]
    }
    assert a["calibration"]["ECE"] == a["calibration"]["mean_confidence"] == 0.0
    assert b["calibration"]["ECE"] is b["calibration"]["mean_confidence"] is None
    assert a["decomposition"] == {}
    expected = {
        "n_gt": 1,
        "n_matched_tp": 0,
        "detection_recall": 0.0,
        "species_recall": 0.0,
        "classification_loss": 0.0,
        "acc_species_given_det": None,
    }
    assert {key: b["decomposition"][key] for key in expected} == expected


def test_1_a_difference_with_an_undefined_side_is_null(tmp_path):
    # inat_test has crowd only: the yardstick's gap is 1 - (-1)
    write_split(tmp_path / "benchmark", "inat_test", [[1, 1, BOX, 1]])
    write_predictions(tmp_path / "predictions", "inat_test", [[1, 1, FAR, 0.9]])
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [[1, 1, BOX, 0.9]])
    theirs, ours = both(tmp_path, "iid_test", "inat_test")
    key = "photography_robustness_gap_AP_50"
    assert theirs["summary"][key] == pytest.approx(2.0)
    assert ours["summary"][key] is None


def tiers(folder, split, n_images, scored, detected):
    """Species n on n_images[n] training images; each of ``scored`` once on image n of the split."""
    train = [[100 * n + i, n, BOX] for n, count in n_images.items() for i in range(count)]
    write_split(folder / "benchmark", "train", train)
    truth = [[n, n, BOX] for n in scored]
    rows = [[n, n, BOX if n in detected else FAR, 0.9] for n in scored]
    lay_out(folder, split, truth, rows, listed=list(n_images))


def test_2_unscored_species_are_in_no_tier(tmp_path):
    # species 5 has the fewest training images and no specimen in the split
    tiers(
        tmp_path,
        "iid_test",
        {1: 2, 2: 3, 3: 4, 4: 5, 5: 1},
        scored=[1, 2, 3, 4],
        detected=[1, 2, 3, 4],
    )
    theirs, ours = both(tmp_path, "iid_test")
    a, b = (x["per_split"]["iid_test"]["class_imbalance"] for x in (theirs, ours))
    assert (a["n_species_evaluated"], a["tail_AP_50"]) == (5, 0.0)
    assert a["head_minus_tail_AP_50"] == pytest.approx(1.0)
    assert b["n_species_evaluated"] == 4
    assert b["tail_AP_50"] == pytest.approx(1.0)
    assert b["head_minus_tail_AP_50"] == pytest.approx(0.0)


def test_2_unscored_species_are_not_shared(tmp_path):
    # both splits list both species, inat_test scores the first only; all are detected
    write_split(tmp_path / "benchmark", "inat_test", [[1, 1, BOX]], listed=[1, 2])
    write_predictions(tmp_path / "predictions", "inat_test", [[1, 1, BOX, 0.9]])
    truth = [[1, 1, BOX], [2, 2, BOX]]
    lay_out(tmp_path, "iid_test", truth, [[*row, 0.9] for row in truth])
    theirs, ours = both(tmp_path, "iid_test", "inat_test")
    key = "photography_robustness_gap_AP_50_shared_species"
    assert theirs["summary"]["n_shared_species_iid_inat"] == 2
    assert theirs["summary"][key] == pytest.approx(0.5)
    assert ours["summary"]["n_shared_species_iid_inat"] == 1
    assert ours["summary"][key] == pytest.approx(0.0)


def test_1_no_correlation_of_rounding_errors(tmp_path):
    # all are detected; AP is n / (n + 2e-16) for n specimens: 1, or slightly less for n = 1
    truth = [[n, n, BOX] for n in range(1, 5)] + [[1, 1, FAR]]
    n_images = {1: 1, 2: 2, 3: 3, 4: 3}
    train = [[10 * n + i, n, BOX] for n, count in n_images.items() for i in range(count)]
    write_split(tmp_path / "benchmark", "train", train)
    lay_out(tmp_path, "iid_test", truth, [[*row, 0.9] for row in truth])
    theirs, ours = both(tmp_path, "iid_test")
    a, b = (x["per_split"]["iid_test"]["class_imbalance"] for x in (theirs, ours))
    assert a["head_minus_tail_AP_50"] == pytest.approx(0.0, abs=1e-12)
    key = "AP_50_train_count_correlation"
    assert -1 <= a[key] <= 1  # depends on the last bits: -1.0 with pandas 3.1
    assert b[key] is None


def test_3_ties_of_training_images_are_broken_by_category_id(tmp_path):
    tiers(tmp_path, "iid_test", dict.fromkeys(range(1, 9), 2), scored=range(1, 9), detected=[1, 2])
    theirs, ours = both(tmp_path, "iid_test")
    a, b = (x["per_split"]["iid_test"]["class_imbalance"] for x in (theirs, ours))
    assert a["tail_n_species"] == b["tail_n_species"] == 2
    # the yardstick may take any two of the eight
    assert any(a["tail_AP_50"] == pytest.approx(v) for v in (0.0, 0.5, 1.0))
    assert b["tail_AP_50"] == pytest.approx(1.0)
    assert b["head_AP_50"] == 0.0


def test_4_a_match_with_annotation_id_zero_is_a_true_positive(tmp_path):
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [[1, 1, BOX, 0.9]], annotation_ids=[0])
    theirs, ours = both(tmp_path, "iid_test")
    assert theirs["per_split"]["iid_test"]["coco"]["AP_50"] == 0.0
    assert ours["per_split"]["iid_test"]["coco"]["AP_50"] == pytest.approx(1.0)
    # numbered from 1, the yardstick agrees
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [[1, 1, BOX, 0.9]], annotation_ids=[1])
    theirs, _ = both(tmp_path, "iid_test")
    assert theirs["per_split"]["iid_test"]["coco"]["AP_50"] == pytest.approx(1.0)


GOOD = record(1, 101, BOX, 0.5)
INVALID = [
    # record, reason for dropping it, whether the yardstick drops it too
    ({k: v for k, v in GOOD.items() if k != "score"}, "malformed", True),
    (GOOD | {"bbox": [1, 2, 3]}, "malformed", True),
    (GOOD | {"image_id": 99}, "unknown image id", True),
    (GOOD | {"category_id": 999}, "unknown category id", False),
    (GOOD | {"bbox": [1, 2, -3, 4]}, "bad box", False),
    (GOOD | {"bbox": [1, 2, math.inf, 4]}, "bad box", False),
    (GOOD | {"score": 1.5}, "score out of range", False),
    (GOOD | {"score": -0.1}, "score out of range", False),
    (GOOD | {"score": math.nan}, "score out of range", False),
]


@pytest.mark.parametrize(("bad", "reason", "dropped_by_both"), INVALID)
def test_5_invalid_predictions_are_dropped_or_an_error(tmp_path, bad, reason, dropped_by_both):
    lay_out(tmp_path, "semantic_ood", [[1, 101, BOX]], [])
    path = tmp_path / "predictions/semantic_ood_predictions.json"
    path.write_text(json.dumps([GOOD, bad]))
    theirs, ours = both(tmp_path, "semantic_ood", on_invalid="drop")
    a, b = theirs["per_split"]["semantic_ood"], ours["per_split"]["semantic_ood"]
    assert a["n_predictions"] == (1 if dropped_by_both else 2)
    assert b["n_predictions"] == 1
    assert [w for w in b["warnings"] if reason in w and w.startswith("1 invalid record dropped")]
    with pytest.raises(InputError, match="record 1"):
        run_evaluation(tmp_path / "benchmark", path.parent, ["semantic_ood"], quiet=True)


def test_5_integral_floats_are_ids(tmp_path):
    lay_out(tmp_path, "semantic_ood", [[1, 101, BOX]], [[1.0, 101.0, BOX, 0.5]])
    theirs, ours = both(tmp_path, "semantic_ood")
    for results in (theirs, ours):
        block = results["per_split"]["semantic_ood"]["decomposition"]
        assert block["n_matched_tp"] == block["acc_species_given_det"] == 1


def test_6_a_missing_prediction_file_is_an_error(tmp_path):
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [])
    (tmp_path / "predictions/iid_test_predictions.json").unlink()
    theirs = yardstick.run(tmp_path / "benchmark", tmp_path / "predictions", ["iid_test"])
    assert theirs["per_split"]["iid_test"]["n_predictions"] == 0
    with pytest.raises(InputError, match="iid_test_predictions"):
        run_evaluation(tmp_path / "benchmark", tmp_path / "predictions", ["iid_test"], quiet=True)


@pytest.mark.parametrize("blank", ["", "  "])
def test_7_a_blank_band_is_no_band(tmp_path, blank):
    for split, number in (("iid_test", 1), ("semantic_ood", 101)):
        lay_out(tmp_path, split, [[1, number, BOX]], [[1, number, BOX, 0.9]])
    write_taxonomy(tmp_path / "benchmark", [1, 101], band=blank)
    theirs, ours = both(tmp_path, "iid_test", "semantic_ood")
    odd = f"novelty_det_AUROC_{blank or 'nan'}"
    assert theirs["summary"][odd] == 0.5
    assert odd not in ours["summary"]
    # the true positive still counts where bands do not matter
    assert theirs["summary"]["n_novel_tp"] == ours["summary"]["n_novel_tp"] == 1
    assert ours["per_split"]["semantic_ood"]["hierarchical"]["per_band"] == {}
    assert ours["per_split"]["semantic_ood"]["ood_by_band"] == {"by_band": {}}


def test_7_a_blank_rank_agrees_with_nothing(tmp_path):
    lay_out(tmp_path, "semantic_ood", [[1, 101, BOX]], [[1, 1, BOX, 0.9]])
    write_split(tmp_path / "benchmark", "train", [], listed=[1])
    taxonomy = tmp_path / "benchmark/species_taxonomy.csv"
    header = taxonomy.read_text().split("\n")[0]
    for blank, theirs_tribe in (("", 0.0), ("  ", 1.0)):
        rows = [f"{species(n)},Scolytinae,{blank},Genus{n},,,near_genus" for n in (1, 101)]
        taxonomy.write_text("\n".join([header, *rows]) + "\n")
        theirs, ours = both(tmp_path, "semantic_ood")
        a, b = (x["per_split"]["semantic_ood"]["hierarchical"] for x in (theirs, ours))
        assert (a["correct_tribe"], a["correct_subfamily"]) == (theirs_tribe, 1.0)
        assert (b["correct_tribe"], b["correct_subfamily"]) == (0.0, 1.0)


def test_8_detections_csv_is_in_image_order(tmp_path):
    truth = [[image, 1, BOX] for image in (1, 2, 3)] + [[2, 1, FAR]]
    rows = [[3, 1, BOX, 0.9], [2, 1, FAR, 0.4], [1, 1, BOX, 0.3], [2, 1, BOX, 0.8]]
    lay_out(tmp_path, "iid_test", truth, rows)
    theirs, _ = both(tmp_path, "iid_test")
    order = [(r["image_id"], r["score"]) for r in theirs["_detection_records"]]
    assert order == [(3, 0.9), (2, 0.8), (2, 0.4), (1, 0.3)]
    with files(tmp_path, "iid_test")["detections.csv"].open(newline="") as stream:
        detected = [(int(r["image_id"]), float(r["score"])) for r in csv.DictReader(stream)]
    assert detected == [(1, 0.3), (2, 0.8), (2, 0.4), (3, 0.9)]


def test_8_empty_files_have_a_header_and_species_are_ordered_by_id(tmp_path):
    lay_out(tmp_path, "iid_test", [[1, 1, BOX]], [], listed=[2, 1])
    theirs, _ = both(tmp_path, "iid_test")
    written = yardstick.module().write_detections_csv(theirs, tmp_path, "m").read_text()
    assert written.strip() == ""
    ours = files(tmp_path, "iid_test")
    assert ours["detections.csv"].read_text().startswith("split,image_id,score,iou,")
    assert list(theirs["per_split"]["iid_test"]["per_species"]) == [2, 1]
    with ours["per_species.csv"].open(newline="") as stream:
        assert [row["category_id"] for row in csv.DictReader(stream)] == ["1", "2"]


def test_missing_area_is_accepted(tmp_path):
    lay_out(
        tmp_path,
        "iid_test",
        [[1, 1, [0, 0, 20, 20]]],
        [[1, 1, [0, 0, 20, 20], 0.9]],
        without=["area"],
    )
    with pytest.raises(KeyError, match="area"):
        yardstick.run(tmp_path / "benchmark", tmp_path / "predictions", ["iid_test"])
    ours = run_evaluation(
        tmp_path / "benchmark", tmp_path / "predictions", ["iid_test"], quiet=True
    )
    assert ours["per_split"]["iid_test"]["coco"]["AP_small"] == pytest.approx(1.0)


def test_an_unknown_band_of_an_unseen_species_is_an_error(tmp_path):
    lay_out(tmp_path, "semantic_ood", [[1, 101, BOX]], [[1, 101, BOX, 0.9]], band="sister")
    theirs = yardstick.run(tmp_path / "benchmark", tmp_path / "predictions", ["semantic_ood"])
    assert list(theirs["per_split"]["semantic_ood"]["ood_by_band"]["by_band"]) == ["sister"]
    with pytest.raises(InputError, match="sister"):
        run_evaluation(
            tmp_path / "benchmark", tmp_path / "predictions", ["semantic_ood"], quiet=True
        )


def test_every_deviation_has_a_row_and_a_test():
    page = (Path(__file__).parents[2] / "docs/deviations.md").read_text()
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")]
    numbers = [str(n) for n in range(1, 9)]
    assert rows == ["", "---", *numbers]
    tests = {name.split("_")[1] for name in globals() if name.startswith("test_")}
    assert set(numbers) <= tests
