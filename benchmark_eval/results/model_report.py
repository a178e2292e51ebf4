"""``<model>_report.txt``: headline metrics, main failures, then all metrics of one model."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from benchmark_eval.core.text import percent, visible
from benchmark_eval.results.registry import BY_PATH, SPLIT_LABEL
from benchmark_eval.results.schema import LISTED, Evaluation, SplitEvaluation

WIDTH = 88
BLOCKS = (
    ("coco", "COCO suite (detected and correctly identified; mean over scored species)"),
    ("class_agnostic", "Class-agnostic suite (detected, species ignored)"),
    ("decomposition", "Detection versus identification"),
    ("hierarchical", "Taxonomic agreement of true positives"),
    ("calibration", "Calibration of true and false positives"),
    ("class_imbalance", "Class imbalance (species by number of training images)"),
    ("chance", "Misidentifications against chance"),
    ("detection_cap", "COCO's cap of 100 detections per image"),
)


def number(value: float | int | None) -> str:
    """A count with thousands separators, a float with three decimals, or "n/a"."""
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def render_text(evaluation: Evaluation) -> str:
    """The report, with a trailing line feed."""
    return "\n".join(map(visible, _lines(evaluation))) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    """The lines of the report."""
    yield "=" * WIDTH
    yield "Bark and Ambrosia Beetle Detection Benchmark: evaluation of one model"
    yield f"Model: {evaluation.model}"
    if evaluation.provenance.benchmark:
        yield from textwrap.wrap(f"Data: {evaluation.provenance.benchmark}", WIDTH)
    yield f"Localisation IoU {evaluation.config.iou_threshold:g}; n/a means undefined"
    yield "=" * WIDTH
    yield ""
    yield "Headline"
    for name, value in msgspec.to_builtins(evaluation.headline).items():
        split, block, key = name.split(".")
        if split in evaluation.per_split:
            n = evaluation.per_split[split].decomposition.n_gt
            label = f"{BY_PATH[f'{block}.{key}'].label}, {SPLIT_LABEL[split]}"
            yield f"  {label:<52} {number(value):>8}   (n = {n:,} specimens)"
    yield ""
    yield "Main failures"
    yield from (f"  {line}" for line in _verdict(evaluation))
    yield ""
    yield "Across splits"
    for name, value in msgspec.to_builtins(evaluation.summary).items():
        yield f"  {BY_PATH[f'summary.{name}'].label:<56} {number(value):>8}"
    for split, result in evaluation.per_split.items():
        yield ""
        yield "=" * WIDTH
        yield f"{split}: {SPLIT_LABEL[split]}"
        yield "=" * WIDTH
        yield from _split(result)


def _verdict(evaluation: Evaluation) -> Iterator[str]:
    """A few sentences per split on what the model misses and misidentifies."""
    for split, result in evaluation.per_split.items():
        d = result.decomposition
        if not d.n_gt:
            yield f"{SPLIT_LABEL[split]}: no scored specimens."
            continue
        n_correct = sum(s.n_correct_species for s in result.per_species.values())
        n_misidentified = d.n_matched_tp - n_correct
        text = (
            f"{SPLIT_LABEL[split]} (n = {d.n_gt:,}): {percent(d.n_matched_tp, d.n_gt)} of "
            "specimens detected"
        )
        if d.is_species_meaningful:
            missed = d.n_gt - d.n_matched_tp
            text += (
                f"; {percent(missed, d.n_gt)} missed, {percent(n_misidentified, d.n_gt)} "
                f"misidentified: {_larger_loss(missed, n_misidentified)}"
            )
        yield text + "."
        open_vocabulary = d.detection_recall_open_vocabulary
        if (
            open_vocabulary is not None
            and d.detection_recall is not None
            and open_vocabulary > d.detection_recall
        ):
            yield (
                f"    {percent(round(open_vocabulary * d.n_gt), d.n_gt)} of specimens detected if "
                "out-of-vocabulary detections (of species that this split does not list) count "
                "too; all other metrics exclude them."
            )
        one, more = result.density.strata.one, result.density.strata.multi
        if one.n_gt and more.n_gt:
            yield (
                f"    by density: {percent(one.n_matched_tp, one.n_gt)} detected on images with "
                f"one specimen (n = {one.n_gt:,}), {percent(more.n_matched_tp, more.n_gt)} on "
                f"images with more (n = {more.n_gt:,})."
            )
        if d.is_species_meaningful and result.confusions:
            most = result.confusions[0]
            yield (
                f"    most frequent confusion: {most.gt_species} identified as "
                f"{most.pred_species}, {most.n} of {most.n_matched_tp} detected"
                f"{' (same genus)' if most.same_genus else ''}."
                if most.n > 1
                else "    no frequent confusion: no pair of species is confused more than once."
            )
            # over all species: confusions lists only the most frequent pairs
            congeners = sum(
                s.n_correct_genus - s.n_correct_species for s in result.per_species.values()
            )
            yield (
                f"    misidentified as a congener: {congeners:,} of {n_misidentified:,} "
                f"({percent(congeners, n_misidentified)})."
            )


def _larger_loss(missed: int, misidentified: int) -> str:
    """Which of the two losses is larger."""
    if missed == misidentified:
        return "both losses are equal" if missed else "no losses"
    return f"{'identification' if misidentified > missed else 'detection'} is the larger loss"


def _split(result: SplitEvaluation) -> Iterator[str]:
    """Warnings, notes and all metrics of one split."""
    for warning in result.warnings:
        yield f"  WARNING: {warning}"
    for note in result.notes:
        yield f"  note: {note}"
    density = result.prediction_density
    yield (
        f"  {density.n_predictions:,} detections on {density.n_images:,} images for "
        f"{density.n_gt:,} scored specimens ({number(density.boxes_per_gt)} per specimen)"
    )
    if not result.decomposition.is_species_meaningful:
        yield "  No species of this split has training images, so none can be correctly identified:"
        yield "  metrics that require the correct species are 0 by construction."
    for block, title in BLOCKS:
        values = {
            key: value
            for key, value in msgspec.to_builtins(getattr(result, block)).items()
            if f"{block}.{key}" in BY_PATH
        }
        if values:
            yield ""
            yield f"  {title}"
            for key, value in values.items():
                yield f"    {BY_PATH[f'{block}.{key}'].label:<44} {number(value):>10}"
    if not isinstance(result.ood_by_band, msgspec.UnsetType):
        yield ""
        yield "  By taxonomic distance (each band on its own)"
        yield (
            f"    {'band':<12}{'species':>8}{'annot.':>8}{'AP@.5':>8}{'AR@100':>8}{'genus':>8}"
            f"{'tribe':>8}{'conf.':>8}"
        )
        for band, b in result.ood_by_band.by_band.items():
            cells: tuple[float | None, ...] = (
                b.class_agnostic_AP_50,
                b.class_agnostic_AR_100,
                b.correct_genus,
                b.correct_tribe,
                b.mean_confidence_matched,
            )
            yield f"    {band:<12}{b.n_species:>8}{b.n_annotations:>8,}" + "".join(
                f"{number(cell):>8}" for cell in cells
            )
    yield ""
    yield "  By specimens per image"
    yield (
        f"    {'specimens':<12}{'images':>8}{'n':>8}{'recall':>8}{'species acc.':>14}"
        f"{'species recall':>16}"
    )
    for name, key in (("1", "one"), ("2 to 10", "few"), (">10", "many"), (">1", "multi")):
        s = getattr(result.density.strata, key)
        yield (
            f"    {name:<12}{s.n_images:>8,}{s.n_gt:>8,}{number(s.recall):>8}"
            f"{number(s.classification_given_detection_acc):>14}{number(s.species_recall):>16}"
        )
    repeated = [c for c in result.confusions if c.n > 1]
    if repeated:
        yield ""
        yield f"  Most frequent confusions (at least twice; at most {LISTED})"
        yield f"    {'true species':<32}{'predicted species':<32}{'n':>5}{'of':>6}  genus"
        for c in repeated:
            yield (
                f"    {c.gt_species:<32}{c.pred_species:<32}{c.n:>5}{c.n_matched_tp:>6}  "
                f"{'same' if c.same_genus else 'other'}"
            )
    yield ""
    yield "  At a confidence threshold"
    yield (
        f"    {'threshold':<16}{'precision':>10}{'recall':>8}{'F1':>8}{'species recall':>16}"
        f"{'FP/image':>10}"
    )
    point = result.operating_point
    for name, at in (("best F1", point.best_F1), ("", point.at_25), ("", point.at_50)):
        threshold = f"{name} {number(at.confidence)}".strip()
        yield (
            f"    {threshold:<16}{number(at.precision):>10}{number(at.recall):>8}"
            f"{number(at.F1):>8}{number(at.species_recall):>16}"
            f"{number(at.false_positives_per_image):>10}"
        )
