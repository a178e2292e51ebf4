"""Sweeps that cannot end well, run by snakemake itself: a clear message and the way on.

Most make the tables alone, as plots cost the most time and come from them.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from support.workflow_sweep import MODELS, Sweep

from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.pipeline import jobs

pytestmark = pytest.mark.workflow


def fresh(base, folder):
    """The data of a sweep, and no results."""
    sweep = Sweep(folder)
    shutil.copytree(base.folder / "data", folder / "data")
    shutil.copytree(base.folder / "config", folder / "config")
    return sweep


def start(sweep):
    """Snakemake in a process group of its own, its output kept in a file."""
    with (sweep.folder / "output.txt").open("wb") as output:
        return subprocess.Popen(
            sweep.command("tables"),
            cwd=sweep.folder,
            env=sweep.environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def running(sweep):
    """Wait until the sweep's first job has started."""
    until = time.monotonic() + 60
    while not list(sweep.folder.glob("results/logs/*")) and time.monotonic() < until:
        time.sleep(0.005)


def written(sweep):
    """When each summary was written."""
    there = [model for model in MODELS if sweep.summary(model).exists()]
    return {model: sweep.summary(model).stat().st_mtime_ns for model in there}


def evaluated(sweep, before):
    """The models whose summary is not the one it was."""
    after = written(sweep)
    return {model for model in MODELS if after.get(model) != before.get(model)}


def told(output, *words):
    assert [word for word in words if word not in output] == [], output
    assert "Traceback" not in output, output


@pytest.fixture(autouse=True)
def tell_counts(record_property):
    record_property("sweeps", 1)


# killed


# from the first job to about the end
@pytest.mark.parametrize("scored", [0, 2, len(MODELS)])
def test_killed_with_all_its_jobs_at_any_moment_the_next_run_completes(
    base, tmp_path, record_property, scored
):
    sweep = fresh(base, tmp_path / "sweep")
    with start(sweep) as process:
        running(sweep)
        while process.poll() is None and len(written(sweep)) < scored:
            time.sleep(0.005)
        time.sleep(random.Random(scored).uniform(0, 0.5))
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
    record_property("kills", int(process.returncode == -signal.SIGKILL))
    if any(sweep.folder.glob(".snakemake/locks/*")):
        told(sweep.run("tables", ok=False), "Directory cannot be locked", "--unlock")
        sweep.run("--unlock")
    sweep.run("--rerun-incomplete", "tables")
    assert sweep.tables() == base.tables()
    assert sweep.planned("tables") == (set(), set())


KILLER = """
import os, signal, sys

if "evaluate_model.py" in " ".join(sys.orig_argv):
    try:
        os.unlink({flag!r})
    except FileNotFoundError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_that_is_killed_is_told_and_the_next_run_completes(base, tmp_path, record_property):
    """As by a kernel without memory; the flag lets it happen to one job alone."""
    sweep = fresh(base, tmp_path / "sweep")
    flag = tmp_path / "kill one"
    flag.touch()
    (tmp_path / "sitecustomize.py").write_text(KILLER.format(flag=str(flag)))
    sweep.env["PYTHONPATH"] = str(tmp_path)
    output = sweep.run("tables", ok=False)
    record_property("kills", 1)
    assert "Error in rule evaluate_model" in output
    assert "SIGKILL" in output
    assert sum(sweep.summary(model).exists() for model in MODELS) == len(MODELS) - 1
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    sweep.run("tables")
    assert sweep.tables() == base.tables()


# two at once


def test_two_at_once_in_one_folder_the_second_is_refused(base, tmp_path):
    sweep = fresh(base, tmp_path / "sweep")
    with start(sweep) as first:
        running(sweep)
        os.killpg(first.pid, signal.SIGSTOP)  # however slow the machine is, it runs meanwhile
        try:
            told(sweep.run("tables", ok=False), "Directory cannot be locked", str(sweep.folder))
        finally:
            os.killpg(first.pid, signal.SIGCONT)
    assert first.returncode == 0, (sweep.folder / "output.txt").read_text()
    assert sweep.tables() == base.tables()


def test_two_at_once_in_two_folders_both_complete(base, tmp_path):
    sweeps = [fresh(base, tmp_path / name) for name in ("one", "other")]
    for process in [start(sweep) for sweep in sweeps]:
        assert process.wait() == 0
    for sweep in sweeps:
        assert sweep.tables() == base.tables()


# disks


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB; where this process may not mount one, the test skips."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", place], check=True)


# what is full, and for what there is still room: for the index, for some models
@pytest.mark.parametrize(("full", "room"), [("results", 94_096), ("all", 220_000)])
def test_a_full_disk_is_told_and_the_next_run_with_room_completes(
    base, tmp_path, small_disk, full, room
):
    sweep = fresh(base, small_disk if full == "all" else tmp_path / "sweep")
    if full == "results":
        (sweep.folder / "results").symlink_to(small_disk)
    ballast = small_disk / "ballast"
    status = os.statvfs(small_disk)
    ballast.write_bytes(b"x" * (status.f_bavail * status.f_frsize - room))
    output = sweep.run("tables", ok=False)
    assert "No space left on device" in output
    assert full == "all" or "Traceback" not in output  # snakemake's own files are there too
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    ballast.unlink()
    sweep.run("tables")
    assert sweep.tables() == base.tables()


def test_results_that_cannot_be_written_are_told(base, tmp_path, request):
    sweep = fresh(base, tmp_path / "sweep")
    results = sweep.folder / "results"
    if os.geteuid() == 0:  # root may write anywhere but on a read-only disk
        place = request.getfixturevalue("small_disk")
        results.symlink_to(place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        words = "Read-only file system"
    else:
        results.mkdir(mode=0o555)
        words = "Permission denied"
    told(sweep.run("tables", ok=False), "cannot write what results are made from", words, "results")
    if os.geteuid() == 0:
        subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    else:
        results.chmod(0o755)
    sweep.run("tables")
    assert sweep.tables() == base.tables()


# files that are there, and broken


@pytest.mark.parametrize("kind", ["foreign", "truncated"])
def test_a_foreign_or_broken_index_is_refused_and_one_command_makes_it_again(sweep, kind):
    good, before = sweep.tables(), written(sweep)
    index = sweep.folder / "results/benchmark/index.npz"
    if kind == "foreign":
        other = shutil.copytree(sweep.folder / "data/benchmark", sweep.folder / "other")
        taxonomy = other / "species_taxonomy.csv"
        taxonomy.write_text(taxonomy.read_text().replace("Xa", "Xb"))
        write_index(other, index)
    else:
        index.write_bytes(index.read_bytes()[:-9])
    sweep.summary("007").unlink()
    output = sweep.run("tables", "results/models/007/007_summary.json", ok=False)
    told(output, "results/benchmark/index.npz: found", jobs.INDEX_AGAIN)
    assert "007" in evaluated(sweep, before)
    assert not sweep.summary("007").exists()
    sweep.run("tables", "--forcerun", "index_benchmark")
    assert sweep.tables() == good
    assert sweep.planned("tables") == (set(), set())


def test_broken_summaries_are_refused_and_those_that_are_deleted_are_made_again(sweep):
    """One truncated, one of another schema version, and each job has more than one attempt."""
    good, before = sweep.tables(), written(sweep)
    cut, other = sweep.summary("007"), sweep.summary("1e5")
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    other.write_text(other.read_text().replace('"schema_version": 2', '"schema_version": 0'))
    output = sweep.run("--retries", "1", "tables", ok=False)
    assert "Missing" not in output
    told(output, "007_summary.json", "truncated", jobs.MODELS_AGAIN)
    told(output, "1e5_summary.json", "found schema_version 0; expected schema_version 2")
    assert not list((sweep.folder / "results/aggregated").glob("*.csv"))
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    cut.unlink()
    other.unlink()
    sweep.run("tables")
    assert sweep.tables() == good
    assert evaluated(sweep, before) == {"007", "1e5"}


def test_truncated_tables_are_refused_by_the_plots_and_one_command_makes_them_again(sweep):
    good = sweep.tables()
    aggregated = sweep.folder / "results/aggregated/aggregated.json"
    aggregated.write_bytes(aggregated.read_bytes()[:-9])
    (sweep.folder / "results/plots/target_grid.svg").unlink()
    told(sweep.run(ok=False), "aggregated.json", "truncated", jobs.TABLES_AGAIN)
    sweep.run("tables", "--forcerun", "aggregate")
    assert sweep.tables() == good


def test_touch_of_one_model_keeps_no_tables(sweep):
    sweep.configure(iou=0.75)
    sweep.run("--touch", "results/models/007/007_summary.json")
    path = sweep.predictions("1e5")
    path.write_bytes(path.read_bytes()[:-9])
    told(sweep.run("--keep-going", "tables", ok=False), "1e5/iid_test_predictions.json")
    assert not list(sweep.folder.glob("results/aggregated/*"))


def test_one_corrupt_file_does_not_keep_the_others_from_being_scored(base, tmp_path):
    sweep = fresh(base, tmp_path / "sweep")
    path = sweep.predictions("007")
    original = path.read_bytes()
    path.write_bytes(original[:-9])
    told(sweep.run("--keep-going", "tables", ok=False), "007/iid_test_predictions.json")
    assert [model for model in MODELS if not sweep.summary(model).exists()] == ["007"]
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    path.write_bytes(original)
    sweep.run("tables")
    assert sweep.tables() == base.tables()


def test_no_table_of_another_benchmark_passes_for_one_of_the_present(sweep):
    good = sweep.tables()
    path = sweep.folder / "data/benchmark/detection/annotations_coco/iid_test.json"
    original = path.read_bytes()
    path.write_bytes(original[: len(original) // 2])
    told(sweep.run("tables", ok=False), "iid_test.json")
    assert not list(sweep.folder.glob("results/aggregated/*"))
    # a changed digest is in each summary and in the tables, though no number differs
    path.write_bytes(original + b"\n")
    sweep.run("tables")
    changed = sweep.tables()
    assert {n for n in changed if ".made" not in n} == {n for n in good if ".made" not in n}
    same = {name for name in good if good[name] == changed.get(name)}
    assert "aggregated/learning_curves.csv" in same
    assert "aggregated/aggregated.json" not in same
    assert not [name for name in same if name.endswith("_summary.json")]
    path.write_bytes(original)
    sweep.run("tables")
    assert sweep.tables() == good
