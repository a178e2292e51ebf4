"""``report.md``: what was run, what the numbers say and how surely, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.text import counted
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.captions import AWAY, CONFIDENCE, DATA, IMBALANCE, NAMING, PLOTS, TARGETS
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.report.markdown import cell, escape, listing, table
from benchmark_eval.report.sentences import Facts, budget, images, label
from benchmark_eval.results.registry import BAND_LABEL, HEADLINE, SPLIT_LABEL
from benchmark_eval.sweep.comparisons import (
    FALSE_OVER_DIFFERENCES,
    FALSE_OVER_MEANS,
    expected_false,
)
from benchmark_eval.sweep.completeness import by_condition
from benchmark_eval.sweep.tables import CSV_FILES, Aggregated, ModelWarnings

REPORT = "report.md"
SHOWN = (HEADLINE[0], "iid_AP_50", *HEADLINE[1:])
"""Columns of the headline table: AP@.5 is what readers know from elsewhere."""
PLOTS_PLACE = "../plots"
"""Where the report looks for the plots, seen from its own folder."""


def write_report(
    table: Aggregated,
    output_dir: str | Path,
    *,
    plots: str | None = PLOTS_PLACE,
    plot_format: str = "svg",
) -> Path:
    """Write ``report.md`` into ``output_dir``; returns the file.

    ``plots`` is the folder of the plots as seen from the report, None for a report without.
    """
    path = Path(output_dir) / REPORT
    write_text_atomic(path, render(table, plots=plots, plot_format=plot_format))
    return path


def discard_report(output_dir: str | Path) -> None:
    """Remove an earlier report, before tables change that it no longer belongs to."""
    (Path(output_dir) / REPORT).unlink(missing_ok=True)


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
            f"{DATA}: how does quality grow with images?",
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
            f"{AWAY}: how far does it carry?",
            [*facts.field(), *facts.unseen(), *facts.density(), "", *pictures(AWAY)],
        ),
        (f"{IMBALANCE}: are rare ones served?", [*facts.rare(), "", *pictures(IMBALANCE)]),
        (
            f"{NAMING}: which fails?",
            [
                *facts.finding("iid_test", "in distribution"),
                "",
                *facts.finding("inat_test", "on field photographs"),
                "",
                *facts.cuts(),
                "",
                *pictures(NAMING),
            ],
        ),
        (
            f"{TARGETS}: what do more images of one species buy?",
            [*facts.targets(), "", *pictures(TARGETS)],
        ),
        (f"{CONFIDENCE}: can it be trusted?", [*facts.confidence(), "", *pictures(CONFIDENCE)]),
        ("How to read these numbers", [*_rules(facts), *_caveats(table)]),
        ("What is missing", _missing(table)),
        ("Warnings", [*_identical(table), *_told(table.warnings)] or ["None."]),
        ("Notes", _told(table.notes) or ["None."]),
        ("All conditions", _all_conditions(facts)),
        ("Provenance", _provenance(table)),
    ]  # fmt: skip
    lines = ["# Report of the sweep", ""]
    for title, body in sections:
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(_squeezed(lines)) + "\n"


def _squeezed(lines: Iterable[str]) -> list[str]:
    """No two empty lines in a row, none at the end."""
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
        f"Scored at IoU {options.get('iou_threshold')} (localisation; AP and AR have their own "
        f"thresholds) with the {options.get('engine')} engine on "
        f"{listing([str(split) for split in options.get('splits', [])])}.",
        "",
    ]
    if table.benchmark.description:
        lines += [f"The data say of themselves: *{escape(table.benchmark.description)}*", ""]
    if table.missing:
        lines += [
            f"**Incomplete:** {counted(len(table.missing), 'cell')} of the sweep "
            f"{'has' if len(table.missing) == 1 else 'have'} no number; see "
            "[What is missing](#what-is-missing).",
            "",
        ]
    if any(row.identical for row in rows):
        lines += [
            "**Not independent:** seeds of one condition have the same prediction file; see "
            "[Warnings](#warnings).",
            "",
        ]
    lines += table_of_splits(table)
    return lines


def table_of_splits(table_: Aggregated) -> list[str]:
    """What each split of the benchmark holds."""
    return table(
        ["Split", "What it is", "Images", "Scored specimens", "Crowd regions", "Species scored"],
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
        return [f"{BY_NAME[HEADLINE[0]].label} is not defined for any model of this sweep."]
    return [
        *warning_lines(facts),
        f"Each architecture at the condition with its highest mean of {labels[0]}; mean ± "
        "standard deviation over n seeds. Picked as the best, these means are a little too high.",
        "",
        *table(["Architecture", "Best condition", *labels], rows, left=2),
        "",
        *facts.all_data(SHOWN),
        "",
        "Below, 0.540 (0.441 to 0.639; n=3) is a mean over 3 seeds with its 95 % interval "
        "(Student's t over seeds). What is said to hold, to be clear or not to be told: "
        "[How to read these numbers](#how-to-read-these-numbers). In the questions below the best "
        "condition is the one of this table.",
    ]


def warning_lines(facts: Facts) -> list[str]:
    """How many models have warnings, for those who read only the first table."""
    n = len(facts.doubtful)
    if not n:
        return []
    return [
        f"**{counted(n, 'model')} {'has' if n == 1 else 'have'} warnings: see "
        "[Warnings](#warnings).** Conditions with such a model are marked (warnings).",
        "",
    ]


def warnings_told(report: str | Path) -> str | None:
    """How many models a written report says have warnings, and where; None without any."""
    try:
        text = Path(report).read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^\*\*([\d,]+ models? ha(?:s|ve) warnings): see ", text, re.MULTILINE)
    return f"{found[1]}: see {report}" if found else None


def _rules(facts: Facts) -> list[str]:
    """How a sentence decides, and how often chance alone speaks. Counts what was judged so far.

    The shares are those that ``benchmarks/seed_intervals.py`` finds for three seeds.
    """
    means, differences = facts.judged["means"], facts.judged["differences"]
    chance = expected_false(means, differences)
    return [
        "- Two means, of two conditions or two architectures, are called different only where "
        "their intervals do not overlap (it *holds*, *buys more*). Where there is no "
        f"difference, that errs in about {FALSE_OVER_MEANS:.1%} of comparisons.",
        "- A difference within each model (near minus far, head minus tail, a loss), or a number "
        "against a fixed one, *is clear* only where its own interval leaves out 0 (or that "
        f"number). Where there is none, that errs in about {FALSE_OVER_DIFFERENCES:.0%}.",
        f"- Nothing is corrected for the number of comparisons. This report makes {means} of the "
        f"first kind and {differences} of the second: if there were nothing to find at all, about "
        f"{chance:.1f} of its statements would be wrong by chance. Trust what several "
        "architectures agree on.",
        "- 'Seeds agree' stands where an interval would be, when all seeds have the same value to "
        "three digits. That comes of few specimens (or none that can change) and is no certainty: "
        "other seeds may well differ, and what is said to hold or to be clear of such a number "
        "rests on that agreement alone.",
        "- 'Cannot be told' is no proof of equality: with three seeds intervals are wide. They are "
        "not cut where a share ends, so one may reach below 0 or above 1. Seeds are the only "
        "source of spread in them: the test images are the same for all.",
    ]


def _caveats(data: Aggregated) -> list[str]:
    lines = [
        "- AP and AR by size of the specimen (small, medium, large) say nothing here: nearly all "
        "boxes are large. Density, the number of specimens on the image, is the scale that "
        "matters.",
        "- Recall is an upper bound: every annotated object is a beetle, so nothing here tests "
        "beetles against trap debris, wood fibres or other insects.",
    ]
    far = data.benchmark.bands.get("far_tribe")
    if far is not None and far.n_scored:
        lines.append(
            f"- The {BAND_LABEL['far_tribe']} band has "
            f"{counted(far.n_species, 'species', 'species')} with scored specimens, and two of "
            f"them hold {far.two_largest / far.n_scored:.0%} of these: "
            "a difference between bands may be one between species or between plates."
        )
    field = data.benchmark.splits.get("inat_test")
    if field is not None:
        lines.append(
            f"- The field photographs have {counted(field.n_scored, 'scored specimen')} of "
            f"{counted(field.n_species, 'species', 'species')}: they show the direction of the "
            "shift, not its size."
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
        f"- The whole regime {regime}: not in the manifest"
        for regime in REGIMES
        if not any(row.regime == regime for row in data.learning_curves)
    ]
    if not lines:
        lines = ["Nothing: every condition of the manifest has every seed."]
    if data.unlisted_summaries:
        lines += [
            "",
            f"Passed over, because the manifest does not name them: summaries of "
            f"{listing([escape(name) for name in data.unlisted_summaries])}.",
        ]
    return lines


def _identical(data: Aggregated) -> list[str]:
    """Which models share prediction files."""
    return [
        f"- {listing(item.splits)}, {counted(len(item.models), 'model')} "
        f"({listing([escape(name) for name in item.models], most=5)}): the same prediction file. "
        "Where they are seeds of one condition, these are one seed: there is no interval, and "
        "'same files' stands beside n."
        for item in data.identical
    ]


def _told(items: Iterable[ModelWarnings]) -> list[str]:
    """Warnings or notes, each once with the models that got it."""
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
        "unknown": "not known",
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
            ["What", "Value"],
            [
                ["benchmark-eval", inputs.package_version],
                ["Benchmark (SHA-256)", f"`{data.benchmark.digest}`"],
                ["Manifest (SHA-256 of what it says)", f"`{inputs.manifest}`"],
                ["Scoring code (SHA-256)", f"`{inputs.scoring_code}`"],
            ],
            left=2,
        ),
        "",
        f"Digests of the {counted(len(inputs.summaries), 'summary', 'summaries')} that went in "
        "stand in [aggregated.json](aggregated.json). Tables: "
        + ", ".join(f"[{name}]({name})" for name in CSV_FILES)
        + ".",
    ]
