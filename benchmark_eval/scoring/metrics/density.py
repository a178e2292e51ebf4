"""Density strata: recall and species accuracy by specimens per image."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.numbers import mean, share
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import Density, DensityStrata, DensityStratum
from benchmark_eval.scoring.split_data import SplitData

FEW = 10
"""Largest number of specimens per image in the stratum "2 to 10"."""


def density(data: SplitData) -> Density:
    """Recall and species accuracy on images of 1, 2 to 10, > 10 and > 1 specimens.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    Density
        Each stratum pooled over specimens and as a mean over images. On semantic_ood also for
        the specimens of each distance band. Undefined fractions are None.

    Notes
    -----
    Ours. From the localisation matching. Crowd annotations count as specimens of an image, but
    only scored specimens are evaluated. Means over images use the images with a scored specimen
    of the stratum; that of species accuracy the images with a true positive.
    """
    truth = data.truth
    everything = np.ones(len(truth.image), np.bool_)
    by_band: dict[str, DensityStrata] = {}
    if truth.name == "semantic_ood":
        band = np.array([*data.categories.distance_band, ""])[truth.category]
        by_band = {b: _strata(data, band == b) for b in OOD_BANDS if (band == b).any()}
    return Density(strata=_strata(data, everything), by_band=by_band)


def _strata(data: SplitData, keep: Bools) -> DensityStrata:
    """The strata of the annotations ``keep``."""
    truth = data.truth
    n_images = len(truth.image_ids)
    specimens = np.bincount(truth.image, minlength=n_images)
    n_gt = np.bincount(truth.image[keep & ~truth.crowd], minlength=n_images)
    kept = keep[data.local.matched_truth]
    image = truth.image[data.local.matched_truth]
    n_tp = np.bincount(image[kept], minlength=n_images)
    n_correct = np.bincount(image[kept & data.agreement.species], minlength=n_images)

    def stratum(inside: Bools) -> DensityStratum:
        return _stratum(inside & (n_gt > 0), n_gt, n_tp, n_correct)

    return DensityStrata(
        one=stratum(specimens == 1),
        few=stratum((specimens > 1) & (specimens <= FEW)),
        many=stratum(specimens > FEW),
        multi=stratum(specimens > 1),
    )


def _stratum(images: Bools, n_gt: Ints, n_tp: Ints, n_correct: Ints) -> DensityStratum:
    """One stratum: the selected ``images``, with counts per image."""
    gt, tp, correct = n_gt[images], n_tp[images], n_correct[images]
    with_tp = tp > 0
    accuracy: Floats = correct[with_tp] / tp[with_tp]
    return DensityStratum(
        n_images=len(gt),
        n_images_with_tp=int(with_tp.sum()),
        n_gt=int(gt.sum()),
        n_matched_tp=int(tp.sum()),
        recall=share(int(tp.sum()), int(gt.sum())),
        classification_given_detection_acc=share(int(correct.sum()), int(tp.sum())),
        species_recall=share(int(correct.sum()), int(gt.sum())),
        image_mean_recall=mean(tp / gt),
        image_mean_classification_given_detection_acc=mean(accuracy),
        image_mean_species_recall=mean(correct / gt),
    )
