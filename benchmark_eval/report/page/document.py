"""Writes ``report.html``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import Input, claim
from benchmark_eval.report.document import notices
from benchmark_eval.report.facts import Facts, Section
from benchmark_eval.report.methods import identical, messages, methods, missing, what_was_run
from benchmark_eval.report.page import panels, static, tables
from benchmark_eval.report.page.charts import CONFIG
from benchmark_eval.report.page.models import files_below, model_cards
from benchmark_eval.report.page.prose import to_html
from benchmark_eval.report.page.rows import columns
from benchmark_eval.report.page.species import species_facts, species_table
from benchmark_eval.report.questions import SECTIONS, bottom_line
from benchmark_eval.sweep.tables import CSV_FILES, Aggregated

SUFFIXES = (".html", ".htm")


def write_page(
    table: Aggregated,
    output: str | Path,
    *,
    tables_dir: str | Path | None = None,
    eval_dir: str | Path | None = None,
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> Path:
    """Write the page of a sweep to the file ``output``; returns it.

    ``tables_dir`` is the folder of the CSV files and ``eval_dir`` that of the models' files; the
    page links to those that lie in its own folder or below. ``core.outputs.claim`` describes
    ``inputs``, ``force`` and ``declared``. Raises UsageError if ``output`` is no name of a web page
    or an existing file must not be replaced.
    """
    output = Path(output)
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"--output {output}: found {output.suffix or 'no ending'}; expected a file that ends "
            f"in {' or '.join(SUFFIXES)}"
        )
    with claim(output.parent, [output.name], inputs=inputs, force=force, declared=declared) as out:
        text = render(table, folder=output.parent, tables_dir=tables_dir, eval_dir=eval_dir)
        out.write(output.name, text.encode())
        out.publish()
    return output


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page: what the data show, charts, the answer in detail, cautions, tables."""

    id: str
    title: str
    lead: Markup
    body: Markup
    cautions: Markup
    grids: tuple[tables.Grid, ...] = ()
    panels: tuple[panels.Panel, ...] = ()


def render(
    table: Aggregated,
    *,
    folder: str | Path = ".",
    tables_dir: str | Path | None = None,
    eval_dir: str | Path | None = None,
) -> str:
    """The text of the page, to be written into ``folder``."""
    facts = Facts(table)
    links = {"#what-is-missing": "#completeness", "#warnings": "#warnings", "#methods": "#methods"}
    names = [*CSV_FILES, "aggregated.json"]
    links |= files_below(Path(folder), tables_dir, names)
    answers = {make.__module__.rpartition(".")[2]: make(facts) for make in SECTIONS}

    def prose(*lines: str) -> Markup:
        return to_html(lines, links)

    shown = panels.panels(facts)
    rows = panels.tables(facts)
    every = [panel for group in shown.values() for panel in group]
    environment = _environment()
    return environment.get_template("page.html").render(
        facts=facts,
        title="Report of the sweep",
        lead=[(name, to_html(text, links, inline=True)) for name, text in bottom_line(facts)],
        notices=prose(*notices(facts)),
        run=prose(*what_was_run(facts)),
        missing=prose(*missing(facts)),
        warnings=prose(*([*identical(table), *messages(table.warnings)] or ["None."])),
        notes=prose(*(messages(table.notes) or ["None."])),
        methods=prose(*methods(facts)),
        parts=_parts(facts, answers, shown, prose),
        pictures={panel.id: static.picture(panel, rows[panel.table]) for panel in every},
        bundle=Markup(static.bundle()),
        data={
            "panels": every,
            "config": CONFIG,
            "tables": {name: columns(found) for name, found in rows.items()},
            "species": species_facts(facts),
        },
        leaderboard=tables.leaderboard(facts),
        cards=model_cards(facts, Path(folder), eval_dir),
        eval_dir_given=eval_dir is not None,
        version=table.inputs.package_version,
    )


def _parts(
    facts: Facts,
    answers: dict[str, Section],
    shown: dict[str, list[panels.Panel]],
    prose: Any,
) -> list[Part]:
    def part(id_: str, title: str, names: tuple[str, ...], *grids: tables.Grid) -> Part:
        sections = [answers[name] for name in names]
        lead = [f"**{section.conclusion}.**\n" for section in sections]
        body = [line for section in sections for line in (*section.answer, "")]
        cautions = [f"*Caution.* {' '.join(s.caveats)}\n" for s in sections if s.caveats]
        panels_ = tuple(shown.get(id_, ()))
        return Part(id_, title, prose(*lead), prose(*body), prose(*cautions), grids, panels_)

    equal = ("equal_budget_images", "equal_budget_specimens", "equal_budget_price")
    return [
        part(
            "curves",
            "Learning curves",
            ("data", "architectures"),
            tables.comparisons(facts, "steps-table", "Steps along the curves", ("steps",)),
        ),
        part(
            "equal-budget",
            "Equal budget",
            ("regimes",),
            tables.comparisons(facts, "equal-table", "Regimes at equal budgets", equal),
            tables.planning(facts),
        ),
        part(
            "targets",
            "Target species",
            ("targets",),
            tables.comparisons(
                facts, "targets-table", "What the images of targets bring, and who pays",
                ("targets", "other_species"),
            ),
        ),
        part(
            "unseen",
            "Unseen species and density",
            ("unseen", "field"),
            tables.comparisons(facts, "bands-table", "Near against mid and far", ("bands",)),
        ),
        part("losses", "Finding and naming", ("losses", "rare")),
        part("confidence", "Confidence", ("confidence",)),
        part("species", "Species", ("species",), species_table(facts)),
        part("genera", "Genera", ()),
    ]  # fmt: skip


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchmark_eval.report.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["json"] = embedded
    environment.globals["raw"] = _raw
    return environment


def embedded(value: Any) -> Markup:
    """JSON for a ``<script>`` element, which no text in it can end."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _raw(name: str) -> Markup:
    """A style or script of this package."""
    loaded = (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
    return Markup(loaded)
