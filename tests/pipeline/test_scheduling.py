"""Snakemake's default limit of jobs a second goes on this machine, and nothing else does."""

from types import SimpleNamespace

import pytest

from benchmark_eval.pipeline.snakemake_compat import look_only_when_a_job_ends


def workflow(limit=(100, 1), local=True, limiter="job_rate_limiter"):
    jobs, seconds = limit
    return SimpleNamespace(
        local_exec=local,
        scheduling_settings=SimpleNamespace(
            max_jobs_per_timespan=SimpleNamespace(max_jobs=jobs, timespan=seconds)
        ),
        scheduler=SimpleNamespace(**{limiter: "as it was"}),
    )


def test_the_default_limit_is_taken_off():
    local = workflow()
    look_only_when_a_job_ends(local)
    assert vars(local.scheduler) == {"job_rate_limiter": None}


@pytest.mark.parametrize(
    "other", [workflow(limit=(9, 1)), workflow(local=False), workflow(limiter="another_name")]
)
def test_whatever_else_stays(other):
    before = dict(vars(other.scheduler))
    look_only_when_a_job_ends(other)
    assert vars(other.scheduler) == before


def test_a_snakemake_without_such_a_setting_is_left_alone():
    other = workflow()
    other.scheduling_settings = None
    look_only_when_a_job_ends(other)
    assert other.scheduler.job_rate_limiter == "as it was"
