"""Output folder of ``benchmark-eval map``: complete or absent, never stale."""

import csv
import io
import json
import math

import msgspec
import numpy as np
import pytest
from support.voc_files import of, score, write_folder

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.outputs import RECORD, STAGE
from benchmark_eval.voc import run_map
from benchmark_eval.voc.results import as_json, as_text, classes_csv, curves_csv

pytestmark = pytest.mark.slow  # draws plots

TRUTH = {"a": ["Ips, 'six' 0 0 9 9", "x 50 50 59 59", "x 0 0 9 9 difficult"], "b": ["x 0 0 9 9"]}
FOUND = {"a": ["Ips, 'six' 0.9 0 0 9 9", "x 0.8 50 50 59 59", "x 0.7 90 90 99 99", "z 0.5 0 0 9 9"]}
ALWAYS = {RECORD, "results.json", "results.txt", "results.csv", "precision_recall.csv"}


@pytest.fixture
def folders(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    write_folder(tmp_path / "det", FOUND)
    return tmp_path / "det", tmp_path / "gt"


def names(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


# ------------------------------------------------------------------------- the files


def test_json_is_complete_and_strict(tmp_path):
    result = score(tmp_path, TRUTH, FOUND)
    content = json.loads(as_json(result), parse_constant=pytest.fail)
    assert content["mAP"] == result.mAP == 0.75
    assert content["mAP_percent"] == 75.0
    assert content["coordinates"] == "pixel"
    assert [c["name"] for c in content["classes"]] == ["Ips, 'six'", "x"]
    assert content["classes"][1] == {
        "name": "x",
        "AP": 0.5,
        "iou_threshold": 0.5,
        "n_objects": 2,
        "n_difficult": 1,
        "n_detections": 2,
        "n_true_positives": 1,
        "n_false_positives": 1,
        "n_on_difficult": 0,
        "log_average_miss_rate": pytest.approx(0.5),
    }
    assert content["precision_recall"]["x"] == {
        "confidence": [0.8, 0.7],
        "recall": [0.5, 0.5],
        "precision": [1.0, 0.5],
        "envelope": [1.0, 0.5],
    }
    assert content["detections_without_class"] == {"z": 1}
    assert content["images_without_detections"] == ["b"]
    assert content["n_images"] == 2


def test_undefined_values_are_null_or_an_empty_cell(tmp_path):
    result = score(tmp_path, {"a": ["x 0 0 9 9 difficult"]}, {"a": ""})
    content = json.loads(as_json(result))
    assert content["mAP"] is None
    assert content["mAP_percent"] is None
    assert content["classes"][0]["AP"] is None
    (row,) = csv.DictReader(io.StringIO(classes_csv(result)))
    assert (row["AP"], row["log_average_miss_rate"]) == ("", "")
    assert "mAP is undefined" in as_text(result)


def test_csv_has_one_row_per_class_and_per_counted_detection(tmp_path):
    result = score(tmp_path, TRUTH, FOUND)
    rows = list(csv.DictReader(io.StringIO(classes_csv(result))))
    assert [row["name"] for row in rows] == ["Ips, 'six'", "x"]
    assert rows[1]["AP"] == "0.5"
    assert rows[1]["n_false_positives"] == "1"
    points = list(csv.DictReader(io.StringIO(curves_csv(result))))
    assert [(p["class"], p["recall"], p["precision"]) for p in points] == [
        ("Ips, 'six'", "1.0", "1.0"),
        ("x", "0.5", "1.0"),
        ("x", "0.5", "0.5"),
    ]
    # AP can be computed from the file alone
    own = [p for p in points if p["class"] == "x"]
    recalls = [0.0, *(float(p["recall"]) for p in own)]
    steps = np.diff(recalls)
    assert math.isclose(sum(steps * [float(p["envelope"]) for p in own]), of(result, "x").AP)


def test_text_states_the_settings(tmp_path):
    text = as_text(score(tmp_path, TRUTH, FOUND, ignore=["y"], class_iou={"x": 0.7}))
    assert text.startswith("mAP = 75.00%  (PASCAL VOC 2012, mean over 2 classes)\n")
    assert "width = right - left + 1 (the VOC rule)" in text
    assert "2 (1 without a detection file)" in text
    assert "ignored        y" in text
    assert "note: 1 detection of classes without ground truth (excluded from AP): z (1)" in text
    line = next(line for line in text.splitlines() if line.startswith("x "))
    assert line.split() == ["x", "50.00", "0.7", "2", "1", "2", "1", "1", "0.5000"]
    plane = as_text(score(tmp_path, TRUTH, FOUND, coordinates="continuous"))
    assert "width = right - left (not the VOC rule)" in plane


def test_output_is_deterministic(tmp_path):
    written = []
    for place in ("one", "another folder"):
        root = tmp_path / place
        # the order in which files are created must not matter
        order = sorted(TRUTH, reverse=place == "one")
        write_folder(root / "gt", {name: TRUTH[name] for name in order})
        write_folder(root / "det", FOUND)
        run_map(root / "det", root / "gt", output_dir=root / "out")
        out = root / "out"
        written.append({name: (out / name).read_bytes() for name in sorted(names(out))})
    assert written[0] == written[1]
    assert not any(str(tmp_path).encode() in data for data in written[0].values())


# ------------------------------------------------------------------------ the folder


def test_without_an_output_folder_nothing_is_written(folders, tmp_path):
    before = names(tmp_path)
    assert run_map(*folders).mAP == 0.75
    assert names(tmp_path) == before


def test_files_of_a_run(folders, tmp_path):
    run_map(*folders, output_dir=tmp_path / "out" / "deep")
    assert names(tmp_path / "out" / "deep") == ALWAYS | {
        "plots/average_precision.png",
        "plots/ground_truth_counts.png",
        "plots/detection_counts.png",
        "plots/miss_rates.png",
        "plots/precision_recall/1_Ips_six_.png",
        "plots/precision_recall/2_x.png",
    }
    assert not [p for p in (tmp_path / "out" / "deep").iterdir() if p.name.startswith(STAGE)]


def test_files_of_an_earlier_run_are_removed(folders, tmp_path):
    out = tmp_path / "out"
    run_map(*folders, output_dir=out)
    (out / "my notes.txt").write_text("keep me")
    (out / "plots" / "my plot.png").write_text("keep me too")
    run_map(*folders, output_dir=out, plots=False)
    assert names(out) == ALWAYS | {"my notes.txt", "plots/my plot.png"}
    run_map(*folders, output_dir=out, ignore=["x"])
    assert {n for n in names(out) if n.startswith("plots/precision_recall/")} == {
        "plots/precision_recall/1_Ips_six_.png"
    }


def test_invalid_inputs_remove_earlier_results(folders, tmp_path):
    out = tmp_path / "out"
    run_map(*folders, output_dir=out)
    (out / "my notes.txt").write_text("keep me")
    (folders[0] / "a.txt").write_text("x 0.5 1 2 3")
    with pytest.raises(InputError):
        run_map(*folders, output_dir=out)
    assert names(out) == {"my notes.txt"}


def test_usage_errors_keep_earlier_results(folders, tmp_path):
    out = tmp_path / "out"
    run_map(*folders, output_dir=out, plots=False)
    before = {name: (out / name).read_bytes() for name in names(out)}
    with pytest.raises(UsageError):
        run_map(*folders, output_dir=out, iou=7)
    with pytest.raises(UsageError):
        run_map(tmp_path / "nothing", folders[1], output_dir=out)
    assert {name: (out / name).read_bytes() for name in names(out)} == before


def test_a_failed_first_run_leaves_no_folder(folders, tmp_path):
    (folders[0] / "a.txt").write_text("x 0.5 1 2 3")
    with pytest.raises(InputError):
        run_map(*folders, output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_files_are_never_overwritten(folders, tmp_path):
    out = tmp_path / "out"
    (out / "plots").mkdir(parents=True)
    (out / "plots" / "miss_rates.png").write_text("mine")
    with pytest.raises(UsageError, match=r"plots/miss_rates\.png: found a file .* did not write"):
        run_map(*folders, output_dir=out)
    assert names(out) == {"plots/miss_rates.png"}
    assert (out / "plots" / "miss_rates.png").read_text() == "mine"


def test_existing_results_of_another_tool_stop_a_run_early(folders, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.json").write_text("mine")
    seen = []
    with pytest.raises(UsageError, match=r"results\.json: found a file .* did not write"):
        run_map(*folders, output_dir=out, progress=lambda *step: seen.append(step))
    assert seen == []
    assert names(out) == {"results.json"}


def test_progress_is_reported_to_the_end(folders, tmp_path):
    steps = []
    run_map(*folders, output_dir=tmp_path / "out", progress=lambda *step: steps.append(step))
    last = {what: (done, total) for what, done, total in steps}
    assert last == {"read ground truth": (2, 2), "read detections": (1, 1), "draw curves": (2, 2)}


def test_a_file_in_place_of_a_folder_is_reported(folders, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "plots").write_text("mine")
    with pytest.raises(UsageError, match="a file in place of the folder plots"):
        run_map(*folders, output_dir=out)
    assert names(out) == {"plots"}


def test_an_input_folder_is_rejected_as_output(folders):
    for folder in folders:
        with pytest.raises(UsageError, match="a place in the input folder"):
            run_map(*folders, output_dir=folder / ".." / folder.name)


def test_an_output_folder_that_is_not_writable(folders, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="expected a writable folder"):
        run_map(*folders, output_dir=tmp_path / "file")
    with pytest.raises(UsageError, match="expected a writable folder"):
        run_map(*folders, output_dir=tmp_path / "file" / "below")


def test_results_are_builtin_types(tmp_path):
    result = score(tmp_path, TRUTH, FOUND)
    for one in result.classes:
        for name, value in msgspec.structs.asdict(one).items():
            assert type(value) in (str, int, float, type(None)), name
