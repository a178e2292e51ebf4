"""What a reader should know about a prediction file before believing its numbers.

Warnings name a likely mistake and its evidence; notes state facts. A warning never rests on a
model being bad: it fires where another reading of the same file (ids moved by one, boxes as
corners, another split's images) explains the ground truth far better than the one it asks for,
or where the file holds what no detector of this benchmark writes. ``WARNINGS`` lists them all.

Readings are compared on each image's best box, at most ``SAMPLE`` of them, so that the cost stays
small beside that of the matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.benchmark import Benchmark, SplitTruth
from benchmark_eval.coco import CAPS
from benchmark_eval.columns import Bools, Floats, Ints
from benchmark_eval.matching import Detections, find_pairs
from benchmark_eval.predictions import Predictions, rows_of_images
from benchmark_eval.wording import counted, percent

SAMPLE = 2_000
"""Best boxes (one an image, evenly over the images) that the other readings are tried on."""
OVERLAP = 0.5
"""IoU from which a box counts as fitting a specimen."""
ENOUGH = 10
"""Boxes that are right only under another reading before it is believed ..."""
TIMES = 5
"""... and how many times those that are right only as the file stands."""
FEW = 0.1
"""Share of best boxes that fit nothing below which no other reading is tried; also the share that
must fit as another split's or a resized image's before that is believed."""
OUTSIDE_SHARE = 0.05
"""Share of boxes beyond their image from which the format of the boxes is doubted; detectors clip
their boxes to the image, or overshoot by a pixel or two."""
TINY = 2.0
"""No box reaches beyond this many px from the corner: coordinates are shares of the image."""
TIED = 0.2
"""Chance that two detections have one score from which AP rests on the order in the file. Scores
with five decimals, cut at 0.001, stay below 0.01."""
ENOUGH_SCORES = 20
"""Detections below which equal scores say nothing."""
HELD_OUT_SHARE = 0.005
"""Share of detections named as a species without a training image; a detector with an output for
every category of the benchmark leaves a few by chance."""
ALMOST_ALL = 0.99
"""Share of ids that must be of trained species under another reading ..."""
MOST_BY_CHANCE = 0.9
"""... and at most may be as they stand, or under any third reading."""
LARGE = 50_000
"""Detections above which doubles are looked for in an even part of them first."""
ENOUGH_FOR_TIES = 10_000
"""Detections, evenly over the file, that tell how often scores tie."""
REPEATED_SHARE = 0.001
"""Share of detections that repeat another to the last digit; suppression leaves none."""
CUT_SCORE = 0.05
"""Smallest score from which the tail that AP counts is missing; 0.001 is what predictions of this
benchmark are made with."""
ENOUGH_TO_CUT = 100
"""Detections below which a smallest score says nothing."""
ENOUGH_AT_EDGE = 30
"""Detections in the lowest twentieth of the span of scores from which it may be an edge ..."""
EDGE_SHARE = 0.025
"""... the share of them that must be there, half of an even one ..."""
EDGE_STEP = 0.8
"""... and how many times the mean of the next three twentieths. Scores that nobody cut thin out
before they end."""
RESIZED_SAMPLE = 100
"""Best boxes, evenly over the images, by which the likeliest size is picked."""
LENGTHS = (320, 416, 448, 512, 576, 608, 640, 672, 704, 736, 768, 800, 832, 896, 960, 1024, 1152,
           1280, 1333, 1536, 1600, 1920, 2048)  # fmt: skip
"""Lengths of a side in px that images are resized to for a detector."""
SHORT_AND_LONG = (800, 1333)
"""A short side, and the longest that a long one may have, that images are resized to."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Evidence:
    """One split's predictions beside its ground truth, and what several warnings look at."""

    predictions: Predictions
    truth: SplitTruth
    benchmark: Benchmark

    @cached_property
    def beyond(self) -> Bools:
        """One a detection: whether it ends more than 1 % and 1 px outside its image."""
        image, boxes = self.predictions.image, self.predictions.boxes
        slack = 0.01 * self.truth.sizes + 1
        far = np.zeros(len(image), np.bool_)
        for side in (0, 1):
            start = boxes[:, side]
            with np.errstate(invalid="ignore"):
                far |= start + boxes[:, 2 + side] > (self.truth.sizes + slack)[:, side][image]
                far |= start < -slack[:, side][image]
        return far

    @cached_property
    def best(self) -> Detections:
        """The best box of each image that holds a specimen, left-out categories included."""
        kept, left = self.predictions, self.predictions.left_out
        image, score = _joined(kept.image, left.image), _joined(kept.score, left.score)
        highest = np.full(len(self.truth.image_ids), -1.0)
        np.maximum.at(highest, image, score)
        highest[np.bincount(self.truth.image, minlength=len(highest)) == 0] = -1.0
        top = np.flatnonzero(score == highest[image])
        order = top[np.unique(image[top], return_index=True)[1]]
        order = order[np.linspace(0, len(order) - 1, min(len(order), SAMPLE)).astype(np.int64)]
        category, boxes = _joined(kept.category, left.category), _joined(kept.boxes, left.boxes)
        return _ready(image[order], category[order], boxes[order], score[order])

    @cached_property
    def sampled_truth(self) -> SplitTruth:
        """The ground truth of the images of ``best`` alone."""
        return _on_images(self.truth, self.best.image)

    @cached_property
    def best_pairs(self) -> tuple[Ints, Ints]:
        """Rows of ``best`` and of ``sampled_truth`` that overlap."""
        pairs = find_pairs(self.best, self.sampled_truth, OVERLAP)
        fit = pairs.iou >= OVERLAP
        return pairs.detection[fit], pairs.truth[fit]

    @cached_property
    def fits(self) -> Bools:
        """Which of the best boxes fit a specimen (crowd is specimens too) as they stand."""
        fits = np.zeros(len(self.best), np.bool_)
        fits[self.best_pairs[0]] = True
        return fits

    @property
    def open_to_doubt(self) -> bool:
        """Whether so many best boxes fit nothing that another reading is worth a look."""
        return int(np.count_nonzero(~self.fits)) >= max(ENOUGH, FEW * len(self.fits))

    def fits_as(self, boxes: Floats) -> Bools:
        """Which best boxes fit a specimen when their coordinates are read as ``boxes``."""
        known = np.isfinite(boxes[:, 0]) & np.isfinite(boxes[:, 1])
        known &= (boxes[:, 2] > 0) & (boxes[:, 3] > 0)
        return self._fits_of(known, boxes, self.best.image, self.sampled_truth)

    def fits_in(self, other: SplitTruth) -> Bools:
        """Which best boxes fit a specimen of another split, on the image of the same id."""
        image = rows_of_images(self.truth.image_ids[self.best.image], other)
        return self._fits_of(image >= 0, self.best.boxes, image, _on_images(other, image))

    def _fits_of(self, keep: Bools, boxes: Floats, image: Ints, truth: SplitTruth) -> Bools:
        read = _ready(image[keep], self.best.category[keep], boxes[keep], self.best.score[keep])
        pairs = find_pairs(read, truth, OVERLAP)
        fits = np.zeros(len(boxes), np.bool_)
        fits[np.flatnonzero(keep)[pairs.detection[pairs.iou >= OVERLAP]]] = True
        return fits


def _ready(image: Ints, category: Ints, boxes: Floats, score: Floats) -> Detections:
    """Boxes as ``find_pairs`` takes them; their order by score is not needed for that."""
    none = np.zeros(len(image), np.int64)
    area = boxes[:, 2] * boxes[:, 3]
    return Detections(image, category, boxes, area, score, none, none, none, none)


def _joined(kept: Any, left: Any) -> Any:
    """Two columns as one, without a copy where the second is empty."""
    return np.concatenate([kept, left]) if len(left) else kept


def explains(otherwise: Bools, as_is: Bools) -> bool:
    """Whether a reading is right where the file as it stands is not, and hardly ever the reverse.

    Sound files of bad models have few of the first and more of the second.
    """
    gained = int(np.count_nonzero(otherwise & ~as_is))
    lost = int(np.count_nonzero(as_is & ~otherwise))
    return gained >= ENOUGH and gained >= TIMES * lost


def _on_images(truth: SplitTruth, images: Ints) -> SplitTruth:
    """The annotations on ``images`` (rows of ``image_ids``; -1 is none)."""
    wanted = np.zeros(len(truth.image_ids), np.bool_)
    wanted[images[images >= 0]] = True
    keep = wanted[truth.image]
    columns = ("image", "category", "boxes", "area", "crowd")
    return replace(truth, **{name: getattr(truth, name)[keep] for name in columns})


# --------------------------------------------------------------------------------------------
# Warnings
# --------------------------------------------------------------------------------------------


def _dropped(evidence: Evidence) -> Iterator[str]:
    for reason, count in evidence.predictions.dropped.items():
        yield f"{counted(count, 'invalid record')} dropped: {reason}"


def _other_split(evidence: Evidence) -> Iterator[str]:
    """Image ids of every split start at 1, so that another split's file reads without a fault."""
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    for name, other in evidence.benchmark.splits.items():
        if name == evidence.truth.name:
            continue
        there = evidence.fits_in(other)
        # boxes that fit nothing anywhere (in pixels of another size) fit a few others by chance
        if explains(there, as_is) and there.sum() >= FEW * len(best):
            yield (
                f"{int(there.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
                f"specimen of {name} under the same image id, {int(as_is.sum()):,} one of "
                f"{evidence.truth.name}: likely the predictions of {name}"
            )


def _scale_and_layout(boxes: Floats, size: Floats, layout: str, *, shares: bool) -> Floats:
    """Boxes [x, y, w, h] in px of what is written in another layout, in px or in shares."""
    if shares:
        boxes = boxes * np.tile(size, 2)
    if layout == "corners":
        return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    if layout == "centre":
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    return boxes[:, [1, 0, 3, 2]] if layout == "swapped" else boxes


LAYOUTS = {
    "corners": "corners [x1, y1, x2, y2] given as [x, y, w, h]",
    "centre": "centres [cx, cy, w, h] given as [x, y, w, h]",
    "swapped": "[y, x, h, w] given as [x, y, w, h]",
}


def _box_layout(evidence: Evidence) -> Iterator[str]:
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    size = evidence.truth.sizes[best.image]
    for layout, mistake in LAYOUTS.items():
        fits = evidence.fits_as(_scale_and_layout(best.boxes, size, layout, shares=False))
        if explains(fits, as_is):
            yield (
                f"{int(as_is.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
                f"specimen as they stand, {int(fits.sum()):,} when read otherwise: likely {mistake}"
            )


def _normalised(evidence: Evidence) -> Iterator[str]:
    boxes, best = evidence.predictions.boxes, evidence.best
    reach = float(boxes.max(initial=0.0))
    largest = float(np.nanmax(evidence.truth.sizes, initial=0.0))
    if not len(boxes) or reach > TINY or largest < 10 * TINY:
        return
    text = (
        f"no box reaches beyond {reach:g} px, in images of up to {largest:g} px: "
        "likely coordinates given as shares of the image instead of pixels"
    )
    size = evidence.truth.sizes[best.image]
    fits = {
        layout: evidence.fits_as(_scale_and_layout(best.boxes, size, layout, shares=True))
        for layout in ("", *LAYOUTS)
    }
    layout = max(fits, key=lambda name: int(fits[name].sum()))
    if layout and explains(fits[layout], fits[""]):
        text += f", and {LAYOUTS[layout]}"
    yield text


def _resized_boxes(boxes: Floats, size: Floats, way: str, length: float) -> Floats:
    """Boxes in px of an image, of those in px of the image after resizing.

    ``way`` is "longest" (its longest side has ``length``), "shortest" (its shortest, within
    ``SHORT_AND_LONG``), "stretched" (both sides have it), "padded" (as longest, in the middle of a
    square) or "factor" (every image by the same).
    """
    long, short = size.max(axis=1, keepdims=True), size.min(axis=1, keepdims=True)
    pad = np.zeros_like(boxes)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if way == "stretched":
            scale = np.tile(size / length, 2)
        elif way == "factor":
            scale = np.full_like(long, length)
        elif way == "shortest":
            scale = np.maximum(short / length, long / SHORT_AND_LONG[1])
        else:
            scale = long / length
        if way == "padded":
            pad[:, :2] = (length - size / scale) / 2
        read: Floats = (boxes - pad) * scale
    return read


RESIZED = {
    "longest": "resized to a longest side of {0:g} px",
    "shortest": "resized to a shortest side of {0:g} px and a longest of at most "
    f"{SHORT_AND_LONG[1]} px",
    "stretched": "stretched to {0:g}x{0:g} px",
    "padded": "resized to a longest side of {0:g} px in the middle of a square",
    "factor": "made {2} by a factor of {1:.3g}",
}


def _resized(evidence: Evidence) -> Iterator[str]:
    best, as_is = evidence.best, evidence.fits
    if not evidence.open_to_doubt:
        return
    size = evidence.truth.sizes[best.image]
    far = best.boxes[:, :2] + best.boxes[:, 2:]
    reach = float(far.max(initial=0.0))
    larger = int(np.count_nonzero(size.max(axis=1) > 1.1 * reach))
    with np.errstate(invalid="ignore"):
        all_short = bool((1.1 * far <= size).all())
    if reach <= TINY or (larger < FEW * len(best) and not all_short):
        return  # boxes reach as far as the images do
    way, length = _likeliest_size(evidence, reach)
    if not way:
        return
    fits = evidence.fits_as(_resized_boxes(best.boxes, size, way, length))
    if explains(fits, as_is) and fits.sum() >= FEW * len(best):
        how = "smaller" if length >= 1 else "larger"
        told = RESIZED[way].format(length, max(length, 1 / length), how)
        yield (
            f"{int(as_is.sum()):,} of the best boxes of {counted(len(best), 'image')} fit a "
            f"specimen as they stand, {int(fits.sum()):,} when read as pixels of an image "
            f"{told}; the best boxes reach {reach:g} px, in images of up to "
            f"{np.nanmax(size):g} px: likely boxes of the resized image, not scaled back"
        )


def _likeliest_size(evidence: Evidence, reach: float) -> tuple[str, float]:
    """The way of resizing, and its length, under which a few best boxes fit specimens best.

    No way where those that fit are fewer than half of what a warning takes.
    """
    best, truth = evidence.best, evidence.sampled_truth
    few = np.linspace(0, len(best) - 1, min(len(best), RESIZED_SAMPLE)).astype(np.int64)
    image, boxes = best.image[few], best.boxes[few]
    size = evidence.truth.sizes[image]
    # every pair of a best box and a specimen of its image
    start = np.searchsorted(truth.image, image)
    count = np.searchsorted(truth.image, image, side="right") - start
    row = np.repeat(np.arange(len(few)), count)
    at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - start, count)
    specimen = truth.boxes[at]
    area = specimen[:, 2] * specimen[:, 3]

    # a box cannot reach beyond the image that it is in
    lengths = [float(n) for n in LENGTHS if reach <= 1.02 * n + 1]
    tried = [(way, n) for n in lengths for way in ("longest", "stretched", "padded")]
    tried.append(("shortest", float(SHORT_AND_LONG[0])))
    alone = count[row] == 1
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.sqrt(area / (boxes[row, 2] * boxes[row, 3]))[alone]
        side = size[row].max(axis=1)[alone] / factor
    known = np.isfinite(side) & (side > 0) & np.isfinite(factor)
    if known.any():
        measured = float(np.round(np.median(side[known])))
        tried += [("longest", measured), ("factor", float(np.median(factor[known])))]

    least, most, found = 0.5 * FEW * len(few), 0.0, ("", 0.0)
    for way, length in tried:
        read = _resized_boxes(boxes, size, way, length)[row]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            near = np.maximum(read[:, :2], specimen[:, :2])
            far = np.minimum(read[:, :2] + read[:, 2:], specimen[:, :2] + specimen[:, 2:])
            shared = np.maximum(far - near, 0).prod(axis=1)
            iou = shared / (read[:, 2] * read[:, 3] + area - shared)
        fit = np.zeros(len(few))
        np.maximum.at(fit, row, np.where(iou >= OVERLAP, iou, 0.0))
        if np.count_nonzero(fit) > least and fit.sum() > most:
            most, found = float(fit.sum()), (way, length)
    return found


def _outside(evidence: Evidence) -> Iterator[str]:
    detections = evidence.predictions
    count = int(evidence.beyond.sum())
    if count and count >= OUTSIDE_SHARE * len(detections):
        boxes = detections.boxes
        row = int(np.flatnonzero(evidence.beyond)[0])
        size = evidence.truth.sizes[detections.image[row]]
        end = boxes[row, :2] + boxes[row, 2:]
        side = int(np.argmax(np.maximum(end - size, -boxes[row, :2])))
        where = (
            f"{'xy'[side]}+{'wh'[side]}={end[side]:g}"
            if end[side] - size[side] >= -boxes[row, side]
            else f"{'xy'[side]}={boxes[row, side]:g}"
        )
        cause = "pixels of an image of another size"
        if (boxes[:, 2:] >= boxes[:, :2]).all() and (boxes >= 0).all():
            cause = f"{LAYOUTS['corners']}, or {cause}"
        yield (
            f"{percent(count, len(detections))} of boxes end outside their "
            f"{size[0]:g}x{size[1]:g} image ({where}): likely {cause}"
        )


def _shifted_ids(evidence: Evidence) -> Iterator[str]:
    """Names that are wrong where boxes fit, and right once the ids are read otherwise."""
    if evidence.truth.name == "semantic_ood":
        return  # a right name is not possible there
    categories = evidence.benchmark.categories
    row, at = evidence.best_pairs
    ids, true = categories.ids[evidence.best.category], evidence.sampled_truth.category[at]

    def right(meant: Ints) -> Bools:
        named = np.zeros(len(ids), np.bool_)
        named[row[meant[row] == categories.ids[true]]] = True
        return named

    as_is = right(ids)
    readings = _readings_of_ids(ids, evidence.benchmark)
    rights = [right(meant) for meant, _ in readings]
    best = max(range(len(readings)), key=lambda i: int(rights[i].sum()))
    if explains(rights[best], as_is):
        yield (
            f"of {counted(int(evidence.fits.sum()), 'best box', 'best boxes')} that fit a "
            f"specimen, {int(as_is.sum()):,} have its name, but {int(rights[best].sum()):,} "
            f"{readings[best][1]}"
        )


def _readings_of_ids(ids: Ints, benchmark: Benchmark) -> list[tuple[Ints, str]]:
    """What ``ids`` may stand for instead, and in words; -1 where they stand for nothing."""
    categories = benchmark.categories
    trained = categories.ids[categories.n_train_images > 0]
    readings = [
        (ids + 1, "when 1 is added to every category_id: likely ids counted from 0"),
        (ids - 1, "when 1 is taken from every category_id: likely ids shifted by one"),
    ]
    if 0 < len(trained) < len(categories.ids):
        padded = np.r_[trained, np.full(int(categories.ids.max()) + 2, -1)]
        readings += [
            (
                padded[np.clip(ids - first, -1, len(padded) - 1)],
                f"when category_id counts the {len(trained)} trained species from {first}: likely "
                "class numbers of the model instead of the benchmark's ids",
            )
            for first in (0, 1)
        ]
    return readings


def shift_of_unknown_ids(
    predictions: Predictions, ids: Ints, benchmark: Benchmark, split: str
) -> str:
    """Why a file has unknown category ids, where all its ids are moved; blank if nothing tells.

    ``predictions`` are its valid records, ``ids`` the category ids of all. Names that are right
    under another reading tell it, or else that almost all ids are trained species under one
    reading alone, as those of a detector are.
    """
    evidence = Evidence(predictions, benchmark.split(split), benchmark)
    cause = next(_shifted_ids(evidence), "")
    trained = benchmark.categories.ids[benchmark.categories.n_train_images > 0]
    if not cause and len(ids) >= ENOUGH_SCORES:
        as_is = int(np.isin(ids, trained).sum())
        tried = [
            (int(np.isin(meant, trained).sum()), words)
            for meant, words in _readings_of_ids(ids, benchmark)
        ]
        (most, words), (second, _) = sorted(tried, reverse=True)[:2]
        if most >= ALMOST_ALL * len(ids) and max(as_is, second) <= MOST_BY_CHANCE * len(ids):
            cause = (
                f"of {len(ids):,} detections {as_is:,} name a species that is trained on, but "
                f"{most:,} {words}"
            )
    return f"{cause}; every record is affected, not only those told here" if cause else ""


def held_out_detections(evidence: Evidence) -> tuple[int, list[int]]:
    """How many detections name a species without a training image, and which ids they give."""
    categories = evidence.benchmark.categories
    untrained = categories.n_train_images <= 0
    if untrained.all():
        return 0, []  # nothing is known about training
    times = np.bincount(evidence.predictions.left_out.category, minlength=len(untrained))
    times += np.bincount(evidence.predictions.category, minlength=len(untrained))
    return int(times[untrained].sum()), categories.ids[untrained & (times > 0)].tolist()


def _held_out_ids(evidence: Evidence) -> Iterator[str]:
    count, ids = held_out_detections(evidence)
    n = len(evidence.predictions) + len(evidence.predictions.left_out)
    if count and count >= HELD_OUT_SHARE * n:
        shown = ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")
        yield (
            f"{percent(count, n)} of detections name a species that no training image holds "
            f"(category_id {shown}): likely shifted ids, class numbers of the model, or a model "
            "trained on more than train"
        )


def _tied_scores(evidence: Evidence) -> Iterator[str]:
    n = len(evidence.predictions)
    if n < ENOUGH_SCORES:
        return
    every = -(-n // ENOUGH_FOR_TIES)
    score = np.sort(evidence.predictions.score[::every])
    start = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    times = np.diff(np.r_[start, len(score)])
    if (evidence.predictions.score == score[0]).all():
        yield (
            f"all {n:,} scores are {score[0]:g}: AP rests on the order in the file alone; likely "
            "the confidence was not written"
        )
    elif float((times * (times - 1.0)).sum()) >= TIED * len(score) * (len(score) - 1.0):
        most = int(np.argmax(times))
        yield (
            f"{len(start):,} different scores in {len(score):,} detections, "
            f"{percent(int(times[most]), len(score))} are {score[start[most]]:g}: AP rests on the "
            "order in the file where scores tie; likely rounded too far"
        )


def _score_threshold(evidence: Evidence) -> Iterator[str]:
    kept, left = evidence.predictions, evidence.predictions.left_out
    score = _joined(kept.score, left.score)
    n = len(score)
    least, most = float(score.min(initial=1.0)), float(score.max(initial=0.0))
    if n < ENOUGH_TO_CUT or least < CUT_SCORE or most == least:
        return
    edge, near = (int(np.count_nonzero(score <= least + k * (most - least) / 20)) for k in (1, 4))
    per_image = np.bincount(
        _joined(kept.image, left.image), minlength=len(evidence.truth.image_ids)
    )
    full = int(np.count_nonzero(per_image == per_image.max()))
    if edge < max(ENOUGH_AT_EDGE, EDGE_SHARE * n, EDGE_STEP * (near - edge) / 3):
        return
    if 2 * full < np.count_nonzero(per_image):
        yield (
            f"no score below {least:.4g}, where the {n:,} scores end as if cut ({percent(edge, n)} "
            f"of them lie between it and {least + (most - least) / 20:.4g}), "
            f"{n / len(per_image):.1f} boxes an image: likely a score threshold; AP counts the "
            "boxes below it too, so export with a confidence threshold of 0.001 "
            "(Ultralytics: conf=0.001)"
        )


def _mixed(columns: Sequence[Ints | Floats]) -> NDArray[np.uint64]:
    """One number a record: the same for records that are the same, hardly ever for others."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = mixed * _MIX + np.ascontiguousarray(column).view(np.uint64)
    return mixed


def _repeated(evidence: Evidence) -> Iterator[str]:
    found = evidence.predictions
    columns = [found.score, *found.boxes.T, found.image, found.category]
    # equal records have equal sums of score and corner, so that a record is in one part with its
    # duplicate; of 51 in 51,000, the fewest that are told, a part of an eighth misses all in 0.1 %
    part = np.arange(len(found))
    if len(found) > LARGE:
        part = np.flatnonzero(_mixed(columns[:3]) >> np.uint64(61) == 0)
    sums = np.sort(_mixed([column[part] for column in columns]))
    if not (sums[1:] == sums[:-1]).any():
        return
    order = np.argsort(_mixed(columns), kind="stable")
    same = np.ones(len(order) - 1, np.bool_)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    count = int(same.sum())
    if count and count >= REPEATED_SHARE * len(found):
        row = int(order[1:][same].min())
        yield (
            f"{counted(count, 'detection')} ({percent(count, len(found))}) repeat another one to "
            f"the last digit, as on image {evidence.truth.image_ids[found.image[row]]} with score "
            f"{found.score[row]:g}: likely files joined or written twice"
        )


def _taxonomy(evidence: Evidence) -> Iterator[str]:
    """Species that the taxonomy does not place: their names are counted as in no genus at all."""
    truth, categories = evidence.truth, evidence.benchmark.categories
    scored = np.unique(truth.category[~truth.crowd])
    placeless = scored[categories.genus_code[scored] < 0]
    if len(placeless):
        first = categories.names[int(placeless[0])]
        yield (
            f"{len(placeless)} of {counted(len(scored), 'scored species', 'scored species')} "
            f"({first}, ...) without a genus in the taxonomy: no name is in the right genus for "
            "them; likely names that differ between the taxonomy and the annotation files"
            if len(placeless) > 1
            else f"1 scored species ({first}) without a genus in the taxonomy: no name is in the "
            "right genus for it"
        )
    bands = {categories.distance_band[row] for row in scored.tolist()}
    if truth.name == "semantic_ood" and bands == {""}:
        yield (
            "no unseen species has a distance band in the taxonomy: nothing is told by band; "
            "the column distance_band_vs_trainable is missing or blank"
        )


def _stray_files(evidence: Evidence) -> Iterator[str]:
    """Categories that only a file of no split lists: predictions of them are taken as valid."""
    benchmark = evidence.benchmark
    files = benchmark.stray_files
    listed = np.zeros(len(benchmark.categories.ids), np.bool_)
    for split in benchmark.splits.values():
        listed[split.listed] = True
    extra = np.flatnonzero(~listed)
    if files and len(extra):
        yield (
            f"{counted(len(extra), 'category', 'categories')} "
            f"({benchmark.categories.names[extra[0]]}{', ...' if len(extra) > 1 else ''}) of no "
            f"split, from {', '.join(files)}: the benchmark's evaluator counts every .json file "
            "there; likely a copy or another file that belongs elsewhere"
        )


def _shared_names(evidence: Evidence) -> Iterator[str]:
    """Two categories of the split with one species name: each has an AP of its own."""
    names = evidence.benchmark.categories.names
    ids = evidence.benchmark.categories.ids
    first: dict[str, int] = {}
    for row in evidence.truth.listed.tolist():
        other = first.setdefault(names[row], row)
        if other != row:
            yield (
                f"categories {ids[other]} and {ids[row]} of {evidence.truth.name} have one name, "
                f"{names[row]}: each has an AP of its own, but a name is right for both"
            )


_IN_PIXELS = "boxes [x, y, w, h] in pixels of the image as published"
_OWN_IDS = "category ids of the benchmark's annotation files"
WANTED = {
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
    "another split": _other_split,
    "normalised boxes": _normalised,
    "box layout": _box_layout,
    "resized images": _resized,
    "boxes outside": _outside,
    "shifted ids": _shifted_ids,
    "held-out ids": _held_out_ids,
    "tied scores": _tied_scores,
    "score threshold": _score_threshold,
    "repeated records": _repeated,
}
"""Every warning about predictions by its kind, most serious first."""

BENCHMARK_WARNINGS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "taxonomy": _taxonomy,
    "stray files": _stray_files,
    "shared names": _shared_names,
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
    if predictions.n_left_out:
        # the benchmark's evaluator drops these too, before every metric family
        notes.append(
            f"{counted(predictions.n_left_out, 'prediction')} left out: the category is in the "
            f"benchmark but not among those that {truth.name} lists"
        )
    if not len(predictions):
        notes.append("no prediction: every specimen is missed")
    elif without:
        of_what = ""
        if (per_image[predictions.left_out.image] == 0).any():
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
    if 0 < held_out < HELD_OUT_SHARE * (len(predictions) + predictions.n_left_out):
        notes.append(
            f"{counted(held_out, 'detection names', 'detections name')} a species that no "
            "training image holds"
        )
    return notes
