"""Result of scoring detections against ground truth, and its text, JSON and CSV.

``None`` means undefined (no scored object): ``null`` in JSON, an empty cell in CSV, excluded from
means. All metrics are fractions, except ``mAP_percent`` and those of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.core.text import counted, visible
from benchmark_eval.voc.rule import Curve

SCHEMA_VERSION = 1
"""Schema version of ``results.json``."""

Coordinates = Literal["pixel", "continuous"]
SIDE: Mapping[Coordinates, float] = {"pixel": 1.0, "continuous": 0.0}
"""Added to ``right - left`` to get the width of a box."""
COORDINATES_TEXT: Mapping[Coordinates, str] = {
    "pixel": "corners are pixels, width = right - left + 1 (the VOC rule)",
    "continuous": "corners are points, width = right - left (not the VOC rule)",
}


class ClassScore(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one class of the ground truth.

    ``n_objects`` excludes difficult objects. ``n_on_difficult`` detections match difficult objects
    and count neither as true nor as false positives.
    """

    name: str
    AP: float | None
    iou_threshold: float
    n_objects: int
    n_difficult: int
    n_detections: int
    n_true_positives: int
    n_false_positives: int
    n_on_difficult: int
    log_average_miss_rate: float | None


class MapResult(msgspec.Struct, frozen=True, kw_only=True):
    """Mean AP (mAP) over the classes with an AP, and the scores of every class.

    ``detections_without_class`` counts the detections of each class without ground truth, which
    are excluded from AP. ``curves`` has one entry per class with an AP. ``notes`` are remarks that
    matter for the interpretation of the mAP.
    """

    mAP: float | None  # noqa: N815 - the field's name for it
    iou_threshold: float
    coordinates: Coordinates
    ignored: tuple[str, ...]
    n_images: int
    images_without_detections: tuple[str, ...]
    classes: tuple[ClassScore, ...]
    detections_without_class: dict[str, int]
    curves: dict[str, Curve]
    notes: tuple[str, ...]

    @property
    def mAP_percent(self) -> float | None:  # noqa: N802 - the field's name for it
        """The mAP as a percentage."""
        return None if self.mAP is None else 100 * self.mAP

    @property
    def n_classes(self) -> int:
        """Number of classes that have an AP."""
        return sum(score.AP is not None for score in self.classes)


def headline(result: MapResult) -> str:
    """``mAP = 53.27%``, or a statement that it is undefined."""
    if result.mAP is None:
        return "mAP is undefined: no class has a scored object"
    return f"mAP = {result.mAP_percent:.2f}%"


def as_text(result: MapResult) -> str:
    """The results as text: mAP, settings, one line per class, notes."""
    n_objects = sum(score.n_objects for score in result.classes)
    n_difficult = sum(score.n_difficult for score in result.classes)
    n_detections = sum(score.n_detections for score in result.classes)
    lines = [
        f"{headline(result)}  (PASCAL VOC 2012, mean over "
        f"{counted(result.n_classes, 'class', 'classes')})",
        "",
        f"IoU threshold  {result.iou_threshold:g}, unless the table gives another one",
        f"coordinates    {COORDINATES_TEXT[result.coordinates]}",
        f"images         {result.n_images:,} "
        f"({len(result.images_without_detections):,} without a detection file)",
        f"objects        {n_objects:,}, plus {n_difficult:,} difficult",
        f"detections     {n_detections:,}, plus {sum(result.detections_without_class.values()):,} "
        "of classes without ground truth",
    ]
    if result.ignored:
        lines.append(f"ignored        {', '.join(result.ignored)}")
    width = max([len("class"), *(len(score.name) for score in result.classes)])
    lines += [
        "",
        f"{'class':<{width}} {'AP %':>7} {'IoU':>5} {'objects':>8} {'difficult':>9} "
        f"{'detections':>10} {'true pos.':>9} {'false pos.':>10} {'miss rate':>9}",
    ]
    for score in result.classes:
        ap = "-" if score.AP is None else f"{100 * score.AP:.2f}"
        miss = score.log_average_miss_rate
        lines.append(
            f"{score.name:<{width}} {ap:>7} {score.iou_threshold:>5g} {score.n_objects:>8} "
            f"{score.n_difficult:>9} {score.n_detections:>10} {score.n_true_positives:>9} "
            f"{score.n_false_positives:>10} {'-' if miss is None else f'{miss:.4f}':>9}"
        )
    lines += [
        "",
        "miss rate: log-average over nine reference points, 0.01 to 1 false positives per image",
    ]
    lines += [f"note: {note}" for note in result.notes]
    return "\n".join(map(visible, lines)) + "\n"


def as_json(result: MapResult) -> bytes:
    """The results as JSON; the curve of a class is four lists of equal length."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "made_by": "benchmark-eval map",
        "standard": "PASCAL VOC 2012",
        "mAP": result.mAP,
        "mAP_percent": result.mAP_percent,
        "n_classes": result.n_classes,
        "iou_threshold": result.iou_threshold,
        "coordinates": result.coordinates,
        "ignored": result.ignored,
        "n_images": result.n_images,
        "images_without_detections": result.images_without_detections,
        "classes": result.classes,
        "detections_without_class": result.detections_without_class,
        "notes": result.notes,
        "precision_recall": {
            name: {
                "confidence": points.confidence.tolist(),
                "recall": points.recall.tolist(),
                "precision": points.precision.tolist(),
                "envelope": points.envelope.tolist(),
            }
            for name, points in result.curves.items()
        },
    }
    return msgspec.json.encode(content) + b"\n"


def classes_csv(result: MapResult) -> str:
    """One row per class, with the fields of ``ClassScore`` as columns."""
    rows = [msgspec.structs.astuple(score) for score in result.classes]
    return csv_text(ClassScore.__struct_fields__, rows)


def curves_csv(result: MapResult) -> str:
    """One row per counted detection: class, confidence, recall, precision, envelope."""
    rows = [
        (name, *row)
        for name, points in result.curves.items()
        for row in zip(
            points.confidence.tolist(),
            points.recall.tolist(),
            points.precision.tolist(),
            points.envelope.tolist(),
            strict=True,
        )
    ]
    return csv_text(("class", "confidence", "recall", "precision", "envelope"), rows)
