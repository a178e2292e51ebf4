"""``report.md``: a bottom line, the answer to each question, and methods to paste into a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmark_eval.core.outputs import Input, claim
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import budget_text
from benchmark_eval.report.captions import Plot
from benchmark_eval.report.conclusions import figures_of
from benchmark_eval.report.facts import Facts, Section
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.markdown import MISSING, escape, table
from benchmark_eval.report.methods import identical, messages, methods, missing, what_was_run
from benchmark_eval.report.questions import SECTIONS, bottom_line
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep import tables
from benchmark_eval.sweep.aggregation import assemble, read_sweep, sweep_inputs
from benchmark_eval.sweep.prices import Prices
from benchmark_eval.sweep.tables import Aggregated, CurveRow

REPORT = "report.md"
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
    lines = ["# Report of the sweep", ""]
    sections: list[tuple[str, list[str]]] = [
        ("Bottom line", _bottom_line(facts)),
        ("What was run", what_was_run(facts)),
    ]
    made = [make(facts) for make in SECTIONS]
    for section, (main, others) in zip(made, figures_of(table, made), strict=True):
        show = [] if plots is None else _pictures(section, main, others, plots, plot_format)
        sections.append((section.title, _body(section, show)))
    sections += [
        ("All conditions", _all_conditions(facts)),
        ("What is missing", missing(facts)),
        ("Warnings", [*identical(table), *messages(table.warnings)] or ["None."]),
        ("Notes", messages(table.notes) or ["None."]),
        ("Methods", methods(facts)),
    ]
    for title, body in sections:
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(_squeezed(lines)) + "\n"


def _bottom_line(facts: Facts) -> list[str]:
    return [
        *notices(facts),
        *(f"{at}. **{name}.** {text}" for at, (name, text) in enumerate(bottom_line(facts), 1)),
        "",
        "Brackets are 95 % intervals over species and retraining, unless they name something else: "
        "0.54 [0.48, 0.60], or 0.537 [0.527, 0.547; retraining]. Differences are paired by species "
        "and seed. Verdicts (higher, lower, inconclusive, inconclusive after correction, not "
        "tested) are corrected for the number of tests of their question; [Methods](#methods) "
        "defines them. Numbers without a verdict are descriptive.",
    ]


def _pictures(
    section: Section, main: Plot | None, others: Sequence[Plot], plots: str, kind: str
) -> list[str]:
    """The figure of a section with its conclusion as title, and links to the others."""
    lines = []
    if main is not None:
        title = section.conclusion
        bold = f"**{title}.** " if title != main.title else ""
        lines += [
            f"![{title}]({plots}/{main.name}.{kind})",
            "",
            f"{bold}*{main.title}.* {main.caption}",
            "",
        ]
    if others:
        links = [f"[{plot.title}]({plots}/{plot.name}.{kind})" for plot in others]
        lines += [f"More figures: {'; '.join(links)}.", ""]
    return lines


def _body(section: Section, pictures: list[str]) -> list[str]:
    caveats = [f"*Caution.* {section.caveats[0]}", *section.caveats[1:]] if section.caveats else []
    return [*section.answer, "", *pictures, "", *section.details, "", " ".join(caveats), ""]


def _squeezed(lines: Iterable[str]) -> list[str]:
    """The lines without repeated empty lines and without empty lines at the end."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def notices(facts: Facts) -> list[str]:
    """What limits the whole report: missing cells, models with warnings, copied files."""
    n = len(facts.data.missing)
    lines = []
    if n:
        lines += [
            f"**Incomplete:** {counted(n, 'cell')} of the sweep {'has' if n == 1 else 'have'} no "
            "result; see [What is missing](#what-is-missing).",
            "",
        ]
    if any(row.identical for row in facts.data.learning_curves):
        lines += [
            "**Not independent:** seeds of one condition have identical prediction files; see "
            "[Warnings](#warnings).",
            "",
        ]
    n = len(facts.with_warnings)
    if n:
        lines += [
            f"**{counted(n, 'model')} {'has' if n == 1 else 'have'} warnings: see "
            "[Warnings](#warnings).** Conditions with such a model are marked (warnings).",
            "",
        ]
    return lines


def warnings_notice(report: str | Path) -> str | None:
    """The number of models with warnings in a written report, and its path; None without any."""
    try:
        text = read_input(report).decode("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^\*\*([\d,]+ models? ha(?:s|ve) warnings): see ", text, re.MULTILINE)
    return f"{found[1]}: see {report}" if found else None


def _all_conditions(facts: Facts) -> list[str]:
    """Every condition with its cost and the headline metrics."""
    data, several = facts.data, facts.look.several
    sources = {row.source for row in data.budget_curves}
    mixed, priced = len(sources) > 1, any(row.price is not None for row in data.budget_curves)
    rows = []
    for row in data.learning_curves:
        cost = facts.cost[row.condition]
        budget = budget_text(row.regime, row.k_or_p)
        about = "about " if mixed and cost.source == "expected" else ""
        cells = [escape(row.architecture)] if several else []
        cells += [
            row.regime,
            budget + (" (incomplete)" if row.missing else "") + facts.warned(row),
            MISSING if cost.n_images is None else f"{about}{cost.n_images:,.0f}",
        ]
        if priced:
            cells.append(MISSING if cost.price is None else f"{about}{cost.price:,.0f}")
        rows.append([*cells, *(_level(facts, row, name) for name in HEADLINE)])
    how = " or ".join(
        text
        for source, text in {
            "exact": "counted in the training annotations that the manifest names",
            "expected": f"expected values over the random draw of images{' (about)' * mixed}",
            "unknown": "unknown",
        }.items()
        if source in sources
    )
    header = ["Architecture"] if several else []
    header += ["Regime", "Budget", "Images", *(["Price"] if priced else [])]
    return [
        f"Means over n seeds. Distinct training images: {how}. More metrics: "
        "[learning_curves.csv](learning_curves.csv).",
        "",
        *table(
            [*header, *(BY_NAME[name].label for name in HEADLINE)],
            rows,
            left=3 if several else 2,
        ),
    ]


def _level(facts: Facts, row: CurveRow, name: str) -> str:
    """A metric of a condition with its n: ``n=2 of 3`` if a seed has no value."""
    n, seeds = row.metrics[name].n, len(row.seeds)
    text = f"n={n}" if n == seeds else f"n={n} of {seeds}"
    return f"{facts.level(row, name)}, {text}" if n else f"{MISSING}, {text}"
