"""Workarounds for Snakemake, and their safe defaults for other versions of Snakemake."""

import base64
import json
import subprocess
import sys
import zlib
from types import SimpleNamespace

import pytest

from benchmark_eval.core.errors import UsageError
from benchmark_eval.pipeline import snakemake_compat
from benchmark_eval.pipeline.snakemake_compat import (
    EXECS,
    require_cluster_can,
    require_plain_names,
    require_room_for_arrays,
    spare_rate_limiter,
    task_command,
)

pytestmark = pytest.mark.matrix

# a version of Snakemake without the internals


@pytest.mark.parametrize(
    ("function", "more", "answer"),
    [
        ("plans", (), True),
        ("runs_elsewhere", (), False),
        ("names_a_config", (), False),
        ("starts_jobs", (), True),
        ("chooses_jobs", (), True),
        ("forces_before", ("aggregate",), False),
        ("on_disk", ("results",), "results"),
        ("beside_rules", ("../scripts/report.py",), None),
        ("planned_jobs", (), []),
        ("unfinished", ([object()],), []),
        ("spare_rate_limiter", (), None),
        ("require_cluster_can", (["a,b"],), None),
        ("require_disk", (), None),
        ("require_batches_of", ("aggregate", ["all"]), None),
    ],
)
def test_safe_defaults_without_snakemake_internals(monkeypatch, function, more, answer):
    monkeypatch.setattr(sys, "argv", ["snakemake", "--cores", "1"])
    assert getattr(snakemake_compat, function)(object(), *more) == answer
    assert snakemake_compat.models_of([object(), SimpleNamespace(wildcards_dict={})]) == []


def test_the_command_line_is_used_without_snakemake_internals(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode", "remote", "--configfile=a.yaml"])
    assert not snakemake_compat.plans(object())
    assert snakemake_compat.runs_elsewhere(object())
    assert snakemake_compat.names_a_config(object())
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode=subprocess"])
    assert not snakemake_compat.plans(object())
    assert not snakemake_compat.runs_elsewhere(object())


# what this run does


@pytest.mark.parametrize(
    ("attributes", "starts", "chooses"),
    [
        ({"executor_plugin": None}, False, False),
        ({"executor_plugin": "local"}, True, True),
        ({"executor_plugin": "dryrun", "dryrun": True}, False, True),
        ({"executor_plugin": "touch", "touch": True}, False, True),
    ],
)
def test_only_a_real_run_starts_jobs(attributes, starts, chooses):
    workflow = SimpleNamespace(**attributes)
    assert snakemake_compat.starts_jobs(workflow) is starts
    assert snakemake_compat.chooses_jobs(workflow) is chooses


def dag_settings(**changed):
    usual = {"forcerun": frozenset(), "forcetargets": False, "forceall": False}
    return SimpleNamespace(dag_settings=SimpleNamespace(**usual | changed))


@pytest.mark.parametrize(
    ("changed", "before"),
    [
        ({}, False),
        ({"forcetargets": True}, True),
        ({"forceall": True}, True),
        ({"forcerun": {"evaluate_model"}}, True),
        ({"forcerun": {"strict_evaluate_model", "report"}}, True),
        ({"forcerun": {"results/models/NA/NA_summary.json"}}, True),
        ({"forcerun": {"aggregate"}}, False),
        ({"forcerun": {"strict_plot_sweep", "report"}}, False),
    ],
)
def test_jobs_that_the_command_line_forces_are_known(changed, before):
    assert snakemake_compat.forces_before(dag_settings(**changed), "aggregate") is before


def test_outdated_jobs_are_forced_or_the_command_to_do_so_is_named():
    workflow = SimpleNamespace(dag=SimpleNamespace(forcefiles=set()))
    snakemake_compat.force(workflow, "a")
    assert workflow.dag.forcefiles == {"a"}
    with pytest.raises(UsageError, match="snakemake --forcerun evaluate_model"):
        snakemake_compat.force(object(), "a")
    snakemake_compat.force(dag_settings(forcerun={"strict_evaluate_model"}), "a")


# the limit of jobs per second


def scheduled(limit=(100, 1), local=True, limiter="job_rate_limiter"):
    jobs, seconds = limit
    return SimpleNamespace(
        local_exec=local,
        scheduling_settings=SimpleNamespace(
            max_jobs_per_timespan=SimpleNamespace(max_jobs=jobs, timespan=seconds)
        ),
        scheduler=SimpleNamespace(**{limiter: "as it was"}),
    )


def test_the_default_limit_is_removed():
    local = scheduled()
    spare_rate_limiter(local)
    assert vars(local.scheduler) == {"job_rate_limiter": None}


@pytest.mark.parametrize(
    "other", [scheduled(limit=(9, 1)), scheduled(local=False), scheduled(limiter="another_name")]
)
def test_any_other_limit_is_kept(other):
    before = dict(vars(other.scheduler))
    spare_rate_limiter(other)
    assert vars(other.scheduler) == before


# array jobs


def packed(commands):
    """Commands by task, encoded as by the plugin."""
    texts = {task: zlib.compress(text.encode()).hex() for task, text in commands.items()}
    return base64.b64encode(json.dumps(texts).encode()).decode()


COMMANDS = {"2": "snakemake 'é b'", "3": "snakemake c"}


def asked(task, first="1", arguments=None):
    arguments = ["snakemake", f"{EXECS}={packed(COMMANDS)}"] if arguments is None else arguments
    return task_command(arguments, {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MIN": first})


def test_a_task_gets_its_own_command():
    assert asked("2") == "snakemake 'é b'"
    assert asked("3") == "snakemake c"
    assert asked("3", arguments=["snakemake", EXECS, packed(COMMANDS)]) == "snakemake c"


def test_the_first_task_keeps_its_process():
    assert asked("1") is None
    assert asked("3", first="3") is None


def test_there_is_no_task_command_outside_an_array():
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
def test_commands_that_cannot_be_decoded_are_left_to_the_plugin(execs):
    assert asked("2", arguments=[f"{EXECS}={execs}"]) is None


def test_a_process_is_replaced_with_its_task_and_has_its_exit_code(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nfrom benchmark_eval.pipeline.snakemake_compat import become_array_task\n"
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
def test_enough_jobs_for_all_models_or_no_array_jobs_are_accepted(settings, jobs, models):
    require_room_for_arrays(settings, jobs, models)


def test_array_jobs_that_would_never_end_are_rejected():
    with pytest.raises(UsageError, match="never end") as caught:
        require_room_for_arrays(ARRAYS, 152, 153)
    assert "--slurm-array-jobs ''" in str(caught.value)


def test_all_names_that_a_cluster_would_corrupt_are_rejected_together():
    require_plain_names(["it's", "a b  c", "a;b", "a=b:c", "NA", "ü&(1)"])
    with pytest.raises(UsageError) as caught:
        require_plain_names(["fine", "a,b", 'a"b', "a$b", "a`b", "a%b"])
    assert """'a,b', 'a"b', 'a$b', 'a`b', 'a%b'. Rename""" in str(caught.value)
    assert "fine" not in str(caught.value)


def test_a_long_list_of_names_is_shortened():
    with pytest.raises(UsageError, match=r"'a,19' and 5 more\."):
        require_plain_names([f"a,{at}" for at in range(25)])


def test_names_are_checked_only_for_clusters():
    require_cluster_can(SimpleNamespace(local_exec=True), ["a,b"])
    with pytest.raises(UsageError, match="'a,b'"):
        require_cluster_can(SimpleNamespace(local_exec=False), ["a,b"])


# storage and batches


def test_storage_is_refused_with_the_remedy():
    settings = SimpleNamespace(default_storage_provider="s3")
    with pytest.raises(UsageError, match=r"--default-storage-provider s3.*docs/cluster.md"):
        snakemake_compat.require_disk(SimpleNamespace(storage_settings=settings))
    settings.default_storage_provider = None
    snakemake_compat.require_disk(SimpleNamespace(storage_settings=settings))
    snakemake_compat.require_disk(SimpleNamespace(storage_settings=None))
    snakemake_compat.require_disk(SimpleNamespace())


def test_batches_of_rules_that_need_all_models_are_refused_with_the_rule_to_use():
    batch = SimpleNamespace(rulename="x_all", idx=1, batches=3)
    workflow = SimpleNamespace(dag_settings=SimpleNamespace(batch=batch))
    with pytest.raises(UsageError, match="in 3 batches: --batch x_aggregate=1/3"):
        snakemake_compat.require_batches_of(workflow, "x_aggregate", ["x_all", "x_tables"])
    batch.rulename = "x_aggregate"
    snakemake_compat.require_batches_of(workflow, "x_aggregate", ["x_all"])
    snakemake_compat.require_batches_of(SimpleNamespace(), "aggregate", ["all"])
