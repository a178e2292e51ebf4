# Shared by all rules: the plan of the sweep, and functions that look up files in it.
import gc

from snakemake.logging import logger

from benchmark_eval.core.errors import unwritable
from benchmark_eval.inputs.config import normalise_config
from benchmark_eval.pipeline import snakemake_compat
from benchmark_eval.pipeline.fingerprints import require_same_package
from benchmark_eval.pipeline.outdated import hold, remove_outdated
from benchmark_eval.pipeline.plan import load_plan, not_evaluated

ENVIRONMENT = workflow.source_path("../../environment.yml")

# Everything loaded so far stays in memory; without freeze(), the garbage collector would scan it
# again and again while jobs are planned.
gc.freeze()


def on_disk(path):
    """The path of a rule's file, also in a module with a prefix (while the Snakefile is parsed)."""
    return snakemake_compat.on_disk(workflow, path)


def plain(error):
    """An error of the library as one that Snakemake prints without a traceback."""
    return WorkflowError(str(error))


def asked(find, *args):
    """The result of a library function; its errors become errors of Snakemake."""
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
    # another process that uses this folder has planned its jobs with these fingerprints: keep them
    HELD = PLANS and (bool(CONFIG.unset()) or hold(STATE))
    PLAN = load_plan(CONFIG, RESULTS, main=HELD, log=logger.info)
except BenchmarkEvalError as error:
    raise plain(error) from None
except UnicodeEncodeError as error:
    raise plain(unwritable(error)) from None


# A name has no slash; the plan checks whether it is in the manifest. A pattern of all names would be
# exact too, but Snakemake matches it with every file of every job (1,530 models: 5 seconds).
wildcard_constraints:
    model="[^/]+",


# Every job is a command that runs a script of workflow/scripts with this Python. Params that are
# functions of input do not trigger a rerun, so a moved environment or a fresh clone does not either.
# Unlike for script: jobs, Snakemake does not compare the timestamps of the scripts.


def python(wildcards, input):
    return sys.executable


def script(name):
    """A params function: the path of a script of the workflow."""
    path = f"../scripts/{name}.py"
    found = snakemake_compat.beside_rules(workflow, path) or str(workflow.source_path(path))
    return lambda wildcards, input: found


# The user's own files. Rules mark them ancient, because fingerprints show when their content changes,
# and local, because paths in the config are relative to the working directory even if this workflow
# is a module with a prefix. No file that a rule makes may be marked ancient.


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
    """The missing output files of evaluations; the tables request only the summaries.
    Existing files need not be requested, because an evaluation that runs again writes all its
    files. Requesting all of them would cost Snakemake a second per thousand models.
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
    """Stop before the first job if another process uses the folder or a name breaks on a cluster."""
    if not HELD:
        raise WorkflowError(
            f"another Snakemake process is using {RESULTS}; nothing was run. "
            "Wait until it has finished (it may be a dry run), then run again"
        )
    asked(snakemake_compat.require_cluster_can, workflow, models)


def log_warnings(report):
    """At the end of a run, log how many models have warnings."""
    from benchmark_eval.report.document import warnings_told

    line = warnings_told(report)
    if line:
        logger.warning(line)


def log_not_evaluated():
    """At the end of a failed run, log which models were not evaluated."""
    left = snakemake_compat.models_of(snakemake_compat.unfinished(workflow, EVALUATIONS))
    if left:
        logger.error(not_evaluated(left, LOGS_FOLDER))
