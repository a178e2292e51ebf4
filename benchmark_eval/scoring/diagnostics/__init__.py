"""What a reader should know about a prediction file before believing its numbers.

Warnings name a likely mistake and its evidence; notes state facts. A warning never rests on a
model being bad: it fires where another reading of the same file (ids moved by one, boxes as
corners, another split's images) explains the ground truth far better than the one it asks for,
or where the file holds what no detector of this benchmark writes. ``WARNINGS`` lists them all.

Readings are compared on each image's best box, at most ``SAMPLE`` of them, so that the cost stays
small beside that of the matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmark_eval.core.text import counted
from benchmark_eval.scoring.coco import CAPS
from benchmark_eval.scoring.diagnostics.boxes import (
    OUTSIDE_SHARE,
    box_layout,
    normalised,
    other_split,
    outside,
    resized,
)
from benchmark_eval.scoring.diagnostics.evidence import Evidence
from benchmark_eval.scoring.diagnostics.ids import (
    HELD_OUT_SHARE,
    held_out_detections,
    held_out_ids,
    shared_names,
    shifted_ids,
    stray_files,
    taxonomy,
)
from benchmark_eval.scoring.diagnostics.scores import repeated, score_threshold, tied_scores

# --------------------------------------------------------------------------------------------
# Warnings
# --------------------------------------------------------------------------------------------


def _dropped(evidence: Evidence) -> Iterator[str]:
    for reason, count in evidence.predictions.dropped.items():
        yield f"{counted(count, 'invalid record')} dropped: {reason}"


_IN_PIXELS = "boxes [x, y, w, h] in pixels of the image as published"
_OWN_IDS = "category ids of the benchmark's annotation files"
EXPECTED = {
    "another split": "the predictions of this split",
    "normalised boxes": _IN_PIXELS,
    "box layout": _IN_PIXELS,
    "resized images": _IN_PIXELS,
    "boxes outside": _IN_PIXELS,
    "shifted ids": _OWN_IDS,
    "held-out ids": _OWN_IDS,
    "tied scores": "the confidence of each detection, not rounded",
    "score threshold": "all detections with a confidence of 0.001 and above",
    "repeated records": "each detection once",
}
"""What a file without the mistake holds, by the kind of warning."""

WARNINGS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "dropped records": _dropped,
    "another split": other_split,
    "normalised boxes": normalised,
    "box layout": box_layout,
    "resized images": resized,
    "boxes outside": outside,
    "shifted ids": shifted_ids,
    "held-out ids": held_out_ids,
    "tied scores": tied_scores,
    "score threshold": score_threshold,
    "repeated records": repeated,
}
"""Every warning about predictions by its kind, most serious first."""

BENCHMARK_WARNINGS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "taxonomy": taxonomy,
    "stray files": stray_files,
    "shared names": shared_names,
}
"""Warnings about the benchmark that every evaluation repeats; ``check`` tells them once."""
EXPLAINED_BY = {
    "boxes outside": {"another split", "normalised boxes", "box layout", "resized images"},
    "held-out ids": {"shifted ids"},
}
"""Warnings that say less than others of the same boxes or ids, and are left out beside these."""


def named_warnings(evidence: Evidence, *, of_benchmark: bool = True) -> list[tuple[str, str]]:
    """Likely mistakes of one split's predictions as (kind, text), most serious first."""
    asked = {**WARNINGS, **(BENCHMARK_WARNINGS if of_benchmark else {})}
    told = [(kind, text) for kind, warning in asked.items() for text in warning(evidence)]
    kinds = {kind for kind, _ in told}
    return [(kind, text) for kind, text in told if not EXPLAINED_BY.get(kind, set()) & kinds]


def warnings_of(evidence: Evidence, *, of_benchmark: bool = True) -> list[str]:
    """Likely mistakes of one split's predictions, most serious first; none on sound ones."""
    return [text for _, text in named_warnings(evidence, of_benchmark=of_benchmark)]


# --------------------------------------------------------------------------------------------
# Notes
# --------------------------------------------------------------------------------------------


def notes_of(evidence: Evidence) -> list[str]:
    """Facts about one split's predictions that shape how its numbers read."""
    predictions, truth = evidence.predictions, evidence.truth
    n_images = len(truth.image_ids)
    per_image = np.bincount(evidence.predictions.image, minlength=n_images)
    without = int(np.count_nonzero(per_image == 0))
    cut = np.maximum(per_image - CAPS[-1], 0)
    empty = int(np.count_nonzero((evidence.predictions.boxes[:, 2:] == 0).any(axis=1)))
    beyond = int(evidence.beyond.sum())
    held_out, _ = held_out_detections(evidence)
    notes = []
    if predictions.n_out_of_vocabulary:
        # the benchmark's evaluator drops these too, before every metric family
        notes.append(
            f"{counted(predictions.n_out_of_vocabulary, 'prediction')} left out: the category is "
            f"in the benchmark but not among those that {truth.name} lists"
        )
    if not len(predictions):
        notes.append("no prediction: every specimen is missed")
    elif without:
        of_what = ""
        if (per_image[predictions.out_of_vocabulary.image] == 0).any():
            of_what = f" of a category that {truth.name} lists"
        notes.append(f"{without:,} of {counted(n_images, 'image')} without a prediction{of_what}")
    if cut.any():
        notes.append(
            f"{counted(int(np.count_nonzero(cut)), 'image')} with more than {CAPS[-1]} boxes: "
            f"{counted(int(cut.sum()), 'box', 'boxes')} beyond COCO's cap "
            "in class-agnostic AP and AR"
        )
    if empty:
        notes.append(f"{counted(empty, 'box', 'boxes')} without width or height: false positives")
    if 0 < beyond < OUTSIDE_SHARE * len(predictions):
        notes.append(f"{counted(beyond, 'box ends', 'boxes end')} outside the image")
    if 0 < held_out < HELD_OUT_SHARE * (len(predictions) + predictions.n_out_of_vocabulary):
        notes.append(
            f"{counted(held_out, 'detection names', 'detections name')} a species that no "
            "training image holds"
        )
    return notes
