"""``report.md``: what was run, the results and how certain they are, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from benchmark_eval.core.outputs import Input, claim
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.core.text import counted, percent
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.captions import (
    AWAY,
    CONFIDENCE,
    DATA,
    IDENTIFICATION,
    IMBALANCE,
    PLOTS,
    TARGETS,
)
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.report.markdown import cell, escape, listing, table
from benchmark_eval.report.sentences import Facts, budget, images, label
from benchmark_eval.results.registry import BAND_LABEL, HEADLINE, SPLIT_LABEL
from benchmark_eval.sweep import tables
from benchmark_eval.sweep.aggregation import assemble, read_sweep, sweep_inputs
from benchmark_eval.sweep.comparisons import (
    FALSE_OVER_DIFFERENCES,
    FALSE_OVER_MEANS,
    expected_false,
)
from benchmark_eval.sweep.completeness import by_condition
from benchmark_eval.sweep.prices import Prices
from benchmark_eval.sweep.tables import CSV_FILES, Aggregated, ModelWarnings

REPORT = "report.md"
SHOWN = (HEADLINE[0], "iid_AP_50", *HEADLINE[1:])
"""Columns of the headline table: AP@.5 allows comparison with published results."""
PLOTS_PLACE = "../plots"
"""The folder of the plots, relative to the report."""


def write_report(
    table: Aggregated,
    output_dir: str | Path,
    *,
    plots: str | None = PLOTS_PLACE,
    plot_format: str = "svg",
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> Path:
    """Write ``report.md`` into ``output_dir``; returns the file.

    ``plots`` is the folder of the plots relative to the report, None for a report without plots.
    ``core.outputs.claim`` describes ``inputs``, ``force`` and ``declared``. Raises UsageError if an
    existing report.md must not be replaced.
    """
    with claim(output_dir, [REPORT], inputs=inputs, force=force, declared=declared) as output:
        output.write(REPORT, render(table, plots=plots, plot_format=plot_format).encode())
        output.publish()
    return Path(output_dir) / REPORT


def aggregate_with_report(
    *,
    eval_dir: str | Path,
    manifest: str | Path,
    benchmark: str | Path,
    output_dir: str | Path,
    allow_missing: bool,
    custom_metrics: str | Path | None,
    prices: Prices,
    force: bool,
) -> Path:
    """Write the tables of a sweep, as ``aggregate`` does, and their report; returns the report.

    Both appear together, and after an error both are removed.
    """
    inputs = sweep_inputs(eval_dir, manifest, benchmark, custom_metrics)
    with tables.claim_tables(output_dir, others=[REPORT], inputs=inputs, force=force) as output:
        read = read_sweep(
            eval_dir=eval_dir,
            manifest=manifest,
            benchmark=benchmark,
            allow_missing=allow_missing,
            custom_metrics=custom_metrics,
            prices=prices,
        )
        made = assemble(read)
        output.write(REPORT, render(made).encode())
        tables.write(made, output)
    return Path(output_dir) / REPORT


def render(table: Aggregated, *, plots: str | None = PLOTS_PLACE, plot_format: str = "svg") -> str:
    """The text of ``report.md``."""
    facts = Facts(table)
    targets = any(row.split == "iid_test" and row.AP_50.n for row in table.target_species_curves)

    def pictures(question: str) -> list[str]:
        if plots is None:
            return []
        lines = []
        for plot in PLOTS:
            if plot.question == question and (question != TARGETS or targets):
                picture = f"![{plot.title}]({plots}/{plot.name}.{plot_format})"
                lines += [picture, "", f"*{plot.title}.* {plot.caption}", ""]
        return lines

    lead = HEADLINE[0]
    sections: list[tuple[str, list[str]]] = [
        ("What was run", _what_was_run(table)),
        ("Headline", _headline(facts)),
        (
            f"{DATA}: how much do more training images help?",
            [
                *facts.growth(lead),
                "",
                *facts.architectures(lead),
                *facts.regimes_at_equal_cost(lead),
                "",
                *pictures(DATA),
            ],
        ),
        (
            f"{AWAY}: how large are the gaps?",
            [*facts.field(), *facts.unseen(), *facts.density(), "", *pictures(AWAY)],
        ),
        (f"{IMBALANCE}: how large is the gap?", [*facts.imbalance(), "", *pictures(IMBALANCE)]),
        (
            f"{IDENTIFICATION}: which loses more specimens?",
            [
                *facts.decomposition("iid_test", "in distribution"),
                "",
                *facts.decomposition("inat_test", "on field photographs"),
                "",
                *facts.thresholds(),
                "",
                *pictures(IDENTIFICATION),
            ],
        ),
        (
            f"{TARGETS}: how much do more images of a species help?",
            [*facts.targets(), "", *pictures(TARGETS)],
        ),
        (f"{CONFIDENCE}: can it be trusted?", [*facts.confidence(), "", *pictures(CONFIDENCE)]),
        ("How to read these numbers", [*_rules(facts), *_caveats(table)]),
        ("What is missing", _missing(table)),
        ("Warnings", [*_identical(table), *_messages(table.warnings)] or ["None."]),
        ("Notes", _messages(table.notes) or ["None."]),
        ("All conditions", _all_conditions(facts)),
        ("Provenance", _provenance(table)),
    ]  # fmt: skip
    lines = ["# Report of the sweep", ""]
    for title, body in sections:
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(_squeezed(lines)) + "\n"


def _squeezed(lines: Iterable[str]) -> list[str]:
    """The lines without repeated empty lines and without empty lines at the end."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _what_was_run(table: Aggregated) -> list[str]:
    rows = table.learning_curves
    look = Lookup(table)
    conditions = {(row.regime, row.k_or_p) for row in rows}
    seeds = sorted({seed for row in rows for seed in row.seeds})
    named = (
        f" of {counted(len(look.architectures), 'architecture')} "
        f"({listing([escape(name) for name in look.architectures])})"
        if look.several
        else ""
    )
    options = table.inputs.options
    lines = [
        f"{counted(len(table.models), 'model')}{named} under "
        f"{counted(len(conditions), 'training condition')}, seeds "
        f"{listing([str(seed) for seed in seeds])}.",
        f"Evaluated on {listing([str(split) for split in options.get('splits', [])])} with "
        f"localisation matching at IoU {options.get('iou_threshold')} (AP and AR use their own "
        f"thresholds) and the {options.get('engine')} engine.",
        "",
    ]
    if table.benchmark.description:
        lines += [f"Dataset description: *{escape(table.benchmark.description)}*", ""]
    if table.missing:
        lines += [
            f"**Incomplete:** {counted(len(table.missing), 'cell')} of the sweep "
            f"{'has' if len(table.missing) == 1 else 'have'} no result; see "
            "[What is missing](#what-is-missing).",
            "",
        ]
    if any(row.identical for row in rows):
        lines += [
            "**Not independent:** seeds of one condition have identical prediction files; see "
            "[Warnings](#warnings).",
            "",
        ]
    lines += table_of_splits(table)
    return lines


def table_of_splits(table_: Aggregated) -> list[str]:
    """The size of each split of the benchmark."""
    return table(
        ["Split", "Description", "Images", "Scored specimens", "Crowd regions", "Scored species"],
        [
            [
                name,
                SPLIT_LABEL.get(name, ""),
                f"{facts.n_images:,}",
                f"{facts.n_scored:,}",
                f"{facts.n_crowd:,}",
                f"{facts.n_species:,}",
            ]
            for name, facts in table_.benchmark.splits.items()
        ],
        left=2,
    )


def _headline(facts: Facts) -> list[str]:
    labels = [BY_NAME[name].label for name in SHOWN]
    rows = [
        [
            escape(facts.look.label(name)),
            label(row.condition) + facts.warned(row),
            *(cell(row.metrics[metric], len(row.seeds)) for metric in SHOWN),
        ]
        for name, row in facts.best.items()
    ]
    if not rows:
        return [f"{BY_NAME[HEADLINE[0]].label} is undefined for every model of this sweep."]
    return [
        *warning_lines(facts),
        f"The best condition of each architecture, by mean {labels[0]}; mean ± standard deviation "
        "over n seeds. Because conditions are selected by this mean, it is slightly optimistic.",
        "",
        *table(["Architecture", "Best condition", *labels], rows, left=2),
        "",
        *facts.all_data(SHOWN),
        "",
        "Below, 0.540 (0.441 to 0.639; n=3) is a mean over 3 seeds with its 95 % interval "
        "(Student's t over seeds). [How to read these numbers](#how-to-read-these-numbers) "
        "explains the verdicts. The best condition is always that of this table.",
    ]


def warning_lines(facts: Facts) -> list[str]:
    """The number of models with warnings, for the top of the report."""
    n = len(facts.with_warnings)
    if not n:
        return []
    return [
        f"**{counted(n, 'model')} {'has' if n == 1 else 'have'} warnings: see "
        "[Warnings](#warnings).** Conditions with such a model are marked (warnings).",
        "",
    ]


def warnings_notice(report: str | Path) -> str | None:
    """The number of models with warnings in a written report, and its path; None without any."""
    try:
        text = read_input(report).decode("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^\*\*([\d,]+ models? ha(?:s|ve) warnings): see ", text, re.MULTILINE)
    return f"{found[1]}: see {report}" if found else None


def _rules(facts: Facts) -> list[str]:
    """How verdicts are reached and how many of those so far are expected to be false."""
    means, differences = facts.judged["means"], facts.judged["differences"]
    return [
        "- Two means, of two conditions or two architectures, are called different only if their "
        "intervals do not overlap. If there is no difference, this is wrong in about "
        f"{percent(round(1000 * FALSE_OVER_MEANS), 1000)} of comparisons.",
        "- A difference within each model (near minus far, head minus tail, a gap) is called "
        "positive or negative only if its own interval excludes 0, and a number above or below a "
        "fixed one only if its interval excludes that one. If there is no difference, this is "
        f"wrong in about {percent(round(1000 * FALSE_OVER_DIFFERENCES), 1000)} of comparisons.",
        f"- No verdict is corrected for multiple comparisons. This report makes {means} of the "
        f"first kind and {differences} of the second: if there were no differences at all, about "
        f"{expected_false(means, differences):.1f} of its verdicts would be wrong by chance. Rely "
        "on verdicts on which several architectures agree.",
        "- 'Seeds agree' replaces an interval if all seeds have the same value to three digits. "
        "This comes from few specimens (or from a value that cannot change) and is not certainty: "
        "other seeds may differ, and a verdict on such a number rests on this agreement alone.",
        "- 'Inconclusive' does not mean equal: with three seeds, intervals are wide. They are not "
        "truncated at the ends of a metric's range, so some extend below 0 or above 1. They cover "
        "retraining with other seeds only: the test images are the same for all seeds.",
    ]


def _caveats(data: Aggregated) -> list[str]:
    lines = [
        "- AP and AR by specimen size (small, medium, large) are not informative here: nearly all "
        "specimens are large. Density, the number of specimens on the image, is more relevant.",
        "- Recall is an upper bound: every annotated object is a beetle, so no result shows how "
        "well beetles are separated from trap debris, wood fibres or other insects.",
    ]
    far = data.benchmark.bands.get("far_tribe")
    if far is not None and far.n_scored:
        lines.append(
            f"- The {BAND_LABEL['far_tribe']} band has "
            f"{counted(far.n_species, 'species', 'species')} with scored specimens. The two "
            f"largest account for {percent(far.two_largest, far.n_scored)} of these: a difference "
            "between bands may come from single species or images."
        )
    field = data.benchmark.splits.get("inat_test")
    if field is not None:
        lines.append(
            f"- The field photographs have {counted(field.n_scored, 'scored specimen')} of "
            f"{counted(field.n_species, 'species', 'species')}: they show the direction of a gap, "
            "not its size."
        )
    return lines


def _missing(data: Aggregated) -> list[str]:
    lines = []
    several = Lookup(data).several
    for condition, cells in by_condition(data.missing).items():
        place = f"{escape(condition.architecture)}, " if several else ""
        gone = [
            f"seed {c.seed} ({escape(c.model)}: no result)" if c.model else f"seed {c.seed}"
            for c in cells
        ]
        rest = "" if any(c.model for c in cells) else " (not in the manifest)"
        lines.append(f"- {place}{label(condition)}: {listing(gone)}{rest}")
    lines += [
        f"- Regime {regime}: not in the manifest"
        for regime in REGIMES
        if not any(row.regime == regime for row in data.learning_curves)
    ]
    if not lines:
        lines = ["Nothing: every condition of the manifest has all seeds."]
    if data.unlisted_summaries:
        lines += [
            "",
            "Not used, because the manifest does not list them: summaries of "
            f"{listing([escape(name) for name in data.unlisted_summaries])}.",
        ]
    return lines


def _identical(data: Aggregated) -> list[str]:
    """The models that share prediction files."""
    return [
        f"- {listing(item.splits)}, {counted(len(item.models), 'model')} "
        f"({listing([escape(name) for name in item.models], most=5)}): identical prediction files. "
        "Seeds of one condition with identical files are not independent: their mean has no "
        "interval and is marked 'same files'."
        for item in data.identical
    ]


def _messages(items: Iterable[ModelWarnings]) -> list[str]:
    """Warnings or notes, each once with its models."""
    lines = []
    for item in items:
        names = listing([escape(name) for name in item.models], most=5)
        text = escape(item.text)
        if not item.alike:
            text = f"numbers differ, for example: {text}"
        lines.append(f"- {item.split}, {counted(len(item.models), 'model')} ({names}): {text}")
    return lines


def _all_conditions(facts: Facts) -> list[str]:
    data = facts.data
    labels = [BY_NAME[name].label for name in HEADLINE]
    several = Lookup(data).several
    sources = {row.source for row in data.budget_curves}
    mixed = len(sources) > 1
    costs = {row.condition: row for row in data.budget_curves}
    rows = []
    for row in data.learning_curves:
        cost = costs[row.condition]
        marked = f"{budget(row)} (incomplete)" if row.missing else budget(row)
        marked += facts.warned(row)
        rows.append(
            [
                *([escape(row.architecture)] if several else []),
                row.regime,
                marked,
                images(cost) if mixed else images(cost).removeprefix("about "),
                *(cell(row.metrics[name], len(row.seeds)) for name in HEADLINE),
            ]
        )
    how = {
        "exact": "counted in the training annotations that the manifest names",
        "expected": "expected values over the random draw of images",
        "unknown": "unknown",
    }[next(iter(sources))]
    if mixed:
        how = (
            "counted in the training annotations that the manifest names, or ('about') expected "
            "values over the random draw of images"
        )
    return [
        f"Mean ± standard deviation over n seeds. Distinct training images: {how}.",
        "",
        *table(
            [*(["Architecture"] if several else []), "Regime", "Budget", "Images", *labels],
            rows,
            left=3 if several else 2,
        ),
    ]


def _provenance(data: Aggregated) -> list[str]:
    inputs = data.inputs
    return [
        *table(
            ["Item", "Value"],
            [
                ["benchmark-eval", inputs.package_version],
                ["Benchmark (SHA-256)", f"`{data.benchmark.digest}`"],
                ["Manifest (SHA-256 of its content)", f"`{inputs.manifest}`"],
                ["Scoring code (SHA-256)", f"`{inputs.scoring_code}`"],
            ],
            left=2,
        ),
        "",
        f"The digests of the {counted(len(inputs.summaries), 'summary', 'summaries')} are in "
        "[aggregated.json](aggregated.json). Tables: "
        + ", ".join(f"[{name}]({name})" for name in CSV_FILES)
        + ".",
    ]
