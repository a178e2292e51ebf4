"""What is detected of species that are in no training set, by distance and density."""

from __future__ import annotations

from benchmark_eval.core.intervals import Reason
from benchmark_eval.core.shares import MIN_IMAGES
from benchmark_eval.core.text import counted, percent
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.report.captions import AWAY
from benchmark_eval.report.facts import DECIDED, Facts, Section, effect, judged, nothing
from benchmark_eval.report.markdown import (
    MISSING,
    listing,
    number,
    over_seeds,
    table,
    with_interval,
)
from benchmark_eval.results.evidence import DENSITY
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.differences import RECALL_1_MINUS_OVER_10
from benchmark_eval.sweep.table_rows import ShareRow
from benchmark_eval.sweep.tables import ComparisonRow, CurveRow
from benchmark_eval.sweep.verdicts import Word

SHARE = "detection_recall"

STRATA = dict(
    zip(DENSITY, ("one specimen", "2 to 10 specimens", "more than ten specimens"), strict=True)
)
"""The density strata as text."""

_IID, _OOD = "iid_class_agnostic_AR_100", "ood_class_agnostic_AR_100"


def section(facts: Facts) -> Section:
    """Recall on unseen species, and near against other bands at any and at equal density."""
    lead = facts.lead
    answer = [f"- {line}" for line in (_recall(facts), *_bands(facts), _density(facts)) if line]
    rows = [_row(facts, row) for row in facts.shown.values() if row.metrics[_OOD].n]
    header = ["Best condition", "AR@100"]
    for band in OOD_BANDS:
        header += [
            f"AR@100, {BAND_LABEL[band]}",
            f"Recall, {_short(band)}",
            f"Effective species, {_short(band)}",
        ]
    header += [f"Near minus {_short(band)}" for band in OOD_BANDS[1:]]
    known = lead is not None and lead.metrics[_OOD].n
    return Section(
        "Does it work on unseen species?",
        answer or [f"- {nothing('evaluated unseen species')}"],
        conclusion(facts),
        ("band_density", "ood_bands"),
        topic=AWAY,
        details=[
            "Class-agnostic AR@100, and detection recall as a mean over species. A pooled share "
            "with fewer than 10 effective species (Kish) would depend on single species:",
            "",
            *table(header, rows),
        ]
        if rows
        else [],
        caveats=_caveats(facts) if known else [],
    )


def conclusion(facts: Facts) -> str:
    """Near against the farthest band that is tested."""
    for band in reversed(OOD_BANDS[1:]):
        row = _gap(facts, facts.lead, band)
        if row is not None and row.verdict != Word.NOT_TESTED:
            return f"Near minus {_short(band)} detection recall, {compared(row)}"
    return "Recall on unseen species by taxonomic distance"


def sentence(facts: Facts) -> str:
    """The second half of the bottom line on other data."""
    return _recall(facts) or "Unseen species cannot be judged: they were not evaluated."


def _recall(facts: Facts) -> str:
    """Both levels, and recall at equal density: the difference of the levels is mostly density."""
    row = facts.lead
    if row is None or not row.metrics[_OOD].n:
        return ""
    text = (
        f"On unseen species, {facts.label(row.condition)} has a class-agnostic AR@100 of "
        f"{facts.level(row, _OOD)}"
    )
    if row.metrics[_IID].n:
        text += (
            f", and {facts.level(row, _IID)} in distribution; the images differ in density, so "
            "the two cannot be subtracted"
        )
        strata = _strata(facts, row)
        if strata:
            text += f". Species-mean detection recall at equal density: {'; '.join(strata)}"
    return f"{text}."


def _strata(facts: Facts, row: CurveRow) -> list[str]:
    """Detection recall in distribution and on unseen species in the strata that both fill."""
    found = []
    for stratum, name in STRATA.items():
        known, unseen = (
            stratum_share(facts, row, split, stratum) for split in ("iid_test", "semantic_ood")
        )
        if known is not None and unseen is not None:
            found.append(
                f"{_level_text(known)} in distribution and {_level_text(unseen)} on unseen species "
                f"on images with {name}"
            )
    return found


def stratum_share(facts: Facts, row: CurveRow, split: str, stratum: str) -> ShareRow | None:
    """Detection recall of a split in a density stratum; None with fewer than 10 images."""
    return next(
        (
            each
            for each in facts.data.pooled_shares
            if (each.condition, each.split, each.band, each.stratum, each.share)
            == (row.condition, split, "", stratum, SHARE)
            and each.n_images >= MIN_IMAGES
            and each.species_mean is not None
        ),
        None,
    )


def _gap(facts: Facts, row: CurveRow | None, band: str) -> ComparisonRow | None:
    """Near against another band at one condition."""
    if row is None:
        return None
    sides = (f"{row.condition}, {OOD_BANDS[0]}", f"{row.condition}, {band}")
    return next((each for each in facts.rows("bands") if (each.a, each.b) == sides), None)


def _coverage(facts: Facts, row: CurveRow, band: str) -> str:
    """The share of near specimens in the density strata that both bands fill."""
    for each in facts.data.band_gaps:
        if (
            (each.condition, each.other_band) == (row.condition, band)
            and each.weighting == "species"
            and each.coverage is not None
        ):
            held = percent(round(1000 * each.coverage), 1000)
            return f" (strata {each.strata}, which hold {held} of the near specimens)"
    return ""


def _band_level(facts: Facts, row: CurveRow, band: str) -> ShareRow | None:
    """Detection recall of a band at any density, as a mean over species."""
    return next(
        (
            each
            for each in facts.data.pooled_shares
            if (each.condition, each.split, each.band, each.stratum)
            == (row.condition, "semantic_ood", band, "")
            and each.share == SHARE
        ),
        None,
    )


def _level_text(row: ShareRow | None) -> str:
    if row is None:
        return MISSING
    return with_interval(
        row.species_mean,
        row.species_mean_ci95_low,
        row.species_mean_ci95_high,
        covers=row.covers,
        reason=row.species_mean_reason,
    )


def compared(row: ComparisonRow) -> str:
    """How a gap between bands is judged."""
    if row.reason == Reason.ANY_DENSITY:
        return f"without regard to the density of their images, {judged(row)}"
    return f"at equal density of their images, {judged(row)}"


def _bands(facts: Facts) -> list[str]:
    lines = []
    lead = facts.lead
    for band in OOD_BANDS[1:]:
        row = _gap(facts, lead, band)
        if row is None or lead is None:
            continue
        near, other = (_band_level(facts, lead, each) for each in (OOD_BANDS[0], band))
        text = (
            f"Near minus {_short(band)} species-mean detection recall of "
            f"{facts.label(lead.condition)}: {compared(row)}"
        )
        if row.a_minus_b is not None and row.reason != Reason.ANY_DENSITY:
            text += _coverage(facts, lead, band)
        if near is not None and other is not None:
            text += (
                f"; without regard to density, the recall is {_level_text(near)} for near and "
                f"{_level_text(other)} for {_short(band)} species"
            )
        lines.append(f"{text}.")
    rows = facts.rows("bands")
    if rows:
        lines.append(f"All conditions. {facts.tally(rows)}.")
    for band in OOD_BANDS[1:]:
        for word in DECIDED:
            found = [
                f"{facts.label_of(facts.side(row.a)[0])} ({effect(row)})"
                for row in rows
                if row.verdict == word and facts.side(row.b)[1] == band
            ]
            if found:
                lines.append(f"Near is {word} than {_short(band)} at {listing(found, most=60)}.")
    return lines


def _short(band: str) -> str:
    return band.partition("_")[0]


def _density(facts: Facts) -> str:
    row = facts.lead
    if row is None or not row.differences[RECALL_1_MINUS_OVER_10].n:
        return ""
    return (
        f"For {facts.label(row.condition)}, recall on images with one unseen specimen minus that "
        f"on images with more than ten (means over images) is "
        f"{over_seeds(row.differences[RECALL_1_MINUS_OVER_10])}."
    )


def _row(facts: Facts, row: CurveRow) -> list[str]:
    cells = [facts.label(row.condition), facts.level(row, _OOD)]
    for band in OOD_BANDS:
        cells += [facts.level(row, f"ood_{band}_AR_100"), *_pooled(_band_level(facts, row, band))]
    for band in OOD_BANDS[1:]:
        found = _gap(facts, row, band)
        cells.append(MISSING if found is None else judged(found))
    return cells


def _pooled(row: ShareRow | None) -> list[str]:
    """The mean over species, and the effective number of species of the pooled share."""
    if row is None:
        return [MISSING, MISSING]
    return [_level_text(row), number(row.n_effective_species, 1)]


def _caveats(facts: Facts) -> list[str]:
    lines = [
        "By construction, unseen species have no correct name: their AP, species accuracy and "
        "species recall are 0, and so are the correct genus of mid and far and the correct tribe "
        "of far species. These values take part in no verdict.",
        "Recall is an upper bound: every annotated object is a beetle, so no result shows how well "
        "beetles are separated from trap debris, wood fibres or other insects.",
    ]
    far = facts.data.benchmark.bands.get(OOD_BANDS[-1])
    if far is not None and far.n_scored:
        lines.append(
            f"The {BAND_LABEL[OOD_BANDS[-1]]} band has "
            f"{counted(far.n_species, 'species', 'species')} with scored specimens. The two "
            f"largest account for {percent(far.two_largest, far.n_scored)} of these."
        )
    return lines
