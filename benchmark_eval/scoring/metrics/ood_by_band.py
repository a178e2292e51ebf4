"""Unseen species by taxonomic distance: each band evaluated on its own."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats
from benchmark_eval.core.numbers import mean, share
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import OodBand, OodByBand
from benchmark_eval.scoring.coco import AT_50, CAPS, Scorer, Scores, Suite, match_coco, mean_defined
from benchmark_eval.scoring.matching import Match, localise
from benchmark_eval.scoring.split_data import SplitData, agreement, band_of_annotations


def ood_by_band(data: SplitData, suite: Suite, match: Match, score: Scorer) -> OodByBand:
    """Class-agnostic AP and AR, taxonomic agreement and confidence per distance band.

    Parameters
    ----------
    data : SplitData
        One model on semantic_ood.
    suite, match : Suite, Match
        Class-agnostic suite of the split and its COCO matching.
    score : Scorer
        The engine that turns a matching into precision and recall.

    Returns
    -------
    OodByBand
        The bands with annotations, nearest first.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1. A band is evaluated on its own annotations (crowd
    as crowd; annotations of other bands removed), the images that contain at least one of them,
    and every detection on these images. Matchings of the split are reused for a band whose
    images contain no other annotations; otherwise both matchings are repeated.
    """
    return OodByBand(
        by_band={name: _band(data, suite, match, keep, score) for name, keep in band_rows(data)}
    )


def band_rows(data: SplitData) -> list[tuple[str, Bools]]:
    """Each band with annotations, nearest first, and whether each annotation belongs to it."""
    of_annotation = band_of_annotations(data.categories, data.truth)
    rows = [(name, of_annotation == name) for name in OOD_BANDS]
    return [(name, keep) for name, keep in rows if keep.any()]


def band_suite(data: SplitData, suite: Suite, keep: Bools) -> tuple[Suite, Bools]:
    """The suite restricted to the annotations ``keep``; whether each detection is included."""
    images = np.zeros(len(data.truth.image_ids), np.bool_)
    images[data.truth.image[keep]] = True
    inside = images[data.detections.image]
    return suite.restricted(inside, keep), inside


def band_ap(scores: Scores) -> tuple[float | None, float | None, float | None]:
    """AP_50, AP_50_95 and AR_100 over all areas."""
    all_areas: Floats = scores.precision[0]
    last = len(CAPS) - 1
    return (
        mean_defined(all_areas[AT_50]),
        mean_defined(all_areas),
        mean_defined(scores.recall[last]),
    )


def _band(data: SplitData, suite: Suite, match: Match, keep: Bools, score: Scorer) -> OodBand:
    """Evaluate the annotations ``keep`` of one band."""
    truth, detections = data.truth, data.detections
    restricted, inside = band_suite(data, suite, keep)
    images = np.unique(truth.image[keep])
    mixed = bool((~keep & np.isin(truth.image, images)).any())
    if mixed:
        match = match_coco(restricted, detections, truth, data.pairs)
        local = localise(detections, truth, data.pairs, data.local.iou, keep)
    else:
        local = data.local
    ap_50, ap_50_95, ar_100 = band_ap(score(restricted, detections, truth, match, 1))
    of_band = keep[local.matched_truth]
    tp, matched_truth = local.true_positive[of_band], local.matched_truth[of_band]
    agree = agreement(data.categories, detections.category[tp], truth.category[matched_truth])
    n = len(tp)
    return OodBand(
        n_species=len(np.unique(truth.category[keep])),
        n_annotations=int(keep.sum()),
        n_images=len(images),
        class_agnostic_AP_50=ap_50,
        class_agnostic_AP_50_95=ap_50_95,
        class_agnostic_AR_100=ar_100,
        n_matched_tp=n,
        correct_genus=share(int(agree.genus.sum()), n),
        correct_tribe=share(int(agree.tribe.sum()), n),
        correct_subfamily=share(int(agree.subfamily.sum()), n),
        mean_confidence_matched=mean(detections.score[tp]),
        mean_confidence_all_preds=mean(detections.score[inside]),
    )
