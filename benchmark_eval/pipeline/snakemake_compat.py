"""Workarounds for Snakemake and its plugins, and all uses of Snakemake internals.

Each function that uses an internal returns a safe default if a version of Snakemake lacks it, or
raises an error with the command to run instead, and names the upstream issue if there is one.
Verified with Snakemake 9.27, snakemake-executor-plugin-slurm 2.8 and
snakemake-executor-plugin-slurm-jobstep 0.6. ``workflow`` is the Snakemake object of that name.
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

RULES = ("index_benchmark", "evaluate_model", "aggregate", "plot_sweep", "report", "page")
"""The rules of the workflow, each of which depends only on those before it."""
NOT_ON_CLUSTERS = frozenset(',"$`%')
"""Characters that model names must not contain if jobs run on a cluster."""
EXECS = "--slurm-jobstep-array-execs"
"""The option by which an array job passes the commands of all tasks to each task."""
_DEFAULT_RATE = (100, 1)
"""Snakemake's default rate limit: number of jobs, and the period in seconds."""
_LIMITER = "job_rate_limiter"
"""The attribute of Snakemake's scheduler that implements the limit."""


# role and options of this process


def plans(workflow: Any) -> bool:
    """Whether this process plans the workflow instead of running a single job of it."""
    main = getattr(workflow, "is_main_process", None)
    return _mode() == "default" if main is None else bool(main)


def runs_elsewhere(workflow: Any) -> bool:
    """Whether this process runs a single job on a cluster."""
    remote = getattr(workflow, "remote_exec", None)
    return _mode() == "remote" if remote is None else bool(remote)


def names_a_config(workflow: Any) -> bool:
    """Whether the command line names a config file."""
    files = getattr(workflow, "overwrite_configfiles", None)
    if files is not None:
        return bool(files)
    return any(word.startswith(("--configfile", "--config-file")) for word in sys.argv)


def config_files(workflow: Any) -> list[Path]:
    """The config files that Snakemake has loaded, if this process plans the workflow."""
    files = getattr(workflow, "configfiles", None) or ()
    return [Path(file) for file in files] if plans(workflow) else []


def require_disk(workflow: Any) -> None:
    """Raise UsageError if Snakemake would keep the results in storage instead of on a disk.

    The plan and its fingerprints are files that are not outputs of any job.
    """
    settings = getattr(workflow, "storage_settings", None)
    provider = getattr(settings, "default_storage_provider", None)
    if provider is not None:
        raise UsageError(
            f"found the option --default-storage-provider {provider}; expected none, because this "
            "workflow keeps its results on a disk. Remove the option (also from profiles) and run "
            "in a folder that all jobs can read and write (snakemake --directory FOLDER); see "
            "docs/cluster.md, Storage"
        )


def batch(workflow: Any) -> Any:
    """What ``--batch`` selects (``rulename``, ``idx``, ``batches``); None without it.

    Known like ``starts_jobs``.
    """
    return getattr(getattr(workflow, "dag_settings", None), "batch", None)


def require_batches_of(workflow: Any, by_model: str, others: Iterable[str]) -> None:
    """Raise UsageError if ``--batch`` names one of the rules ``others`` instead of ``by_model``.

    Their inputs include the results of all models, so the first batch would run everything.
    """
    chosen = batch(workflow)
    if chosen is not None and chosen.rulename in others:
        part = f"{chosen.idx}/{chosen.batches}"
        raise UsageError(
            f"--batch {chosen.rulename}={part} would run everything in the first batch. To "
            f"evaluate the models in {chosen.batches} batches: --batch {by_model}={part}"
        )


def starts_jobs(workflow: Any) -> bool:
    """Whether this run starts jobs, unlike a dry run, ``--touch`` or a query such as ``--summary``.

    Known only after the Snakefile has been parsed, for example in an input function.
    """
    return (
        getattr(workflow, "executor_plugin", True) is not None
        and not getattr(workflow, "dryrun", False)
        and not getattr(workflow, "touch", False)
    )


def chooses_jobs(workflow: Any) -> bool:
    """Whether this is a run or a dry run, not a query; known like ``starts_jobs``."""
    return getattr(workflow, "executor_plugin", True) is not None


def forces_before(workflow: Any, rule: str) -> bool:
    """Whether the command line forces jobs that ``rule`` may depend on; known like ``starts_jobs``.

    Forced files and targets are assumed to be such jobs.
    """
    settings = getattr(workflow, "dag_settings", None)
    if getattr(settings, "forcetargets", False) or getattr(settings, "forceall", False):
        return True
    names = getattr(settings, "forcerun", ())
    # names of rules have a prefix in modules
    after = [
        known for known in RULES[RULES.index(rule) :] for name in names if name.endswith(known)
    ]
    return len(after) < len(names)


def force(workflow: Any, path: str) -> None:
    """Make the job that creates ``path`` run if it is among the jobs of this run.

    Can be called only in input functions. ``--forcerun`` would make ``path`` a target, too. Raises
    UsageError if Snakemake lacks this internal.
    """
    try:
        workflow.dag.forcefiles.add(path)
    except AttributeError:
        settings = getattr(workflow, "dag_settings", None)
        if any(name.endswith("evaluate_model") for name in getattr(settings, "forcerun", ())):
            return
        raise UsageError(
            "results are outdated, and this version of Snakemake is not supported, so they cannot "
            "be scheduled: run snakemake --forcerun evaluate_model, or install snakemake 9.27"
        ) from None


# paths


def on_disk(workflow: Any, path: str) -> str:
    """Path of a rule's file on disk, also if this workflow is a module with a prefix.

    Works only while the Snakefile is being parsed: Snakemake discards the prefix afterwards. If
    Snakemake lacks this internal, the path is correct except in modules with a prefix.
    """
    try:
        return str(workflow.modifier.modify_path(path))
    except (AttributeError, TypeError):
        return path


def beside_rules(workflow: Any, path: str) -> str | None:
    """Absolute path of a file relative to the Snakefile being parsed; None if it does not exist.

    ``workflow.source_path`` returns a copy in a temporary folder, so printed shell commands could
    not be repeated. It is still needed if the workflow is not on a local disk.
    """
    try:
        found = Path(os.path.abspath(os.path.join(workflow.current_basedir, path)))  # noqa: PTH100, PTH118
    except (AttributeError, TypeError, AssertionError):
        return None
    return str(found) if found.is_file() else None


# the jobs of a run, in onstart and onerror


def planned_jobs(workflow: Any) -> list[Any]:
    """The jobs that are about to run; empty if unknown."""
    try:
        return list(workflow.dag.needrun_jobs())
    except (AttributeError, TypeError):
        return []


def unfinished(workflow: Any, jobs: Iterable[Any]) -> list[Any]:
    """Those of ``jobs`` that have not finished; empty if unknown."""
    try:
        return [job for job in jobs if not workflow.dag.finished(job)]
    except (AttributeError, TypeError):
        return []


def models_of(jobs: Iterable[Any]) -> list[str]:
    """The values of the wildcard ``model`` of the jobs that have one."""
    found = (getattr(job, "wildcards_dict", {}).get("model") for job in jobs)
    return [model for model in found if model is not None]


def spare_rate_limiter(workflow: Any) -> None:
    """Remove Snakemake's default limit of jobs per second for local runs.

    With a limit, each pass over the waiting jobs schedules another pass one second later, and each
    job that finishes starts one more such series (35 s of CPU time for 153 jobs). No option
    disables it; see snakemake#3744. Other limits, clusters, and versions of Snakemake without
    these internals are left alone. Must be called when the scheduler exists (``onstart``).
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
    """Raise UsageError if the evaluations of ``models`` would run on a cluster and fail there.

    If Snakemake does not report where jobs run, they are assumed to run locally.
    """
    if getattr(workflow, "local_exec", True):
        return
    require_plain_names(models)
    settings = getattr(workflow, "executor_settings", None)
    jobs = getattr(getattr(workflow, "resource_settings", None), "nodes", None)
    require_room_for_arrays(settings, jobs, len(models))


def require_plain_names(models: Iterable[str]) -> None:
    """Raise UsageError if names of ``models`` would be corrupted on the way to a cluster.

    Snakemake passes a job to a cluster as text: it splits wildcards at commas (snakemake#2366), and
    a shell parses the command within double quotes (snakemake#4298). Slurm expands % in the names
    of log files.
    """
    odd = [name for name in models if NOT_ON_CLUSTERS & set(name)]
    if odd:
        shown = some_of([repr(name) for name in odd], SHOWN_PER_KIND)
        raise UsageError(
            f"models with {' '.join(sorted(NOT_ON_CLUSTERS))} in their names cannot run on a "
            f"cluster: {shown}. Rename these models (in the manifest, and their folders), or run "
            "them on this machine: snakemake --cores all"
        )


def require_room_for_arrays(settings: Any, jobs: int | None, models: int) -> None:
    """Raise UsageError if array jobs are enabled but ``--jobs`` is smaller than ``models``.

    ``settings`` are those of the executor, ``jobs`` is the value of ``--jobs``. Once that many jobs
    are submitted, the plugin loses the waiting ones and the run never ends
    (snakemake-executor-plugin-slurm#473).
    """
    if getattr(settings, "array_jobs", None) and jobs is not None and jobs < models:
        raise UsageError(
            f"array jobs for {models} models, but only {jobs} jobs at a time (--jobs): the Slurm "
            "plugin loses waiting jobs, so the run would never end. Remove --jobs, or submit "
            "single jobs: --slurm-array-jobs ''"
        )


def task_command(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The command of this array task, if this process was started for another task.

    Every task of an array starts the Snakemake process of the *first* job, which then runs the
    command of the task and treats its exit status as that of the first job: a failing task deletes
    the results of the first job, and a task that ends before the first job fails for lack of
    results (snakemake-executor-plugin-slurm#447). None if the process was started for its own job,
    or if the plugin encodes the commands in another way.
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
    """Replace this process with the command that ``task_command`` returns, if any."""
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
