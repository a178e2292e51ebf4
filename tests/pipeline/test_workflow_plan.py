"""The plan of a sweep and the recovery from a killed run, without snakemake."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode

import pytest
from support.workflow_sweep import MODELS, Sweep

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.inputs.config import read_config
from benchmark_eval.pipeline import recovery
from benchmark_eval.pipeline.job import job
from benchmark_eval.pipeline.kept_index import make_index
from benchmark_eval.pipeline.plan import load_plan, park_outdated, settle_outdated
from benchmark_eval.pipeline.recovery import (
    clear_killed_run,
    fingerprints,
    forget_faulty,
    note_finished,
    note_running,
    other_run,
    set_aside_faulty,
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
    (data / "own.py").write_text("def custom_metrics(evaluation):\n    return {'n': 1}\n")
    lines = (data / "manifest.csv").read_text().splitlines()
    lines = [f"{lines[0]},train_annotations", *(f"{line},subset.json" for line in lines[1:])]
    (data / "manifest.csv").write_text("\n".join(lines) + "\n")
    sweep.configure(custom_metrics="data/own.py")
    monkeypatch.chdir(sweep.folder)
    return sweep


def aggregate_as_the_job_does():
    return aggregate(
        eval_dir="results/models",
        manifest="data/manifest.csv",
        benchmark="results/benchmark/index.npz",
        output_dir="results/aggregated",
        custom_metrics="data/own.py",
        stamp="results/.state/sweep.json",
    )


@pytest.mark.workflow
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
        settle_outdated([(record, stamp, [result, tmp_path / "never made"])], [])
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
    settle_outdated([(record, stamp, [result])], [str(record)], trusted=True)
    assert record.read_text() == "2"
    assert there() == ["record", "result", "stamp"]
    record.write_text("1")
    park_outdated([(record, stamp)])
    told = []
    settle_outdated([(record, stamp, [result])], [], tell=told.append)
    assert there() == ["stamp"]
    (line,) = told
    assert f"other inputs than the present ones: {result}; a run of the whole sweep" in line
    result.write_text("made from what?")
    settle_outdated([(record, stamp, [result])], [str(record)], tell=told.append)
    assert (
        told[1] == f"removed, as nobody knows what they were made from: {result}; "
        "this run makes them again, if all its jobs succeed"
    )


def test_only_what_touch_was_asked_for_is_vouched_for(tmp_path):
    record, stamp, result = (tmp_path / name for name in ("record", "stamp", "result"))
    record.write_text("1")
    stamp.write_text("2")
    result.write_text("made from 1")
    park_outdated([(record, stamp)])
    settle_outdated([(record, stamp, [result])], ["another"], trusted=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.old", "result", "stamp"]


def test_a_record_of_old_that_lies_beside_the_present_one_goes(tmp_path):
    record, stamp = tmp_path / "record", tmp_path / "stamp"
    for path in (record, stamp):
        path.write_text("2")
    (tmp_path / "record.old").write_text("1")
    settle_outdated([(record, stamp, [])], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record", "stamp"]


def test_a_run_stops_when_another_call_has_planned_meanwhile(sweep):
    mine = plan()
    mine.require_unchanged()
    plan().require_unchanged()
    sweep.configure(plot_formats=["png"])
    plan()
    with pytest.raises(UsageError, match=r"another call of snakemake.*run again"):
        mine.require_unchanged()
    with pytest.raises(UsageError, match=r"another call of snakemake"):
        plan(main=False).require_unchanged()
    sweep.configure(manifest=None, benchmark_dir=None)
    plan(main=False).require_unchanged()


def test_a_record_that_cannot_be_moved_is_told(tmp_path):
    record, stamp = tmp_path / "record", tmp_path / "stamp"
    record.write_text("1")
    stamp.write_text("2")
    (tmp_path / "record.old").mkdir()
    with pytest.raises(UsageError, match=r"cannot keep what results are made from.*record"):
        park_outdated([(record, stamp)])


# what is broken


FAULTS = ["cut short", "empty", "in an array", "in the directory", "foreign", "no index", "none"]


@pytest.mark.parametrize("fault", FAULTS)
def test_an_index_that_the_workflow_has_not_made_is_made_again_under_its_old_time(
    sweep, capsys, fault
):
    plan()
    index = sweep.folder / "results/benchmark/index.npz"
    index.parent.mkdir()
    state = sweep.folder / "results/.state"
    make_index("data/benchmark", index, state / "benchmark.json", state / "benchmark.made.json")
    whole = index.read_bytes()
    array = whole.index(b"iid_test.json")
    flags = whole.rindex(b"PK\x01\x02") + 8
    if fault == "foreign":
        folder = shutil.copytree("data/benchmark", "another")
        taxonomy = sweep.folder / folder / "species_taxonomy.csv"
        taxonomy.write_text(taxonomy.read_text() + "\n")
        write_index(folder, index)
    index.write_bytes(
        {
            "cut short": whole[:-9],
            "empty": b"",
            "in an array": whole[:array] + bytes([whole[array] ^ 1]) + whole[array + 1 :],
            "in the directory": whole[:flags] + bytes([whole[flags] ^ 1]) + whole[flags + 1 :],
            "foreign": index.read_bytes(),
            "no index": b"PK\x05\x06" + bytes(18),
            "none": whole,
        }[fault]
    )
    faulty = index.read_bytes()
    os.utime(index, ns=(10**18, 10**18))
    told = []
    load_plan(read_config("config/config.yaml"), "results", main=True, tell=told.append)
    assert index.read_bytes() == whole
    assert index.stat().st_mtime_ns == 10**18
    aside = index.with_name("index.npz.broken")
    if fault == "none":
        assert told == []
        assert not aside.exists()
    else:
        assert aside.read_bytes() == faulty
        assert "index.npz was not as this workflow makes it" in told[0]
    plan()
    assert sorted(path.name for path in index.parent.iterdir()) == sorted(
        ["index.npz", *([] if fault == "none" else [aside.name])]
    )


def test_an_index_without_its_record_is_held_against_the_benchmark(sweep):
    plan()
    index = sweep.folder / "results/benchmark/index.npz"
    record = sweep.folder / "results/.state/benchmark.made.json"
    index.parent.mkdir()
    make_index("data/benchmark", index, record.with_name("benchmark.json"), record)
    whole, text = index.read_bytes(), record.read_text()
    for lost in (None, "", "[]", '{"benchmark": 1}'):
        record.unlink()
        if lost is not None:
            record.write_text(lost)
        os.utime(index, ns=(10**18, 10**18))
        plan()
        assert record.read_text() == text
        assert [path.name for path in index.parent.iterdir()] == ["index.npz"]
        assert (index.read_bytes(), index.stat().st_mtime_ns) == (whole, 10**18)


def test_an_index_of_the_benchmark_as_it_was_is_dated_before_its_stamp(sweep):
    """However new it looks: then Snakemake makes it again, and all models with it."""
    plan()
    index = sweep.folder / "results/benchmark/index.npz"
    stamp = sweep.folder / "results/.state/benchmark.json"
    index.parent.mkdir()
    make_index("data/benchmark", index, stamp, stamp.with_name("benchmark.made.json"))
    taxonomy = sweep.folder / "data/benchmark/species_taxonomy.csv"
    taxonomy.write_text(taxonomy.read_text() + "\n")
    plan()
    index.touch()
    before = index.read_bytes()
    plan()
    assert index.stat().st_mtime_ns < stamp.stat().st_mtime_ns
    assert index.read_bytes() == before


def test_an_index_that_cannot_be_read_is_told(sweep):
    plan()
    (sweep.folder / "results/benchmark/index.npz").mkdir(parents=True)
    with pytest.raises(InputError, match=r"index\.npz"):
        plan()


# what a job finds faulty


@pytest.fixture
def noting(tmp_path):
    """A job that reads three results and finds fault with files."""
    names = [tmp_path / name for name in ("named", "other", "elsewhere")]
    for path in names:
        path.write_text("x")
    stamp = tmp_path / "stamp"
    stamp.write_text("1")

    def work(meanwhile=lambda: None):
        files = [str(tmp_path / name) for name in ("named", "other", "lost")]
        faults = [Problem("k", str(tmp_path / n), "x", "y") for n in ("named", "elsewhere", "lost")]
        log, record = tmp_path / "logs/log", tmp_path / "made"
        with pytest.raises(SystemExit), job(log, stamp=stamp, record=record, made=files):
            meanwhile()
            raise InputError(faults)

    return work


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.name not in {"logs", "stamp"})


ONE = hashlib.sha256(b"1").hexdigest()


def test_a_job_moves_nothing_and_the_end_of_its_run_what_it_has_named(tmp_path, noting):
    for _ in range(2):  # a second attempt
        noting()
        assert left(tmp_path) == ["elsewhere", "made.faulty", "named", "other"]
    told = []
    set_aside_faulty(tmp_path, [ONE], told.append)
    assert left(tmp_path) == ["elsewhere", "named.broken", "other"]
    assert told == [
        f"set aside as *.broken, so that the next run makes them again: {tmp_path / 'named'}"
    ]
    set_aside_faulty(tmp_path, [ONE], told.append)
    assert len(told) == 1


def test_a_later_attempt_that_succeeds_takes_its_note_back(tmp_path, noting):
    noting()
    with job(tmp_path / "logs/log", stamp=tmp_path / "stamp", record=tmp_path / "made"):
        pass
    assert left(tmp_path) == ["elsewhere", "made", "named", "other"]


def test_nothing_is_noted_by_stamps_that_changed_meanwhile(tmp_path, noting):
    noting(lambda: (tmp_path / "stamp").write_text("2"))
    assert left(tmp_path) == ["elsewhere", "named", "other"]


@pytest.mark.parametrize("change", ["planned by others", "another file", "forgotten", "no note"])
def test_what_is_no_longer_what_was_noted_stays(tmp_path, noting, change):
    noting()
    if change == "another file":
        (tmp_path / "named").write_text("xx")
    if change == "forgotten":
        forget_faulty(tmp_path / "made")
    if change == "no note":
        (tmp_path / "made.faulty").write_text("{")
    told = []
    set_aside_faulty(tmp_path, [] if change == "planned by others" else [ONE], told.append)
    assert left(tmp_path) == ["elsewhere", "named", "other"]
    assert told == []


def test_what_cannot_be_set_aside_is_told_and_many_are_counted(tmp_path, monkeypatch):
    files = {}
    for name in "abcdef":
        (tmp_path / name).write_text(name)
        files |= fingerprints([str(tmp_path / name)])
    (tmp_path / "a.broken").mkdir()
    (tmp_path / "x.faulty").write_text(json.dumps({"stamp": ONE, "files": files}))
    told = []
    set_aside_faulty(tmp_path, [ONE], told.append)
    assert f"cannot set aside {tmp_path / 'a'}: Is a directory" in told[0]
    assert told[1].endswith(f"{tmp_path / 'd'} and 2 more")


# a killed run


def leave_a_killed_run(folder, *, host=None, output="results/models/a/a_summary.json", job=None):
    """What kill -9 leaves: a note of a dead process, locks, a marker and half of the outputs."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from benchmark_eval.pipeline.recovery import note_running; "
            "note_running('results/note')",
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
    monkeypatch.setattr(os, "getpid", os.getppid)
    note_running("results/note")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert not clear_killed_run("results/note", "results")
    assert other_run("results/note")
    assert all(path.exists() for path in (lock, result, marker))
    lock.unlink()  # as with --nolock
    assert other_run("results/note")
    note_running("results/note")  # an earlier run of this very process
    assert not other_run("results/note")
    note_finished("results/note")
    note_finished("results/note")
    assert not (tmp_path / "results/note").exists()


def test_a_killed_process_that_nobody_has_waited_for_lives_no_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave_a_killed_run(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as process:
        monkeypatch.setattr(os, "getpid", lambda: process.pid)
        note_running("results/note")
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert other_run("results/note")
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not other_run("results/note")
        assert clear_killed_run("results/note", "results")


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
