"""Warnings about scores and duplicate records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmark_eval.core.arrays import record_hashes
from benchmark_eval.core.text import counted, percent
from benchmark_eval.scoring.diagnostics.evidence import Evidence

MAX_TIED = 0.2
"""Smallest probability of equal scores of two detections at which AP depends on the file order.
Scores of five decimals, thresholded at 0.001, stay below 0.01."""
MIN_SCORES = 20
"""Fewest detections to test for tied scores."""
LARGE = 50_000
"""Number of detections above which a part is searched for duplicates first."""
TIES_SAMPLE = 10_000
"""Number of detections, evenly spread over the file, used to measure how often scores tie."""
DUPLICATE_FRACTION = 0.001
"""Smallest fraction of exact duplicates at which a warning fires; non-maximum suppression leaves
none."""
MIN_SCORE_THRESHOLD = 0.05
"""Lowest score of a file at which the tail that matters for AP is missing. Predictions for this
benchmark are made with a threshold of 0.001."""
MIN_DETECTIONS = 100
"""Fewest detections whose scores alone show a score threshold. With fewer, down to ``MIN_SCORES``,
the lowest score must also be a usual threshold (``USUAL_THRESHOLDS``)."""
USUAL_THRESHOLDS = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)
"""Common defaults of detectors and of their users."""
ABOVE_USUAL = 0.01
"""How far the lowest score may lie above a usual threshold."""
FEW_AT_EDGE, FEW_EDGE_FRACTION, FEW_EDGE_STEP = 5, 0.15, 1.5
"""As ``MIN_AT_EDGE``, ``EDGE_FRACTION`` and ``EDGE_STEP``, for few detections: stricter, because
chance matters more. Of 30,000 simulated models whose scores thin out, none has such an edge."""
MIN_AT_EDGE = 30
"""Fewest detections in the lowest twentieth of the range of scores to take it for an edge ..."""
EDGE_FRACTION = 0.025
"""... the fraction of all detections there, half of that of a uniform distribution ..."""
EDGE_STEP = 0.8
"""... and the ratio to the mean of the next three twentieths. Scores without a threshold thin out
towards the end of their range."""


def tied_scores(evidence: Evidence) -> Iterator[str]:
    """So many equal scores that AP depends on the order of the file."""
    n = len(evidence.predictions)
    if n < MIN_SCORES:
        return
    every = -(-n // TIES_SAMPLE)
    score = np.sort(evidence.predictions.score[::every])
    start = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    count = np.diff(np.r_[start, len(score)])
    if (evidence.predictions.score == score[0]).all():
        yield (
            f"all {n:,} scores are {score[0]:g}: AP depends only on the order of the file; likely "
            "the confidence was not exported"
        )
    elif float((count * (count - 1.0)).sum()) >= MAX_TIED * len(score) * (len(score) - 1.0):
        most = int(np.argmax(count))
        yield (
            f"{len(start):,} distinct scores in {len(score):,} detections, "
            f"{percent(int(count[most]), len(score))} are {score[start[most]]:g}: AP depends on "
            "the order of the file among tied scores; likely rounded too coarsely"
        )


def score_threshold(evidence: Evidence) -> Iterator[str]:
    """Scores that end above zero, as after a confidence threshold."""
    score = evidence.everything.score
    n = len(score)
    least, most = float(score.min(initial=1.0)), float(score.max(initial=0.0))
    few = n < MIN_DETECTIONS
    if n < MIN_SCORES or least < MIN_SCORE_THRESHOLD or most == least:
        return
    if few and not any(0 <= least - usual <= ABOVE_USUAL for usual in USUAL_THRESHOLDS):
        return
    part = (most - least) / 20
    edge, near = (int(np.count_nonzero(score <= least + k * part)) for k in (1, 4))
    at_edge, fraction, step = (
        (FEW_AT_EDGE, FEW_EDGE_FRACTION, FEW_EDGE_STEP)
        if few
        else (MIN_AT_EDGE, EDGE_FRACTION, EDGE_STEP)
    )
    if edge < max(at_edge, fraction * n, step * (near - edge) / 3):
        return
    if not _capped(evidence):
        per_image = n / len(evidence.truth.image_ids)
        yield (
            f"no score below {least:.4g}, where the {n:,} scores end abruptly ({percent(edge, n)} "
            f"of them are at most {least + part:.4g}), "
            f"{per_image:.1f} detections per image: likely a confidence threshold; AP "
            "also counts detections below it, so export with a threshold of 0.001 "
            "(Ultralytics: conf=0.001)"
        )


def _capped(evidence: Evidence) -> bool:
    """Whether half of the images with detections have the same, largest number of them."""
    per_image = np.bincount(evidence.everything.image, minlength=len(evidence.truth.image_ids))
    full = int(np.count_nonzero(per_image == per_image.max()))
    return 2 * full >= int(np.count_nonzero(per_image))


def no_low_scores(evidence: Evidence) -> Iterator[str]:
    """Few detections without a low score, which may be a score threshold or a confident model."""
    score = evidence.everything.score
    if not MIN_SCORES <= len(score) < MIN_DETECTIONS or score.min() == score.max():
        return
    if score.min() < MIN_SCORE_THRESHOLD or _capped(evidence) or any(score_threshold(evidence)):
        return
    yield (
        f"{counted(len(score), 'detection')}, none with a score below {score.min():.4g}: too few "
        "to tell a confidence threshold from a confident model; AP also counts detections below a "
        "threshold, so export with a threshold of 0.001 (Ultralytics: conf=0.001)"
    )


def repeated(evidence: Evidence) -> Iterator[str]:
    """Detections that occur more than once in the file."""
    predictions = evidence.predictions
    columns = [predictions.score, *predictions.boxes.T, predictions.image, predictions.category]
    # equal records have equal hashes of score and corner, so duplicates fall into the same part;
    # of 51 in 51,000, the fewest that are reported, an eighth misses all in 0.1 % of cases
    part = np.arange(len(predictions))
    if len(predictions) > LARGE:
        part = np.flatnonzero(record_hashes(columns[:3]) >> np.uint64(61) == 0)
    hashes = np.sort(record_hashes([column[part] for column in columns]))
    if not (hashes[1:] == hashes[:-1]).any():
        return
    order = np.argsort(record_hashes(columns), kind="stable")
    same = np.ones(len(order) - 1, np.bool_)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    count = int(same.sum())
    if count and count >= DUPLICATE_FRACTION * len(predictions):
        row = int(order[1:][same].min())
        image = evidence.truth.image_ids[predictions.image[row]]
        yield (
            f"{counted(count, 'duplicate')} ({percent(count, len(predictions))} of detections) "
            f"with identical values, for example on image {image} with score "
            f"{predictions.score[row]:g}: likely files concatenated or written twice"
        )
