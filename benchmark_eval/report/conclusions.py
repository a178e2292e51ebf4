"""Which figure answers which question, and what the data show in it: the figure's title."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.report.captions import PLOTS, TARGETS, Plot
from benchmark_eval.report.facts import Facts, Section
from benchmark_eval.report.questions import SECTIONS
from benchmark_eval.sweep.tables import Aggregated


def conclusions(table: Aggregated) -> dict[str, str]:
    """The conclusion of the figure of each question, by the plot's name (``captions.Plot.name``).

    The sentences are Markdown. Plots that are not the figure of a question are absent.
    """
    facts = Facts(table)
    sections = [make(facts) for make in SECTIONS]
    return {
        main.name: section.conclusion
        for section, (main, _) in zip(sections, figures_of(table, sections), strict=True)
        if main is not None
    }


def figures_of(
    table: Aggregated, sections: Sequence[Section]
) -> list[tuple[Plot | None, list[Plot]]]:
    """The figure of each question, and the plots that it links; every plot has one place."""
    targets = any(row.split == "iid_test" and row.AP_50.n for row in table.target_species_curves)
    left = {plot.name: plot for plot in PLOTS if targets or plot.question != TARGETS}
    mains: list[Plot | None] = []
    for section in sections:
        first = next((name for name in section.figures if name in left), None)
        mains.append(None if first is None else left.pop(first))
    result = []
    for main, section in zip(mains, sections, strict=True):
        others = [
            name
            for name, plot in left.items()
            if name in section.figures or (section.topic and plot.question == section.topic)
        ]
        result.append((main, [left.pop(name) for name in others]))
    return result
