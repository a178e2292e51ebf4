"""Which architecture is best, by each of the three metrics of the comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.report.facts import (
    DECIDED,
    PLACE,
    SHORT,
    Best,
    Facts,
    Section,
    effect,
    judged,
    reversed_row,
    verdict,
)
from benchmark_eval.report.lookup import BY_NAME, label
from benchmark_eval.report.markdown import listing, sentence_case, table, with_interval
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.conditions import trains_on_all
from benchmark_eval.sweep.tables import ComparisonRow
from benchmark_eval.sweep.verdicts import Word

SHOWN = (HEADLINE[0], "iid_AP_50", *HEADLINE[1:])
"""Columns of the table: AP@.5 allows comparison with published results."""
_MOST_CONDITIONS = 6
_MOST_PAIRS = 20
"""With more pairs of architectures that differ, only those of the best one are listed."""


def section(facts: Facts) -> Section:
    """The answer, with the tie group by each metric and the differences at equal conditions."""
    answer = []
    for metric, split in facts.metrics:
        best = facts.best(metric)
        place = f"{sentence_case(PLACE[split])} ({SHORT[metric]})"
        if best is None:
            answer.append(f"- {place}: not tested (fewer than 2 conditions with at least 3 seeds).")
            continue
        answer.append(f"- {place}: {_tied(facts, best)}. {_group(facts, best)}")
        answer += _decided(facts, metric)
    if not facts.shown:
        answer.append("- The headline metrics are undefined for every model of this sweep.")
    details = [
        "The best condition of each architecture by "
        f"{BY_NAME[HEADLINE[0]].label}, and whether this condition is in the tie group of the best "
        "one of all, by each metric:",
        "",
        *_levels(facts),
        "",
        *_differences(facts),
    ]
    return Section(
        "Which architecture is best?",
        answer,
        conclusion(facts),
        ("comparisons", "learning_iid_AP_50"),
        details=details,
        caveats=[
            "A tie is not equality: the difference is inconclusive. The best condition is selected "
            "on the images on which it is reported, so its mean is slightly optimistic; the test "
            "of the tie group accounts for that selection. That test gives no intervals. "
            "Conditions with fewer than 3 seeds are no candidates.",
        ],
    )


def conclusion(facts: Facts) -> str:
    """The answer by the first metric that has one."""
    for metric, split in facts.metrics:
        best = facts.best(metric)
        if best is not None:
            return sentence_case(f"{PLACE[split]}, {_tied(facts, best)}")
    return "Means of the conditions; nothing was tested"


def sentence(facts: Facts) -> str:
    """The bottom line on architectures."""
    if not facts.metrics:
        return "Nothing was compared: no split with a metric of the comparisons was evaluated."
    if not facts.shown:
        return "Nothing was compared: the headline metrics are undefined for every model."
    places: dict[str, list[str]] = {}
    for metric, split in facts.metrics:
        best = facts.best(metric)
        text = "nothing was tested" if best is None else _tied(facts, best)
        places.setdefault(text, []).append(PLACE[split])
    parts = [f"{listing(found)}, {text}" for text, found in places.items()]
    found = next((b for metric, _ in facts.metrics if (b := facts.best(metric))), None)
    text = "; ".join(parts) + ("" if found is None else _effects(facts, found))
    return f"{sentence_case(text)}."


def tied_architectures(best: Best) -> list[str]:
    """The architectures with a condition in the tie group, best first."""
    return list(dict.fromkeys(condition.architecture for condition in best.group))


def _tied(facts: Facts, best: Best) -> str:
    """Which architectures are tied with the best: the answer by one metric."""
    tied = tied_architectures(best)
    top = facts.label(best.condition)
    if best.reason is not None:
        return f"{top} has the highest mean; not tested ({best.reason})"
    compared = {c.architecture for c in [*best.group, *best.lower]}
    lower = [name for name in facts.look.architectures if name in compared and name not in tied]
    others = [name for name in facts.look.architectures if name not in compared]
    rest = f" ({facts.names(others)}: not tested, fewer than 3 seeds in common)" if others else ""
    if len(compared) == 1:
        highest = f"{top} has the highest mean of {counted(best.n_candidates, 'condition')}"
        return f"{highest}{rest}"
    verb = "is" if len(lower) == 1 else "are"
    worse = f", and {facts.names(lower)} {verb} lower" if lower else ""
    if len(tied) == 1:
        return f"{facts.name(tied[0])} is best{worse}{rest}"
    if lower or others:
        return f"{facts.names(tied)} are tied{worse}{rest}"
    every = "both" if len(tied) == 2 else f"all {len(tied)}"
    return f"{every} architectures are tied ({facts.names(tied)})"


def _group(facts: Facts, best: Best) -> str:
    level = f"{SHORT[best.metric]} {_ranked(facts, best)}"
    text = f"The highest mean is that of {facts.label(best.condition)} ({level})."
    if best.reason is None:
        group = listing([facts.label(each) for each in best.group], most=_MOST_CONDITIONS)
        text += (
            f" Its tie group has {len(best.group)} of {counted(best.n_candidates, 'condition')} "
            f"({counted(best.n_species, 'species', 'species')}, "
            f"{counted(best.n_seeds, 'seed')}, {counted(best.n_tests, 'test')}): {group}."
        )
    return text


def _ranked(facts: Facts, best: Best) -> str:
    """The mean of the metric of the ranking, at the best condition."""
    row = facts.curve[best.condition]
    if best.metric in row.metrics:
        return facts.level(row, best.metric)
    share = next(
        (
            each
            for each in facts.data.pooled_shares
            if (each.condition, each.split, each.band, each.stratum, each.share)
            == (best.condition, best.split, "", "", "detection_recall")
        ),
        None,
    )
    if share is None:
        return "not in the tables without evidence"
    return with_interval(
        share.species_mean,
        share.species_mean_ci95_low,
        share.species_mean_ci95_high,
        covers=share.covers,
        reason=share.species_mean_reason,
    )


def _effects(facts: Facts, best: Best) -> str:
    """The differences to the other architectures at the condition of the best one."""
    rows = at_condition(facts, best.metric, best.condition)
    if not rows:
        return ""
    own = facts.name(best.condition.architecture)
    shown = listing(
        [
            f"{own} minus {facts.name(name)} is {effect(row)} ({verdict(row)})"
            for name, row in rows.items()
        ],
        most=3,
    )
    by = f"{SHORT[best.metric]} {PLACE[best.split]}"
    return f"; by {by}, at {label(best.condition)}, {shown}"


def at_condition(facts: Facts, metric: str, condition: Condition) -> dict[str, ComparisonRow]:
    """The comparisons of a condition with the other architectures' one, as itself minus theirs."""
    rows = {}
    for row in facts.rows("architectures", metric):
        if str(condition) in (row.a, row.b):
            turned = row if row.a == str(condition) else reversed_row(row)
            rows[facts.conditions[turned.b].architecture] = turned
    return rows


def _decided(facts: Facts, metric: str) -> list[str]:
    """The comparisons at equal conditions, and every pair that is higher or lower."""
    rows = facts.rows("architectures", metric)
    if not rows:
        return []
    pairs: dict[tuple[str, str], list[ComparisonRow]] = {}
    for row in rows:
        if row.verdict in DECIDED:
            turned = row if row.verdict == Word.HIGHER else reversed_row(row)
            names = tuple(facts.conditions[side].architecture for side in (turned.a, turned.b))
            pairs.setdefault((names[0], names[1]), []).append(turned)
    lines = [f"  - At equal conditions. {facts.tally(rows)}."]
    best = facts.best(metric)
    shown = dict(pairs)
    if len(pairs) > _MOST_PAIRS and best is not None:
        top = best.condition.architecture
        shown = {pair: found for pair, found in pairs.items() if top in pair}
    for (high, low), found in shown.items():
        at = listing([facts.label(facts.conditions[row.a]) for row in found])
        largest = max(found, key=lambda row: row.a_minus_b or 0.0)
        lines.append(
            f"  - {facts.name(high)} is higher than {facts.name(low)} at {at}; the largest "
            f"difference is {effect(largest)}."
        )
    if len(shown) < len(pairs):
        more = counted(len(pairs) - len(shown), "more pair")
        lines.append(f"  - {more} that differ: see [comparisons.csv](comparisons.csv).")
    return lines


def _levels(facts: Facts) -> list[str]:
    header = ["Architecture", "Best condition", *(BY_NAME[name].label for name in SHOWN)]
    bests = [(split, best) for metric, split in facts.metrics if (best := facts.best(metric))]
    tested = [(split, best) for split, best in bests if best.reason is None]
    header += [f"Tied {PLACE[split]}" for split, _ in tested]
    rows = []
    for name, row in facts.shown.items():
        cells = [facts.name(name), label(row.condition) + facts.warned(row)]
        cells += [facts.level(row, metric) for metric in SHOWN]
        for _, best in tested:
            cells.append(
                "yes"
                if _is_in(row.condition, best.group)
                else "no"
                if _is_in(row.condition, best.lower)
                else "not compared"
            )
        rows.append(cells)
    return table(header, rows, left=2) if rows else []


def _is_in(condition: Condition, group: Sequence[Condition]) -> bool:
    """Whether a condition is in a group, itself or as the same training images by another name."""
    return condition in group or (
        trains_on_all(condition)
        and any(
            trains_on_all(each) and each.architecture == condition.architecture for each in group
        )
    )


def _differences(facts: Facts) -> list[str]:
    """The other architectures against the best one, at its condition, by each metric."""
    best = next((b for metric, _ in facts.metrics if (b := facts.best(metric))), None)
    if best is None:
        return []
    found = {metric: at_condition(facts, metric, best.condition) for metric, _ in facts.metrics}
    others = list(dict.fromkeys(name for rows in found.values() for name in rows))
    if not others:
        return []
    header = [
        "Difference",
        *(f"{SHORT[metric]}, {PLACE[split]}" for metric, split in facts.metrics),
    ]
    own = facts.name(best.condition.architecture)
    rows = [
        [
            f"{own} minus {facts.name(name)}",
            *(judged(rows[name]) if name in rows else "not compared" for rows in found.values()),
        ]
        for name in others
    ]
    at = label(best.condition)
    return [f"Architectures at {at}, paired by species and seed:", "", *table(header, rows), ""]
