"""Warnings about scores and repeated records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.text import counted, percent
from benchmark_eval.scoring.diagnostics.evidence import Evidence, joined

TIED = 0.2
"""Chance that two detections have one score from which AP rests on the order in the file. Scores
with five decimals, cut at 0.001, stay below 0.01."""
ENOUGH_SCORES = 20
"""Detections below which equal scores say nothing."""
LARGE = 50_000
"""Detections above which doubles are looked for in an even part of them first."""
ENOUGH_FOR_TIES = 10_000
"""Detections, evenly over the file, that tell how often scores tie."""
REPEATED_SHARE = 0.001
"""Share of detections that repeat another to the last digit; suppression leaves none."""
MIN_SCORE_THRESHOLD = 0.05
"""Smallest score from which the tail that AP counts is missing; 0.001 is what predictions of this
benchmark are made with."""
ENOUGH_FOR_THRESHOLD = 100
"""Detections below which a smallest score says nothing."""
ENOUGH_AT_EDGE = 30
"""Detections in the lowest twentieth of the span of scores from which it may be an edge ..."""
EDGE_SHARE = 0.025
"""... the share of them that must be there, half of an even one ..."""
EDGE_STEP = 0.8
"""... and how many times the mean of the next three twentieths. Scores that nobody cut thin out
before they end."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def tied_scores(evidence: Evidence) -> Iterator[str]:
    """So many equal scores that AP depends on the order in the file."""
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


def score_threshold(evidence: Evidence) -> Iterator[str]:
    """Scores that end above zero as if cut."""
    kept, left = evidence.predictions, evidence.predictions.out_of_vocabulary
    score = joined(kept.score, left.score)
    n = len(score)
    least, most = float(score.min(initial=1.0)), float(score.max(initial=0.0))
    if n < ENOUGH_FOR_THRESHOLD or least < MIN_SCORE_THRESHOLD or most == least:
        return
    edge, near = (int(np.count_nonzero(score <= least + k * (most - least) / 20)) for k in (1, 4))
    per_image = np.bincount(joined(kept.image, left.image), minlength=len(evidence.truth.image_ids))
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


def repeated(evidence: Evidence) -> Iterator[str]:
    """Detections that are in the file twice."""
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
