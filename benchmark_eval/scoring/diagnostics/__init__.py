"""Warnings and notes about a prediction file.

Warnings name a likely mistake and the evidence for it; notes state facts. A warning never fires
because a model is bad. It fires if another reading of the same file (ids shifted by one, boxes
as corners, images of another split) explains the ground truth far better than the expected
reading, or if the file contains something that no detector of this benchmark produces.
``WARNINGS`` lists all of them.

Readings are compared on the best detection of each image, at most ``SAMPLE`` of them, so the
cost stays small compared with matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmark_eval.core.text import counted
from benchmark_eval.scoring.coco import CAPS
from benchmark_eval.scoring.diagnostics.boxes import (
    OUTSIDE_FRACTION,
    box_layout,
    image_positions,
    normalised,
    other_split,
    outside,
    resized,
    turned,
)
from benchmark_eval.scoring.diagnostics.evidence import Evidence
from benchmark_eval.scoring.diagnostics.ids import (
    HELD_OUT_FRACTION,
    detections_without_training,
    held_out_ids,
    shared_names,
    shifted_ids,
    stray_files,
    taxonomy,
    untrained_species,
)
from benchmark_eval.scoring.diagnostics.scores import (
    no_low_scores,
    repeated,
    score_threshold,
    tied_scores,
)

# --------------------------------------------------------------------------------------------
# Warnings
# --------------------------------------------------------------------------------------------


def _dropped(evidence: Evidence) -> Iterator[str]:
    for reason, count in evidence.predictions.dropped.items():
        yield f"{counted(count, 'invalid record')} dropped: {reason}"


_IN_PIXELS = "boxes [x, y, w, h] in pixels of the published image"
_BENCHMARK_IDS = "category ids of the benchmark's annotation files"
EXPECTED = {
    "another split": "the predictions of this split",
    "image positions": "image ids of the split's annotation file",
    "normalised boxes": _IN_PIXELS,
    "box layout": _IN_PIXELS,
    "resized images": _IN_PIXELS,
    "turned images": "boxes in the orientation of the annotations",
    "boxes outside": _IN_PIXELS,
    "shifted ids": _BENCHMARK_IDS,
    "held-out ids": "category ids of species with training images",
    "untrained species": "detections of species with training images",
    "tied scores": "the unrounded confidence of each detection",
    "score threshold": "all detections with a confidence of at least 0.001",
    "repeated records": "each detection once",
}
"""Expected content of the file, by kind of warning."""

WARNINGS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "dropped records": _dropped,
    "another split": other_split,
    "image positions": image_positions,
    "normalised boxes": normalised,
    "box layout": box_layout,
    "resized images": resized,
    "turned images": turned,
    "boxes outside": outside,
    "shifted ids": shifted_ids,
    "held-out ids": held_out_ids,
    "untrained species": untrained_species,
    "tied scores": tied_scores,
    "score threshold": score_threshold,
    "repeated records": repeated,
}
"""Every warning about predictions by kind, most serious first."""

BENCHMARK_WARNINGS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "taxonomy": taxonomy,
    "stray files": stray_files,
    "shared names": shared_names,
}
"""Warnings about the benchmark; every evaluation repeats them, ``check`` reports them once."""
EXPLAINED_BY = {
    "boxes outside": {
        "another split",
        "image positions",
        "normalised boxes",
        "box layout",
        "resized images",
        "turned images",
    },
    "turned images": {
        "another split",
        "image positions",
        "normalised boxes",
        "box layout",
        "resized images",
    },
    "held-out ids": {"shifted ids"},
}
"""Warnings that are omitted if a more specific one of the same boxes or ids fires."""


def named_warnings(evidence: Evidence, *, of_benchmark: bool = True) -> list[tuple[str, str]]:
    """Likely mistakes in the predictions of a split as (kind, text), most serious first."""
    checks = {**WARNINGS, **(BENCHMARK_WARNINGS if of_benchmark else {})}
    fired = [(kind, text) for kind, warning in checks.items() for text in warning(evidence)]
    kinds = {kind for kind, _ in fired}
    return [(kind, text) for kind, text in fired if not EXPLAINED_BY.get(kind, set()) & kinds]


def warnings_of(evidence: Evidence, *, of_benchmark: bool = True) -> list[str]:
    """Likely mistakes in the predictions of a split, most serious first."""
    return [text for _, text in named_warnings(evidence, of_benchmark=of_benchmark)]


# --------------------------------------------------------------------------------------------
# Notes
# --------------------------------------------------------------------------------------------


def notes_of(evidence: Evidence) -> list[str]:
    """Facts about the predictions of a split that matter when reading its metrics.

    A counted noun directly follows its number: the sweep groups texts that differ in number only.
    """
    predictions, truth = evidence.predictions, evidence.truth
    n_images = len(truth.image_ids)
    per_image = np.bincount(evidence.predictions.image, minlength=n_images)
    without = int(np.count_nonzero(per_image == 0))
    over_cap = np.maximum(per_image - CAPS[-1], 0)
    empty = int(np.count_nonzero((evidence.predictions.boxes[:, 2:] == 0).any(axis=1)))
    outside_image = int(evidence.outside_image.sum())
    held_out = [detections_without_training(evidence, listed=x)[0] for x in (False, True)]
    limit = HELD_OUT_FRACTION * len(evidence.everything)
    few = sum(count for count in held_out if count < limit)
    notes = []
    if predictions.n_out_of_vocabulary:
        # the benchmark's evaluator drops these too, before every metric family
        notes.append(
            f"{counted(predictions.n_out_of_vocabulary, 'detection')} out of vocabulary, not "
            f"evaluated: the category is in the benchmark, but {truth.name} does not list it"
        )
    if not len(predictions):
        notes.append("no detections: every specimen is missed")
    elif without:
        of_what = ""
        if (per_image[predictions.out_of_vocabulary.image] == 0).any():
            of_what = f" of a category that {truth.name} lists"
        notes.append(f"{without:,} of {counted(n_images, 'image')} without a detection{of_what}")
    if over_cap.any():
        notes.append(
            f"{counted(int(np.count_nonzero(over_cap)), 'image')} with more than {CAPS[-1]} "
            f"detections: {counted(int(over_cap.sum()), 'detection')} beyond COCO's cap in "
            "class-agnostic AP and AR"
        )
    if empty:
        notes.append(
            f"{counted(empty, 'detection')} with zero width or height: always false positives"
        )
    if 0 < outside_image < OUTSIDE_FRACTION * len(predictions):
        notes.append(f"{counted(outside_image, 'box', 'boxes')} partly outside the image")
    if few:
        notes.append(f"{counted(few, 'detection')} of a species without training images")
    return [*notes, *no_low_scores(evidence)]
