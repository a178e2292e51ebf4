"""Whether rare species are worse than common ones."""

from __future__ import annotations

from typing import NamedTuple

from benchmark_eval.core.text import counted
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.captions import IMBALANCE
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import MISSING, table, with_interval
from benchmark_eval.sweep.conditions import trains_on_all
from benchmark_eval.sweep.table_rows import TierRow
from benchmark_eval.sweep.tables import CurveRow

GAP = "iid_head_minus_tail_AP_50"
METRIC = "AP_50"
TIERS = ("head", "medium", "tail")
DIFFERENCE = "head minus tail"
"""The tier of the rows with the difference, over species and retraining."""


class _Ends(NamedTuple):
    """The smallest and largest budget of a curve where the gap is defined; they can be the same."""

    first: CurveRow
    last: CurveRow


def section(facts: Facts) -> Section:
    """Head minus tail at both ends of the two regimes that grow all species."""
    ends = _ends(facts)
    answer = [f"- {_at(facts, each.last)}." for each in _own(facts, ends)]
    gap = any(row.tier == DIFFERENCE for row in _tiers(facts))
    rows = [
        [facts.label(row.condition), *(_tier(facts, row, tier) for tier in TIERS),
         *([_tier(facts, row, DIFFERENCE)] if gap else [])]
        for each in ends
        if each.last.architecture in facts.columns()
        for row in (each[:1] if each.first is each.last else each)
    ]  # fmt: skip
    header = ["Condition", *(f"{tier.capitalize()} AP@.5" for tier in TIERS)]
    header += [DIFFERENCE.capitalize()] if gap else []
    return Section(
        "Are rare species worse?",
        answer or [f"- {nothing('head and tail species (they require train.json)')}"],
        conclusion(facts),
        ("imbalance_tiers",),
        topic=IMBALANCE,
        details=table(header, rows) if rows else [],
        caveats=[
            "Head and tail are the quarters of the species with the most and the fewest training "
            "images"
            f"{_sizes(facts)}.{_ties(facts)} They are different species, which may differ in more "
            "than their number of images, so that no verdict is given."
        ]
        if rows
        else [],
    )


def conclusion(facts: Facts) -> str:
    """Head and tail of the best architecture, with all images."""
    own = _own(facts, _ends(facts))
    return _at(facts, own[0].last) if own else "AP@.5 by tier"


def _at(facts: Facts, row: CurveRow) -> str:
    """Both tiers, and their difference where the tables have its interval over species."""
    head, tail = (_tier(facts, row, tier) for tier in (TIERS[0], TIERS[-1]))
    text = (
        f"At {facts.label(row.condition)}, AP@.5 is {head} for head species and {tail} for tail "
        "species"
    )
    gap = _tier(facts, row, DIFFERENCE)
    return text if gap == MISSING else f"{text}; head minus tail is {gap}"


def _own(facts: Facts, ends: list[_Ends]) -> list[_Ends]:
    """The curves of the best architecture; of those that end with all images, the first."""
    lead = facts.lead
    own = [each for each in ends if lead and each.last.architecture == lead.architecture]
    every = [each for each in own if trains_on_all(each.last.condition)]
    return [each for each in own if each not in every[1:]]


def _ends(facts: Facts) -> list[_Ends]:
    found = []
    for name in facts.look.architectures:
        for regime in REGIMES[:2]:
            rows = [row for row in facts.data.conditions(name, regime) if row.metrics[GAP].n]
            if rows:
                found.append(_Ends(rows[0], rows[-1]))
    return found


def _tiers(facts: Facts) -> list[TierRow]:
    return [row for row in facts.data.tiers if (row.split, row.metric) == ("iid_test", METRIC)]


def _tier(facts: Facts, row: CurveRow, tier: str) -> str:
    for each in _tiers(facts):
        if (each.condition, each.tier) == (row.condition, tier):
            return with_interval(
                each.mean,
                each.ci95_low,
                each.ci95_high,
                covers=each.covers,
                reason=each.reason,
            )
    return MISSING


def _sizes(facts: Facts) -> str:
    sizes = {
        row.tier: f"{row.tier}: {counted(row.n_species, 'scored species', 'scored species')}, "
        + _span(row)
        for row in _tiers(facts)
    }
    shown = [sizes[tier] for tier in ("head", "tail") if tier in sizes]
    return f" ({'; '.join(shown)})" if shown else ""


def _ties(facts: Facts) -> str:
    """How many species outside the tail have as many training images as its largest species."""
    tail = next((row for row in _tiers(facts) if row.tier == TIERS[-1]), None)
    if tail is None:
        return ""
    n = sum(
        row.role == "known"
        and row.n_train_images == tail.max_train_images
        and row.tier not in ("", None, TIERS[-1])
        for row in facts.data.species
    )
    if not n:
        return ""
    return (
        f" {counted(n, 'more species', 'more species')} outside the tail also "
        f"{'has' if n == 1 else 'have'} {counted(tail.max_train_images, 'training image')}: the "
        "tail ends at a tie, which the category id decides."
    )


def _span(row: TierRow) -> str:
    """``2 to 7 images``."""
    if row.min_train_images == row.max_train_images:
        return counted(row.max_train_images, "image")
    return f"{row.min_train_images:,} to {row.max_train_images:,} images"
