# Shared by all rules: the plan of the sweep, and functions that look up files in it.
import functools
import gc

from snakemake.logging import logger

from benchmark_eval.core.errors import unwritable
from benchmark_eval.inputs.config import normalise_config, require_unique_keys
from benchmark_eval.pipeline import snakemake_compat
from benchmark_eval.pipeline.fingerprints import require_same_package
from benchmark_eval.pipeline.outdated import hold, results_of
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


def call_or_stop(function, *args):
    """Call a library function in an input function; its errors stop Snakemake.

    Snakemake would print any other exception of an input function with a traceback.
    """
    try:
        return function(*args)
    except BenchmarkEvalError as error:
        logger.error(str(error))
        raise SystemExit(1) from None


RESULTS = on_disk("results")
STATE = on_disk("results/.state")
MODELS_FOLDER = on_disk("results/models")
INDEX = on_disk("results/benchmark/index.npz")
LOGS_FOLDER = on_disk("results/logs/evaluate_model")
REPORT = on_disk("results/aggregated/report.md")

try:
    PLANS = snakemake_compat.plans(workflow)
    snakemake_compat.require_disk(workflow)
    if PLANS or snakemake_compat.runs_elsewhere(workflow):
        require_same_package()
    require_unique_keys(snakemake_compat.config_files(workflow))
    PLAN = load_plan(normalise_config(config), RESULTS, main=PLANS, log=logger.info)
except BenchmarkEvalError as error:
    raise workflow_error(error) from None
except UnicodeEncodeError as error:
    raise workflow_error(unwritable(error)) from None


def own_name(rule):
    """Name of a rule in messages and options, where a module may give it another one."""
    try:
        return getattr(rules, rule).rule.name
    except (AttributeError, WorkflowError):  # a rule that was not imported
        return rule


@functools.cache
def start():
    """Called by all input functions: the first call of a run that starts jobs writes its plan.

    Dry runs and queries (--summary, --report, --touch, ...) write nothing.
    """
    call_or_stop(PLAN.require_set)
    whole = ["sweep", own_name("all"), own_name("tables")]
    call_or_stop(snakemake_compat.require_batches_of, workflow, own_name("aggregate"), whole)
    if PLANS and snakemake_compat.chooses_jobs(workflow):
        call_or_stop(PLAN.require_own_results)
        for line in PLAN.why_outdated():
            logger.info(line)
    if PLANS and snakemake_compat.starts_jobs(workflow):
        call_or_stop(hold, STATE)
        call_or_stop(PLAN.write)


# Model names contain no slash; the plan checks whether a model is in the manifest. A pattern of all
# names would be exact, but Snakemake matches it for every file of every job (5 s for 1,530 models).
wildcard_constraints:
    model="[^/]+",


# Every job is a shell command that runs a script of workflow/scripts with this Python. All params are
# functions of input: Snakemake does not compare them, because fingerprints contain every option that
# affects a result. So a moved environment, another clone of the repository, or the same data under
# another path reruns nothing. The user's files are not inputs of rules for the same reason.


def python(wildcards, input):
    return sys.executable


def script(name):
    """Return a params function that gives the path of a script of the workflow."""
    path = f"../scripts/{name}.py"
    found = snakemake_compat.beside_rules(workflow, path) or str(workflow.source_path(path))
    return lambda wildcards, input: found


def param(function):
    """A params function that gives the value of ``function()``."""
    return lambda wildcards, input: function()


def fingerprint(part):
    """A params function that gives the path of the fingerprint of benchmark, sweep or report."""
    return lambda wildcards, input: str(PLAN.layout.fingerprint(part))


def text_of(value):
    """An option of the config as text, empty for null."""
    return "" if value is None else str(value)


def operating_option():
    """The option --operating-confidence of an evaluation, if the config sets it."""
    value = PLAN.config.operating_confidence
    return [] if value is None else ["--operating-confidence", value]


def predictions_dir(wildcards, input):
    return str(Path(call(PLAN.prediction_files, wildcards.model)[0]).parent)


# Memory of an evaluation per MB of predictions (MB); docs/cluster.md has the measurements.
MEMORY_PER_MB = {"fast": 4, "pycocotools": 15}[PLAN.config.engine]


def predictions_mb(wildcards):
    return call(PLAN.prediction_mb, wildcards.model)


# What each job reads from other jobs. Its record decides whether it runs. If its results are up to
# date, its inputs are ancient: neither their modification times nor a repeated job before it (which
# gives the same bytes) make it run. Otherwise they must not be ancient, because Snakemake drops jobs
# behind an ancient input when the maker of the input runs (snakemake#4166). If the command line forces
# a job, the inputs of jobs after it are not ancient, so that they run too, as usual in Snakemake.
#
# The record of the index stands for the index itself: a deleted index is recreated for the jobs that
# read it, but does not make others run.


def recorded(part):
    """The record of the index, the tables (sweep), the plots or the report."""
    return f"results/.state/{PLAN.record(part)}"


def files_of(part):
    """The files of the index, the tables (sweep), the plots or the report."""
    return list(map(str, results_of(part, "results", PLAN.config.plot_formats)))


def unless_current(rule, current, paths):
    """The inputs of a job, marked as ancient if its results are up to date."""
    start()
    if not PLANS:
        return paths
    if current and not snakemake_compat.forces_before(workflow, rule):
        return [ancient(path) for path in paths]
    if recorded("index") in paths and not os.path.exists(INDEX):
        call_or_stop(snakemake_compat.force, workflow, INDEX)
    return paths


def read_by(rule, part, paths):
    """Input function of the job that makes the tables (sweep), the plots or the report."""

    def inputs(wildcards):
        current = PLAN.is_current(part) and not (part == "sweep" and PLAN.outdated)
        return unless_current(rule, current, paths)

    return inputs


def read_by_model(path):
    """Input function of an evaluation, which runs if its model is outdated."""

    def inputs(wildcards):
        model = wildcards.model
        # an error if the manifest does not list the model
        call_or_stop(PLAN.prediction_files, model)
        if model in PLAN.outdated:
            call_or_stop(snakemake_compat.force, workflow, PLAN.layout.summary(model))
        return unless_current("evaluate_model", model not in unfinished_models(), [path])

    return inputs


def started(wildcards):
    """Input function of a job that reads nothing from other jobs."""
    start()
    return []


def summaries_of(models):
    """Paths of the summaries of models."""
    return [f"results/models/{m}/{m}_summary.json" for m in models]


def of_regime(regime):
    """Input function that gives the summaries of the models of one regime."""

    def inputs(wildcards):
        start()
        return summaries_of(PLAN.of_regime(regime))

    return inputs


@functools.cache
def absent():
    """Missing output files of evaluations, with the model of each.

    Files that exist need not be requested: an evaluation that reruns writes all its files.
    Requesting every file would cost Snakemake one second per thousand models.
    """
    # These paths include the prefix of a module. local() keeps Snakemake from adding it again:
    # before version 9.26, format() drops its own mark.
    return [
        (local(path.format(model=model)), model)
        for path in map(str, rules.evaluate_model.output)
        for model in PLAN.models
        if not os.path.exists(path.format(model=model))
    ]


def absent_model_files(wildcards):
    start()
    batch = snakemake_compat.batch(workflow)
    if batch is not None and batch.idx < batch.batches:  # only those of the batch
        return []
    return [path for path, _ in absent()]


@functools.cache
def unfinished_models():
    """Models whose results are not up to date or not complete."""
    return {*PLAN.outdated, *(model for _, model in absent())}


def shown_in(category):
    """Category of a file in Snakemake's reports, which must not show results of an earlier run.

    The category names the folder of a module with a prefix, because another one may have the same
    plots. Snakemake calls the function that is returned only when it creates a report.
    """
    folder = os.path.dirname(RESULTS)
    if folder:
        category = f"{category} ({folder})"

    def unless_outdated(wildcards):
        call_or_stop(PLAN.require_current)
        return category

    return unless_outdated


def overview():
    """What was run, for the first page of Snakemake's reports."""
    from benchmark_eval.pipeline.overview import overview

    return overview(PLAN)


def require_runnable(models):
    """Stop before the first job if a cluster cannot run it."""
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
