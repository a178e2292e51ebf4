# What all rules share: the plan of the sweep and functions that look files up in it.
import gc

from snakemake.logging import logger

from benchmark_eval.pipeline.cluster import require_plain_names, require_room_for_arrays
from benchmark_eval.inputs.config import normalise_config
from benchmark_eval.core.errors import unwritable
from benchmark_eval.pipeline.plan import load_plan, park_outdated, settle_outdated
from benchmark_eval.pipeline.recovery import (
    clear_killed_run,
    forget_faulty,
    not_evaluated,
    note_finished,
    note_running,
    other_run,
    set_aside_faulty,
)
from benchmark_eval.pipeline.snakemake_compat import look_only_when_a_job_ends
from benchmark_eval.pipeline.fingerprints import require_same_package

ENVIRONMENT = workflow.source_path("../../environment.yml")

# What is loaded by now stays. Python's search for garbage would go through all of it again and again
# while jobs are planned.
gc.freeze()


def on_disk(path):
    """Where a file of a rule lies, when this workflow is a module with a prefix.

    Only while the workflow is read: afterwards Snakemake has forgotten the prefix.
    """
    return str(workflow.modifier.modify_path(path))


def plain(fault):
    """A fault of the library as one that Snakemake prints without a traceback."""
    return WorkflowError(str(fault))


RESULTS = on_disk("results")
STATE = on_disk("results/.state")
NOTE = on_disk("results/.state/running.json")
MODELS_FOLDER = on_disk("results/models")
LOGS_FOLDER = on_disk("results/logs/evaluate_model")
REPORT = on_disk("results/aggregated/report.md")

try:
    if workflow.is_main_process or workflow.remote_exec:
        require_same_package()
    if workflow.is_main_process:
        if clear_killed_run(NOTE, RESULTS):
            logger.info("The last run was killed; its unfinished jobs will run again.")
    # while another run works here, its stamps stay as they are: its jobs were planned by them
    MAIN = workflow.is_main_process and not other_run(NOTE)
    PLAN = load_plan(normalise_config(config), RESULTS, main=MAIN, tell=logger.info)
except BenchmarkEvalError as fault:
    raise plain(fault) from None
except UnicodeEncodeError as fault:
    raise plain(unwritable(fault)) from None


# A name has no slash; whether it is a model of the manifest, the plan tells. All names as one pattern
# would be exact too, but Snakemake scans it for every file of every job (1,530 models: 5 seconds).
wildcard_constraints:
    model="[^/]+",


def asked(find, *args):
    """What the plan finds, or its fault in Snakemake's words."""
    try:
        return find(*args)
    except BenchmarkEvalError as fault:
        raise plain(fault) from None


# The user's own files, taken as they lie: rules mark them ancient, because stamps tell when their
# content changes, and local, because paths in the config start at the working directory even where
# this workflow is a module with a prefix.


def require_that_a_cluster_can(jobs):
    """Stop before the first job if these go to a cluster and one would not arrive there."""
    if not workflow.local_exec:
        models = [job.wildcards.model for job in jobs if "model" in job.wildcards_dict]
        asked(require_plain_names, models)
        asked(
            require_room_for_arrays,
            workflow.executor_settings,
            workflow.resource_settings.nodes,
            len(models),
        )


def benchmark_files(wildcards):
    return asked(PLAN.benchmark_files)


def prediction_files(wildcards):
    return asked(PLAN.prediction_files, wildcards.model)


def manifest_files(wildcards):
    return asked(PLAN.manifest_files)


def summaries(wildcards):
    asked(PLAN.require_set)
    return [f"results/models/{m}/{m}_summary.json" for m in PLAN.models]


def absent_model_files(wildcards):
    """What evaluations leave beside the summaries that the tables ask for, where it is not there.

    What is there needs no asking for: an evaluation that runs again makes all its files. To ask
    for each of them costs Snakemake a second for a thousand models.
    """
    asked(PLAN.require_set)
    paths = rules.evaluate_model.output  # with the prefix of a module, and marked so
    return [
        path.format(model=model)
        for path, plain in zip(paths, map(str, paths))
        for model in PLAN.models
        if not os.path.exists(plain.format(model=model))
    ]


def summaries_of(regime):
    """An input function: the summaries of one regime's models."""

    def of_regime(wildcards):
        asked(PLAN.require_set)
        return [f"results/models/{m}/{m}_summary.json" for m in PLAN.of_regime(regime)]

    return of_regime


def tell_warnings(report):
    """A line at the end of a run for who reads nothing else of its log."""
    from benchmark_eval.report.document import warnings_told

    told = warnings_told(report)
    if told:
        logger.warning(told)


def tell_not_evaluated():
    """Lines at the end of a run that failed: which models it has not evaluated."""
    left = [job.wildcards.model for job in EVALUATIONS if not workflow.dag.finished(job)]
    if left:
        logger.error(not_evaluated(left, LOGS_FOLDER))
