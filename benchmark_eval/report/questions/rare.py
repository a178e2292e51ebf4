"""Whether rare species are worse than common ones."""

from __future__ import annotations

from typing import NamedTuple

from benchmark_eval.core.text import counted
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.captions import IMBALANCE
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import MISSING, table, with_interval
from benchmark_eval.sweep.table_rows import TierRow
from benchmark_eval.sweep.tables import CurveRow

GAP = "iid_head_minus_tail_AP_50"
METRIC = "AP_50"
TIERS = ("head", "medium", "tail")


class _Ends(NamedTuple):
    """The smallest and largest budget of a curve where the gap is defined; they can be the same."""

    first: CurveRow
    last: CurveRow


def section(facts: Facts) -> Section:
    """Head minus tail at both ends of the two regimes that grow all species."""
    ends = _ends(facts)
    answer = [f"- {_at(facts, each.last)}." for each in _own(facts, ends)]
    rows = [
        [facts.label(row.condition), *(_tier(facts, row, tier) for tier in TIERS),
         facts.level(row, GAP)]
        for each in ends
        if each.last.architecture in facts.columns()
        for row in (each[:1] if each.first is each.last else each)
    ]  # fmt: skip
    header = ["Condition", *(f"{tier.capitalize()} AP@.5" for tier in TIERS), "Head minus tail"]
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
            f"{_sizes(facts)}. They are different species, which may differ in more than their "
            "number of images. No verdict is given: the intervals of the difference cover "
            "retraining only."
        ]
        if rows
        else [],
    )


def conclusion(facts: Facts) -> str:
    """Head minus tail of the best architecture, with all images."""
    own = _own(facts, _ends(facts))
    return _at(facts, own[0].last) if own else "AP@.5 by tier"


def _at(facts: Facts, row: CurveRow) -> str:
    return f"At {facts.label(row.condition)}, head minus tail AP@.5 is {facts.level(row, GAP)}"


def _own(facts: Facts, ends: list[_Ends]) -> list[_Ends]:
    lead = facts.lead
    return [each for each in ends if lead and each.last.architecture == lead.architecture]


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


def _span(row: TierRow) -> str:
    """``2 to 7 images``."""
    if row.min_train_images == row.max_train_images:
        return counted(row.max_train_images, "image")
    return f"{row.min_train_images:,} to {row.max_train_images:,} images"
