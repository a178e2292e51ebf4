"""How much data is enough: the steps along each curve, and the images for a part of the result."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.core.text import counted
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.captions import DATA
from benchmark_eval.report.facts import (
    DECIDED,
    PLACE,
    SHORT,
    Facts,
    Section,
    effect,
    judged,
    nothing,
    verdict,
)
from benchmark_eval.report.markdown import MISSING, listing, number, sentence_case, table
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.tables import ABOVE, BELOW, ComparisonRow, PlanningRow
from benchmark_eval.sweep.verdicts import Word

_HALF_DOUBLING = 1.41
"""Smallest ratio of the costs of a step for which the gain per doubling is printed."""
_REACHED = 0.9
"""The fraction of the ceiling in the sentences."""


def section(facts: Facts) -> Section:
    """The steps by regime, with verdicts, and the cost of parts of the ceiling."""
    answer = []
    for metric, split in facts.metrics:
        rows = facts.rows("steps", metric)
        if not rows:
            continue
        answer.append(
            f"- {sentence_case(PLACE[split])} ({SHORT[metric]}), the last step of each regime:"
        )
        answer += [
            f"  - {step}: {facts.by_verdict(found, effects=metric == facts.metrics[0][0])}."
            for step, found in _last_steps(facts, rows)
        ]
        scopes = len({row.scope for row in rows})
        answer.append(
            f"  - All steps, one question for each of {counted(scopes, 'curve')}. "
            f"{facts.tally(rows)}."
        )
        if metric != _table_metric(facts):
            answer += _decided(facts, rows)
    if not answer:
        answer = [f"- {nothing('regime with two budgets')}"]
    return Section(
        "How much data is enough?",
        answer,
        conclusion(facts),
        ("learning_iid_AP_50_95", "steps"),
        topic=DATA,
        details=[*_steps_table(facts), "", *_planning_table(facts)],
        caveats=[*_costs(facts), *_caveats(facts)],
    )


def conclusion(facts: Facts) -> str:
    """What the last step of the first regime brings by the first metric."""
    for metric, split in facts.metrics:
        steps = _last_steps(facts, facts.rows("steps", metric))
        if steps:
            step, found = steps[0]
            return f"{SHORT[metric]} {PLACE[split]}, {step}: {facts.agreed(found)}"
    return "Means by budget; no regime has two budgets"


def sentence(facts: Facts) -> str:
    """The bottom line on data: the last step, and the images for most of the result."""
    lead = facts.lead
    metric = next(iter(facts.metrics), None)
    steps = [] if metric is None else _ends(facts.rows("steps", metric[0]))
    own = [row for row in steps if lead and facts.curve_of(row.scope)[0] == lead.architecture]
    if not own or lead is None:
        return "No regime has two budgets, so that nothing can be said about more images."
    grown = [row for row in own if facts.curve_of(row.scope)[1] != REGIMES[2]] or own
    changes = [
        f"{_step(facts, row)} by {effect(row)} ({verdict(row)}{_images(facts, row)})"
        for row in grown
    ]
    costs = [
        f"{cost(row)} images of {row.regime}"
        for row in facts.data.budget_planning
        if (row.architecture, row.metric, row.unit) == (lead.architecture, HEADLINE[0], "images")
        and row.fraction == _REACHED
        and row.regime != REGIMES[2]
        and (row.cost is not None or row.cost_beyond)
    ]
    who = f"; of {facts.name(lead.architecture)}, " if facts.look.several else "; "
    what = f"{SHORT[own[0].metric]} {PLACE[own[0].split]}"
    text = f"{_still(facts, steps)}{who}{what} changes for {'; for '.join(changes)}"
    if costs:
        text += (
            f"; {100 * _REACHED:.0f} % of the {SHORT[HEADLINE[0]]} with all images takes "
            f"{listing(costs)}"
        )
    return f"{text}."


def _still(facts: Facts, steps: Sequence[ComparisonRow]) -> str:
    """Whether the last step of all architectures brings more, and how many curves say so."""
    rows = [row for row in steps if facts.curve_of(row.scope)[1] != REGIMES[2]] or list(steps)
    words = [row.verdict for row in rows]
    start = (
        "Whether more images still help is not tested"
        if set(words) == {Word.NOT_TESTED}
        else "That more images still help is not shown"
        if Word.HIGHER not in words
        else "More images still help on some curves and harm on others"
        if Word.LOWER in words
        else "More images still help"
        if set(words) == {Word.HIGHER}
        else "More images still help on some curves"
    )
    counts = [
        f"{words.count(word):,} {word}"
        for word in dict.fromkeys([*DECIDED, *words])
        if word in words
    ]
    whose = ", all architectures" if facts.look.several else ""
    return f"{start} (last step of {counted(len(rows), 'curve')}{whose}: {listing(counts)})"


def _images(facts: Facts, row: ComparisonRow) -> str:
    """``; 165 to 305 images, +0.18 per doubling``; a shorter step is not extrapolated."""
    ends = [facts.cost[facts.conditions[side]].n_images for side in (row.b, row.a)]
    if None in ends or row.per_doubling_images is None:
        return ""
    low, high = (n for n in ends if n is not None)
    span = f"; {low:,.0f} to {high:,.0f} images"
    if high < _HALF_DOUBLING * low:
        return span
    return f"{span}, {number(row.per_doubling_images, sign=True)} per doubling"


def cost(row: PlanningRow) -> str:
    """``267 [254, 282; retraining]``; ``> 305`` where the budgets do not reach it."""

    def side(value: float | None, beyond: str) -> str:
        if value is not None:
            return f"{value:,.0f}"
        at = {BELOW: f"< {row.smallest:,.0f}", ABOVE: f"> {row.largest:,.0f}"}
        return at.get(beyond, "")

    middle = side(row.cost, row.cost_beyond)
    low, high = side(row.ci95_low, row.low_beyond), side(row.ci95_high, row.high_beyond)
    if not middle:
        return f"{MISSING} ({row.reason})"
    if not (low and high):
        return f"{middle} (no interval{f': {row.reason}' if row.reason else ''})"
    return middle if low == high == middle else f"{middle} [{low}, {high}; retraining]"


def _budget(condition: str) -> str:
    return condition.rpartition(" ")[2]


def _ends(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """The last step of each curve."""
    return list({row.scope: row for row in rows}.values())


def _step(facts: Facts, row: ComparisonRow) -> str:
    """``global_uniform k=50 to k=all``."""
    return f"{facts.curve_of(row.scope)[1]} {_budget(row.b)} to {_budget(row.a)}"


def _last_steps(
    facts: Facts, rows: Sequence[ComparisonRow]
) -> list[tuple[str, dict[str, ComparisonRow]]]:
    """The last step of each regime by architecture; incomplete ones end at other budgets."""
    by_step: dict[tuple[int, str], dict[str, ComparisonRow]] = {}
    for row in _ends(rows):
        architecture, regime = facts.curve_of(row.scope)
        by_step.setdefault((REGIMES.index(regime), _step(facts, row)), {})[architecture] = row
    return [(step, found) for (_, step), found in sorted(by_step.items(), key=lambda i: i[0][0])]


def _decided(facts: Facts, rows: Sequence[ComparisonRow]) -> list[str]:
    """The steps that are higher or lower, for a metric without a table of all steps."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.verdict in DECIDED:
            names = found.setdefault(str(row.verdict), {}).setdefault(_step(facts, row), [])
            names.append(facts.name(facts.curve_of(row.scope)[0]))
    several = len(facts.look.architectures) > 1
    return [
        f"  - {word.capitalize()}: "
        + "; ".join(f"{step} ({listing(names)})" if several else step for step, names in by.items())
        + "."
        for word, by in found.items()
    ]


def _table_metric(facts: Facts) -> str | None:
    """The metric of the table of all steps."""
    return next((metric for metric, _ in facts.metrics if facts.rows("steps", metric)), None)


def _steps_table(facts: Facts) -> list[str]:
    """Every step by the first metric, one column per architecture."""
    metric = _table_metric(facts)
    if metric is None:
        return []
    names = facts.columns()
    cells: dict[tuple[str, str, str], dict[str, ComparisonRow]] = {}
    for row in facts.rows("steps", metric):
        architecture, regime = facts.curve_of(row.scope)
        cells.setdefault((regime, _budget(row.b), _budget(row.a)), {})[architecture] = row
    rows = [
        [
            f"{regime}, {before} to {after}",
            *(judged(found[name]) if name in found else MISSING for name in names),
        ]
        for (regime, before, after), found in sorted(
            cells.items(), key=lambda item: REGIMES.index(item[0][0])
        )
        if any(name in found for name in names)
    ]
    split = dict(facts.metrics)[metric]
    return [
        f"Change of {SHORT[metric]} {PLACE[split]} with each step; the verdicts are corrected "
        "within each curve:",
        "",
        *table(["Step", *map(facts.name, names)], rows),
        "",
        *facts.left_out_columns(),
    ]


def _planning_table(facts: Facts) -> list[str]:
    """The images and specimens for parts of the ceiling, by the first headline metric."""
    found = [
        row
        for row in facts.data.budget_planning
        if row.metric == HEADLINE[0] and row.architecture in facts.columns()
    ]
    fractions = sorted({row.fraction for row in found})
    cells: dict[tuple[str, str, str], dict[float, PlanningRow]] = {}
    for row in found:
        cells.setdefault((row.architecture, row.regime, row.unit), {})[row.fraction] = row
    rows = [
        [facts.name(name), regime, unit, *(cost(by[each]) for each in fractions)]
        for (name, regime, unit), by in cells.items()
        if any(row.cost is not None or row.cost_beyond for row in by.values())
    ]
    if not rows:
        return []
    header = ["Architecture", "Regime", "Unit", *(f"{100 * each:.0f} %" for each in fractions)]
    return [
        f"Images and specimens that reach a part of the {SHORT[HEADLINE[0]]} {PLACE['iid_test']} "
        "with all images; '<' and '>' are costs beyond the smallest and largest budget:",
        "",
        *table(header, rows, left=3),
        "",
    ]


def _costs(facts: Facts) -> list[str]:
    sources = {row.source for row in facts.data.budget_curves}
    if "expected" in sources:
        return [
            "Costs are expected values over the random draw of images wherever the manifest names "
            "no training annotations."
        ]
    if "unknown" in sources:
        return ["Without train.json, the costs of the conditions are unknown."]
    return []


def _caveats(facts: Facts) -> list[str]:
    lines = [
        "Rare species run out of images: a larger k of global_uniform adds images of common "
        "species only. Conditions that draw the same images under several names, such as k=all "
        "and p=1, enter once, under the first name. The intervals of costs assume that the curve "
        "does not fall between budgets."
    ]
    if any(row.b.endswith(f"{REGIMES[2]} k=0") for row in facts.rows("steps")):
        lines.append(
            f"The step from k=0 of {REGIMES[2]} contains the target species, whose AP without "
            "images is 0 by construction."
        )
    return lines
