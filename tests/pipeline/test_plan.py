"""The plan of a sweep, without Snakemake."""

import json
import os
import time
from pathlib import Path

import pytest
from support.workflow_sweep import MODELS, Sweep, edit_unseen

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.inputs.config import read_config
from benchmark_eval.pipeline.outdated import results_of
from benchmark_eval.pipeline.plan import load_plan


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    sweep = Sweep.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return sweep


def plan(main=True, write=False):
    found = load_plan(read_config("config/config.yaml"), "results", main=main)
    if write:
        found.write()
    return found


def by_name(found):
    """The texts of the fingerprints by part or model."""
    return {Path(path).stem: text for path, text in found.fingerprints.items()}


def test_models_are_in_table_order_for_any_order_of_the_manifest(sweep):
    order = ["NA", "007", "1e5", "it's 5% $HOME;", "None"]
    assert list(plan().models) == order
    sweep.write_manifest(dict(reversed(MODELS.items())))
    assert list(plan().models) == order


def test_a_model_that_is_not_in_the_manifest_is_reported(sweep):
    with pytest.raises(UsageError, match="has no model '008'; did you mean '007'"):
        plan().prediction_files("008")


def test_planning_writes_nothing_and_a_plan_that_is_written_only_what_changed(sweep):
    assert plan(main=False).fingerprints == {}
    found = plan()
    assert not (sweep.folder / "results").exists()
    assert set(by_name(found)) == {*MODELS, "benchmark", "sweep", "report"}
    found.write()
    written = {path: Path(path).stat().st_mtime_ns for path in found.fingerprints}
    assert {path: Path(path).read_text() for path in written} == found.fingerprints
    plan(write=True)
    assert {path: Path(path).stat().st_mtime_ns for path in written} == written


def test_a_job_sees_the_models_that_were_planned(sweep):
    path = sweep.predictions("NA")
    data = path.read_bytes()
    path.unlink()
    sweep.configure(allow_missing=True)
    assert plan(write=True).missing == ("NA",)
    # the file reappears while jobs run: they keep to the plan
    path.write_bytes(data)
    assert plan(main=False).missing == ("NA",)
    assert plan(write=True).missing == ()
    assert plan(main=False).missing == ()


def test_models_are_outdated_unless_their_record_is_their_fingerprint(sweep):
    found = plan()
    assert found.outdated == dict.fromkeys(MODELS, ())
    assert list(found.why_outdated()) == []
    for model in MODELS:
        record = Path(found.layout.model_record(model))
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(found.fingerprints[found.layout.model_fingerprint(model)])
    assert plan().outdated == {}
    edit_unseen(sweep.predictions("007"))
    Path(found.layout.model_record("NA")).unlink()
    Path(found.layout.model_record("None")).write_bytes(b"\xff")
    found = plan()
    assert found.outdated == {"007": ("predictions",), "NA": (), "None": ()}
    assert list(found.why_outdated()) == [
        "1 model to be evaluated again, because predictions changed: 007"
    ]
    sweep.configure(iou=0.75)
    assert list(plan().why_outdated()) == [
        "1 model to be evaluated again, because iou and predictions changed: 007",
        "2 models to be evaluated again, because iou changed: 1e5, it's 5% $HOME;",
    ]


@pytest.mark.parametrize("part", ["index", "sweep", "plots", "report"])
def test_a_part_is_current_if_its_files_and_their_record_exist(sweep, part):
    found = plan()
    files = results_of(part, "results", ["svg"])
    record = Path("results/.state", found.record(part))
    assert not found.is_current(part)
    for path in [record, *files]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert found.is_current(part)
    for path in (record, files[-1]):
        path.unlink()
        assert not found.is_current(part)
        path.touch()


def test_results_dated_in_the_future_are_dated_now(sweep):
    found = plan()
    ahead, past = [*results_of("index", "results"), Path(found.layout.summary("NA"))], []
    past = results_of("report", "results")
    for path in (*ahead, *past):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (4e9, 4e9) if path in ahead else (1e9, 1e9))
    found.write()
    assert all(abs(path.stat().st_mtime - time.time()) < 1e6 for path in ahead)
    assert past[0].stat().st_mtime == 1e9


def models_of_results(names):
    for name in names:
        path = Path(f"results/models/{name}/{name}_summary.json")
        path.parent.mkdir(parents=True)
        path.touch()


def test_results_of_another_sweep_are_reported_with_both_remedies(sweep):
    found = plan()
    found.require_own_results()
    models_of_results(["demo_a", "demo_b"])
    with pytest.raises(UsageError) as caught:
        found.require_own_results()
    message = str(caught.value)
    for words in (
        "results holds another sweep: its 2 models (demo_a, demo_b) are not in data/manifest.csv",
        "nothing was run",
        "snakemake --directory FOLDER",
        "delete results",
    ):
        assert words in message


def test_results_with_a_model_of_the_manifest_are_of_the_same_sweep(sweep):
    """Other models were removed from the manifest, or are new in it."""
    models_of_results(["removed", "NA"])
    plan().require_own_results()


def test_folders_without_results_are_not_another_sweep(sweep):
    Path("results/models/empty").mkdir(parents=True)
    plan().require_own_results()


def test_files_at_the_places_of_results_are_not_taken_for_results(sweep):
    Path("results/aggregated").mkdir(parents=True)
    Path("results/aggregated/report.md").write_text("mine")
    with pytest.raises(UsageError, match=r"found results/aggregated/report\.md, although"):
        plan().require_own_results()
    plan(write=True)  # the workflow has run here
    plan().require_own_results()


def test_inputs_among_the_results_are_refused(sweep):
    Path("results/aggregated").mkdir(parents=True)
    place = Path("results/aggregated/models.csv")
    place.write_text(Path("data/manifest.csv").read_text())
    sweep.configure(manifest=str(place))
    with pytest.raises(UsageError, match=r"models\.csv: found an input in a folder"):
        plan()


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
        ({"price_per_image": 0.5}, {"sweep", "report"}),
        ({"price_per_specimen": "2"}, {"sweep", "report"}),
        ({"price_per_specimen": None}, set()),
        ({"allow_missing": True}, set()),
        ({"iou": "0.50"}, set()),
        ({"splits": "semantic_ood,inat_test,iid_test"}, set()),
    ],
)
def test_an_option_changes_only_the_fingerprints_of_results_it_affects(sweep, option, changed):
    before = by_name(plan())
    sweep.configure(**option)
    after = by_name(plan())
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} == changed


def test_the_same_data_under_other_paths_has_the_same_fingerprints(sweep):
    before = by_name(plan())
    (sweep.folder / "data").rename(sweep.folder / "else where")
    keys = {"benchmark_dir": "benchmark", "predictions_dir": "predictions"}
    paths = {key: f"else where/{name}" for key, name in keys.items()}
    sweep.configure(**paths, manifest="else where/manifest.csv")
    assert by_name(plan()) == before


def test_fingerprints_contain_no_paths_and_no_times(sweep):
    texts = by_name(plan())
    assert not [name for name, text in texts.items() if "data/" in text]
    assert not [name for name, text in texts.items() if str(sweep.folder) in text]
    of_model = json.loads(texts["NA"])
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
        plan(write=True)


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
    texts = []
    for content in ("[1]", "[2]"):
        (sweep.folder / "data/subset.json").write_text(content)
        texts.append(by_name(plan())["sweep"])
    assert texts[0] != texts[1]


def test_record_names_depend_on_the_fingerprint_in_every_process(sweep):
    assert plan(main=False).record("sweep") == "sweep.unplanned.made"
    first = plan(write=True)
    for part in ("index", "sweep", "plots", "report"):
        assert plan(main=False).record(part) == first.record(part)
    sweep.configure(plot_formats=["png"])
    second = plan()
    assert second.record("sweep") == first.record("sweep")
    assert second.record("plots") != first.record("plots")
    assert second.record("plots").partition(".")[2] == second.record("report").partition(".")[2]
    sweep.configure(iou=0.75)
    assert plan().record("sweep") != first.record("sweep")
    assert plan().record("index") == first.record("index")
    sweep.configure()
    assert plan().record("sweep") == first.record("sweep")
