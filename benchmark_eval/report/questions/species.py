"""Which species not to rely on."""

from __future__ import annotations

from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import counted
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import MISSING, escape, listing, number, table, with_interval
from benchmark_eval.sweep.reliance import (
    MAX_ABSORBED,
    MIN_RECALL,
    MIN_SEEDS_AGREEING,
    MIN_SPECIMENS,
)
from benchmark_eval.sweep.table_rows import SpeciesRow

_MOST_NAMES = 5
_MOST_ROWS = 40


def section(facts: Facts) -> Section:
    """The marked species with the reasons, and those of which nothing can be told."""
    known = _known(facts)
    marked = [row for row in known if row.do_not_rely]
    untold = [row for row in known if row.do_not_rely is None]
    answer = []
    if known:
        answer.append(f"- {sentence(facts)}")
        few = [row for row in marked if _few(row)]
        if few:
            answer.append(
                f"- {counted(len(few), 'species', 'species')} of these have fewer than "
                f"{MIN_SPECIMENS} scored specimens, so that nothing is known of them; the others "
                "fail by their results."
            )
        for reason, names in _reasons(untold).items():
            answer.append(
                f"- Undecided for {counted(len(names), 'species', 'species')}: {escape(reason)}."
            )
    rows = [_row(row) for row in [*marked, *untold][:_MOST_ROWS]]
    more = len(marked) + len(untold) - len(rows)
    header = [
        "Species",
        "Training images",
        "Scored specimens",
        "AP@[.5:.95]",
        "Species recall at the threshold",
        "Most frequent wrong label",
        "Why not to rely on it",
    ]
    return Section(
        "Which species should not be relied on?",
        answer or [f"- {nothing('table of species')}"],
        conclusion(facts),
        ("species",),
        details=[
            *table(header, rows),
            "",
            *([f"{more:,} more: see [species.csv](species.csv).", ""] if more else []),
        ]
        if rows
        else [],
        caveats=[
            f"Marked are species with fewer than {MIN_SPECIMENS} scored specimens in distribution, "
            f"with a species recall below {MIN_RECALL} at the operating threshold, or of which one "
            f"other label takes at least {100 * MAX_ABSORBED:.0f} % of the specimens, the last two "
            f"in at least {MIN_SEEDS_AGREEING} seeds of the best architecture for the species. A "
            "species without a mark is not thereby reliable in the field. All seeds are tested on "
            "the same specimens, so their agreement shows that retraining makes no difference; it "
            "does not replicate the result on other specimens."
        ]
        if known
        else [],
    )


def conclusion(facts: Facts) -> str:
    """How many species are marked."""
    known = _known(facts)
    if not known:
        return "AP@[.5:.95] by species"
    n = sum(bool(row.do_not_rely) for row in known)
    told = [row for row in known if row.do_not_rely is not None]
    if not told:
        return f"Whether to rely on a species is undecided ({escape(next(iter(_reasons(known))))})"
    of = counted(len(told), "known species", "known species")
    return f"{n:,} of {of} should not be relied on{_undecided(known)}"


def sentence(facts: Facts) -> str:
    """The bottom line on species."""
    known = _known(facts)
    if not known:
        return "Which species not to rely on is unknown: there is no table of species."
    marked = [row for row in known if row.do_not_rely]
    told = [row for row in known if row.do_not_rely is not None]
    if not told:
        reason = next(iter(_reasons(known)))
        return f"Which species not to rely on is undecided ({escape(reason)})."
    text = (
        f"Do not rely on {len(marked):,} of {counted(len(told), 'known species', 'known species')}"
        f"{_undecided(known)}"
    )
    failing = [row for row in marked if not _few(row)]
    if failing:
        rest = "" if len(failing) == len(marked) else f", {len(failing):,} of them by their results"
        text += f"{rest}; {_lowest(failing)}"
    return f"{text}. All seeds share the same test specimens: their agreement is no replication."


def _undecided(known: list[SpeciesRow]) -> str:
    n = sum(row.do_not_rely is None for row in known)
    return f" ({n:,} more {'is' if n == 1 else 'are'} undecided)" if n else ""


def _lowest(failing: list[SpeciesRow]) -> str:
    """The species with the lowest recall; one with the recall of another is not left out alone."""
    recalls = [row.iid_species_recall_operating or 0.0 for row in failing]
    low = [each for each in recalls if each < MIN_RECALL]
    every = len(low) == len(failing) > 1
    who = (
        "each of these is" if every else f"{len(low):,} of these {'is' if len(low) == 1 else 'are'}"
    )
    whose = "its" if every or len(low) == 1 else "their"
    text = (
        f"{who} correctly identified in fewer than half of {whose} test specimens at the "
        "operating threshold; "
        if low
        else ""
    )
    last = recalls[min(_MOST_NAMES, len(recalls)) - 1]
    shown = [row for row, recall in zip(failing, recalls, strict=True) if recall <= last]
    if len(shown) > 2 * _MOST_NAMES:  # too many tied species to name
        shown = [row for row, recall in zip(failing, recalls, strict=True) if recall < last]
    names = [
        f"{escape(row.species)} ({number(row.iid_species_recall_operating)}, "
        f"{counted(row.iid_n_specimens or 0, 'specimen')})"
        for row in shown
    ]
    if not names:
        return f"{text}{len(failing):,} species have the lowest species recall ({number(last)})"
    more = len(failing) - len(names)
    rest = f" and {more:,} more" if more else ""
    return f"{text}the lowest species recall: {', '.join(names) if more else listing(names)}{rest}"


def _known(facts: Facts) -> list[SpeciesRow]:
    """The known species, those with the lowest species recall first."""
    return sorted(
        (row for row in facts.data.species if row.role == "known"),
        key=lambda row: (row.iid_species_recall_operating or 0.0, row.species),
    )


def _few(row: SpeciesRow) -> bool:
    return row.iid_n_specimens is not None and row.iid_n_specimens < MIN_SPECIMENS


def _reasons(rows: list[SpeciesRow]) -> dict[str, list[str]]:
    """The species by the reason why nothing can be told."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.do_not_rely_reason, []).append(row.species)
    return found


def _row(row: SpeciesRow) -> list[str]:
    wrong = MISSING
    if row.confused_named and row.confused_share is not None:
        wrong = f"{escape(row.confused_with)} ({number(row.confused_share)} of the specimens)"
    return [
        escape(row.species),
        MISSING if row.n_train_images is None else f"{row.n_train_images:,}",
        MISSING if row.iid_n_specimens is None else f"{row.iid_n_specimens:,}",
        MISSING
        if row.iid_AP_50_95 is None
        else with_interval(
            row.iid_AP_50_95,
            row.iid_AP_50_95_ci95_retraining_low,
            row.iid_AP_50_95_ci95_retraining_high,
            covers=Covers.RETRAINING,
        ),
        number(row.iid_species_recall_operating),
        wrong,
        escape(row.do_not_rely_reason),
    ]
