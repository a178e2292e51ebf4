# Shared by all rules: the plan of the sweep, and functions that look up files in it.
import gc

from snakemake.logging import logger

from benchmark_eval.core.errors import unwritable
from benchmark_eval.inputs.config import normalise_config, require_unique_keys
from benchmark_eval.pipeline import snakemake_compat
from benchmark_eval.pipeline.fingerprints import require_same_package
from benchmark_eval.pipeline.outdated import hold, remove_outdated
from benchmark_eval.pipeline.plan import load_plan, not_evaluated

# Imported modules stay in memory. Freezing them keeps the garbage collector from scanning them again
# and again while jobs are planned.
gc.freeze()


def on_disk(path):
    """Path of a rule's file on disk, also if this workflow is a module with a prefix.

    Can only be called while the Snakefile is being parsed.
    """
    return snakemake_compat.on_disk(workflow, path)


def workflow_error(error):
    """Convert an error of the library to one that Snakemake prints without a traceback."""
    return WorkflowError(str(error))


def call(function, *args):
    """Call a library function; its errors become workflow errors."""
    try:
        return function(*args)
    except BenchmarkEvalError as error:
        raise workflow_error(error) from None


RESULTS = on_disk("results")
STATE = on_disk("results/.state")
MODELS_FOLDER = on_disk("results/models")
LOGS_FOLDER = on_disk("results/logs/evaluate_model")
REPORT = on_disk("results/aggregated/report.md")

try:
    PLANS = snakemake_compat.plans(workflow)
    if PLANS or snakemake_compat.runs_elsewhere(workflow):
        require_same_package()
    require_unique_keys(snakemake_compat.config_files(workflow))
    CONFIG = normalise_config(config)
    # do not rewrite the fingerprints while another process uses them: its jobs were planned with them
    HELD = PLANS and (bool(CONFIG.unset()) or hold(STATE))
    PLAN = load_plan(CONFIG, RESULTS, main=HELD, log=logger.info)
except BenchmarkEvalError as error:
    raise workflow_error(error) from None
except UnicodeEncodeError as error:
    raise workflow_error(unwritable(error)) from None


# Model names contain no slash; the plan checks whether a model is in the manifest. A pattern of all
# names would be exact, but Snakemake matches it for every file of every job (5 s for 1,530 models).
wildcard_constraints:
    model="[^/]+",


# Every job is a shell command that runs a script of workflow/scripts with this Python. Params that
# are functions of input do not trigger a rerun, so moving the environment or cloning the repository
# again does not either. Modification times of scripts, which trigger reruns of script: jobs, are not
# compared.


def python(wildcards, input):
    return sys.executable


def script(name):
    """Return a params function that gives the path of a script of the workflow."""
    path = f"../scripts/{name}.py"
    found = snakemake_compat.beside_rules(workflow, path) or str(workflow.source_path(path))
    return lambda wildcards, input: found


# The user's input files. Rules mark them ancient, because fingerprints detect changes of their
# content, and local, because paths in the config are relative to the working directory even if this
# workflow is a module with a prefix. Outputs of rules must not be marked ancient.


def benchmark_files(wildcards):
    return call(PLAN.benchmark_files)


def prediction_files(wildcards):
    return call(PLAN.prediction_files, wildcards.model)


def manifest_files(wildcards):
    return call(PLAN.manifest_files)


def summaries(wildcards):
    call(PLAN.require_set)
    return [f"results/models/{m}/{m}_summary.json" for m in PLAN.models]


def absent_model_files(wildcards):
    """Missing output files of evaluations, without the summaries that the tables require anyway.

    Files that exist need not be requested: an evaluation that reruns writes all its files.
    Requesting every file would cost Snakemake one second per thousand models.
    """
    call(PLAN.require_set)
    # These paths include the prefix of a module. local() keeps Snakemake from adding it again:
    # before version 9.26, format() drops its own mark.
    paths = map(str, rules.evaluate_model.output)
    return [
        local(path.format(model=model))
        for path in paths
        for model in PLAN.models
        if not os.path.exists(path.format(model=model))
    ]


def summaries_of(regime):
    """Return an input function that gives the summaries of the models of one regime."""

    def of_regime(wildcards):
        call(PLAN.require_set)
        return [f"results/models/{m}/{m}_summary.json" for m in PLAN.of_regime(regime)]

    return of_regime


def require_runnable(models):
    """Stop before the first job if another process uses the results or a cluster cannot run it."""
    if not HELD:
        raise WorkflowError(
            f"another Snakemake process is using {RESULTS}; nothing was run. "
            "Wait until it has finished (dry runs count too), then run again"
        )
    call(snakemake_compat.require_cluster_can, workflow, models)


def log_warnings(report):
    """Log the number of models with warnings at the end of a run, where it is not overlooked."""
    from benchmark_eval.report.document import warnings_notice

    line = warnings_notice(report)
    if line:
        logger.warning(line)


def log_not_evaluated():
    """Log the models that were not evaluated at the end of a failed run."""
    left = snakemake_compat.models_of(snakemake_compat.unfinished(workflow, EVALUATIONS))
    if left:
        logger.error(not_evaluated(left, LOGS_FOLDER))
