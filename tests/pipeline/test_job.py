"""A job of the workflow: its log, its errors and its exit code."""

import contextlib
import errno
import fcntl
import io
import logging
import subprocess
import sys
import warnings

import pytest

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.pipeline import job as module
from benchmark_eval.pipeline.job import job


def test_log_output_and_warnings_go_to_the_log(tmp_path, capsys):
    log = tmp_path / "logs/a b.log"
    with job(log):
        logging.getLogger("benchmark_eval.x").info("a word of the log")
        print("a word on standard output")
        warnings.warn("a word of warning", stacklevel=1)
    text = log.read_text()
    for word in ("benchmark-eval 0", "of the log", "on standard output", "of warning"):
        assert word in text
    assert capsys.readouterr().out == ""


def test_an_expected_error_is_printed_with_its_notes_and_no_traceback(tmp_path, capsys):
    log = tmp_path / "log"
    problem = Problem("kind", "file.json", "this", "that")
    error = InputError([problem])
    error.add_note("To make it again: snakemake")
    with pytest.raises(SystemExit) as stop, job(log):
        raise error
    assert stop.value.code == 1
    assert "Traceback" not in log.read_text()
    for text in (log.read_text(), capsys.readouterr().err):
        assert text.endswith(f"{problem}\nTo make it again: snakemake\n")


def test_any_other_error_is_logged_with_its_traceback_and_reraised(tmp_path):
    with pytest.raises(ZeroDivisionError), job(tmp_path / "log"):
        _ = 1 / 0
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()
    assert "test_job.py" in (tmp_path / "log").read_text()


def test_a_file_system_error_is_printed_as_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop, job(tmp_path / "log"):
        (tmp_path / "not/there").write_text("x")
    assert stop.value.code == 2
    assert "Traceback" in (tmp_path / "log").read_text()
    err = capsys.readouterr().err
    assert err.startswith("error: [Errno 2] No such file or directory")
    assert len(err.splitlines()) == 1


class Full(io.StringIO):
    """A log on a full disk."""

    name = "logs/a.log"

    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_of_the_log_is_reported_once_and_keeps_the_result(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(module, "_opened", lambda _: contextlib.nullcontext(Full()))
    with job(tmp_path / "log"):
        logging.getLogger("benchmark_eval.x").info("a word of the log")
        (tmp_path / "result").write_text("made")
    assert (tmp_path / "result").exists()
    assert capsys.readouterr().err == "error: logs/a.log: No space left on device\n"
    with pytest.raises(SystemExit), job(tmp_path / "log"):
        raise InputError([Problem("kind", "file.json", "this", "that")])
    assert "Traceback" not in capsys.readouterr().err


def test_a_log_contains_only_the_last_job_and_the_logger_is_restored(tmp_path):
    handlers = list(logging.getLogger().handlers)
    for word in ("first", "second"):
        with job(tmp_path / "log"):
            print(word)
    assert "first" not in (tmp_path / "log").read_text()
    assert logging.getLogger().handlers == handlers


def test_a_job_waits_for_the_same_job_of_a_killed_run(tmp_path):
    log = tmp_path / "log"
    with log.open("a") as left_running:
        fcntl.flock(left_running, fcntl.LOCK_EX)
        code = f"from benchmark_eval.pipeline.job import job\nwith job({str(log)!r}): print('done')"
        with subprocess.Popen([sys.executable, "-c", code]) as waiting:
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(timeout=1.5)
            assert log.read_text() == ""
            fcntl.flock(left_running, fcntl.LOCK_UN)
            assert waiting.wait(timeout=60) == 0
    assert "done" in log.read_text()
