"""Records of the inputs of results, and the lock of a results folder."""

import subprocess
import sys

import pytest

from benchmark_eval.core import locks
from benchmark_eval.core.errors import UsageError
from benchmark_eval.pipeline.outdated import hold, record_name, remove_outdated, write_record

OLD, NOW = (record_name("sweep", digit * 64) for digit in "12")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_record_is_named_by_part_and_digest():
    assert record_name("sweep", "0123456789abcdef" + "f" * 48) == "sweep.0123456789abcdef.made"
    assert record_name("sweep", None) == "sweep.unplanned.made"


def test_a_new_record_replaces_those_with_other_digests(tmp_path):
    kept = ["plots.1.made", "sweep.json", "sweep.made.json"]
    for name in (OLD, *kept):
        (tmp_path / name).write_text("x")
    write_record(tmp_path / NOW, b"made from this")
    assert names(tmp_path) == sorted([*kept, NOW])
    assert (tmp_path / NOW).read_bytes() == b"made from this"


@pytest.mark.parametrize(
    ("records", "stays", "reason"),
    [
        ([NOW], True, ""),
        ([NOW, OLD], True, ""),
        ([OLD], False, "inputs, options or code changed"),
        ([], False, "no record of their inputs"),
        (["sweep.made.json"], False, "no record of their inputs"),  # written by an earlier version
    ],
)
def test_results_without_a_current_record_are_removed(tmp_path, records, stays, reason):
    state, results = tmp_path / "state", [tmp_path / "a", tmp_path / "b", tmp_path / "never made"]
    state.mkdir()
    for path in [*(state / name for name in records), *results[:2]]:
        path.write_text("x")
    lines = []
    remove_outdated([(state / NOW, results)], lines.append)
    assert results[0].exists() is results[1].exists() is stays
    assert OLD not in names(state)
    assert len(lines) == (0 if stays else 1)
    if not stays:
        assert f"removed {results[0]} and 1 more: {reason}; run snakemake without" in lines[0]
    remove_outdated([(state / NOW, results)], lines.append)
    assert len(lines) == (0 if stays else 1)


def test_tables_of_an_unfinished_run_are_not_mistaken_for_those_of_the_previous_run(tmp_path):
    """Options A, then a run with B that is killed between tables and record, then A again."""
    for name in (OLD, "tables"):
        (tmp_path / name).write_text("of A")
    remove_outdated([(tmp_path / NOW, [tmp_path / "tables"])], print)
    (tmp_path / "tables").write_text("of B, without a record")
    remove_outdated([(tmp_path / OLD, [tmp_path / "tables"])], print)
    assert names(tmp_path) == []


def test_results_that_cannot_be_removed_are_reported(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match="cannot remove stale results"):
        remove_outdated([(tmp_path / NOW, [tmp_path / "a"])], print)


HOLDER = """
import sys, time
from benchmark_eval.pipeline.outdated import hold
print(hold(sys.argv[1]), flush=True)
time.sleep(60)
"""


def test_a_process_holds_the_lock_until_it_ends_even_if_killed(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "True\n"
        assert not hold(tmp_path / "state")
        assert hold(tmp_path / "another state")
        other.kill()
        other.wait()
        assert hold(tmp_path / "state")
        assert hold(tmp_path / "state")  # already held by this process: two modules in one folder


def test_a_run_continues_if_nothing_can_be_locked(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    assert hold(tmp_path / "file")

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    assert hold(tmp_path / "state")
