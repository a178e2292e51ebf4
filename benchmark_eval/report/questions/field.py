"""What is lost on field photographs of trained species."""

from __future__ import annotations

from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import counted
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import MISSING, number, table, with_interval
from benchmark_eval.report.questions.losses import at_threshold
from benchmark_eval.sweep.table_rows import RetentionRow
from benchmark_eval.sweep.tables import CurveRow

METRIC = "AP_50_95"
_OPEN = "_open_vocabulary"
_SHARES = (
    "inat_detection_recall",
    "inat_classification_given_detection_acc",
    "inat_species_recall",
)


def section(facts: Facts) -> Section:
    """The gap and what is retained over shared species, and naming with nothing left out."""
    answer = [f"- {line}" for line in (_kept(facts), _open_vocabulary(facts)) if line]
    rows = [_row(facts, row) for row in facts.shown.values() if row.metrics[_SHARES[0]].n]
    header = [
        "Best condition",
        *("AP in distribution", "AP in the field", "Gap", "Retention"),
        *(
            f"{label}{also}"
            for label in ("Detected, any confidence", "Identified, of detected", "Both")
            for also in ("", ", open vocabulary")
        ),
    ]
    return Section(
        "Does it work on field photographs?",
        answer or [f"- {nothing('species scored both in distribution and on field photographs')}"],
        conclusion(facts),
        ("generalization_gaps",),
        details=table(header, rows) if rows else [],
        caveats=_caveats(facts) if rows else [],
    )


def conclusion(facts: Facts) -> str:
    """What the best condition retains."""
    found = _retained(facts, facts.lead)
    if found is None or found.retention is None:
        return "Gaps to field photographs and to unseen species"
    return (
        f"On field photographs, {facts.label(found.condition)} retains {retained(found)} of its "
        f"AP@[.5:.95] over {counted(found.n_species, 'shared species', 'shared species')}"
    )


def sentence(facts: Facts) -> str:
    """The first half of the bottom line on other data."""
    return _kept(facts) or (
        "Field photographs cannot be judged: no species is scored both in distribution and there."
    )


def retained(row: RetentionRow) -> str:
    """``0.31 [0.20, 0.48; species]``."""
    return with_interval(
        row.retention,
        row.retention_ci95_species_low,
        row.retention_ci95_species_high,
        covers=Covers.SPECIES,
        reason=row.retention_reason,
    )


def gap(row: RetentionRow) -> str:
    """In distribution minus field, with its interval."""
    return with_interval(
        row.gap,
        row.gap_ci95_low,
        row.gap_ci95_high,
        covers=row.gap_covers,
        reason=row.gap_reason,
        sign=True,
    )


def _retained(facts: Facts, row: CurveRow | None) -> RetentionRow | None:
    return next(
        (
            each
            for each in facts.data.retention
            if row is not None
            and each.condition == row.condition
            and each.metric == METRIC
            and each.field is not None
        ),
        None,
    )


def _kept(facts: Facts) -> str:
    found = _retained(facts, facts.lead)
    if found is None:
        return ""
    kept = (
        f"; it retains {retained(found)} of its AP in distribution"
        if found.retention is not None
        else f"; what it retains is not given ({found.retention_reason})"
        if found.retention_reason
        else ""
    )
    return (
        f"Over the {counted(found.n_species, 'species', 'species')} that both splits score, "
        f"AP@[.5:.95] of {facts.label(found.condition)} in distribution minus that on field "
        f"photographs is {gap(found)} (means {number(found.in_distribution)} and "
        f"{number(found.field)}, without an interval){kept}."
    )


def _open_vocabulary(facts: Facts) -> str:
    row = facts.lead
    if row is None or not row.metrics[_SHARES[1] + _OPEN].n:
        return ""
    return (
        f"Of the specimens, {facts.label(row.condition)} detects "
        f"{facts.level(row, _SHARES[0])} at any confidence, and of these "
        f"{facts.level(row, _SHARES[1])} are correctly identified if only the species that the "
        "split lists can be predicted; if no label is excluded, "
        f"{facts.level(row, _SHARES[0] + _OPEN)} and {facts.level(row, _SHARES[1] + _OPEN)}."
        f"{at_threshold(facts, row, 'inat_test')}"
    )


def _row(facts: Facts, row: CurveRow) -> list[str]:
    found = _retained(facts, row)
    cells = [facts.label(row.condition)]
    cells += (
        [MISSING] * 4
        if found is None
        else [number(found.in_distribution), number(found.field), gap(found), retained(found)]
    )
    return cells + [facts.level(row, name + also) for name in _SHARES for also in ("", _OPEN)]


def _caveats(facts: Facts) -> list[str]:
    split = facts.data.benchmark.splits.get("inat_test")
    lines = []
    if split is not None:
        lines.append(
            f"The field photographs have {counted(split.n_scored, 'scored specimen')} of "
            f"{counted(split.n_species, 'species', 'species')}: they show the direction of a "
            "difference, not its size."
        )
    return [
        *lines,
        "Without 'open vocabulary', detections of a species that the split does not list are "
        "excluded, as in the benchmark's evaluator: a specimen that is also detected under such a "
        "label counts as correctly identified. A user in the field has no such list.",
    ]
