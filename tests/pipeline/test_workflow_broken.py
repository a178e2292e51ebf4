"""Sweeps that cannot finish, run by Snakemake itself: clear messages, and recovery.

Most compute only the tables, because plots take most of the time and depend only on the tables.
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
    """The data of a sweep, without results."""
    sweep = Sweep(folder)
    shutil.copytree(base.folder / "data", folder / "data")
    shutil.copytree(base.folder / "config", folder / "config")
    return sweep


def start(sweep):
    """Start Snakemake in its own process group, with its output in a file."""
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
    """Modification time of each summary that exists."""
    there = [model for model in MODELS if sweep.summary(model).exists()]
    return {model: sweep.summary(model).stat().st_mtime_ns for model in there}


def evaluated(sweep, before):
    """The models whose summary was written or removed since ``before``."""
    after = written(sweep)
    return {model for model in MODELS if after.get(model) != before.get(model)}


def mentions(output, *words):
    assert [word for word in words if word not in output] == [], output
    assert "Traceback" not in output, output


@pytest.fixture(autouse=True)
def count_sweeps(record_property):
    record_property("sweeps", 1)


# killed


# from the first job to about the end
@pytest.mark.parametrize("scored", [0, 2, len(MODELS)])
def test_the_next_run_completes_after_snakemake_and_its_jobs_are_killed_at_any_moment(
    base, tmp_path, record_property, scored
):
    sweep = fresh(base, tmp_path / "sweep")
    with start(sweep) as process:
        running(sweep)
        while process.poll() is None and len(written(sweep)) < scored:
            time.sleep(0.005)
        time.sleep(random.Random(scored).uniform(0, 0.5))
        with contextlib.suppress(ProcessLookupError):  # it finished before the kill
            os.killpg(process.pid, signal.SIGKILL)
    record_property("kills", int(process.returncode == -signal.SIGKILL))
    if any(sweep.folder.glob(".snakemake/locks/*")):
        mentions(sweep.run("tables", ok=False), "Directory cannot be locked", "--unlock")
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


def test_a_killed_job_is_reported_and_the_next_run_completes(base, tmp_path, record_property):
    """As if the kernel ran out of memory; the flag restricts it to a single job."""
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


# concurrent runs


def test_a_second_run_in_the_same_folder_is_rejected(base, tmp_path):
    sweep = fresh(base, tmp_path / "sweep")
    with start(sweep) as first:
        running(sweep)
        os.killpg(first.pid, signal.SIGSTOP)  # still running, however slow the machine is
        try:
            mentions(sweep.run("tables", ok=False), "another Snakemake process is using results")
        finally:
            os.killpg(first.pid, signal.SIGCONT)
    assert first.returncode == 0, (sweep.folder / "output.txt").read_text()
    assert sweep.tables() == base.tables()


def test_concurrent_runs_in_two_folders_both_complete(base, tmp_path):
    sweeps = [fresh(base, tmp_path / name) for name in ("one", "other")]
    for process in [start(sweep) for sweep in sweeps]:
        assert process.wait() == 0
    for sweep in sweeps:
        assert sweep.tables() == base.tables()


# disks


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB; the test is skipped without permission to mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", place], check=True)


# which folder is on the full disk, and bytes left: enough for the index, or for some models
@pytest.mark.parametrize(("full", "room"), [("results", 94_096), ("all", 220_000)])
def test_a_full_disk_is_reported_and_the_next_run_with_free_space_completes(
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
    assert full == "all" or "Traceback" not in output  # Snakemake's own files are on this disk too
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    ballast.unlink()
    sweep.run("tables")
    assert sweep.tables() == base.tables()


def test_results_that_cannot_be_written_are_reported(base, tmp_path, request):
    sweep = fresh(base, tmp_path / "sweep")
    results = sweep.folder / "results"
    if os.geteuid() == 0:  # root may write anywhere except on a read-only disk
        place = request.getfixturevalue("small_disk")
        results.symlink_to(place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        words = "Read-only file system"
    else:
        results.mkdir(mode=0o555)
        words = "Permission denied"
    mentions(sweep.run("tables", ok=False), "cannot write the fingerprints", words, "results")
    if os.geteuid() == 0:
        subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    else:
        results.chmod(0o755)
    sweep.run("tables")
    assert sweep.tables() == base.tables()


# damaged files


@pytest.mark.parametrize("kind", ["foreign", "truncated"])
def test_a_foreign_or_damaged_index_is_rejected_and_one_command_recreates_it(sweep, kind):
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
    mentions(output, "results/benchmark/index.npz: found", jobs.INDEX_AGAIN)
    assert "007" in evaluated(sweep, before)
    assert not sweep.summary("007").exists()
    sweep.run("tables", "--forcerun", "index_benchmark")
    assert sweep.tables() == good
    assert sweep.planned("tables") == (set(), set())


def test_damaged_summaries_are_rejected_and_recreated_after_deletion(sweep):
    """One truncated, one of another schema version; each job has more than one attempt."""
    good, before = sweep.tables(), written(sweep)
    cut, other = sweep.summary("007"), sweep.summary("1e5")
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    other.write_text(other.read_text().replace('"schema_version": 2', '"schema_version": 0'))
    assert sweep.planned("tables") == (set(), set())  # the tables are those of the good summaries
    (sweep.folder / "results/aggregated/models.csv").unlink()
    output = sweep.run("--retries", "1", "tables", ok=False)
    assert "MissingOutputException" not in output
    mentions(output, "007_summary.json", "truncated", jobs.MODELS_AGAIN)
    mentions(output, "1e5_summary.json", "found schema_version 0; expected schema_version 2")
    assert not list((sweep.folder / "results/aggregated").glob("*.csv"))
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    cut.unlink()
    other.unlink()
    sweep.run("tables")
    assert sweep.tables() == good
    assert evaluated(sweep, before) == {"007", "1e5"}


def test_truncated_tables_are_rejected_by_the_plots_and_one_command_recreates_them(sweep):
    good = sweep.tables()
    aggregated = sweep.folder / "results/aggregated/aggregated.json"
    aggregated.write_bytes(aggregated.read_bytes()[:-9])
    (sweep.folder / "results/plots/target_grid.svg").unlink()
    mentions(sweep.run(ok=False), "aggregated.json", "truncated", jobs.TABLES_AGAIN)
    sweep.run("tables", "--forcerun", "aggregate")
    assert sweep.tables() == good


def test_touching_one_model_does_not_keep_stale_tables(sweep):
    sweep.configure(iou=0.75)
    sweep.run("--touch", "results/models/007/007_summary.json")
    path = sweep.predictions("1e5")
    path.write_bytes(path.read_bytes()[:-9])
    mentions(sweep.run("--keep-going", "tables", ok=False), "1e5/iid_test_predictions.json")
    assert not list(sweep.folder.glob("results/aggregated/*"))


def test_a_corrupt_file_does_not_prevent_scoring_of_the_other_models(base, tmp_path):
    sweep = fresh(base, tmp_path / "sweep")
    path = sweep.predictions("007")
    original = path.read_bytes()
    path.write_bytes(original[:-9])
    mentions(sweep.run("--keep-going", "tables", ok=False), "007/iid_test_predictions.json")
    assert [model for model in MODELS if not sweep.summary(model).exists()] == ["007"]
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    path.write_bytes(original)
    sweep.run("tables")
    assert sweep.tables() == base.tables()


def test_tables_of_another_benchmark_are_never_mistaken_for_current_ones(sweep):
    good = sweep.tables()
    path = sweep.folder / "data/benchmark/detection/annotations_coco/iid_test.json"
    original = path.read_bytes()
    path.write_bytes(original[: len(original) // 2])
    mentions(sweep.run("tables", ok=False), "iid_test.json")
    assert not list(sweep.folder.glob("results/aggregated/*"))
    # each summary and the tables contain the changed digest, although no number differs
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
