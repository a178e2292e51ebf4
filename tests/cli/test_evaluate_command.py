"""``benchmark-eval evaluate`` and ``run_evaluation``: files, options, exit codes, reruns."""

import csv
import json
import re
from collections import Counter

import pytest
from msgspec import UNSET
from support.layout import ANNOTATIONS, record, write_predictions, write_split, write_taxonomy

from benchmark_eval import run_evaluation
from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import RECORD
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.detections_csv import ALL_COLUMNS, DETECTION_COLUMNS
from benchmark_eval.results.schema import ERROR_TYPES, OperatingThreshold, load_summary
from benchmark_eval.scoring.evaluate import evaluate_to_files

TRUTH = [[1, 1, [0, 0, 50, 50]], [1, 2, [100, 0, 50, 50]], [2, 1, [0, 0, 50, 50]]]
FOUND = [[1, 1, [0, 0, 50, 50], 0.9], [1, 1, [100, 0, 50, 50], 0.8], [2, 2, [300, 0, 50, 50], 0.7]]


@pytest.fixture
def place(tmp_path):
    write_split(tmp_path / "b", "iid_test", TRUTH)
    write_split(tmp_path / "b", "inat_test", TRUTH[:1], listed=[1])
    write_split(tmp_path / "b", "semantic_ood", [[1, 101, [0, 0, 50, 50]]])
    write_taxonomy(tmp_path / "b", [1, 2, 101])
    write_predictions(tmp_path / "p", "iid_test", FOUND)
    write_predictions(tmp_path / "p", "inat_test", FOUND[:1])
    write_predictions(tmp_path / "p", "semantic_ood", FOUND[:1])
    return tmp_path


def run(place, *more, name="m"):
    words = ["evaluate", "--benchmark-dir", place / "b", "--predictions-dir", place / "p"]
    words += ["--output-dir", place / "o", "--model-name", name, *more]
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
        raise SystemExit(0)
    return stop.value.code


def files(place):
    return sorted(path.name for path in (place / "o").iterdir())


def test_evaluate_writes_six_files_and_prints_the_report(place, capsys):
    assert run(place) == 0
    assert files(place) == [
        RECORD,
        "m_detections.csv",
        "m_evidence.npz",
        "m_per_species.csv",
        "m_report.txt",
        "m_summary.csv",
        "m_summary.json",
    ]
    assert capsys.readouterr().out.rstrip() == (place / "o/m_report.txt").read_text().rstrip()
    assert run(place, "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_output_and_errors_are_written_to_the_log(place, capsys):
    log = place / "logs/m.log"
    assert run(place, "--log", log) == 0
    text = log.read_text()
    assert re.match(r"\d{4}-\d\d-\d\d \S+ INFO root: benchmark-eval 0", text)
    assert (place / "o/m_report.txt").read_text() in text
    assert capsys.readouterr().out == ""
    (place / "p/iid_test_predictions.json").unlink()
    assert run(place, "--log", log) == 1
    message = capsys.readouterr().err
    assert "p/iid_test_predictions.json" in message
    assert message in log.read_text()
    data = (place / "p/inat_test_predictions.json").read_bytes()
    assert run(place, "--log", place / "p/inat_test_predictions.json") == 2
    assert (place / "p/inat_test_predictions.json").read_bytes() == data
    # the same codes as without a log
    assert run(place, "--log", log, name="../m") == run(place, name="../m") == 2


def test_several_splits_can_be_given_and_only_their_files_are_required(place):
    (place / "p/semantic_ood_predictions.json").unlink()
    assert run(place, "--splits", "iid_test", "inat_test", "--quiet") == 0
    found = load_summary(place / "o/m_summary.json")
    assert list(found.per_split) == ["iid_test", "inat_test"]
    assert found.config.splits == ["iid_test", "inat_test"]
    assert found.summary.photography_robustness_gap_AP_50 is not None
    assert found.summary.species_generalization_gap_AR_100 is None
    assert found.headline.semantic_ood is None


def test_a_missing_file_is_an_error_and_nothing_is_written(place, capsys):
    (place / "p/semantic_ood_predictions.json").unlink()
    (place / "p/inat_test_predictions.json").write_text("[{}]")
    assert run(place) == 1
    message = capsys.readouterr().err
    assert "semantic_ood_predictions.json" in message  # both problems at once
    assert "inat_test_predictions.json, record 0" in message
    assert not (place / "o").exists()


def test_a_failed_rerun_keeps_the_old_result(place):
    assert run(place, "--quiet") == 0
    before = {path.name: path.read_bytes() for path in (place / "o").iterdir()}
    (place / "p/inat_test_predictions.json").write_text("[")
    assert run(place, "--quiet") == 1
    assert {path.name: path.read_bytes() for path in (place / "o").iterdir()} == before


def test_no_detections_removes_an_older_table(place):
    assert run(place, "--quiet") == 0
    assert run(place, "--quiet", "--no-detections") == 0
    assert "m_detections.csv" not in files(place)


@pytest.mark.parametrize(
    "more",
    [
        ["--iou", "0"],
        ["--iou", "1.01"],
        ["--iou", "nan"],
        ["--iou", "half"],
        ["--splits", "test"],
        ["--splits"],
        ["--splits", "iid_test", "iid_test"],
        ["--engine", "slow"],
        ["--on-invalid", "ignore"],
        ["--unknown"],
    ],
)
def test_invalid_options_are_rejected_and_nothing_is_written(place, more, capsys):
    assert run(place, *more) == 2
    assert capsys.readouterr().err
    assert not (place / "o").exists()


@pytest.mark.parametrize("name", ["a/b", "..", "-x", ".x", "", "a\nb", " a", "a" * 300])
def test_a_name_that_is_not_a_safe_file_name_is_rejected(place, name):
    assert run(place, name=name) == 2
    assert not (place / "o").exists()


@pytest.mark.parametrize("name", ["NA", "007", "1e5", "None", "True", "null"])
def test_unusual_but_safe_names_are_kept(place, name):
    assert run(place, "--quiet", name=name) == 0
    assert load_summary(place / "o" / f"{name}_summary.json").model == name
    with (place / "o" / f"{name}_summary.csv").open() as stream:
        assert {row["model"] for row in csv.DictReader(stream)} == {name}


def test_run_evaluation_returns_the_summary_and_writes_nothing(place, capsys):
    assert run(place, "--quiet") == 0
    before = sorted(place.rglob("*"))
    result = run_evaluation(
        benchmark_dir=place / "b",
        predictions_dir=place / "p",
        splits=["iid_test", "inat_test", "semantic_ood"],
        iou=0.5,
        quiet=True,
        model_name="m",
    )
    assert capsys.readouterr().out == ""
    assert sorted(place.rglob("*")) == before
    assert result == json.loads((place / "o/m_summary.json").read_text())
    assert result["summary"]["photography_robustness_gap_AP_50_shared_species"] is not None
    for iou in (2.0, "0.5", None, True):
        with pytest.raises(UsageError, match="iou"):
            run_evaluation(place / "b", place / "p", iou=iou, quiet=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("iou", [5e-324, 1e-320, 1e-300])
def test_the_smallest_iou_requires_any_overlap(place, iou):
    write_predictions(place / "p", "iid_test", [[1, 1, [49, 49, 9, 5000], 0.9], *FOUND[1:]])
    result = run_evaluation(place / "b", place / "p", iou=iou, quiet=True)
    assert result["per_split"]["iid_test"]["decomposition"]["n_matched_tp"] == 2


def test_only_summary_json_contains_the_aliases(place):
    assert run(place, "--quiet") == 0
    split = json.loads((place / "o/m_summary.json").read_text())["per_split"]["iid_test"]
    assert split["class_agnostic"]["class_agnostic_AR_100"] == split["class_agnostic"]["AR_100"]
    decomposition = split["decomposition"]
    assert decomposition["acc_species_given_det"] == 0.5
    assert decomposition["classification_given_detection_acc"] == 0.5
    text = (place / "o/m_summary.csv").read_text()
    assert "class_agnostic_AR_100" not in text.replace("by_band.near_genus.class_agnostic", "")
    assert "acc_species_given_det" not in text


def test_tables_contain_every_value_once_and_undefined_ones_empty(place):
    assert run(place, "--quiet") == 0
    with (place / "o/m_summary.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    keys = [(r["split"], r["category"], r["metric"]) for r in rows]
    assert len(set(keys)) == len(keys)
    value = {key: r["value"] for key, r in zip(keys, rows, strict=True)}
    assert value["iid_test", "coco", "AP_small"] == ""
    assert value["iid_test", "decomposition", "is_species_meaningful"] == "True"
    assert value["semantic_ood", "decomposition", "is_species_meaningful"] == "False"
    assert value["semantic_ood", "ood_by_band", "by_band.near_genus.n_matched_tp"] == "1"
    assert value["iid_test", "density", "strata.2 to 10.recall"] == "1.0"
    assert value["ALL", "summary", "n_known_tp"] == "2"
    with (place / "o/m_per_species.csv").open() as stream:
        species = list(csv.DictReader(stream))
    assert [(r["split"], r["category_id"]) for r in species] == [
        ("iid_test", "1"),
        ("iid_test", "2"),
        ("inat_test", "1"),
        ("semantic_ood", "101"),
    ]
    assert species[0]["n_train_images"] == ""  # no train.json


def test_true_positives_are_sorted_by_split_image_and_descending_score(place):
    write_predictions(place / "p", "iid_test", [[2, 1, [0, 0, 50, 50], 0.1], *reversed(FOUND)])
    assert run(place, "--quiet") == 0
    with (place / "o/m_detections.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == DETECTION_COLUMNS
    assert [(r["split"], r["image_id"], r["score"]) for r in rows] == [
        ("iid_test", "1", "0.9"),
        ("iid_test", "1", "0.8"),
        ("iid_test", "2", "0.1"),
        ("inat_test", "1", "0.9"),
        ("semantic_ood", "1", "0.9"),
    ]
    assert [r["correct_species"] for r in rows] == ["1", "0", "1", "1", "0"]
    assert rows[-1]["band"] in OOD_BANDS


def test_detections_can_include_false_positives_and_missed_specimens(place):
    extra = [[2, 2, [1, 0, 50, 30], 0.1], [2, 1, [500, 500, 9, 9], 0.2]]
    write_predictions(place / "p", "iid_test", [*FOUND, *extra])
    assert run(place, "--quiet") == 0
    hits = (place / "o/m_detections.csv").read_text().splitlines()
    assert run(place, "--quiet", "--detections", "all") == 0
    with (place / "o/m_detections.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == ALL_COLUMNS
    lines = (place / "o/m_detections.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines if line.rpartition(",")[0] in hits] == hits
    found = load_summary(place / "o/m_summary.json")
    for split, block in found.per_split.items():
        of_split = Counter(row["error_type"] for row in rows if row["split"] == split)
        errors = {name: getattr(block.errors, name) for name in ERROR_TYPES}
        assert {n: e.n for n, e in errors.items() if e is not UNSET and e.n} == of_split
    false = [row for row in rows if row["is_tp"] == "0"]
    missed = [row for row in rows if row["is_tp"] == ""]
    assert all(row["correct_species"] == row["correct_genus"] == "" for row in false + missed)
    assert all(row["score"] == row["iou"] == row["pred_species"] == "" for row in missed)
    background = [row for row in false if row["error_type"] == "background"]
    assert background
    assert all(row["iou"] == row["gt_species"] == row["band"] == "" for row in background)
    assert main_verify(place) == 0


def main_verify(place):
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(place / "o")])
    return stop.value.code


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ((), True),
        (("--detections",), True),
        (("--detections", "hits"), True),
        (("--detections", "none"), False),
        (("--no-detections",), False),
    ],
)
def test_detections_can_be_switched_off(place, given, written):
    assert run(place, "--quiet", *given) == 0
    assert (place / "o/m_detections.csv").exists() == written


def test_an_operating_confidence_replaces_the_threshold_of_iid_test(place, capsys):
    assert run(place, "--quiet") == 0
    found = load_summary(place / "o/m_summary.json")
    assert found.operating_threshold.source == "best F1 on iid_test"
    assert found.config.operating_confidence is None
    assert run(place, "--quiet", "--operating-confidence", "0.95") == 0
    found = load_summary(place / "o/m_summary.json")
    assert found.operating_threshold == OperatingThreshold(
        confidence=0.95, source="operating_confidence"
    )
    assert found.config.operating_confidence == 0.95
    assert found.per_split["iid_test"].errors.correct.n > 0
    assert found.per_split["iid_test"].errors.correct.n_operating == 0
    for wrong in ("1.5", "-0.1", "nan"):
        assert run(place, "--quiet", "--operating-confidence", wrong) == 2
        assert "operating_confidence must be a number in [0, 1]" in capsys.readouterr().err


def test_a_model_without_detections_has_a_header_and_zeros(place):
    for split in ("iid_test", "inat_test", "semantic_ood"):
        write_predictions(place / "p", split, [])
    assert run(place, "--quiet") == 0
    assert (place / "o/m_detections.csv").read_text() == ",".join(DETECTION_COLUMNS) + "\n"
    found = load_summary(place / "o/m_summary.json").per_split["iid_test"]
    assert found.coco.AP_50 == 0.0
    assert found.coco.AP_small is None
    assert found.decomposition.detection_recall == 0.0
    assert found.decomposition.classification_given_detection_acc is None
    assert found.calibration.ECE is None


def test_invalid_records_are_dropped_and_counted_on_request(place, capsys):
    path = place / "p/iid_test_predictions.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows, record(1, 1, [0, 0, -5, 5], 0.5), {"score": 1}]))
    assert run(place, "--quiet") == 1
    capsys.readouterr()
    assert run(place, "--quiet", "--on-invalid", "drop") == 0
    found = load_summary(place / "o/m_summary.json")
    assert found.config.on_invalid == "drop"
    assert found.per_split["iid_test"].n_predictions == 3
    assert found.per_split["iid_test"].warnings == [
        "1 invalid record dropped: bad box",
        "1 invalid record dropped: malformed",
    ]
    assert "1 invalid record dropped: bad box" in capsys.readouterr().err


def test_both_engines_and_the_benchmark_index_give_the_same_table(place):
    from benchmark_eval.inputs.benchmark_index import save_index

    save_index(load_benchmark(place / "b"), place / "i.npz")
    tables = []
    for engine, source in (("fast", "b"), ("pycocotools", "b"), ("fast", "i.npz")):
        evaluate_to_files(
            benchmark=place / source,
            predictions_dir=place / "p",
            output_dir=place / "o",
            model_name="m",
            engine=engine,
        )
        tables.append((place / "o/m_summary.csv").read_bytes())
    assert tables[0] == tables[1] == tables[2]


def report(place):
    assert run(place, "--quiet") == 0
    return " ".join((place / "o/m_report.txt").read_text().split())


def test_the_report_names_the_larger_loss_and_the_confusions(place):
    text = report(place)
    # 2 of 3 specimens are detected, 1 of them is correctly identified
    assert (
        "in-distribution: 67 % of 3 specimens detected; 33 % missed, "
        "33 % misidentified: both losses are equal." in text
    )
    assert "in-distribution: no pair of species is confused more than once." in text
    assert "Misidentified as a congener: 1 of 1 (100 %; by chance " in text
    found = load_summary(place / "o/m_summary.json").per_split["iid_test"].confusions
    assert [(c.gt_species, c.pred_species, c.n, c.same_genus) for c in found] == [
        ("Genus0 species2", "Genus0 species1", 1, True)
    ]


def test_congeners_are_counted_over_all_misidentifications(place):
    from msgspec.structs import replace

    from benchmark_eval.results.model_report import render_text

    report(place)
    result = load_summary(place / "o/m_summary.json")
    split = result.per_split["iid_test"]
    (once,) = split.confusions
    # 100 detected, 70 of them with the correct species and 76 with the correct genus
    correct = iter([(40, 44), (30, 32)])
    scores = {}
    for key, score in split.per_species.items():
        species, genus = next(correct, (0, 0))
        scores[key] = replace(score, n_correct_species=species, n_correct_genus=genus)
    result.per_split["iid_test"] = replace(
        split,
        confusions=[replace(once, n=2), once],
        decomposition=replace(split.decomposition, n_matched_tp=100),
        per_species=scores,
    )
    text = " ".join(render_text(result).split())
    assert "Misidentified as a congener: 6 of 30 (20 %; by chance " in text
    assert "species2 identified as Genus0 species1, 2 of 1 detected, same genus." in text


def test_the_report_states_that_held_out_species_cannot_be_identified(place):
    sentence = "none can be identified (no species of this split has training images)"
    text = report(place)
    assert f"unseen species: 100 % of 1 specimen detected; {sentence}." in text
    assert text.count(sentence) == 1
    assert text.count("0 by construction") >= 4


def test_the_report_of_a_perfect_model_names_no_loss(place):
    write_predictions(place / "p", "iid_test", [[*row, 0.9] for row in TRUTH])
    assert "0 % missed, 0 % misidentified: no losses." in report(place)


def test_species_missing_from_the_taxonomy_are_a_warning(place, capsys):
    write_taxonomy(place / "b", [55, 56, 57], band="")
    assert run(place, "--quiet") == 0
    message = capsys.readouterr().err
    assert "2 of 2 scored species (Genus0 species1, ...) without a genus in the taxonomy" in message
    assert "no unseen species has a distance band" in message


def test_benchmark_folder_and_index_give_the_same_bytes(place):
    from benchmark_eval.inputs.benchmark_index import save_index

    write_split(place / "b", "train", TRUTH)
    save_index(load_benchmark(place / "b"), place / "i.npz")
    results = []
    for source in ("b", "i.npz"):
        evaluate_to_files(
            benchmark=place / source,
            predictions_dir=place / "p",
            output_dir=place / "o",
            model_name="m",
        )
        results.append({path.name: path.read_bytes() for path in (place / "o").iterdir()})
    assert results[0] == results[1]


def test_out_of_vocabulary_detections_differ_from_missed_specimens(place):
    # inat_test lists only species 1; the detection has the label of another training species
    write_predictions(place / "p", "inat_test", [[1, 2, [0, 0, 50, 50], 0.9]])
    text = report(place)
    d = load_summary(place / "o/m_summary.json").per_split["inat_test"].decomposition
    assert d.detection_recall == 0.0  # as in the benchmark's evaluator
    assert d.detection_recall_open_vocabulary == 1.0
    assert "100 % of specimens detected if out-of-vocabulary detections" in text


def test_stray_categories_and_species_with_two_ids_are_warnings(place, capsys):
    path = place / "b" / ANNOTATIONS / "iid_test.json"
    tree = json.loads(path.read_text())
    stray = {"images": [], "annotations": [], "categories": [{"id": 77, "name": "Stray species"}]}
    path.with_name("backup.json").write_text(json.dumps(stray))
    tree["categories"].append({"id": 55, "name": tree["categories"][0]["name"]})
    path.write_text(json.dumps(tree))
    assert run(place, "--quiet") == 0
    message = capsys.readouterr().err
    assert (
        f"1 category (Stray species) listed by no split, only by {ANNOTATIONS}/backup.json"
        in message
    )
    assert "categories 1 and 55 of iid_test share the name Genus0 species1" in message
