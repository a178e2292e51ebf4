"""Prediction density: number of detections per specimen and per image."""

from __future__ import annotations

from benchmark_eval.core.numbers import share
from benchmark_eval.results.schema import PredictionDensity
from benchmark_eval.scoring.split_data import SplitData


def prediction_density(data: SplitData) -> PredictionDensity:
    """Detections per scored specimen and per image.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    PredictionDensity
        Ratios are None without scored specimens or images.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1.
    """
    n, n_gt, n_images = len(data.detections), data.truth.n_scored, len(data.truth.image_ids)
    return PredictionDensity(
        n_predictions=n,
        n_gt=n_gt,
        n_images=n_images,
        boxes_per_gt=share(n, n_gt),
        boxes_per_image=share(n, n_images),
    )
