"""What stands between array jobs of the Slurm plugin and their faults."""

import base64
import json
import subprocess
import sys
import zlib
from types import SimpleNamespace

import pytest

from benchmark_eval.core.errors import UsageError
from benchmark_eval.pipeline.cluster import (
    EXECS,
    require_plain_names,
    require_room_for_arrays,
    task_command,
)


def packed(commands):
    """Commands by task as the plugin hands them over."""
    texts = {task: zlib.compress(text.encode()).hex() for task, text in commands.items()}
    return base64.b64encode(json.dumps(texts).encode()).decode()


COMMANDS = {"2": "snakemake 'é b'", "3": "snakemake c"}


def asked(task, first="1", arguments=None):
    arguments = ["snakemake", f"{EXECS}={packed(COMMANDS)}"] if arguments is None else arguments
    return task_command(arguments, {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MIN": first})


def test_a_task_is_given_its_own_command():
    assert asked("2") == "snakemake 'é b'"
    assert asked("3") == "snakemake c"
    assert asked("3", arguments=["snakemake", EXECS, packed(COMMANDS)]) == "snakemake c"


def test_the_first_task_is_what_the_process_was_started_for():
    assert asked("1") is None
    assert asked("3", first="3") is None


def test_outside_an_array_there_is_nothing_to_become():
    assert task_command(["snakemake", f"{EXECS}={packed(COMMANDS)}"], {}) is None
    assert asked("2", arguments=["snakemake", "--jobs", "1"]) is None
    assert asked("2", arguments=["snakemake", EXECS]) is None


@pytest.mark.parametrize(
    "execs",
    [
        "",
        "no base64!",
        base64.b64encode(b"[]").decode(),
        base64.b64encode(b"{").decode(),
        base64.b64encode(b'{"2": "no hex"}').decode(),
        base64.b64encode(b'{"2": "00"}').decode(),
        packed({"7": "another task"}),
    ],
)
def test_what_cannot_be_read_is_left_to_the_plugin(execs):
    assert asked("2", arguments=[f"{EXECS}={execs}"]) is None


def test_a_process_becomes_its_task_and_ends_as_it_ends(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nfrom benchmark_eval.pipeline.cluster import become_array_task\n"
        "print('before')\nbecome_array_task()\nprint('not reached')\n"
    )
    done = subprocess.run(
        [sys.executable, script, f"{EXECS}={packed({'5': 'echo task; exit 7'})}"],
        env={"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "before\ntask\n", "")


ARRAYS = SimpleNamespace(array_jobs="evaluate_model")


@pytest.mark.parametrize(
    ("settings", "jobs", "models"),
    [
        (ARRAYS, 153, 153),
        (ARRAYS, sys.maxsize, 1530),
        (ARRAYS, None, 153),
        (SimpleNamespace(array_jobs=None), 1, 153),
        (SimpleNamespace(array_jobs=""), 1, 153),
        (SimpleNamespace(), 1, 153),
        (None, 1, 153),
    ],
)
def test_room_for_all_models_or_no_arrays(settings, jobs, models):
    require_room_for_arrays(settings, jobs, models)


def test_arrays_that_would_wait_forever_are_refused_with_the_way_out():
    with pytest.raises(UsageError, match="never end") as caught:
        require_room_for_arrays(ARRAYS, 152, 153)
    assert "--slurm-array-jobs ''" in str(caught.value)


def test_names_that_a_cluster_spoils_are_refused_together():
    require_plain_names(["it's", "a b  c", "a;b", "a=b:c", "NA", "ü&(1)"])
    with pytest.raises(UsageError) as caught:
        require_plain_names(["fine", "a,b", 'a"b', "a$b", "a`b", "a%b"])
    assert """'a,b', 'a"b', 'a$b', 'a`b', 'a%b'. Rename""" in str(caught.value)
    assert "fine" not in str(caught.value)


def test_only_some_of_many_names_are_shown():
    with pytest.raises(UsageError, match=r"'a,19' and 5 more\."):
        require_plain_names([f"a,{at}" for at in range(25)])
