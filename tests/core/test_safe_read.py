"""Pipes, devices, gzip bombs and files larger than memory all end in a message."""

import gzip
import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from support.layout import record, write_predictions, write_split, write_taxonomy

from benchmark_eval.core import memory
from benchmark_eval.core import safe_read as reading
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.memory import available_memory, give_back_freed_memory, keep_freed_memory
from benchmark_eval.core.safe_read import open_input, read_input
from benchmark_eval.inputs import prediction_decoder as module
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.predictions import read_predictions

PROGRAM = Path(sys.executable).with_name("benchmark-eval")


@pytest.fixture
def folder(tmp_path):
    """A benchmark with one split, and its folder."""
    write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]], [1, 1, [20, 0, 9, 9], 1]])
    write_taxonomy(tmp_path, [1])
    return tmp_path


def rejection(folder, name="iid_test_predictions.json"):
    with pytest.raises(InputError) as error:
        read_predictions(folder / name, load_benchmark(folder), "iid_test")
    return str(error.value)


def evaluate(folder, **limits):
    """Evaluate in a subprocess with the given resource ``limits``."""

    def limit():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    return subprocess.run(
        [PROGRAM, "evaluate", "--benchmark-dir", folder, "--predictions-dir", folder,
         "--output-dir", folder / "out", "--splits", "iid_test"],
        capture_output=True, text=True, check=False, preexec_fn=limit, timeout=120,
    )  # fmt: skip


def bomb(path, unpacked):
    """Write a gzip file of a few MB that unpacks to ``unpacked`` bytes of blanks."""
    member = gzip.compress(b" " * 10_000_000, 9)
    path.write_bytes(gzip.compress(b"[") + member * (unpacked // 10_000_000) + gzip.compress(b"]"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "a named pipe, not a regular file"),
        (lambda path: path.mkdir(), "a folder, not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "a device, not a regular file"),
        (lambda path: path.symlink_to("nowhere"), "a link to nowhere, which does not exist"),
        (lambda path: path.symlink_to(path.name), "which leads back to the link itself"),
        (lambda path: path.symlink_to("loop"), "a link to loop, which does not exist"),
    ],
)
def test_anything_but_a_regular_file_is_rejected(folder, make, words):
    make(folder / "iid_test_predictions.json")
    assert words in rejection(folder)


def test_a_link_to_a_file_is_read(folder):
    (folder / "real").mkdir()
    path = write_predictions(folder / "real", "iid_test", [[1, 1, [0, 0, 9, 9], 0.5]])
    (folder / "iid_test_predictions.json").symlink_to(path)
    found = read_predictions(
        folder / "iid_test_predictions.json", load_benchmark(folder), "iid_test"
    )
    assert len(found) == 1


@pytest.mark.parametrize("name", ["detection/annotations_coco/x.json", "species_taxonomy.csv"])
def test_a_pipe_in_the_benchmark_is_reported(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="a named pipe, not a regular file"):
        load_benchmark(folder)


@pytest.mark.slow  # decompresses gigabytes
def test_a_gzip_bomb_ends_in_a_message(folder):
    bomb(folder / "iid_test_predictions.json.gz", 10_000_000_000)
    done = evaluate(folder)
    assert done.returncode == 1
    assert "bytes of text without the end of a record" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


def test_a_file_of_a_terabyte_is_rejected_before_it_is_read(folder):
    with (folder / "iid_test_predictions.json").open("wb") as stream:
        stream.truncate(10**12)
    assert "1,000.00 GB of text" in rejection(folder)
    with (folder / "detection/annotations_coco/train.json").open("wb") as stream:
        stream.truncate(10**12)
    with pytest.raises(InputError, match=r"train.json: 1,000.00 GB of text"):
        load_benchmark(folder)


@pytest.mark.parametrize("name", ["iid_test_predictions.json", "iid_test_predictions.json.gz"])
def test_a_file_larger_than_free_memory_ends_in_a_message(folder, monkeypatch, name):
    rows = [record(1, 1, [i, 0, 9, 9], 0.5) for i in range(20_000)]
    text = json.dumps(rows).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    monkeypatch.setattr(module, "PIECE", 100_000)
    benchmark = load_benchmark(folder)
    for free, fits in ((4 * len(text), True), (4 * len(text) - 4, False)):
        monkeypatch.setattr(reading, "available_memory", lambda free=free: free)
        monkeypatch.setattr(module, "available_memory", lambda free=free: free)
        monkeypatch.setattr(module, "UNCHECKED_BYTES", 0)
        if fits:
            assert len(read_predictions(folder / name, benchmark, "iid_test")) == 20_000
        else:
            with pytest.raises(InputError, match=r"of memory; 0\.01 GB is free"):
                read_predictions(folder / name, benchmark, "iid_test")


def test_the_first_problem_is_reported_if_memory_is_too_small_to_list_all(folder, monkeypatch):
    rows = [record(1, 1, [0, 0, 9, 9], 0.5) for _ in range(2_000)]
    rows[1_500]["score"] = "high"
    text = json.dumps(rows)
    (folder / "iid_test_predictions.json").write_text(text)
    monkeypatch.setattr(module, "PIECE", 50_000)
    benchmark = load_benchmark(folder)
    for place in (reading, module):
        monkeypatch.setattr(place, "available_memory", lambda: 10 * len(text))
        monkeypatch.setattr(module, "UNCHECKED_BYTES", 0)
    with pytest.raises(InputError) as error:
        read_predictions(folder / "iid_test_predictions.json", benchmark, "iid_test")
    message = str(error.value)
    assert "Expected `float`, got `str`" in message
    assert "records: " in message
    assert "to list its problems" in message


def test_ulimit_limits_the_available_memory(folder):
    with (folder / "iid_test_predictions.json").open("wb") as stream:
        stream.truncate(300_000_000)
    done = evaluate(folder, RLIMIT_AS=1_200_000_000)
    assert done.returncode == 1, done.stderr
    assert "0.30 GB of text, which takes about 1.20 GB of memory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        b"{" * 5_000_000,
        b"[{}" + b"{" * 5_000_000,
        b"[" * 1_000_000,
        b'[{"image_id":' * 100_000,
        b'["' + b"},{" * 1_000_000,
        b"[" + b"9" * 5_000_000 + b"]",
        b"\x00" * 1_000_000,
    ],
    ids=["braces", "one record and braces", "brackets", "unclosed", "text", "number", "nul"],
)  # fmt: skip
def test_malicious_text_ends_in_a_message(folder, text):
    (folder / "iid_test_predictions.json").write_bytes(text)
    assert "iid_test_predictions.json" in rejection(folder)


def test_a_record_without_end_is_reported(folder, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_RECORD", 100_000)
    monkeypatch.setattr(module, "PIECE", 10_000)
    text = '[{"image_id":1,"category_id":1,"bbox":[0,0,9,9],"score":0.5,"more":"'
    (folder / "iid_test_predictions.json").write_text(text + "x" * 300_000 + '"}]')
    assert "bytes of text without the end of a record" in rejection(folder)
    # a long record is valid
    (folder / "iid_test_predictions.json").write_text(text + "x" * 80_000 + '"}]')
    found = read_predictions(
        folder / "iid_test_predictions.json", load_benchmark(folder), "iid_test"
    )
    assert len(found) == 1


def test_available_memory_is_the_minimum_of_all_limits(tmp_path, monkeypatch):
    assert available_memory() > 0
    monkeypatch.setattr(memory, "_machine", lambda: iter([500]))
    monkeypatch.setattr(memory, "_control_groups", lambda: iter([300, 400]))
    assert available_memory() == 300
    monkeypatch.setattr(memory, "_control_groups", lambda: iter([]))
    monkeypatch.setattr(memory, "_machine", lambda: iter([]))
    assert available_memory() is None
    (tmp_path / "file").write_text("text")
    assert read_input(tmp_path / "file") == b"text"
    with open_input(tmp_path / "file") as stream:
        assert stream.read() == b"text"


def test_control_groups_of_versions_1_and_2_are_read(tmp_path, monkeypatch):
    real = Path.read_text
    groups = "0::/job\n4:memory:/batch/job\n"

    def fake(self, *args, **kwargs):
        return groups if str(self) == "/proc/self/cgroup" else real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", fake)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "job").mkdir()
    (tmp_path / "job/memory.max").write_text("1000\n")
    (tmp_path / "job/memory.current").write_text("700\n")
    (tmp_path / "job/memory.stat").write_text("anon 400\nactive_file 100\ninactive_file 200\n")
    old = tmp_path / "memory/batch/job"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("500\n")
    (old / "memory.usage_in_bytes").write_text("450\n")
    (old / "memory.stat").write_text(
        "inactive_file 9\ntotal_inactive_file 30\ntotal_active_file 0\n"
    )
    assert sorted(memory._control_groups()) == [80, 600]
    (tmp_path / "job/memory.max").write_text("max\n")
    assert sorted(memory._control_groups()) == [80]


PAGE_FAULTS = """
import resource, sys
from benchmark_eval.core.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
for _ in range(20):
    bytearray(3_000_000).count(1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def page_faults(how):
    # an explicit threshold stays fixed, while the default grows with the freed sizes
    run = subprocess.run(
        [sys.executable, "-c", PAGE_FAULTS, how],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
def test_freed_memory_is_kept_for_the_next_allocation():
    assert page_faults("keep") < page_faults("give back") / 2


@pytest.mark.parametrize("library", [OSError, AttributeError, TypeError])
def test_without_glibc_nothing_changes(monkeypatch, library):
    def no_library(_):
        raise library

    monkeypatch.setattr("ctypes.CDLL", no_library)
    keep_freed_memory()
    give_back_freed_memory()


def test_a_rejected_setting_is_not_followed_by_the_other(monkeypatch):
    calls = []

    class Library:
        def mallopt(self, name, value):
            calls.append((name, value))
            return 0

    monkeypatch.setattr("ctypes.CDLL", lambda _: Library())
    keep_freed_memory()
    assert calls == [(-3, 32 * 2**20)]  # accepted by every glibc: HEAP_MAX_SIZE / 2 on 64 bits


def test_kept_memory_is_returned_before_a_file_is_rejected(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(reading, "give_back_freed_memory", lambda: given.append(1))
    monkeypatch.setattr(reading, "available_memory", lambda: 1_000 * len(given))
    reading.check_size(400, 2.0)
    assert given == [1]
    with pytest.raises(OSError, match="of text"):
        reading.check_size(40_000, 2.0)
