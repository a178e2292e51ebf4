"""``<model>_report.txt``: one model for a reader, headline first, then what fails, then all."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmark_eval.catalogue import BY_PATH, SPLIT_LABEL
from benchmark_eval.results import Evaluation, SplitEvaluation

WIDTH = 88
BLOCKS = (
    ("coco", "COCO suite (found and rightly named; mean over scored species)"),
    ("class_agnostic", "Class-agnostic suite (found, species ignored)"),
    ("decomposition", "Finding against naming"),
    ("hierarchical", "How close the name is, over hits"),
    ("calibration", "Confidence"),
    ("class_imbalance", "Species rich and poor in training images"),
    ("chance", "Wrong names against chance"),
    ("detection_cap", "COCO's cap of 100 detections an image"),
)


def number(value: float | int | None) -> str:
    """A number for reading: counts with thousands, shares with three decimals, or "n/a"."""
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def render_text(evaluation: Evaluation) -> str:
    """The whole report, ending in a line feed."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    yield "=" * WIDTH
    yield "Bark and Ambrosia Beetle Detection Benchmark: evaluation of one model"
    yield f"Model: {evaluation.model}"
    yield f"Localisation IoU {evaluation.config.iou_threshold:g}; n/a means not defined"
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
    yield "Where does this model fail"
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
    """Two or three plain sentences a split, made from its numbers."""
    for split, result in evaluation.per_split.items():
        d = result.decomposition
        if d.detection_recall is None or d.classification_loss is None:
            yield f"{SPLIT_LABEL[split]}: no scored specimens, nothing can be told."
            continue
        missed = 1 - d.detection_recall
        text = f"{SPLIT_LABEL[split]} (n = {d.n_gt:,}): {d.detection_recall:.0%} of specimens found"
        if d.is_species_meaningful:
            worse = "naming" if d.classification_loss > missed else "finding"
            text += (
                f"; {missed:.0%} lost to finding, {d.classification_loss:.0%} to naming: "
                f"{worse} is the larger loss"
            )
        yield text + "."
        strata = result.density.strata
        if strata.one.recall is not None and strata.multi.recall is not None:
            yield (
                f"    by density: {strata.one.recall:.0%} found where one specimen is on the image "
                f"(n = {strata.one.n_gt:,}), {strata.multi.recall:.0%} where there are more "
                f"(n = {strata.multi.n_gt:,})."
            )


def _split(result: SplitEvaluation) -> Iterator[str]:
    for warning in result.warnings:
        yield f"  WARNING: {warning}"
    for note in result.notes:
        yield f"  note: {note}"
    density = result.prediction_density
    yield (
        f"  {density.n_predictions:,} boxes on {density.n_images:,} images for {density.n_gt:,} "
        f"scored specimens ({number(density.boxes_per_gt)} a specimen)"
    )
    for block, title in BLOCKS:
        numbers = {
            key: value
            for key, value in msgspec.to_builtins(getattr(result, block)).items()
            if f"{block}.{key}" in BY_PATH
        }
        if numbers:
            yield ""
            yield f"  {title}"
            for key, value in numbers.items():
                yield f"    {BY_PATH[f'{block}.{key}'].label:<44} {number(value):>10}"
    if not isinstance(result.ood_by_band, msgspec.UnsetType):
        yield ""
        yield "  By taxonomic distance (each band alone)"
        yield (
            f"    {'band':<12}{'species':>8}{'boxes':>8}{'AP@.5':>8}{'AR@100':>8}{'genus':>8}"
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
    yield "  By specimens on the image"
    yield f"    {'specimens':<12}{'images':>8}{'n':>8}{'found':>8}{'named':>8}{'both':>8}"
    for name, key in (("1", "one"), ("2-10", "few"), (">10", "many"), (">1", "multi")):
        s = getattr(result.density.strata, key)
        cells = (s.recall, s.species_accuracy_given_det, s.species_recall)
        yield f"    {name:<12}{s.n_images:>8,}{s.n_gt:>8,}" + "".join(
            f"{number(cell):>8}" for cell in cells
        )
    yield ""
    yield "  At a confidence cut"
    yield (
        f"    {'cut':<16}{'precision':>10}{'recall':>8}{'F1':>8}{'species':>8}"
        f"{'false alarms/image':>20}"
    )
    point = result.operating_point
    for name, at in (("best F1", point.best_F1), ("", point.at_25), ("", point.at_50)):
        cut = f"{name} {number(at.confidence)}".strip()
        cells = (at.recall, at.F1, at.species_recall)
        yield (
            f"    {cut:<16}{number(at.precision):>10}"
            + "".join(f"{number(cell):>8}" for cell in cells)
            + f"{number(at.false_alarms_per_image):>20}"
        )
