"""The questions of the report, one file each, and the order in which it answers them."""

from __future__ import annotations

from collections.abc import Callable

from benchmark_eval.report.facts import Facts, Section
from benchmark_eval.report.questions import (
    architectures,
    confidence,
    data,
    field,
    losses,
    rare,
    regimes,
    species,
    targets,
    unseen,
)

SECTIONS: tuple[Callable[[Facts], Section], ...] = (
    architectures.section,
    data.section,
    regimes.section,
    field.section,
    unseen.section,
    species.section,
    losses.section,
    rare.section,
    targets.section,
    confidence.section,
)


def bottom_line(facts: Facts) -> list[tuple[str, str]]:
    """Five sentences with their subjects: what a reader with one minute should know."""
    return [
        ("Architecture", architectures.sentence(facts)),
        ("Data", data.sentence(facts)),
        ("Regime", regimes.sentence(facts)),
        ("Field and unseen species", _joined(field.sentence(facts), unseen.sentence(facts))),
        ("Species", species.sentence(facts)),
    ]


def _joined(first: str, second: str) -> str:
    """Two sentences as one."""
    return f"{first.removesuffix('.')}; {second[0].lower()}{second[1:]}"
