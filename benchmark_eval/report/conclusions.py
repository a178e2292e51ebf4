"""What the data show in each figure, in one sentence: the title of the figure in the report."""

from __future__ import annotations

from benchmark_eval.report.captions import PLOTS
from benchmark_eval.report.facts import Facts, Section
from benchmark_eval.report.questions import SECTIONS
from benchmark_eval.sweep.tables import Aggregated


def conclusions(table: Aggregated) -> dict[str, str]:
    """The conclusion of the figure of each question, by the plot's name (``captions.Plot.name``).

    The sentences are Markdown. Plots that are not the figure of a question are absent.
    """
    facts = Facts(table)
    found = {}
    for make in SECTIONS:
        made = make(facts)
        name = main_figure(made)
        if name is not None:
            found[name] = made.conclusion
    return found


def main_figure(section: Section) -> str | None:
    """The figure of a question: the first of its figures that is drawn."""
    drawn = {plot.name for plot in PLOTS}
    return next((name for name in section.figures if name in drawn), None)
