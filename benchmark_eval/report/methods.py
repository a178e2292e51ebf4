"""The end of the report: methods to paste into a paper, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import budget_text
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.markdown import escape, listing, table
from benchmark_eval.results.registry import HEADLINE, SPLIT_LABEL
from benchmark_eval.sweep.completeness import by_condition
from benchmark_eval.sweep.tables import CSV_FILES, Aggregated, ModelWarnings
from benchmark_eval.sweep.verdicts import ALPHA, Word

BENCHMARK_DOI = "10.5281/zenodo.22695714"


def what_was_run(facts: Facts) -> list[str]:
    """The models, the splits and the options in a few lines, and the size of the splits."""
    data = facts.data
    conditions = {(row.regime, row.k_or_p) for row in data.learning_curves}
    seeds = sorted({seed for row in data.learning_curves for seed in row.seeds})
    named = (
        f" of {counted(len(facts.look.architectures), 'architecture')} "
        f"({listing([escape(name) for name in facts.look.architectures])})"
        if facts.look.several
        else ""
    )
    options = data.inputs.options
    lines = [
        f"{counted(len(data.models), 'model')}{named} under "
        f"{counted(len(conditions), 'training condition')}, seeds "
        f"{listing([str(seed) for seed in seeds])}, evaluated on "
        f"{listing([str(split) for split in options.get('splits', [])])}.",
        "",
    ]
    if data.benchmark.description:
        lines += [f"Dataset description: *{escape(data.benchmark.description)}*", ""]
    header = [
        "Split",
        "Description",
        "Images",
        "Scored specimens",
        "Crowd regions",
        "Scored species",
    ]
    return lines + table(
        header,
        [
            [
                name,
                SPLIT_LABEL.get(name, ""),
                *(
                    f"{n:,}"
                    for n in (split.n_images, split.n_scored, split.n_crowd, split.n_species)
                ),
            ]
            for name, split in data.benchmark.splits.items()
        ],
        left=2,
    )


def methods(facts: Facts) -> list[str]:
    """Versions, options, statistics, number of tests and citation."""
    data = facts.data
    inputs, options = data.inputs, data.inputs.options
    label = BY_NAME[HEADLINE[0]].metric.label
    return [
        f"Detections were evaluated with benchmark-eval {inputs.package_version} on the benchmark "
        f"with SHA-256 `{data.benchmark.digest}` ({listing(list(data.benchmark.splits))}), by the "
        f"{options.get('engine')} engine. AP and AR are those of COCO, AP as a mean over species; "
        "other metrics match detections and specimens at an IoU of "
        f"{options.get('iou_threshold')}, whatever species is predicted. Crowd regions are "
        "ignored. "
        + (
            f"The operating threshold was set to {options['operating_confidence']}."
            if options.get("operating_confidence") is not None
            else "The operating threshold of a model is that of the best F1 on iid_test, on every "
            "split."
        ),
        "",
        "Intervals have a level of 95 %. Unless they name another source, they cover other species "
        "of the same kind and retraining with other seeds: a two-way analysis of variance over "
        "species and seeds, with the larger of its variance estimates and Cochran's quantile. "
        "'Retraining' intervals cover other seeds only (Student's t, moderated by the variance of "
        "the other conditions where there are at least 15 of them); 'species' intervals cover "
        "other species, of the models at hand. Pooled shares have the Bell-McCaffrey interval of "
        "clusters (species) on the logit scale; recall by distance band at equal density is "
        "standardised to the density strata of the near specimens; novelty detection has "
        "percentiles of a bootstrap over species; retention on field photographs has the jackknife "
        "over species; a number of images has the costs at which the test of its result does not "
        "reject (inverted test). All seeds share the same test images. Seeds of equal number are "
        "assumed to share their training images, unless the manifest names training annotations. "
        "No interval covers other photographs or errors "
        "of the annotations.",
        "",
        "Differences are paired by species and seed. The comparisons were fixed before the "
        "results: by "
        f"{label} on iid_test, {label} on inat_test, and the mean over species of "
        "detection recall on semantic_ood, in this order. The best condition is compared with all "
        "others by Tukey's range test; those that do not differ from it are its tie group. All "
        f"other p-values are two-sided and adjusted by Holm's method within a question; a verdict "
        f"is 'higher' or 'lower' if the adjusted p-value is below {ALPHA}, 'inconclusive after "
        "correction' if only the plain 95 % interval excludes 0, 'inconclusive' otherwise, and "
        "'not tested' with its reason. An inconclusive difference is not a proof of equality. "
        f"{_n_tests(facts)}",
        "",
        *_tests_table(facts),
        "",
        "To cite: benchmark-eval "
        f"{inputs.package_version} (`CITATION.cff`), and the Bark and Ambrosia Beetle Detection "
        f"Benchmark (Marais et al. 2026, DOI {BENCHMARK_DOI}).",
        "",
        *table(
            ["Item", "Value"],
            [
                ["benchmark-eval", inputs.package_version],
                ["Benchmark (SHA-256)", f"`{data.benchmark.digest}`"],
                ["Manifest (SHA-256 of its content)", f"`{inputs.manifest}`"],
                ["Scoring code (SHA-256)", f"`{inputs.scoring_code}`"],
                *(
                    [f"Option `{name}`", escape(_option(value))]
                    for name, value in options.items()
                    if value is not None
                ),
            ],
            left=2,
        ),
        "",
        f"The digests of the {counted(len(inputs.summaries), 'summary', 'summaries')} are in "
        "[aggregated.json](aggregated.json). Tables: "
        + ", ".join(f"[{name}]({name})" for name in CSV_FILES)
        + ".",
    ]


def _option(value: object) -> str:
    return listing([str(each) for each in value]) if isinstance(value, list) else str(value)


def _questions(facts: Facts) -> dict[tuple[str, str, str], int]:
    """The number of tests by question, metric and scope."""
    return {(row.question, row.metric, row.scope): row.n_tests for row in facts.data.comparisons}


def _n_tests(facts: Facts) -> str:
    found = [n for n in _questions(facts).values() if n]
    return (
        f"This report rests on {counted(sum(found), 'test')} in {counted(len(found), 'question')}, "
        "each with a probability of about 5 % of any false 'higher' or 'lower' (up to 10 % is "
        "accepted in the simulations of docs/statistics.md if the variances between seeds are "
        f"unequal). If no difference exists, {ALPHA} x {len(found):,} = {ALPHA * len(found):.1f} "
        "questions are expected to have a false verdict."
        if found
        else "Nothing was tested."
    )


def _tests_table(facts: Facts) -> list[str]:
    by_question: dict[str, list[int]] = {}
    for (question, _, _), n in _questions(facts).items():
        by_question.setdefault(question, []).append(n)
    untested: dict[str, int] = {}
    for row in facts.data.comparisons:
        untested[row.question] = untested.get(row.question, 0) + (row.verdict == Word.NOT_TESTED)
    rows = [
        [name, f"{sum(n > 0 for n in numbers):,}", f"{sum(numbers):,}", f"{untested[name]:,}"]
        for name, numbers in by_question.items()
    ]
    header = ["Comparisons", "Questions", "Tests", "Not tested"]
    return table(header, rows) if rows else []


def missing(facts: Facts) -> list[str]:
    """The cells of the sweep without a result, and what the tables lack."""
    data = facts.data
    lines = []
    for condition, cells in by_condition(data.missing).items():
        place = f"{escape(condition.architecture)}, " if facts.look.several else ""
        gone = [
            f"seed {c.seed} ({escape(c.model)}: no result)" if c.model else f"seed {c.seed}"
            for c in cells
        ]
        rest = "" if any(c.model for c in cells) else " (not in the manifest)"
        named = f"{condition.regime} {budget_text(condition.regime, condition.k_or_p)}"
        lines.append(f"- {place}{named}: {listing(gone)}{rest}")
    lines += [
        f"- Regime {regime}: not in the manifest"
        for regime in REGIMES
        if not any(row.regime == regime for row in data.learning_curves)
    ]
    lines += [
        f"- Split {split}: not evaluated"
        for split in SPLIT_LABEL
        if split != "train" and split not in data.inputs.options.get("splits", [])
    ]
    if "train" not in data.benchmark.splits:
        lines.append(
            "- train.json: not in the benchmark, so that costs, tiers and identical training sets "
            "are unknown"
        )
    lines += [
        f"- {BY_NAME[name].label}: undefined for every model"
        for name in HEADLINE
        if not any(row.metrics[name].n for row in data.learning_curves)
        and BY_NAME[name].split in data.inputs.options.get("splits", [])
    ]
    if data.without_evidence:
        lines.append(
            f"- Evidence (`<model>_evidence.npz`) of {counted(len(data.without_evidence), 'model')}"
            f" ({listing([escape(name) for name in data.without_evidence], most=5)}): the tables "
            "of errors, confusions, density within bands and confidence lack them"
        )
    if not lines:
        lines = ["Nothing: every condition of the manifest has all seeds."]
    if data.unlisted_summaries:
        lines += [
            "",
            "Not used, because the manifest does not list them: summaries of "
            f"{listing([escape(name) for name in data.unlisted_summaries])}.",
        ]
    return lines


def identical(data: Aggregated) -> list[str]:
    """The models that share prediction files."""
    return [
        f"- {listing(item.splits)}, {counted(len(item.models), 'model')} "
        f"({listing([escape(name) for name in item.models], most=5)}): identical prediction files. "
        "Seeds of one condition with identical files are not independent: their mean has no "
        "interval, and comparisons count them once."
        for item in data.identical
    ]


def messages(items: Iterable[ModelWarnings]) -> list[str]:
    """Warnings or notes, each once with its models."""
    lines = []
    for item in items:
        names = listing([escape(name) for name in item.models], most=5)
        text = escape(item.text)
        if not item.alike:
            text = f"numbers differ, for example: {text}"
        lines.append(f"- {item.split}, {counted(len(item.models), 'model')} ({names}): {text}")
    return lines
