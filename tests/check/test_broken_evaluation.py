"""Failing evaluations leave no partial results: full disk, kill, truncated files."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.cli.main import main
from benchmark_eval.core import atomic_write as files
from benchmark_eval.core.outputs import RECORD
from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.results import schema as results

pytestmark = pytest.mark.slow  # starts and kills many processes

PROGRAM = Path(sys.executable).with_name("benchmark-eval")
KILLS = 8
FILES = (
    "detections.csv",
    "evidence.npz",
    "per_species.csv",
    "report.txt",
    "summary.csv",
    "summary.json",
)


@pytest.fixture
def folder(tmp_path):
    """A benchmark and predictions of two models (``old``, ``new``), large enough to interrupt."""
    truth = [[i, 1 + i % 3, [10, 10, 40, 40]] for i in range(1, 301)]
    write_split(tmp_path, "iid_test", truth)
    write_split(tmp_path, "train", truth)
    write_taxonomy(tmp_path, [1, 2, 3])
    for name, score in (("old", 0.3), ("new", 0.6)):
        rows = [
            [1 + i % 300, 1 + (1 + i % 300) % 3, [10 + i % 7, 10, 40, 40], score + i / 1e5]
            for i in range(3000)
        ]
        write_predictions(tmp_path / name, "iid_test", rows)
    return tmp_path


def command(folder, predictions="new", output="out", benchmark="."):
    return [
        *["evaluate", "--quiet", "--splits", "iid_test", "--model-name", "m"],
        *[
            "--benchmark-dir",
            str(folder / benchmark),
            "--predictions-dir",
            str(folder / predictions),
        ],
        *["--output-dir", str(folder / output)],
    ]


def run(*args, **options):
    done = subprocess.run(
        [PROGRAM, *args], capture_output=True, text=True, check=False, timeout=120, **options
    )
    assert "Traceback" not in done.stderr
    return done


def result(folder):
    files = [path for path in folder.iterdir() if path.is_file()] if folder.exists() else []
    return {path.name: path.read_bytes() for path in files}


def assert_exit(code, args, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == code
    message = capsys.readouterr().err
    assert [word for word in words if word not in message] == [], message


# --------------------------------------------------------------------------------------------
# Truncated files
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_index_is_an_error_and_nothing_is_written(folder, capsys, part):
    write_index(folder, folder / "index.npz")
    whole = (folder / "index.npz").read_bytes()
    (folder / "index.npz").write_bytes(whole[: int(part * len(whole))])
    args = command(folder, benchmark="index.npz")
    assert_exit(1, args, ["index.npz", "delete it and run again"], capsys)
    assert not (folder / "out").exists()


@pytest.fixture
def sweep(tmp_path):
    """A benchmark and the summaries of two models; the arguments that aggregate them."""
    from benchmark_eval.inputs.benchmark_reader import load_benchmark

    benchmark = write_benchmark(tmp_path / "benchmark")
    digests = load_benchmark(benchmark).digests
    for seed in (0, 1):
        item = evaluation(f"m{seed}", 0.4, benchmark=digests)
        write_evaluation(tmp_path / "eval", item, nested=True)
    rows = [[f"m{seed}", "a", "global_uniform", "1", seed] for seed in (0, 1)]
    (tmp_path / "manifest.csv").write_text(manifest_text(rows))
    return [
        *["aggregate", "--eval-dir", str(tmp_path / "eval"), "--benchmark-dir", str(benchmark)],
        *["--manifest", str(tmp_path / "manifest.csv"), "--output-dir", str(tmp_path / "tables")],
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], ["m1_summary.json", "evaluate the model again"]),
        (lambda data: data[: len(data) // 2], ["m1_summary.json", "truncated"]),
        (lambda data: b"", ["m1_summary.json", "truncated"]),
        (
            lambda data: data.replace(b'"schema_version":3', b'"schema_version":0'),
            ["m1_summary.json", "found schema_version 0; expected schema_version 3"],
        ),
        (
            lambda data: data.replace(b'"n_predictions":10', b'"n_predictions":"ten"'),
            ["m1_summary.json", "Expected `int`, got `str`"],
        ),
        (lambda data: data.replace(b'"coco"', b'"cocoa"'), ["m1_summary.json", "missing required"]),
    ],
)
def test_a_truncated_or_invalid_summary_is_an_error(sweep, tmp_path, change, words, capsys):
    main(sweep)
    assert (tmp_path / "tables/aggregated.json").exists()
    path = tmp_path / "eval/m1/m1_summary.json"
    path.write_bytes(change(path.read_bytes()))
    assert_exit(1, sweep, words, capsys)
    # no stale tables are left
    assert not list((tmp_path / "tables").glob("*.csv"))
    assert not (tmp_path / "tables/aggregated.json").exists()


# --------------------------------------------------------------------------------------------
# Disks
# --------------------------------------------------------------------------------------------


def test_an_output_path_that_is_not_a_folder_is_an_error(folder, capsys):
    (folder / "file").write_text("")
    assert_exit(2, command(folder, output="file/out"), ["file/out", "Not a directory"], capsys)
    assert_exit(2, command(folder, output="file"), ["file", "File exists"], capsys)
    assert (folder / "file").read_text() == ""


@pytest.fixture
def small_disk(folder):
    """A file system of 1,000 KiB at ``out``; the test is skipped without permission to mount."""
    (folder / "out").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1000k", "none", folder / "out"],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("no permission to mount; the test with a file size limit covers this case")
    yield folder / "out"
    subprocess.run(["umount", folder / "out"], check=True)


def test_a_full_disk_keeps_the_old_result(folder, small_disk):
    assert run(*command(folder, "old")).returncode == 0
    old = result(small_disk)
    assert sorted(old) == [RECORD, *(f"m_{name}" for name in FILES)]
    (small_disk / "ballast").write_bytes(b"x" * (1_024_000 - sum(map(len, old.values())) - 20_000))
    done = run(*command(folder, "new"))
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert str(small_disk) in done.stderr
    (small_disk / "ballast").unlink()
    assert result(small_disk) == old
    assert run(*command(folder, "new")).returncode == 0
    assert result(small_disk).keys() == old.keys()
    assert result(small_disk) != old


def test_a_folder_without_write_permission_is_an_error(folder, request, capsys):
    words = "Permission denied"
    if os.geteuid() == 0:  # root may write anywhere except on a read-only disk
        place = request.getfixturevalue("small_disk")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        words = "Read-only file system"
    else:
        (folder / "out").mkdir(mode=0o555)
    assert_exit(2, command(folder), ["out", words], capsys)
    assert result(folder / "out") == {}


def test_a_write_that_fails_in_the_middle_of_a_file_keeps_the_old_result(folder):
    """Like a full disk, but without a mount: the kernel limits the file size."""
    assert run(*command(folder, "old")).returncode == 0
    old = result(folder / "out")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = len(old["m_detections.csv"]) // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = run(*command(folder, "new"), preexec_fn=limit)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "m_detections.csv" in done.stderr
    assert result(folder / "out") == old


# --------------------------------------------------------------------------------------------
# Kills
# --------------------------------------------------------------------------------------------


def without_record(files):
    return {name: data for name, data in files.items() if name != RECORD}


def test_a_kill_at_any_moment_leaves_the_old_or_new_result_or_none(folder, record_property):
    """SIGKILL at random moments, mostly while files are written."""
    assert run(*command(folder, "old")).returncode == 0
    old = result(folder / "out")
    start = time.perf_counter()
    assert run(*command(folder, "new")).returncode == 0
    usual = time.perf_counter() - start
    new = result(folder / "out")
    moments = random.Random(0)
    seen = set()
    for _ in range(KILLS):
        assert run(*command(folder, "old")).returncode == 0
        process = subprocess.Popen([PROGRAM, *command(folder, "new")])
        time.sleep(usual * moments.uniform(0.5, 1.1))
        process.kill()
        process.wait()
        found = without_record(result(folder / "out"))
        complete = {"old": without_record(old), "new": without_record(new)}
        if "m_summary.json" in found:
            assert found in complete.values()
        seen.add(next((name for name, files in complete.items() if found == files), "none"))
    assert run(*command(folder, "new")).returncode == 0
    assert result(folder / "out") == new
    left = {path.name for path in (folder / "out").iterdir()}
    assert left == set(new)  # nothing of the killed runs
    record_property("kills", KILLS)
    assert "old" in seen or "none" in seen


def test_a_closed_pipe_ends_the_program_without_a_message(folder):
    words = [str(word) for word in (PROGRAM, *command(folder)) if word != "--quiet"]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", '"$@" | true', "-", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_out_of_memory_is_an_error(folder, monkeypatch, capsys):
    def full(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("benchmark_eval.scoring.evaluate.evaluate_split", full)
    assert_exit(2, command(folder), ["not enough memory"], capsys)
    assert not (folder / "out").exists()


def test_a_failed_write_names_its_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        files.write_bytes_atomic(tmp_path / "a", b"1")
    assert error.value.filename == str(tmp_path / "a")
    assert result(tmp_path) == {}


def test_the_summary_has_the_schema_version():
    tree = results.to_dict(evaluation("m"))
    assert json.loads(json.dumps(tree))["schema_version"] == results.SCHEMA_VERSION
