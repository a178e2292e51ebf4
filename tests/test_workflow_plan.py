"""The plan of a sweep and the recovery from a killed run, without snakemake."""

import json
import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode

import pytest
from factories import write_benchmark
from workflow_sweep import MODELS, Sweep

from benchmark_eval import recovery
from benchmark_eval.config import read_config
from benchmark_eval.errors import InputError, Problem, UsageError
from benchmark_eval.index import write_index
from benchmark_eval.plan import load_plan, park_outdated, settle_outdated
from benchmark_eval.recovery import (
    clear_killed_run,
    note_finished,
    note_running,
    other_run,
    remaking,
    set_aside_broken_index,
)
from benchmark_eval.sweep import aggregate


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    sweep = Sweep.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return sweep


def plan(main=True):
    return load_plan(read_config("config/config.yaml"), "results", main=main)


def test_models_are_in_table_order_whatever_the_manifest_says(sweep):
    order = ["NA", "007", "1e5", "it's 5% $HOME;", "None"]
    assert list(plan().models) == order
    sweep.write_manifest(dict(reversed(MODELS.items())))
    assert list(plan().models) == order


def test_a_model_that_is_not_in_the_manifest_is_told(sweep):
    with pytest.raises(UsageError, match="has no model '008'; did you mean '007'"):
        plan().prediction_files("008")


def test_only_the_planning_process_writes(sweep):
    plan(main=False)
    assert not (sweep.folder / "results").exists()
    plan()
    stamps = sorted((sweep.folder / "results/.state").rglob("*.json"))
    names = {path.stem for path in stamps}
    assert names >= {*MODELS, "benchmark", "sweep", "report"}
    before = [path.stat().st_mtime_ns for path in stamps if path.stem != "digests"]
    plan()
    assert [path.stat().st_mtime_ns for path in stamps if path.stem != "digests"] == before


def test_a_job_sees_the_models_that_were_planned(sweep):
    path = sweep.predictions("NA")
    data = path.read_bytes()
    path.unlink()
    sweep.configure(allow_missing=True)
    assert plan().missing == ("NA",)
    # the file comes back while jobs run: they stay with the plan
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
        ({"detections": False}, SCORED),
        ({"splits": ["iid_test", "semantic_ood"]}, SCORED),
        ({"plot_formats": ["png", "svg"]}, {"report"}),
        ({"allow_missing": True}, set()),
        ({"iou": "0.50"}, set()),
        ({"splits": "semantic_ood,inat_test,iid_test"}, set()),
    ],
)
def test_an_option_changes_the_stamps_of_what_it_shapes(sweep, option, changed):
    def stamps():
        plan()
        paths = (sweep.folder / "results/.state").rglob("*.json")
        return {path.stem: path.read_text() for path in paths if path.stem != "digests"}

    before = stamps()
    sweep.configure(**option)
    after = stamps()
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} == changed


def test_stamps_hold_no_path_and_no_time(sweep):
    plan()
    text = "".join(p.read_text() for p in (sweep.folder / "results/.state/models").iterdir())
    assert str(sweep.folder) not in text
    assert "data/" not in text
    stamp = json.loads((sweep.folder / "results/.state/models/NA.json").read_text())
    assert sorted(stamp) == sorted(
        ["benchmark", "code", "detections", "engine", "iou", "on_invalid", "predictions"]
    )
    assert sorted(stamp["predictions"]) == ["iid_test", "inat_test", "semantic_ood"]


def test_compressed_predictions_are_found(sweep):
    path = sweep.predictions("NA")
    path.rename(path.with_name(f"{path.name}.gz"))
    assert plan().prediction_files("NA")[0].endswith("iid_test_predictions.json.gz")


def test_a_model_without_a_folder_of_predictions_is_told(sweep):
    sweep.configure(predictions_dir=None)
    with pytest.raises(UsageError, match="predictions_dir"):
        plan()


@pytest.mark.parametrize("key", ["benchmark_dir", "predictions_dir", "manifest"])
def test_paths_that_snakemake_would_read_as_patterns_are_refused(sweep, key):
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


def test_results_that_cannot_be_written_are_told(sweep):
    (sweep.folder / "results").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match=r"cannot keep what results are made from.*results"):
        plan()


def test_a_folder_that_is_no_benchmark(sweep):
    sweep.configure(benchmark_dir="data/predictions")
    with pytest.raises(InputError) as caught:
        plan()
    assert [p.kind for p in caught.value.problems] == ["no-annotations", "no-taxonomy"]


def test_training_annotations_are_part_of_the_sweep(sweep):
    manifest = sweep.folder / "data/manifest.csv"
    lines = manifest.read_text().splitlines()
    lines = [f"{lines[0]},train_annotations", *(f"{line},subset.json" for line in lines[1:])]
    manifest.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"subset\.json"):
        plan()
    stamp = sweep.folder / "results/.state/sweep.json"
    texts = []
    for content in ("[1]", "[2]"):
        (sweep.folder / "data/subset.json").write_text(content)
        plan()
        texts.append(stamp.read_text())
    assert texts[0] != texts[1]


@pytest.fixture
def swept(base, tmp_path, monkeypatch):
    """A sweep that has run, whose manifest and config then name files of two more kinds."""
    sweep = base.copy(tmp_path / "sweep")
    data = sweep.folder / "data"
    shutil.copy(data / "benchmark/detection/annotations_coco/train.json", data / "subset.json")
    (data / "own.py").write_text("def own_metrics(evaluation):\n    return {'n': 1}\n")
    lines = (data / "manifest.csv").read_text().splitlines()
    lines = [f"{lines[0]},train_annotations", *(f"{line},subset.json" for line in lines[1:])]
    (data / "manifest.csv").write_text("\n".join(lines) + "\n")
    sweep.configure(own_metrics="data/own.py")
    monkeypatch.chdir(sweep.folder)
    return sweep


def aggregate_as_the_job_does():
    return aggregate(
        eval_dir="results/models",
        manifest="data/manifest.csv",
        benchmark="results/benchmark/index.npz",
        output_dir="results/aggregated",
        own_metrics="data/own.py",
        stamp="results/.state/sweep.json",
    )


@pytest.mark.parametrize("changed", ["subset.json", "own.py"])
def test_what_changes_between_plan_and_tables_leaves_none(swept, changed):
    plan()
    assert aggregate_as_the_job_does().inputs.train_annotations.keys() == MODELS.keys()
    with (swept.folder / "data" / changed).open("a") as stream:
        stream.write("\n")
    with pytest.raises(InputError, match="it changed while the workflow ran") as caught:
        aggregate_as_the_job_does()
    assert len(caught.value.problems) == (len(MODELS) if changed == "subset.json" else 1)
    assert not (swept.folder / "results/aggregated/aggregated.json").exists()
    plan()
    aggregate_as_the_job_does()


# outdated results


def test_results_stay_where_record_and_stamp_agree_and_go_where_not(tmp_path):
    record, stamp, result = (tmp_path / name for name in ("record", "stamp", "result"))

    def remaining(made, now):
        for path, text in ((record, made), (stamp, now), (result, "old")):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        settle_outdated([(record, stamp, [result, tmp_path / "never made"])])
        return result.exists()

    assert remaining("1", "1")
    assert not remaining("1", "2")
    assert not record.exists()
    assert not remaining(None, "1")
    assert not remaining("1", None)


def test_a_record_is_parked_while_it_is_of_another_stamp(tmp_path):
    record, stamp, result = (tmp_path / name for name in ("record", "stamp", "result"))
    record.write_text("1")
    stamp.write_text("2")
    result.write_text("made from 1")
    made = record.stat().st_mtime_ns

    def there():
        return sorted(path.name for path in tmp_path.iterdir())

    for _ in range(2):
        park_outdated([(record, stamp)])
        assert there() == ["record.old", "result", "stamp"]
    stamp.write_text("1")
    park_outdated([(record, stamp)])
    assert there() == ["record", "result", "stamp"]
    assert record.stat().st_mtime_ns == made
    stamp.unlink()
    park_outdated([(record, stamp)])
    assert there() == ["record", "result"]
    # the user vouches for what is there, or it goes
    stamp.write_text("2")
    park_outdated([(record, stamp)])
    settle_outdated([(record, stamp, [result])], trusted=True)
    assert record.read_text() == "2"
    record.write_text("1")
    park_outdated([(record, stamp)])
    settle_outdated([(record, stamp, [result])])
    assert there() == ["stamp"]


def test_a_record_that_cannot_be_moved_is_told(tmp_path):
    record, stamp = tmp_path / "record", tmp_path / "stamp"
    record.write_text("1")
    stamp.write_text("2")
    (tmp_path / "record.old").mkdir()
    with pytest.raises(UsageError, match=r"cannot keep what results are made from.*record"):
        park_outdated([(record, stamp)])


# what is broken


@pytest.mark.parametrize("fault", ["cut short", "empty", "a changed byte", "none"])
def test_an_index_that_is_not_whole_is_set_aside(tmp_path, fault):
    index = tmp_path / "index.npz"
    write_index(write_benchmark(tmp_path / "benchmark"), index)
    whole = index.read_bytes()
    at = whole.index(b"iid_test.json")  # within an array: zip files have bytes without meaning
    changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    faults = {"cut short": whole[:-9], "empty": b"", "a changed byte": changed, "none": whole}
    index.write_bytes(faults[fault])
    broken = fault != "none"
    assert set_aside_broken_index(index) is broken
    assert index.exists() is not broken
    assert (tmp_path / "index.npz.broken").exists() is broken
    assert not set_aside_broken_index(index)


def test_only_inputs_that_a_fault_names_are_set_aside(tmp_path, capsys):
    named, other, elsewhere = (tmp_path / name for name in ("named", "other", "elsewhere"))
    for path in (named, other, elsewhere):
        path.write_text("x")
    files = [str(named), str(other), str(tmp_path / "lost")]
    faults = [Problem("k", str(path), "x", "y") for path in (named, elsewhere, tmp_path / "lost")]
    with pytest.raises(InputError), remaking(files):
        raise InputError(faults)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["elsewhere", "named.broken", "other"]
    assert capsys.readouterr().err.endswith(f"next run makes them again: {named}\n")
    with pytest.raises(InputError), remaking(files):
        raise InputError(faults)
    assert capsys.readouterr().err == ""


# a killed run


def leave_a_killed_run(folder, *, host=None, output="results/models/a/a_summary.json", job=None):
    """What kill -9 leaves: a note of a dead process, locks, a marker and half of the outputs."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from benchmark_eval.recovery import note_running; note_running('results/note')",
        ],
        check=True,
        cwd=folder,
    )
    assert done.returncode == 0
    note = folder / "results/note"
    if host is not None:
        note.write_text(json.dumps({**json.loads(note.read_text()), "host": host}))
    name = urlsafe_b64encode(output.encode()).decode()
    parts = [name[at : at + 254] for at in range(0, len(name), 254)]
    parts = [f"@{part}" for part in parts[:-1]] + parts[-1:]
    marker = folder.joinpath(".snakemake/incomplete", *parts)
    lock = folder / ".snakemake/locks/0.input.lock"
    result = folder / output
    for path, text in (
        (lock, "x"),
        (result, "half"),
        (marker, json.dumps({"external_jobid": job})),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return note, lock, result, marker


def test_a_killed_run_is_cleared_away_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long_name = f"results/models/{'m' * 180}/{'m' * 180}_summary.json"
    for output in ("results/models/a/a_summary.json", long_name):
        left = leave_a_killed_run(tmp_path, output=output)
        assert not other_run("results/note")
        assert clear_killed_run("results/note", "results")
        assert [path.exists() for path in left] == [False] * 4
        assert not clear_killed_run("results/note", "results")
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["models"]


def test_what_lies_outside_the_results_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, _, result, marker = leave_a_killed_run(tmp_path, output="data/mine.json")
    assert clear_killed_run("results/note", "results")
    assert result.exists()
    assert marker.exists()


def test_jobs_that_a_cluster_may_still_run_are_left_to_snakemake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, lock, result, marker = leave_a_killed_run(tmp_path, job="4711")
    assert clear_killed_run("results/note", "results")
    assert not lock.exists()
    assert result.exists()
    assert marker.exists()


def test_a_run_on_another_host_cannot_be_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    left = leave_a_killed_run(tmp_path, host="another-host")
    assert not clear_killed_run("results/note", "results")
    assert all(path.exists() for path in left)
    assert other_run("results/note")


def test_a_living_run_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, lock, result, marker = leave_a_killed_run(tmp_path)
    note_running("results/note")
    assert not clear_killed_run("results/note", "results")
    assert other_run("results/note")
    assert all(path.exists() for path in (lock, result, marker))
    lock.unlink()
    assert not other_run("results/note")
    note_finished("results/note")
    note_finished("results/note")
    assert not (tmp_path / "results/note").exists()


def test_a_process_number_that_was_given_out_again_is_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note_running("results/note")
    note = tmp_path / "results/note"
    owner = json.loads(note.read_text())
    assert owner["pid"] == os.getpid()
    note.write_text(json.dumps({**owner, "started": "1"}))
    assert clear_killed_run("results/note", "results")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"host": 1, "pid": "x"}'])
def test_a_note_that_cannot_be_read_is_no_reason_to_clear(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    left = leave_a_killed_run(tmp_path)
    left[0].write_text(text)
    assert not clear_killed_run("results/note", "results")
    assert all(path.exists() for path in left)


def test_without_proc_nothing_is_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave_a_killed_run(tmp_path)
    monkeypatch.setattr(recovery, "_started", lambda pid: None)
    assert not clear_killed_run("results/note", "results")
