"""``<model>_report.txt``: one model for a reader, headline first, then what fails, then all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from benchmark_eval.core.text import percent
from benchmark_eval.results.registry import BY_PATH, SPLIT_LABEL
from benchmark_eval.results.schema import LISTED, Evaluation, SplitEvaluation

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
    if evaluation.provenance.benchmark:
        yield from textwrap.wrap(f"Data: {evaluation.provenance.benchmark}", WIDTH)
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
        if not d.n_gt:
            yield f"{SPLIT_LABEL[split]}: no scored specimens, nothing can be told."
            continue
        found = f"{percent(d.n_matched_tp, d.n_gt)} of specimens found"
        text = f"{SPLIT_LABEL[split]} (n = {d.n_gt:,}): {found}"
        if d.is_species_meaningful:
            missed = d.n_gt - d.n_matched_tp
            wrong = d.n_matched_tp - sum(s.n_correct_species for s in result.per_species.values())
            text += (
                f"; {percent(missed, d.n_gt)} lost to finding, {percent(wrong, d.n_gt)} to naming: "
                f"{_larger(missed, wrong)}"
            )
        yield text + "."
        open_vocabulary = d.detection_recall_open_vocabulary
        if (
            open_vocabulary is not None
            and d.detection_recall is not None
            and open_vocabulary > d.detection_recall
        ):
            yield (
                f"    {open_vocabulary:.1%} of specimens are found when boxes named as a species "
                "that this split does not list count too; such boxes are left out of all other "
                "numbers."
            )
        one, more = result.density.strata.one, result.density.strata.multi
        if one.n_gt and more.n_gt:
            yield (
                f"    by density: {percent(one.n_matched_tp, one.n_gt)} found where one specimen "
                f"is on the image (n = {one.n_gt:,}), {percent(more.n_matched_tp, more.n_gt)} "
                f"where there are more (n = {more.n_gt:,})."
            )
        if d.is_species_meaningful and result.confusions:
            worst = result.confusions[0]
            yield (
                f"    most frequent wrong name: {worst.gt_species} called {worst.pred_species}, "
                f"{worst.n} of {worst.n_matched_tp} found"
                f"{' (same genus)' if worst.same_genus else ''}."
                if worst.n > 1
                else "    no wrong name stands out: no species is called another one twice."
            )
            # over all of them: those listed are a choice of the most frequent
            per_species = result.per_species.values()
            wrong = d.n_matched_tp - sum(s.n_correct_species for s in per_species)
            congeners = sum(s.n_correct_genus - s.n_correct_species for s in per_species)
            yield (
                f"    wrong names that are congeners of the true species: {congeners:,} of "
                f"{wrong:,} ({percent(congeners, wrong)})."
            )


def _larger(missed: int, wrong: int) -> str:
    """Which loss is the larger one."""
    if missed == wrong:
        return "both the same" if missed else "nothing is lost"
    return f"{'naming' if wrong > missed else 'finding'} is the larger loss"


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
    if not result.decomposition.is_species_meaningful:
        yield "  No species here is one of training, so that none can be named right: numbers"
        yield "  that ask for the species' name are 0 by construction; they do not judge the model."
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
    for name, key in (("1", "one"), ("2 to 10", "few"), (">10", "many"), (">1", "multi")):
        s = getattr(result.density.strata, key)
        cells = (s.recall, s.classification_given_detection_acc, s.species_recall)
        yield f"    {name:<12}{s.n_images:>8,}{s.n_gt:>8,}" + "".join(
            f"{number(cell):>8}" for cell in cells
        )
    repeated = [c for c in result.confusions if c.n > 1]
    if repeated:
        yield ""
        yield f"  Most frequent wrong names (given twice or more; {LISTED} at most)"
        yield f"    {'true species':<32}{'named':<32}{'n':>5}{'of':>6}  genus"
        for c in repeated:
            yield (
                f"    {c.gt_species:<32}{c.pred_species:<32}{c.n:>5}{c.n_matched_tp:>6}  "
                f"{'same' if c.same_genus else 'other'}"
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
            + f"{number(at.false_positives_per_image):>20}"
        )
