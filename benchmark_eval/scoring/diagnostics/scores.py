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
"""Fewest detections to test for a score threshold."""
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
    image, score = evidence.everything.image, evidence.everything.score
    n = len(score)
    least, most = float(score.min(initial=1.0)), float(score.max(initial=0.0))
    if n < MIN_DETECTIONS or least < MIN_SCORE_THRESHOLD or most == least:
        return
    edge, near = (int(np.count_nonzero(score <= least + k * (most - least) / 20)) for k in (1, 4))
    per_image = np.bincount(image, minlength=len(evidence.truth.image_ids))
    full = int(np.count_nonzero(per_image == per_image.max()))
    if edge < max(MIN_AT_EDGE, EDGE_FRACTION * n, EDGE_STEP * (near - edge) / 3):
        return
    if 2 * full < np.count_nonzero(per_image):
        yield (
            f"no score below {least:.4g}, where the {n:,} scores end abruptly ({percent(edge, n)} "
            f"of them are at most {least + (most - least) / 20:.4g}), "
            f"{n / len(per_image):.1f} detections per image: likely a confidence threshold; AP "
            "also counts detections below it, so export with a threshold of 0.001 "
            "(Ultralytics: conf=0.001)"
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
