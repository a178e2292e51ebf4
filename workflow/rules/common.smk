# What all rules share: the plan of the sweep and functions that look files up in it.
import gc

from snakemake.logging import logger

from benchmark_eval.core.errors import unwritable
from benchmark_eval.inputs.config import normalise_config
from benchmark_eval.pipeline import snakemake_compat
from benchmark_eval.pipeline.fingerprints import require_same_package
from benchmark_eval.pipeline.outdated import hold, remove_outdated
from benchmark_eval.pipeline.plan import load_plan, not_evaluated

ENVIRONMENT = workflow.source_path("../../environment.yml")

# What is loaded by now stays. Python's search for garbage would go through all of it again and again
# while jobs are planned.
gc.freeze()


def on_disk(path):
    """Where a file of a rule is, when this workflow is a module with a prefix (while it is read)."""
    return snakemake_compat.on_disk(workflow, path)


def plain(error):
    """An error of the library as one that Snakemake prints without a traceback."""
    return WorkflowError(str(error))


def asked(find, *args):
    """What the library finds, or its error in Snakemake's words."""
    try:
        return find(*args)
    except BenchmarkEvalError as error:
        raise plain(error) from None


RESULTS = on_disk("results")
STATE = on_disk("results/.state")
MODELS_FOLDER = on_disk("results/models")
LOGS_FOLDER = on_disk("results/logs/evaluate_model")
REPORT = on_disk("results/aggregated/report.md")

try:
    PLANS = snakemake_compat.plans(workflow)
    if PLANS or snakemake_compat.runs_elsewhere(workflow):
        require_same_package()
    CONFIG = normalise_config(config)
    # while another process works here, its fingerprints stay as they are: its jobs were planned by them
    HELD = PLANS and (bool(CONFIG.unset()) or hold(STATE))
    PLAN = load_plan(CONFIG, RESULTS, main=HELD, log=logger.info)
except BenchmarkEvalError as error:
    raise plain(error) from None
except UnicodeEncodeError as error:
    raise plain(unwritable(error)) from None


# A name has no slash; whether it is a model of the manifest, the plan says. All names as one pattern
# would be exact too, but Snakemake scans it for every file of every job (1,530 models: 5 seconds).
wildcard_constraints:
    model="[^/]+",


# Every job is a command: this Python and a script of workflow/scripts. Params that are functions of
# input are no reason to run again, so neither a moved environment nor a fresh clone is one; and the
# dates of scripts, which Snakemake compares for script: jobs, are not looked at.


def python(wildcards, input):
    return sys.executable


def script(name):
    """A params function: the path of a script of the workflow."""
    path = f"../scripts/{name}.py"
    found = snakemake_compat.beside_rules(workflow, path) or str(workflow.source_path(path))
    return lambda wildcards, input: found


# The user's own files, taken as they are: rules mark them ancient, because fingerprints show when
# their content changes, and local, because paths in the config start at the working directory even
# where this workflow is a module with a prefix. No file that a rule makes may be marked ancient.


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

    What is there need not be asked for: an evaluation that runs again makes all its files. To ask
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


def require_that_it_can_run(models):
    """Stop before the first job if another process works here, or a cluster would spoil a name."""
    if not HELD:
        raise WorkflowError(
            f"another Snakemake process is using {RESULTS}; nothing was run. "
            "Wait for its end (a dry run counts too), then run again"
        )
    asked(snakemake_compat.require_cluster_can, workflow, models)


def log_warnings(report):
    """A line at the end of a run for who reads nothing else of its log."""
    from benchmark_eval.report.document import warnings_told

    line = warnings_told(report)
    if line:
        logger.warning(line)


def log_not_evaluated():
    """Lines at the end of a run that failed: which models it has not evaluated."""
    left = snakemake_compat.models_of(snakemake_compat.unfinished(workflow, EVALUATIONS))
    if left:
        logger.error(not_evaluated(left, LOGS_FOLDER))
