"""What the workflow must know about clusters beyond its profile: where jobs sent there go wrong.

All of it was found with Snakemake 9.27, snakemake-executor-plugin-slurm 2.8 and its job step 0.6,
and stays harmless once they do better.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.problems import SHOWN_PER_KIND
from benchmark_eval.core.text import some_of

_NOT_ON_CLUSTERS = set(',"$`%')

EXECS = "--slurm-jobstep-array-execs"
"""The option by which an array job hands every task's command to each of its tasks."""


def task_command(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The command of this array task, where this process has been started for another one.

    Every task of an array starts the Snakemake of its *first* job, which then starts the task's
    own command and takes the fate of that for the fate of the first job: a task that fails
    deletes the first job's results, and one that ends before the first job has no results to
    show. None where the process was started for its own job.
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
        return None  # a plugin that packs them another way goes its own way


def become_array_task() -> None:
    """Where ``task_command`` names one: go on as that command, and end as it ends."""
    command = task_command(sys.argv, os.environ)
    if command is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv("/bin/sh", ["/bin/sh", "-c", command])


def require_room_for_arrays(settings: Any, jobs: int | None, models: int) -> None:
    """Raise UsageError where array jobs are wanted but not all ``models`` may be submitted.

    ``settings`` are those of the executor, ``jobs`` is Snakemake's limit. Once it is reached the
    plugin forgets jobs that it was given, and the run would wait for them forever.
    """
    if getattr(settings, "array_jobs", None) and jobs is not None and jobs < models:
        raise UsageError(
            f"array jobs for {models} models, but only {jobs} jobs at a time (--jobs): the Slurm "
            "plugin loses jobs that have to wait, and the run would never end. Take --jobs away, "
            "or submit single jobs: --slurm-array-jobs ''"
        )


def require_plain_names(models: Iterable[str]) -> None:
    """Raise UsageError naming the ``models`` whose names do not survive the way to a cluster.

    Snakemake hands a job to a cluster as text: it cuts wildcards at commas, and a shell reads the
    command within double quotes; Slurm reads % in the names of its logs.
    """
    odd = [name for name in models if set(name) & _NOT_ON_CLUSTERS]
    if odd:
        shown = some_of([repr(name) for name in odd], SHOWN_PER_KIND)
        raise UsageError(
            f"model names with {' '.join(sorted(_NOT_ON_CLUSTERS))} cannot be run on a cluster: "
            f"{shown}. Rename these models (manifest and folder), or run them here: "
            "snakemake --cores all"
        )


def _option(arguments: Sequence[str], name: str) -> str | None:
    """The value of a long option, given as ``--name value`` or ``--name=value``."""
    for place, argument in enumerate(arguments):
        if argument == name:
            return arguments[place + 1] if place + 1 < len(arguments) else None
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None
