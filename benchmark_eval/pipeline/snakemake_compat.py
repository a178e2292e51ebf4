"""When Snakemake looks for jobs to start on this machine."""

from __future__ import annotations

from typing import Any

_DEFAULT = (100, 1)
"""Snakemake's own limit: jobs, and seconds in which so many may be started."""
_LIMITER = "job_rate_limiter"
"""What holds the limit in Snakemake's scheduler."""


def look_only_when_a_job_ends(workflow: Any) -> None:
    """Take Snakemake's default limit of jobs a second off a run on this machine.

    ``workflow`` is Snakemake's object, once its scheduler is there (``onstart``). Under a limit
    each look through the waiting jobs plans another one a second later, and each job that ends
    starts one more such series; so the looks a second grow with the jobs done, until they keep a
    core busy. No local run of evaluations comes near the default limit. Another limit, clusters,
    and a Snakemake that has no such parts stay as they are. (Found with 9.27.)
    """
    limit = getattr(workflow.scheduling_settings, "max_jobs_per_timespan", None)
    found = (getattr(limit, "max_jobs", None), getattr(limit, "timespan", None))
    if workflow.local_exec and found == _DEFAULT and hasattr(workflow.scheduler, _LIMITER):
        setattr(workflow.scheduler, _LIMITER, None)
