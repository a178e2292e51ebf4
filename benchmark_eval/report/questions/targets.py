"""What images of target species bring them, and what they do to all other species."""

from __future__ import annotations

from benchmark_eval.core.text import counted
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.report.captions import TARGETS
from benchmark_eval.report.facts import DECIDED, PLACE, Facts, Section, effect, judged, nothing
from benchmark_eval.report.markdown import MISSING, listing, table, with_interval
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.table_rows import TargetGainRow
from benchmark_eval.sweep.tables import TARGET_REGIME, ComparisonRow
from benchmark_eval.sweep.verdicts import Word

METRIC = "AP_50_95"


def section(facts: Facts) -> Section:
    """The gains by band and budget, and the change of all other species by their relation."""
    gains, others = facts.rows("targets"), facts.rows("other_species")
    lines = [_gains(facts), _closed(facts), *_others(facts, others)]
    return Section(
        "What do images of a target species bring?",
        [f"- {line}" for line in lines if line]
        or [f"- {nothing(f'two conditions of {TARGET_REGIME} with scored target species')}"],
        conclusion(facts),
        ("target_gains", "target_grid"),
        topic=TARGETS,
        details=[*_gains_table(facts), *_others_table(facts, others)],
        caveats=[
            "Without images, AP of a target species is 0 by construction: its gain is shown and "
            "not tested. A band has few target species. The training images of all other species "
            "do not change with k; their AP can rise nevertheless, because target specimens that "
            "were misidentified as them no longer are their false positives."
        ]
        if gains
        else [],
    )


def conclusion(facts: Facts) -> str:
    """The gains of the best architecture at the largest budget."""
    text = _gains(facts)
    return text.rstrip(".") if text else "AP@.5 of target species"


def _own(facts: Facts, question: str) -> list[ComparisonRow]:
    """The comparisons of the architecture of the sentences, or of the first one that has some."""
    rows = sorted_by_band(facts, facts.rows(question))
    lead = facts.lead
    scopes = list(dict.fromkeys(row.scope for row in rows))
    if not scopes:
        return []
    scope = lead.architecture if lead and lead.architecture in scopes else scopes[0]
    return [row for row in rows if row.scope == scope]


def sorted_by_band(facts: Facts, rows: list[ComparisonRow]) -> list[ComparisonRow]:
    """The rows with near before mid before far, by budget as before."""
    budgets = list(dict.fromkeys(_budget(facts, row) for row in rows))
    groups = [*OOD_BANDS, *dict.fromkeys(facts.side(row.a)[1] for row in rows)]
    return sorted(
        rows,
        key=lambda row: (budgets.index(_budget(facts, row)), groups.index(facts.side(row.a)[1])),
    )


def _budget(facts: Facts, row: ComparisonRow) -> str:
    return facts.side(row.a)[0].rpartition(" ")[2]


def _group(facts: Facts, row: ComparisonRow) -> str:
    group = facts.side(row.a)[1]
    return BAND_LABEL.get(group, group)


def _gains(facts: Facts) -> str:
    rows = _own(facts, "targets")
    if not rows:
        return ""
    last = _budget(facts, rows[-1])
    shown = [row for row in rows if _budget(facts, row) == last]
    gains = listing([f"{effect(row)} for {_group(facts, row).partition(' ')[0]}" for row in shown])
    who = f" of {facts.name(rows[0].scope)}" if facts.look.several else ""
    return (
        f"With {last} images of each target species instead of none, AP@[.5:.95]{who} changes by "
        f"{gains} target species."
    )


def _rows(facts: Facts) -> list[TargetGainRow]:
    """The gains by band in distribution, of k > 0."""
    return [
        row
        for row in facts.data.target_gains
        if (row.split, row.metric, row.level) == ("iid_test", METRIC, "band") and row.k != "0"
    ]


def _share(row: TargetGainRow | None) -> str:
    if row is None:
        return MISSING
    if _is_all(row):
        return "1, all images"
    return with_interval(
        row.share_closed,
        row.share_closed_ci95_low,
        row.share_closed_ci95_high,
        covers=row.covers,
        reason=row.reason or None,
    )


def _is_all(row: TargetGainRow) -> bool:
    """Whether k images of each target species are all of them: the share is 1 by construction."""
    return row.gain is not None and row.gain == row.gain_of_all


def _closed(facts: Facts) -> str:
    """The share of the gain of all images at the largest k that is not all images."""
    own = _own(facts, "targets")
    rows = [
        row
        for row in _rows(facts)
        if own and row.architecture == own[0].scope and row.share_closed is not None
    ]
    rows = [row for row in rows if not _is_all(row)]
    rows = [row for row in rows if row.k == rows[-1].k]
    if not rows:
        return ""
    rows.sort(key=lambda row: OOD_BANDS.index(row.band))
    shares = listing([f"{_share(row)} for {row.band.partition('_')[0]}" for row in rows])
    who = f" for {facts.name(rows[0].architecture)}" if facts.look.several else ""
    return (
        f"Of what all images of the target species bring{who}, k={rows[0].k} brings this share: "
        f"{shares} ones."
    )


def _others(facts: Facts, rows: list[ComparisonRow]) -> list[str]:
    """The verdicts on all other species."""
    if not rows:
        return []
    lines = []
    decided = [row for row in rows if row.verdict in DECIDED]
    for word, verb in ((Word.HIGHER, "raises"), (Word.LOWER, "lowers")):
        found = [row for row in decided if row.verdict == word]
        if found:
            each = listing(
                [
                    f"{_group(facts, row)} at {facts.label_of(facts.side(row.a)[0])} "
                    f"({effect(row)})"
                    for row in found
                ]
            )
            lines.append(f"Adding images of target species {verb} the AP of other species: {each}.")
    n = len({row.scope for row in rows})
    questions = f", {counted(n, 'question')}" if n > 1 else ""
    lines.append(f"All other species, by relation to the targets{questions}. {facts.tally(rows)}.")
    return lines


def _gains_table(facts: Facts) -> list[str]:
    names = facts.columns()
    closed = {(row.architecture, row.k, row.band): row for row in _rows(facts)}
    cells: dict[tuple[str, str], dict[str, ComparisonRow]] = {}
    for row in sorted_by_band(facts, facts.rows("targets")):
        key = (_budget(facts, row), facts.side(row.a)[1])
        cells.setdefault(key, {})[row.scope] = row
    shown = [name for name in names if any(name in found for found in cells.values())]
    rows = []
    for (budget, band), found in cells.items():
        n = next(iter(found.values())).n_species
        line = [budget, f"{BAND_LABEL[band]}, {counted(n, 'species', 'species')}"]
        for name in shown:
            line.append(effect(found[name]) if name in found else MISSING)
            line.append(_share(closed.get((name, budget.removeprefix("k="), band))))
        rows.append(line)
    if not rows:
        return []
    header = ["Budget", "Target species"]
    for name in shown:
        header += [f"Gain, {facts.name(name)}", f"Share of all images, {facts.name(name)}"]
    return [
        f"Gain in AP@[.5:.95] {PLACE['iid_test']} over no images, and the share of what all images "
        "bring:",
        "",
        *table(header, rows, left=2),
        "",
    ]


def _others_table(facts: Facts, found: list[ComparisonRow]) -> list[str]:
    names = [name for name in facts.columns() if any(row.scope == name for row in found)]
    cells: dict[tuple[str, str], dict[str, ComparisonRow]] = {}
    for row in found:
        cells.setdefault((_budget(facts, row), _group(facts, row)), {})[row.scope] = row
    rows = [
        [*key, *(judged(by[name]) if name in by else MISSING for name in names)]
        for key, by in cells.items()
    ]
    if not rows:
        return []
    return [
        "Change in AP@[.5:.95] of all other species, by their relation to the targets:",
        "",
        *table(["Budget", "Other species", *map(facts.name, names)], rows, left=2),
        "",
        *facts.left_out_columns(),
    ]
