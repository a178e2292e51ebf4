"""Where specimens are lost: missed, misidentified, and the types of errors."""

from __future__ import annotations

from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import percent
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.report.captions import IDENTIFICATION
from benchmark_eval.report.facts import PLACE, Facts, Section, nothing
from benchmark_eval.report.lookup import best_threshold
from benchmark_eval.report.markdown import (
    MISSING,
    escape,
    number,
    over_seeds,
    sentence_case,
    spread,
    table,
    with_interval,
)
from benchmark_eval.results.registry import SPLIT_PREFIX
from benchmark_eval.sweep.differences import CLASSIFICATION_MINUS_LOCALISATION
from benchmark_eval.sweep.table_rows import ConfusionRow, ErrorRow
from benchmark_eval.sweep.tables import CurveRow

_COLUMNS = {
    "Detected": "detection_recall",
    "Identified, of detected": "classification_given_detection_acc",
    "Both": "species_recall",
    "Misidentified": "classification_loss",
    "Missed": "localisation_loss",
}
_THRESHOLD = {
    "F1": "F1",
    "Precision": "precision",
    "Detection recall": "recall",
    "Species recall": "species_recall",
    "False positives per image": "false_positives_per_image",
}
_MOST_PAIRS = 10
_PART = "wrong_name_"
"""Prefix of the parts of the type wrong_name."""


def section(facts: Facts) -> Section:
    """Missed against misidentified, the types of errors, and the pairs that are confused."""
    answer = []
    for split in SPECIES_SPLITS:
        line = _lost(facts, split)
        if line:
            answer.append(f"- {line}")
    answer += [f"- {line}" for line in (_repair(facts), _pairs_line(facts)) if line]
    rows = [
        [
            f"{facts.label(row.condition)}, {PLACE[split]}",
            *(facts.level(row, f"{SPLIT_PREFIX[split]}_{key}") for key in _COLUMNS.values()),
            over_seeds(row.differences[CLASSIFICATION_MINUS_LOCALISATION[split]]),
        ]
        for split in SPECIES_SPLITS
        for row in facts.shown.values()
        if _defined(row, split)
    ]
    details = []
    if rows:
        header = ["Best condition", *_COLUMNS, "Misidentified minus missed"]
        details += [
            "Fractions of the specimens, with detections of any confidence:",
            "",
            *table(header, rows),
            "",
        ]
    details += [*_errors_table(facts), *_confusions_table(facts), *_thresholds(facts)]
    return Section(
        "Where are specimens lost?",
        answer or [f"- {nothing('scored specimens of trained species')}"],
        conclusion(facts),
        ("decomposition_iid", "error_types", "confusion_genus"),
        topic=IDENTIFICATION,
        details=details,
        caveats=[
            "No verdict is given: the fractions are pooled over specimens, and their intervals "
            "cover retraining only. Without a threshold, detections of any confidence count: fewer "
            "specimens are missed than in use, where a threshold is set. What AP@.5 gains is "
            "computed for the repair of one type of errors alone; the gains do not add up."
        ]
        if rows
        else [],
    )


def conclusion(facts: Facts) -> str:
    """The loss in distribution."""
    row = facts.lead
    if row is None or not _defined(row, "iid_test"):
        return "Detection and identification"
    missed, wrong = (
        facts.level(row, f"iid_{key}") for key in ("localisation_loss", "classification_loss")
    )
    return (
        f"In distribution, {wrong} of the specimens are misidentified and {missed} missed, at any "
        "confidence"
    )


def _defined(row: CurveRow, split: str) -> bool:
    return bool(row.metrics[f"{SPLIT_PREFIX[split]}_classification_loss"].n)


def _lost(facts: Facts, split: str) -> str:
    row = facts.lead
    if row is None or not _defined(row, split):
        return ""
    prefix = SPLIT_PREFIX[split]
    wrong, missed = (
        facts.level(row, f"{prefix}_{key}") for key in ("classification_loss", "localisation_loss")
    )
    gap = over_seeds(row.differences[CLASSIFICATION_MINUS_LOCALISATION[split]])
    return (
        f"{sentence_case(PLACE[split])}, {facts.label(row.condition)} misidentifies {wrong} of the "
        f"specimens and misses {missed} at any confidence, a difference of {gap}."
        f"{at_threshold(facts, row, split)}"
    )


def at_threshold(facts: Facts, row: CurveRow, split: str) -> str:
    """A sentence on the specimens that are missed at the operating threshold."""
    errors = {
        each.error_type: each
        for each in facts.data.error_types
        if (each.condition, each.split) == (row.condition, split)
    }
    missed = errors.get("missed")
    size = facts.data.benchmark.splits.get(split)
    if missed is None or missed.per_100_images is None:
        return ""
    text = f" At the operating threshold, it misses {_per_100(missed)} specimens per 100 images"
    if size is not None and size.n_scored and size.n_images:
        share = missed.per_100_images / 100 * size.n_images / size.n_scored
        text += f", which are {percent(round(1000 * share), 1000)} of them"
    return f"{text}."


def type_label(name: str) -> str:
    """``wrong name: congener``."""
    part = name.removeprefix(_PART).replace("_", " ")
    return f"wrong name: {part}" if name.startswith(_PART) else part


def _gain(row: ErrorRow) -> str:
    return with_interval(
        row.dAP_50,
        row.dAP_50_ci95_retraining_low,
        row.dAP_50_ci95_retraining_high,
        covers=Covers.RETRAINING,
        reason=row.dAP_50_reason,
        sign=True,
    )


def _per_100(row: ErrorRow) -> str:
    if row.per_100_images == 0:
        return "0"
    return with_interval(
        row.per_100_images,
        row.per_100_images_ci95_retraining_low,
        row.per_100_images_ci95_retraining_high,
        covers=Covers.RETRAINING,
        reason=row.per_100_images_reason,
        least=0,
    )


def _errors(facts: Facts, split: str) -> list[ErrorRow]:
    lead = facts.lead
    return [
        row
        for row in facts.data.error_types
        if lead and (row.condition, row.split) == (lead.condition, split)
    ]


def _repair(facts: Facts) -> str:
    """The type of errors whose repair gains most."""
    rows = [
        row
        for row in _errors(facts, "iid_test")
        if row.dAP_50 is not None and not row.error_type.startswith(_PART)
    ]
    if not rows:
        return ""
    top = max(rows, key=lambda row: row.dAP_50 or 0.0)
    return (
        f"In distribution, AP@.5 of {facts.label(top.condition)} gains most if errors of the "
        f"type '{type_label(top.error_type)}' are repaired: {_gain(top)}."
    )


def _errors_table(facts: Facts) -> list[str]:
    found = {split: _errors(facts, split) for split in PLACE}
    splits = [split for split, rows in found.items() if rows]
    if not splits or facts.lead is None:
        return []
    types = list(dict.fromkeys(row.error_type for split in splits for row in found[split]))
    header = ["Type"]
    for split in splits:
        header += [f"Per 100 images, {PLACE[split]}", f"AP@.5 gained, {PLACE[split]}"]
    rows = []
    for name in types:
        cells = [type_label(name)]
        for split in splits:
            row = next((each for each in found[split] if each.error_type == name), None)
            if row is None:
                cells += [MISSING, MISSING]
                continue
            per = _per_100(row)
            cells += [per, MISSING if row.dAP_50 is None else _gain(row)]
        rows.append(cells)
    return [
        f"Types of errors of {facts.label(facts.lead.condition)}, at the operating threshold, and "
        "the AP@.5 that is gained if one type alone is repaired (on unseen species, the "
        "class-agnostic one):",
        "",
        *table(header, rows),
        "",
    ]


def _pairs(facts: Facts) -> list[ConfusionRow]:
    """The pairs of the best architecture that may be named, the most frequent first."""
    lead = facts.lead
    rows = [
        row
        for row in facts.data.confusions
        if lead and row.condition == lead.condition and row.named and row.split == "iid_test"
    ]
    kinds = {row.threshold for row in rows}
    which = "operating" if "operating" in kinds else "all"
    rows = [row for row in rows if row.threshold == which]
    return sorted(rows, key=lambda row: (-row.n, row.true_species, row.predicted_species))


def _pairs_line(facts: Facts) -> str:
    rows = _pairs(facts)
    if not rows:
        return ""
    top = rows[0]
    return (
        f"The most frequent confusion of {facts.label(top.condition)} in distribution is "
        f"{escape(top.true_species)} labelled "
        f"{escape(top.predicted_species)} ({top.relation}): {number(top.n, 1)} of "
        f"{top.n_specimens:,} specimens per seed, at least 3 in {top.n_seeds_at_least_3} of "
        f"{top.n_seeds} seeds."
        if sum(row.n == top.n for row in rows) == 1
        else f"With {facts.label(top.condition)}, {len(rows):,} pairs of species are confused in "
        "distribution; several are the most frequent one."
    )


def _confusions_table(facts: Facts) -> list[str]:
    rows = _pairs(facts)
    if not rows or facts.lead is None:
        return []
    more = len(rows) - _MOST_PAIRS
    return [
        f"Confused pairs of {facts.label(facts.lead.condition)} in distribution (at least 3 "
        "specimens in at least 2 seeds, and no other label of that species as often), the most "
        "frequent first:",
        "",
        *table(
            ["True species", "Label", "Relation", "Specimens per seed", "Of", "Seeds"],
            [
                [
                    escape(row.true_species),
                    escape(row.predicted_species),
                    row.relation,
                    number(row.n, 1),
                    f"{row.n_specimens:,}",
                    f"{row.n_seeds_at_least_3} of {row.n_seeds}",
                ]
                for row in rows[:_MOST_PAIRS]
            ],
            left=3,
        ),
        "",
        *([f"{more:,} more: see [confusions.csv](confusions.csv).", ""] if more > 0 else []),
    ]


def _thresholds(facts: Facts) -> list[str]:
    """The confidence threshold with the highest mean F1 in distribution."""
    rows = [
        [
            facts.name(name),
            f"{chosen.confidence:.2f}",
            *(spread(chosen.metrics[key]) for key in _THRESHOLD.values()),
        ]
        for name in facts.shown
        if (chosen := best_threshold(facts.data, name)) is not None
    ]
    if not rows:
        return []
    return [
        "The confidence threshold with the highest mean F1 in distribution, and its results, with "
        "the standard deviation (SD) over seeds. It is selected on the same images, so they are "
        "slightly optimistic:",
        "",
        *table(["Architecture", "Threshold", *_THRESHOLD], rows),
        "",
    ]
