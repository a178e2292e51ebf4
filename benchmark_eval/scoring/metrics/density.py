"""Does a model fail on a taxon or on a photograph: recall and naming by specimens per image."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.numbers import mean, share
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import Density, DensityStrata, DensityStratum
from benchmark_eval.scoring.split_data import SplitData

FEW = 10
"""Most specimens of an image in the middle stratum."""


def density(data: SplitData) -> Density:
    """Recall and naming for images of 1, 2 to 10, > 10 and > 1 specimens, crowd counted.

    Pooled over specimens, and as a mean over the images that hold a scored specimen. On
    semantic_ood also for each band's specimens. From the split's localisation matching.
    """
    truth = data.truth
    everything = np.ones(len(truth.image), np.bool_)
    by_band: dict[str, DensityStrata] = {}
    if truth.name == "semantic_ood":
        band = np.array([*data.categories.distance_band, ""])[truth.category]
        by_band = {b: _strata(data, band == b) for b in OOD_BANDS if (band == b).any()}
    return Density(strata=_strata(data, everything), by_band=by_band)


def _strata(data: SplitData, keep: Bools) -> DensityStrata:
    """The strata over the ground truth rows ``keep``."""
    truth = data.truth
    n_images = len(truth.image_ids)
    specimens = np.bincount(truth.image, minlength=n_images)
    n_gt = np.bincount(truth.image[keep & ~truth.crowd], minlength=n_images)
    kept_hit = keep[data.local.matched_truth]
    image = truth.image[data.local.matched_truth]
    n_hits = np.bincount(image[kept_hit], minlength=n_images)
    n_right = np.bincount(image[kept_hit & data.agreement.species], minlength=n_images)

    def stratum(inside: Bools) -> DensityStratum:
        return _stratum(inside & (n_gt > 0), n_gt, n_hits, n_right)

    return DensityStrata(
        one=stratum(specimens == 1),
        few=stratum((specimens > 1) & (specimens <= FEW)),
        many=stratum(specimens > FEW),
        multi=stratum(specimens > 1),
    )


def _stratum(images: Bools, n_gt: Ints, n_hits: Ints, n_right: Ints) -> DensityStratum:
    gt, hits, right = n_gt[images], n_hits[images], n_right[images]
    with_hit = hits > 0
    each: Floats = right[with_hit] / hits[with_hit]
    return DensityStratum(
        n_images=len(gt),
        n_images_with_tp=int(with_hit.sum()),
        n_gt=int(gt.sum()),
        n_matched_tp=int(hits.sum()),
        recall=share(int(hits.sum()), int(gt.sum())),
        classification_given_detection_acc=share(int(right.sum()), int(hits.sum())),
        species_recall=share(int(right.sum()), int(gt.sum())),
        image_mean_recall=mean(hits / gt),
        image_mean_classification_given_detection_acc=mean(each),
        image_mean_species_recall=mean(right / gt),
    )
