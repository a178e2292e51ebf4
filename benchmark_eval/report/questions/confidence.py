"""Whether the confidence can be trusted, and whether it tells unseen species from known ones."""

from __future__ import annotations

from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import counted
from benchmark_eval.report.captions import CONFIDENCE
from benchmark_eval.report.facts import Facts, Section, nothing
from benchmark_eval.report.markdown import table, with_interval
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
    lines = [_novelty_line(facts), _operating(facts)]
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
            "the operating threshold are in [reliability.csv](reliability.csv). An AUROC alone "
            "hides what a threshold costs: the false positive rate (FPR) is the share of known "
            "species that is rejected too when 95 % of the unseen ones are."
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
        f"Rejecting 95 % of the unseen species by confidence also rejects {fpr} of the known ones"
    )


def _novelty(facts: Facts, row: CurveRow) -> NoveltyRow | None:
    return next(
        (
            each
            for each in facts.data.novelty
            if (each.condition, each.band, each.stratum) == (row.condition, "", "")
            and each.AUROC is not None
        ),
        None,
    )


def _novelty_cells(facts: Facts, row: CurveRow) -> tuple[str, str]:
    """AUROC and FPR, over species where the evidence is there, else over retraining."""
    found = _novelty(facts, row)
    if found is None:
        return facts.level(row, _AUROC), facts.level(row, _FPR)
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
        f"unseen species also rejects {fpr} of those on known species."
    )


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


def _operating(facts: Facts) -> str:
    """How far the highest bin is from its confidence."""
    bins = _bins(facts)
    if not bins or facts.lead is None:
        return ""
    top = max(bins, key=lambda row: row.bin)
    observed = with_interval(
        top.observed, top.ci95_low, top.ci95_high, covers=top.covers, reason=top.reason
    )
    return (
        f"In distribution, of the {counted(top.n, 'detection')} with the highest confidence "
        f"({top.lower:.2f} to {top.upper:.2f}, mean {top.mean_confidence:.2f}), {observed} detect "
        "a specimen and name its species correctly."
    )
