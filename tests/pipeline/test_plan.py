"""The plan of a sweep, without Snakemake."""

import json

import pytest
from support.workflow_sweep import MODELS, Sweep

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.inputs.config import read_config
from benchmark_eval.pipeline.plan import load_plan


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    sweep = Sweep.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return sweep


def plan(main=True):
    return load_plan(read_config("config/config.yaml"), "results", main=main)


def test_models_are_in_table_order_for_any_order_of_the_manifest(sweep):
    order = ["NA", "007", "1e5", "it's 5% $HOME;", "None"]
    assert list(plan().models) == order
    sweep.write_manifest(dict(reversed(MODELS.items())))
    assert list(plan().models) == order


def test_a_model_that_is_not_in_the_manifest_is_reported(sweep):
    with pytest.raises(UsageError, match="has no model '008'; did you mean '007'"):
        plan().prediction_files("008")


def test_only_the_main_process_writes_fingerprints(sweep):
    plan(main=False)
    assert not (sweep.folder / "results").exists()
    plan()
    written = sorted((sweep.folder / "results/.state").rglob("*.json"))
    names = {path.stem for path in written}
    assert names >= {*MODELS, "benchmark", "sweep", "report"}
    before = [path.stat().st_mtime_ns for path in written if path.stem != "digests"]
    plan()
    assert [path.stat().st_mtime_ns for path in written if path.stem != "digests"] == before


def test_a_job_sees_the_models_that_were_planned(sweep):
    path = sweep.predictions("NA")
    data = path.read_bytes()
    path.unlink()
    sweep.configure(allow_missing=True)
    assert plan().missing == ("NA",)
    # the file reappears while jobs run: they keep to the plan
    path.write_bytes(data)
    assert plan(main=False).missing == ("NA",)
    assert plan().missing == ()
    assert plan(main=False).missing == ()


SCORED = {*MODELS, "sweep", "report"}


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        ({"iou": 0.75}, SCORED),
        ({"engine": "pycocotools"}, SCORED),
        ({"on_invalid": "drop"}, SCORED),
        ({"operating_confidence": 0.25}, SCORED),
        ({"operating_confidence": None}, set()),
        ({"detections": False}, SCORED),
        ({"detections": "all"}, SCORED),
        ({"detections": True}, set()),
        ({"splits": ["iid_test", "semantic_ood"]}, SCORED),
        ({"plot_formats": ["png", "svg"]}, {"report"}),
        ({"allow_missing": True}, set()),
        ({"iou": "0.50"}, set()),
        ({"splits": "semantic_ood,inat_test,iid_test"}, set()),
    ],
)
def test_an_option_changes_only_the_fingerprints_of_results_it_affects(sweep, option, changed):
    def fingerprints():
        plan()
        paths = (sweep.folder / "results/.state").rglob("*.json")
        return {path.stem: path.read_text() for path in paths if path.stem != "digests"}

    before = fingerprints()
    sweep.configure(**option)
    after = fingerprints()
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} == changed


def test_fingerprints_contain_no_paths_and_no_times(sweep):
    plan()
    text = "".join(p.read_text() for p in (sweep.folder / "results/.state/models").iterdir())
    assert str(sweep.folder) not in text
    assert "data/" not in text
    of_model = json.loads((sweep.folder / "results/.state/models/NA.json").read_text())
    assert sorted(of_model) == sorted(
        [
            "benchmark",
            "code",
            "detections",
            "engine",
            "iou",
            "on_invalid",
            "operating_confidence",
            "predictions",
        ]
    )
    assert sorted(of_model["predictions"]) == ["iid_test", "inat_test", "semantic_ood"]


def test_compressed_predictions_are_found(sweep):
    path = sweep.predictions("NA")
    path.rename(path.with_name(f"{path.name}.gz"))
    assert plan().prediction_files("NA")[0].endswith("iid_test_predictions.json.gz")


def test_a_model_without_a_folder_of_predictions_is_reported(sweep):
    sweep.configure(predictions_dir=None)
    with pytest.raises(UsageError, match="predictions_dir"):
        plan()


@pytest.mark.parametrize("key", ["benchmark_dir", "predictions_dir", "manifest"])
def test_paths_that_snakemake_would_parse_as_wildcards_are_rejected(sweep, key):
    (sweep.folder / "data").rename(sweep.folder / "da{t}a")
    paths = {
        "benchmark_dir": "da{t}a/benchmark",
        "predictions_dir": "da{t}a/predictions",
        "manifest": "da{t}a/manifest.csv",
    }
    sweep.configure(**paths)
    with pytest.raises(InputError) as caught:
        plan()
    assert f"config, {key}" in [problem.file for problem in caught.value.problems]


def test_results_that_cannot_be_written_are_reported(sweep):
    (sweep.folder / "results").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match=r"cannot write the fingerprints.*results"):
        plan()


def test_a_folder_that_is_not_a_benchmark_is_an_error(sweep):
    sweep.configure(benchmark_dir="data/predictions")
    with pytest.raises(InputError) as caught:
        plan()
    assert [p.kind for p in caught.value.problems] == ["no-annotations", "no-taxonomy"]


def test_training_annotations_are_part_of_the_fingerprint_of_the_sweep(sweep):
    manifest = sweep.folder / "data/manifest.csv"
    lines = manifest.read_text().splitlines()
    lines = [f"{lines[0]},train_annotations", *(f"{line},subset.json" for line in lines[1:])]
    manifest.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"subset\.json"):
        plan()
    fingerprint = sweep.folder / "results/.state/sweep.json"
    texts = []
    for content in ("[1]", "[2]"):
        (sweep.folder / "data/subset.json").write_text(content)
        plan()
        texts.append(fingerprint.read_text())
    assert texts[0] != texts[1]


def test_record_names_depend_on_the_fingerprint_in_every_process(sweep):
    assert plan(main=False).record("sweep") == "sweep.unplanned.made"
    first = plan()
    for part in ("sweep", "plots", "report"):
        assert plan(main=False).record(part) == first.record(part)
    sweep.configure(plot_formats=["png"])
    second = plan()
    assert second.record("sweep") == first.record("sweep")
    assert second.record("plots") != first.record("plots")
    assert second.record("plots").partition(".")[2] == second.record("report").partition(".")[2]
    sweep.configure(iou=0.75)
    assert plan().record("sweep") != first.record("sweep")
    sweep.configure()
    assert plan().record("sweep") == first.record("sweep")
