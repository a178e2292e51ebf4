"""Records of the inputs of results, and the lock of a results folder."""

import hashlib
import subprocess
import sys

import pytest

from benchmark_eval.core import locks
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.records import FINGERPRINT_OF, record_name
from benchmark_eval.pipeline import outdated
from benchmark_eval.pipeline.outdated import TABLES, hold, remove_outdated, results_of, write_record
from benchmark_eval.report.figures import FORMATS
from benchmark_eval.sweep import tables

OLD, NOW = (record_name("sweep", digit * 64) for digit in "12")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_results_are_those_that_the_library_writes():
    assert sorted(TABLES) == sorted(tables.FILES)
    assert outdated.PLOT_FORMATS == FORMATS


def test_a_new_record_replaces_those_with_other_digests(tmp_path):
    kept = ["plots.1.made", "sweep.json", "sweep.made.json"]
    for name in (OLD, *kept):
        (tmp_path / name).write_text("x")
    write_record(tmp_path / NOW, b"made from this")
    assert names(tmp_path) == sorted([*kept, NOW])
    assert (tmp_path / NOW).read_bytes() == b"made from this"


def planned(results, part, text="now"):
    """Write a fingerprint; returns the record that belongs to it."""
    state = results / ".state"
    state.mkdir(parents=True, exist_ok=True)
    (state / f"{FINGERPRINT_OF[part]}.json").write_text(text)
    return state / record_name(part, hashlib.sha256(text.encode()).hexdigest())


def made(results, part, record):
    """Write all results of a part and their record."""
    for path in [record, *results_of(part, results)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part)


def left(results):
    """The parts that have all results, or none (the others are an error)."""
    found = {}
    for part in ("sweep", "plots", "report"):
        exist = {path.exists() for path in results_of(part, results)}
        assert len(exist) == 1
        found[part] = exist.pop()
    return {part for part, there in found.items() if there}


@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ((), {"sweep", "plots", "report"}),
        (("report",), {"sweep"}),
        (("sweep",), {"plots", "report"}),
        (("sweep", "report"), set()),
    ],
)
def test_results_of_other_fingerprints_are_removed(tmp_path, changed, stays):
    for part in ("sweep", "plots", "report"):
        made(tmp_path, part, planned(tmp_path, part))
    (tmp_path / "plots/of the user.svg").write_text("x")
    for part in changed:
        planned(tmp_path, part, "changed")
    lines = []
    remove_outdated(tmp_path / ".state", lines.append)
    assert left(tmp_path) == stays
    assert len(lines) == 3 - len(stays)
    assert all("inputs, options or code changed" in line for line in lines)
    records = {name.partition(".")[0] for name in names(tmp_path / ".state") if "made" in name}
    assert records == stays
    assert (tmp_path / "plots/of the user.svg").exists()
    remove_outdated(tmp_path / ".state", lines.append)
    assert len(lines) == 3 - len(stays)


@pytest.mark.parametrize("lost", ["record", "fingerprint"])
def test_results_without_a_record_or_a_fingerprint_are_removed(tmp_path, lost):
    record = planned(tmp_path, "sweep")
    made(tmp_path, "sweep", record)
    (record if lost == "record" else tmp_path / ".state/sweep.json").unlink()
    lines = []
    remove_outdated(tmp_path / ".state", lines.append)
    assert left(tmp_path) == set()
    (line,) = lines
    assert f"removed {tmp_path}/aggregated/aggregated.json and {len(TABLES) - 1} more: " in line
    assert ("no record of their inputs" in line) is (lost == "record")
    assert "run snakemake without a target" in line


def test_tables_of_an_unfinished_run_are_not_mistaken_for_those_of_the_previous_run(tmp_path):
    """Options A, then a run with B that is killed between tables and record, then A again."""
    made(tmp_path, "sweep", planned(tmp_path, "sweep", "A"))
    planned(tmp_path, "sweep", "B")
    remove_outdated(tmp_path / ".state", print)
    made(tmp_path, "sweep", tmp_path / "aggregated/no record")
    planned(tmp_path, "sweep", "A")
    remove_outdated(tmp_path / ".state", print)
    assert left(tmp_path) == set()


def test_results_that_cannot_be_removed_are_reported(tmp_path):
    (tmp_path / "aggregated/aggregated.json").mkdir(parents=True)
    planned(tmp_path, "sweep")
    with pytest.raises(UsageError, match="cannot remove outdated results"):
        remove_outdated(tmp_path / ".state", print)


HOLDER = """
import sys, time
from benchmark_eval.pipeline.outdated import hold
hold(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""


def test_a_process_holds_the_lock_until_it_ends_even_if_killed(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="another Snakemake process is using"):
            hold(tmp_path / "state")
        hold(tmp_path / "another state")
        other.kill()
        other.wait()
        hold(tmp_path / "state")
        hold(tmp_path / "state")  # already held by this process: two modules in one folder


def test_a_run_continues_if_nothing_can_be_locked(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    hold(tmp_path / "file")

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    hold(tmp_path / "state")
