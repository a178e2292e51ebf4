"""Effect of COCO's cap of 100 detections per image on dense images."""

from __future__ import annotations

import numpy as np

from benchmark_eval.results.schema import DetectionCap
from benchmark_eval.scoring.coco import CAPS, Suite, recall_at
from benchmark_eval.scoring.matching import Match
from benchmark_eval.scoring.split_data import SplitData

HIGHER_CAP = 300


def detection_cap(data: SplitData, suite: Suite, match: Match) -> DetectionCap:
    """Class-agnostic AR at caps of 100 and 300 and without a cap.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    suite, match : Suite, Match
        Class-agnostic suite of the split and its COCO matching, which has no cap.

    Returns
    -------
    DetectionCap
        The three ARs, the number of images with more than 100 detections, and the number of
        detections beyond the first 100 of their image.

    Notes
    -----
    Ours. AR_100 equals ``class_agnostic.AR_100``.
    """
    per_image = np.bincount(data.detections.image, minlength=len(data.truth.image_ids))
    over = np.maximum(per_image - CAPS[-1], 0)
    return DetectionCap(
        n_images_over_100=int(np.count_nonzero(over)),
        n_detections_over_100=int(over.sum()),
        AR_100=recall_at(suite, match, data.truth, CAPS[-1]),
        AR_300=recall_at(suite, match, data.truth, HIGHER_CAP),
        AR_uncapped=recall_at(suite, match, data.truth, None),
    )
