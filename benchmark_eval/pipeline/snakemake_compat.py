"""Everything that works around Snakemake or one of its plugins, or uses parts that it may change.

Each function that reads such a part returns a safe answer where a Snakemake does not have it, and
names the issue upstream if there is one. Found with Snakemake 9.27, snakemake-executor-plugin-slurm
2.8 and its job step 0.6. ``workflow`` is Snakemake's object of that name.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.problems import SHOWN_PER_KIND
from benchmark_eval.core.text import some_of

NOT_ON_CLUSTERS = frozenset(',"$`%')
"""Characters that a model's name cannot have where jobs run on a cluster."""
EXECS = "--slurm-jobstep-array-execs"
"""The option by which an array job passes every task's command to each of its tasks."""
_DEFAULT_RATE = (100, 1)
"""Snakemake's own limit: jobs, and seconds in which so many may be started."""
_LIMITER = "job_rate_limiter"
"""What holds that limit in Snakemake's scheduler."""


# which process this is, and what it was asked to do


def plans(workflow: Any) -> bool:
    """Whether this process plans the workflow, rather than running one job of another process."""
    main = getattr(workflow, "is_main_process", None)
    return _mode() == "default" if main is None else bool(main)


def runs_elsewhere(workflow: Any) -> bool:
    """Whether this process was started by a cluster to run one job."""
    remote = getattr(workflow, "remote_exec", None)
    return _mode() == "remote" if remote is None else bool(remote)


def names_a_config(workflow: Any) -> bool:
    """Whether the command line names a config file."""
    files = getattr(workflow, "overwrite_configfiles", None)
    if files is not None:
        return bool(files)
    return any(word.startswith(("--configfile", "--config-file")) for word in sys.argv)


def only_touches(workflow: Any) -> bool:
    """Whether the run only updates modification times (``--touch``)."""
    return bool(getattr(workflow, "touch", False))


# where files are


def on_disk(workflow: Any, path: str) -> str:
    """Where a file of a rule is when this workflow is a module with a prefix.

    Only while the workflow is read: afterwards Snakemake does not know the prefix any more. Without
    this part of Snakemake the path is right except in modules with a prefix.
    """
    try:
        return str(workflow.modifier.modify_path(path))
    except (AttributeError, TypeError):
        return path


def beside_rules(workflow: Any, path: str) -> str | None:
    """Absolute path of a file given relative to the Snakefile being read; None where there is none.

    ``workflow.source_path`` would name a copy in a temporary folder, so that a printed command
    could not be repeated. It is still needed where the workflow itself is not on this disk.
    """
    try:
        found = Path(os.path.abspath(os.path.join(workflow.current_basedir, path)))  # noqa: PTH100, PTH118
    except (AttributeError, TypeError, AssertionError):
        return None
    return str(found) if found.is_file() else None


# the jobs of a run, in onstart and onerror


def planned_jobs(workflow: Any) -> list[Any]:
    """The jobs that are about to run; none where that is unknown."""
    try:
        return list(workflow.dag.needrun_jobs())
    except (AttributeError, TypeError):
        return []


def unfinished(workflow: Any, jobs: Iterable[Any]) -> list[Any]:
    """Those of ``jobs`` that have not finished; none where that is unknown."""
    try:
        return [job for job in jobs if not workflow.dag.finished(job)]
    except (AttributeError, TypeError):
        return []


def models_of(jobs: Iterable[Any]) -> list[str]:
    """The values of the wildcard ``model`` of those jobs that have one."""
    found = (getattr(job, "wildcards_dict", {}).get("model") for job in jobs)
    return [model for model in found if model is not None]


def spare_rate_limiter(workflow: Any) -> None:
    """Take Snakemake's default limit of jobs per second off a run on this machine.

    Under a limit each look through the waiting jobs plans another one a second later, and each job
    that ends starts one more such series (35 s of CPU for 153 jobs). No option turns it off;
    snakemake#3744 describes it. Another limit, clusters, and a Snakemake without such parts stay as
    they are. Called once the scheduler is there (``onstart``).
    """
    try:
        limit = workflow.scheduling_settings.max_jobs_per_timespan
        default = (limit.max_jobs, limit.timespan) == _DEFAULT_RATE
        if workflow.local_exec and default and hasattr(workflow.scheduler, _LIMITER):
            setattr(workflow.scheduler, _LIMITER, None)
    except (AttributeError, TypeError):
        pass


# clusters


def require_cluster_can(workflow: Any, models: Sequence[str]) -> None:
    """``UsageError`` if the evaluations of ``models`` go to a cluster and would fail there.

    A Snakemake that does not tell where jobs run is taken to run them here.
    """
    if getattr(workflow, "local_exec", True):
        return
    require_plain_names(models)
    settings = getattr(workflow, "executor_settings", None)
    jobs = getattr(getattr(workflow, "resource_settings", None), "nodes", None)
    require_room_for_arrays(settings, jobs, len(models))


def require_plain_names(models: Iterable[str]) -> None:
    """``UsageError`` naming the ``models`` whose names Snakemake spoils on the way to a cluster.

    Snakemake passes a job to a cluster as text: it cuts wildcards at commas (snakemake#2366), and a
    shell reads the command within double quotes (snakemake#4298); Slurm reads % in names of logs.
    """
    odd = [name for name in models if NOT_ON_CLUSTERS & set(name)]
    if odd:
        shown = some_of([repr(name) for name in odd], SHOWN_PER_KIND)
        raise UsageError(
            f"model names with {' '.join(sorted(NOT_ON_CLUSTERS))} cannot run on a cluster: "
            f"{shown}. Rename these models (manifest and folder), or run them on this machine: "
            "snakemake --cores all"
        )


def require_room_for_arrays(settings: Any, jobs: int | None, models: int) -> None:
    """``UsageError`` where array jobs are asked for but not all ``models`` may be submitted.

    ``settings`` are those of the executor, ``jobs`` is the value of ``--jobs``. Once it is reached,
    the plugin loses jobs that wait, and the run never ends (snakemake-executor-plugin-slurm#473).
    """
    if getattr(settings, "array_jobs", None) and jobs is not None and jobs < models:
        raise UsageError(
            f"array jobs for {models} models, but only {jobs} jobs at a time (--jobs): the Slurm "
            "plugin loses jobs that have to wait, and the run would never end. Remove --jobs, "
            "or submit single jobs: --slurm-array-jobs ''"
        )


def task_command(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The command of this array task, where this process was started for another one.

    Every task of an array starts the Snakemake of its *first* job, which then starts the task's own
    command and takes its success for that of the first job: a task that fails deletes the first
    job's results, and one that ends before the first job has no results to show
    (snakemake-executor-plugin-slurm#447). None where the process was started for its own job, or
    where a plugin packs the commands in another way.
    """
    task = environment.get("SLURM_ARRAY_TASK_ID")
    if task is None or task == environment.get("SLURM_ARRAY_TASK_MIN"):
        return None
    execs = _option(arguments, EXECS)
    if not execs:
        return None
    try:
        packed = json.loads(base64.b64decode(execs))[task]
        return zlib.decompress(bytes.fromhex(packed)).decode()
    except (ValueError, KeyError, TypeError, zlib.error):
        return None


def become_array_task() -> None:
    """Where ``task_command`` names one: go on as that command, and end as it ends."""
    command = task_command(sys.argv, os.environ)
    if command is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv("/bin/sh", ["/bin/sh", "-c", command])


def _mode() -> str:
    return _option(sys.argv, "--mode") or "default"


def _option(arguments: Sequence[str], name: str) -> str | None:
    """The value of a long option, given as ``--name value`` or ``--name=value``."""
    for place, argument in enumerate(arguments):
        if argument == name:
            return arguments[place + 1] if place + 1 < len(arguments) else None
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None
