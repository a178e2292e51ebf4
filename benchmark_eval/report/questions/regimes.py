"""Which regime gives most at an equal budget, in images and in specimens."""

from __future__ import annotations

import re

from benchmark_eval.report.facts import (
    DECIDED,
    PLACE,
    SHORT,
    Facts,
    Section,
    effect,
    judged,
    nothing,
    reversed_row,
    verdict,
)
from benchmark_eval.report.markdown import MISSING, sentence_case, table
from benchmark_eval.sweep.tables import ComparisonRow
from benchmark_eval.sweep.verdicts import Word

UNITS = ("images", "specimens", "price")
_EQUAL = {"images": "numbers of images", "specimens": "numbers of specimens", "price": "price"}
Pair = tuple[str, str, str]
"""Both regimes, and the range of costs."""


def section(facts: Facts) -> Section:
    """The pairs of regimes by metric and unit, with verdicts."""
    answer = []
    for metric, split in facts.metrics:
        for unit in UNITS:
            rows = facts.rows(f"equal_budget_{unit}", metric)
            if not any(row.a_minus_b is not None for row in rows):
                continue
            pairs = "; ".join(
                f"{a} minus {b} ({span}): {facts.by_verdict(found, effects=False)}"
                for (a, b, span), found in _pairs(facts, rows).items()
            )
            answer.append(
                f"- {sentence_case(PLACE[split])} ({SHORT[metric]}), at equal {_EQUAL[unit]}. "
                f"{pairs}. {facts.tally(rows)}."
            )
    if not answer:
        answer = [f"- {nothing('two regimes with a common range of known costs')}"]
    return Section(
        "Which regime is best at equal budget?",
        answer,
        conclusion(facts),
        ("equal_budget", "budget_images", "budget_specimens"),
        details=_table(facts),
        caveats=[
            "A difference is the mean distance of two curves over the range of costs that both "
            "cover, linear in the logarithm of the cost; it says nothing outside this range. "
            "incremental_uniform_targets keeps all images of the other species, so its range is "
            "narrow and close to all images."
        ],
    )


def conclusion(facts: Facts) -> str:
    """The verdicts by the first metric, at equal numbers of images."""
    pairs = _pairs(facts, _lead_rows(facts))
    if not pairs:
        return "Results by budget"
    (a, b, span), found = next(iter(pairs.items()))
    metric, split = facts.metrics[0]
    return f"{SHORT[metric]} {PLACE[split]}, {a} minus {b} at {span}: {facts.agreed(found)}"


def sentence(facts: Facts) -> str:
    """The bottom line on regimes: the differences of the best architecture."""
    rows = _lead_rows(facts)
    lead = facts.lead
    own = [
        turned
        for row in rows
        if lead and facts.curve_of(facts.side(row.a)[0])[0] == lead.architecture
        for turned in [row if row.verdict != Word.LOWER else reversed_row(row)]
        if row.a_minus_b is not None
    ]
    if not own or lead is None:
        return "No two regimes have a common range of known costs, so that none was compared."
    parts = []
    for row in own:
        high, low, span = _pair(facts, row)
        word = "is higher than" if row.verdict in DECIDED else "against"
        parts.append(
            f"{high} {word} {low} ({span}): {effect(row)}"
            + ("" if row.verdict in DECIDED else f", {verdict(row)}")
        )
    who = f" for {facts.name(lead.architecture)}" if facts.look.several else ""
    metric, split = facts.metrics[0]
    return f"At equal budget{who}, by {SHORT[metric]} {PLACE[split]}, {'; '.join(parts)}."


def _lead_rows(facts: Facts) -> list[ComparisonRow]:
    metric = next(iter(facts.metrics), None)
    if metric is None:
        return []
    rows = facts.rows("equal_budget_images", metric[0])
    return [row for row in rows if row.a_minus_b is not None]


def _pair(facts: Facts, row: ComparisonRow) -> Pair:
    a, span = facts.side(row.a)
    b, _ = facts.side(row.b)
    plain = re.sub(r"(?<![\d.])\d{4,}", lambda found: f"{int(found[0]):,}", span)
    return facts.curve_of(a)[1], facts.curve_of(b)[1], plain


def _pairs(facts: Facts, rows: list[ComparisonRow]) -> dict[Pair, dict[str, ComparisonRow]]:
    """The comparisons of each pair of regimes, by architecture."""
    found: dict[Pair, dict[str, ComparisonRow]] = {}
    for row in rows:
        if row.a_minus_b is not None:
            architecture = facts.curve_of(facts.side(row.a)[0])[0]
            found.setdefault(_pair(facts, row), {})[architecture] = row
    return found


def _table(facts: Facts) -> list[str]:
    names = facts.columns()
    rows = []
    for metric, split in facts.metrics:
        for unit in UNITS:
            found: dict[Pair, dict[str, ComparisonRow]] = {}
            for row in facts.rows(f"equal_budget_{unit}", metric):
                architecture = facts.curve_of(facts.side(row.a)[0])[0]
                found.setdefault(_pair(facts, row), {})[architecture] = row
            rows += [
                [
                    f"{SHORT[metric]}, {PLACE[split]}",
                    f"{a} minus {b}",
                    span or MISSING,
                    *(judged(by[name]) if name in by else MISSING for name in names),
                ]
                for (a, b, span), by in found.items()
                if any(name in by for name in names)
            ]
    if not rows:
        return []
    header = ["Metric", "Difference", "Range", *map(facts.name, names)]
    return [*table(header, rows, left=3), "", *facts.left_out_columns()]
