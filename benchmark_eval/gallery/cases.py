"""Which cases the gallery shows: the most telling errors, and what only one of two models detects.

Everything follows the localisation matching and the error types of an evaluation; nothing is
matched anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.results.evidence import DENSITY
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.scoring.detections import place_in_run
from benchmark_eval.scoring.error_types import (
    BACKGROUND,
    BOTH,
    DUPLICATE,
    MISSED,
    POOR_BOX,
    WRONG_NAMES,
    nearest_specimen,
)
from benchmark_eval.scoring.evaluate import SplitResult
from benchmark_eval.scoring.metrics.density import FEW

Role = Literal["detection", "specimen", "matched", "other"]
"""A box of a case: its detection, its specimen, the detection that had already matched that
specimen, or another annotation of the image."""

SHOWN_TYPES = (BACKGROUND, MISSED, *WRONG_NAMES, BOTH, POOR_BOX, DUPLICATE)
"""The error types with cases, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box to draw: x, y, w, h in px of the annotated frame."""

    role: Role
    xywh: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class View:
    """What one model has at the place of a case.

    ``predicted`` is the species of its detection (blank without one), ``score`` and ``iou`` are
    None where there is none. ``at_threshold`` is whether the score reaches the model's operating
    threshold, None if either is undefined. The first of ``boxes`` are those of the case, ``focus``
    in number; the others surround it.
    """

    model: int
    predicted: str
    score: float | None
    iou: float | None
    at_threshold: bool | None
    boxes: tuple[Box, ...]
    focus: int


@dataclass(frozen=True, slots=True)
class Case:
    """One case: an error of a model (one view), or a specimen as two models see it (two views).

    ``kind`` is an error type or ``"found_by_one"``; ``true`` is the species of the specimen, blank
    if the detection overlaps none; ``density`` is an index into ``DENSITY``.
    """

    kind: str
    split: str
    image: int
    image_id: int
    n_specimens: int
    density: int
    true: str
    band: str
    views: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """One model on one split, prepared for the selection of cases.

    Attributes
    ----------
    model : int
        Its position on the page, 0 or 1.
    result : SplitResult
        The evaluation.
    specimen : (n_detections,) int
        Row of the specimen that each detection matched or overlaps most; -1 without one.
    iou : (n_detections,) float
        The IoU with it; NaN without one.
    found_by : (n_truth,) int
        Row of the detection that matched each annotation; -1 without one.
    threshold : float or None
        The operating threshold of the model.
    """

    model: int
    result: SplitResult
    specimen: Ints
    iou: Floats
    found_by: Ints
    threshold: float | None

    @classmethod
    def of(cls, model: int, result: SplitResult) -> Scored:
        """Look up specimens and matches of all detections."""
        local = result.data.local
        nearest = nearest_specimen(result.overlaps)
        specimen = nearest.truth.astype(np.int64)
        iou = np.where(nearest.truth >= 0, nearest.iou, np.nan)
        specimen[local.true_positive] = local.matched_truth
        iou[local.true_positive] = local.matched_iou
        found_by = np.full(len(result.data.truth.image), -1, np.int64)
        found_by[local.matched_truth] = local.true_positive
        return cls(model, result, specimen, iou, found_by, result.threshold.confidence)


def errors_of(scored: Scored, most: int) -> Iterator[Case]:
    """At most ``most`` cases of each error type of a model on a split, the most telling first.

    Detections are ordered by confidence. Missed specimens are ordered by the share of the image
    that they cover. Cases of other images come before a second one of the same image; confusions
    begin with the most frequent pairs of species, one case each.
    """
    data, types = scored.result.data, scored.result.types
    rank = np.empty(len(data.detections), np.int64)
    rank[data.detections.best_first] = np.arange(len(rank))
    for kind in SHOWN_TYPES:
        if kind == MISSED:
            rows = types.missed
            rows = rows[np.argsort(-_share_of_image(scored)[rows], kind="stable")]
            rows = rows[_spread(data.truth.image[rows])][:most]
            yield from (_missed(scored, row) for row in rows.tolist())
            continue
        rows = np.flatnonzero(types.of_detection == kind)
        rows = rows[np.argsort(rank[rows], kind="stable")]
        if kind in WRONG_NAMES:
            rows = rows[_by_pair(scored, rows)]
        else:
            rows = rows[_spread(data.detections.image[rows])]
        yield from (_error(scored, kind, row) for row in rows[:most].tolist())


def found_by_one(first: Scored, second: Scored, most: int) -> Iterator[Case]:
    """At most ``most`` specimens that ``first`` detects and ``second`` misses.

    A model detects a specimen if a detection at or above its operating threshold matches it (any
    detection if the threshold is undefined). The larger the difference in confidence, the earlier.
    """
    truth = first.result.data.truth
    one, other = _match_scores(first), _match_scores(second)
    detected = _reaches(one, first.threshold) & ~_reaches(other, second.threshold)
    rows = np.flatnonzero(detected & ~truth.crowd)
    rows = rows[np.argsort(-(one - np.nan_to_num(other))[rows], kind="stable")]
    rows = rows[_spread(truth.image[rows])][:most]
    for row in rows.tolist():
        views = (_specimen_view(first, row), _specimen_view(second, row))
        yield _case(first, "found_by_one", int(truth.image[row]), row, views)


# ------------------------------------------------------------------ order


def _spread(group: Ints) -> Ints:
    """An order in which the first of every group comes before the second of any group."""
    return np.argsort(_occurrence(group), kind="stable")


def _occurrence(group: Ints) -> Ints:
    """How many rows of the same group come before each row."""
    return place_in_run(group, np.argsort(group, kind="stable"))


def _by_pair(scored: Scored, rows: Ints) -> Ints:
    """An order of confusions: a case of each pair of species, the most frequent pairs first."""
    data = scored.result.data
    n = len(data.categories.ids)
    pair = data.truth.category[scored.specimen[rows]] * n + data.detections.category[rows]
    _, which, count = np.unique(pair, return_inverse=True, return_counts=True)
    return np.lexsort((-count[which], _occurrence(which)))


def _share_of_image(scored: Scored) -> Floats:
    """The share of its image that each annotation covers; tiny where the size is unknown."""
    truth = scored.result.data.truth
    area = truth.boxes[:, 2] * truth.boxes[:, 3]
    image_area = truth.sizes.prod(axis=1)[truth.image]
    return np.asarray(area / np.where(np.isnan(image_area), 1e18, image_area))


def _match_scores(scored: Scored) -> Floats:
    """Score of the detection that matched each annotation; NaN without one."""
    scores = np.append(scored.result.data.detections.score, np.nan)
    return np.asarray(scores[scored.found_by])


def _reaches(scores: Floats, threshold: float | None) -> Bools:
    return np.asarray(scores >= (0.0 if threshold is None else threshold))  # False for NaN


# ------------------------------------------------------------------ cases


def _error(scored: Scored, kind: int, row: int) -> Case:
    """The case of a detection."""
    data = scored.result.data
    specimen = int(scored.specimen[row])
    boxes = [_detection_box(scored, row)]
    if specimen >= 0:
        boxes.append(_truth_box(scored, specimen, "specimen"))
        match = int(scored.found_by[specimen])
        if kind == DUPLICATE and match >= 0:
            boxes.append(_detection_box(scored, match, "matched"))
    image = int(data.detections.image[row])
    view = _view(scored, row, boxes, _others(scored, image, {specimen}))
    return _case(scored, ERROR_TYPES[kind], image, specimen, (view,))


def _missed(scored: Scored, row: int) -> Case:
    """The case of a specimen without a match."""
    image = int(scored.result.data.truth.image[row])
    boxes = [_truth_box(scored, row, "specimen")]
    view = _view(scored, -1, boxes, _others(scored, image, {row}))
    return _case(scored, ERROR_TYPES[MISSED], image, row, (view,))


def _specimen_view(scored: Scored, row: int) -> View:
    """What a model has for a specimen: the detection that matched it, if any."""
    match = int(scored.found_by[row])
    boxes = [_truth_box(scored, row, "specimen")]
    if match >= 0:
        boxes.append(_detection_box(scored, match))
    image = int(scored.result.data.truth.image[row])
    return _view(scored, match, boxes, _others(scored, image, {row}))


def _view(scored: Scored, detection: int, boxes: Sequence[Box], others: Sequence[Box]) -> View:
    detections, categories = scored.result.data.detections, scored.result.data.categories
    if detection < 0:
        return View(scored.model, "", None, None, None, (*boxes, *others), len(boxes))
    score, iou = float(detections.score[detection]), float(scored.iou[detection])
    return View(
        model=scored.model,
        predicted=categories.names[int(detections.category[detection])],
        score=score,
        iou=None if np.isnan(iou) else iou,
        at_threshold=None if scored.threshold is None else score >= scored.threshold,
        boxes=(*boxes, *others),
        focus=len(boxes),
    )


def _case(scored: Scored, kind: str, image: int, specimen: int, views: tuple[View, ...]) -> Case:
    truth, categories = scored.result.data.truth, scored.result.data.categories
    n_specimens = int(np.count_nonzero(truth.image == image))
    category = -1 if specimen < 0 else int(truth.category[specimen])
    return Case(
        kind=kind,
        split=truth.name,
        image=image,
        image_id=int(truth.image_ids[image]),
        n_specimens=n_specimens,
        density=density_stratum(n_specimens),
        true="" if category < 0 else categories.names[category],
        band="" if category < 0 else categories.distance_band[category],
        views=views,
    )


def density_stratum(n_specimens: int) -> int:
    """Index into ``DENSITY``; an image without specimens is in the first stratum."""
    stratum = int(n_specimens > 1) + int(n_specimens > FEW)
    assert stratum < len(DENSITY)
    return stratum


def _others(scored: Scored, image: int, without: set[int]) -> list[Box]:
    """The other annotations of an image."""
    rows = np.flatnonzero(scored.result.data.truth.image == image).tolist()
    return [_truth_box(scored, row, "other") for row in rows if row not in without]


def _truth_box(scored: Scored, row: int, role: Role) -> Box:
    return Box(role, _xywh(scored.result.data.truth.boxes[row]))


def _detection_box(scored: Scored, row: int, role: Role = "detection") -> Box:
    return Box(role, _xywh(scored.result.data.detections.boxes[row]))


def _xywh(box: Floats) -> tuple[float, float, float, float]:
    x, y, w, h = box.tolist()
    return x, y, w, h
