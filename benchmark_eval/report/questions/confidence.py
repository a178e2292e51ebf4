"""Whether the confidence can be trusted, and whether it tells unseen species from known ones."""

from __future__ import annotations

from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import counted
from benchmark_eval.report.captions import CONFIDENCE
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import table, with_interval
from benchmark_eval.report.questions.unseen import STRATA, stratum_share
from benchmark_eval.sweep.table_rows import NoveltyRow, ReliabilityRow
from benchmark_eval.sweep.tables import CurveRow

_AUROC, _FPR = "novelty_det_AUROC", "novelty_det_FPR@95TPR"
_COLUMNS = {
    "Calibration error, in distribution": "iid_ECE",
    "Calibration error, field": "inat_ECE",
    "Calibration error, unseen": "ood_ECE",
}


def section(facts: Facts) -> Section:
    """Novelty with both of its numbers, and the calibration where decisions are made."""
    lead = facts.lead
    lines = [_novelty_line(facts), _novelty_strata(facts), *_operating(facts)]
    rows = [
        [
            facts.label(row.condition),
            *_novelty_cells(facts, row),
            *(facts.level(row, name) for name in _COLUMNS.values()),
        ]
        for row in facts.shown.values()
        if row.metrics[_AUROC].n or row.metrics["iid_ECE"].n
    ]
    header = [
        "Best condition",
        "Novelty AUROC",
        "FPR at 95 % TPR",
        *_COLUMNS,
    ]
    known = lead is not None and rows
    return Section(
        "Can the confidence be trusted?",
        [f"- {line}" for line in lines if line] or [f"- {nothing('true positives')}"],
        conclusion(facts),
        ("novelty_histograms", "novelty", "reliability"),
        topic=CONFIDENCE,
        details=table(header, rows) if rows else [],
        caveats=[
            "The calibration error (ECE) is averaged over all detections. Most of them have a "
            "confidence near 0, so it says little about the confident ones; the bins at and above "
            "the operating threshold are in [reliability.csv](reliability.csv). The false positive "
            "rate (FPR) is the share of the true positives on known species that is rejected too "
            "when 95 % of those on unseen species are: it counts specimens, not species. The "
            "threshold is set on the unseen test specimens themselves, which are not available in "
            "practice. A known species differs from an unseen one in the density of its images as "
            "well, which changes the confidence: compare at equal density. All seeds share the "
            "test images, so the detections of several seeds are no independent evidence."
        ]
        if known
        else [],
    )


def conclusion(facts: Facts) -> str:
    """What it costs to reject unseen species."""
    lead = facts.lead
    if lead is None or not lead.metrics[_AUROC].n:
        return "Confidence and precision"
    fpr = _novelty_cells(facts, lead)[1]
    return (
        f"With {facts.label(lead.condition)}, rejecting 95 % of the true positives on unseen "
        f"species by confidence also rejects {fpr} of those on known species"
    )


def _novelty(facts: Facts, row: CurveRow, stratum: str = "") -> NoveltyRow | None:
    return next(
        (
            each
            for each in facts.data.novelty
            if (each.condition, each.band, each.stratum) == (row.condition, "", stratum)
            and each.AUROC is not None
        ),
        None,
    )


def _novelty_cells(facts: Facts, row: CurveRow) -> tuple[str, str]:
    """AUROC and FPR, over species where the evidence is there, else over retraining."""
    found = _novelty(facts, row)
    if found is None:
        return facts.level(row, _AUROC), facts.level(row, _FPR)
    return _over_species(found)


def _over_species(found: NoveltyRow) -> tuple[str, str]:
    return (
        with_interval(
            found.AUROC,
            found.AUROC_ci95_species_low,
            found.AUROC_ci95_species_high,
            covers=Covers.SPECIES,
            reason=found.reason,
        ),
        with_interval(
            found.FPR_95TPR,
            found.FPR_95TPR_ci95_species_low,
            found.FPR_95TPR_ci95_species_high,
            covers=Covers.SPECIES,
            reason=found.reason,
        ),
    )


def _novelty_line(facts: Facts) -> str:
    row = facts.lead
    if row is None or not row.metrics[_AUROC].n:
        return ""
    auroc, fpr = _novelty_cells(facts, row)
    return (
        f"For {facts.label(row.condition)}, low confidence tells unseen from known species with an "
        f"AUROC of {auroc} (0.5 is chance); a threshold that rejects 95 % of the true positives on "
        f"unseen species also rejects {fpr} of those on known species. That threshold is set on "
        "these test specimens themselves."
    )


def _novelty_strata(facts: Facts) -> str:
    """The same at equal density, in the strata that both known and unseen species fill."""
    row = facts.lead
    if row is None or not row.metrics[_AUROC].n:
        return ""
    parts = []
    for stratum, name in STRATA.items():
        found = _novelty(facts, row, stratum)
        both = all(
            stratum_share(facts, row, split, stratum) for split in ("iid_test", "semantic_ood")
        )
        if found is not None and found.AUROC_ci95_species_low is not None and both:
            auroc, fpr = _over_species(found)
            parts.append(f"AUROC {auroc} and FPR {fpr} on images with {name}")
    start = (
        "These numbers contain the different density of the images of known and unseen species. "
    )
    if not parts:
        return f"{start}There is no number at equal density."
    return f"{start}At equal density, for {facts.label(row.condition)}: {'; '.join(parts)}."


def _bins(facts: Facts) -> list[ReliabilityRow]:
    """The bins of 'both' in distribution, at and above the operating threshold."""
    lead = facts.lead
    return [
        row
        for row in facts.data.reliability
        if lead
        and row.condition == lead.condition
        and (row.split, row.event, row.threshold)
        == ("iid_test", "detected_and_identified", "operating")
    ]


def _operating(facts: Facts) -> list[str]:
    """The bin with the highest confidence, and that with the largest gap to what is observed."""
    bins = _bins(facts)
    if not bins or facts.lead is None:
        return []
    top = max(bins, key=lambda row: row.bin)
    farthest = max(bins, key=lambda row: abs(row.mean_confidence - (row.observed or 0.0)))
    at = f"In distribution, for {facts.label(facts.lead.condition)}"
    if top is farthest:
        return [f"{at}, in the bin of the highest confidence and largest gap, {_bin(top)}."]
    return [
        f"{at}, in the bin of the highest confidence, {_bin(top)}.",
        f"{at}, in the bin with the largest gap between confidence and observed fraction (of "
        f"{counted(len(bins), 'bin')} at or above the operating threshold), {_bin(farthest)}.",
    ]


def _bin(row: ReliabilityRow) -> str:
    """What is observed in a bin, against its confidence."""
    observed = with_interval(
        row.observed, row.ci95_low, row.ci95_high, covers=row.covers, reason=row.reason
    )
    n = (
        f"{counted(row.n, 'detection')}, the sum over {counted(row.n_seeds, 'seed')} of the same "
        f"images, {row.n / row.n_seeds:,.0f} per seed"
        if row.n_seeds > 1
        else counted(row.n, "detection")
    )
    return (
        f"{observed} of the detections match a specimen and have its correct species, at a mean "
        f"confidence of {row.mean_confidence:.2f} ({row.lower:.2f} to {row.upper:.2f}; {n})"
    )
