"""Builds the evidence of a model, and the rows of detections.csv, from its detections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints
from benchmark_eval.inputs.benchmark import Benchmark, SplitTruth
from benchmark_eval.results.detections_csv import DetectionTable
from benchmark_eval.results.evidence import (
    EVIDENCE_VERSION,
    N_SCORE_BINS,
    UNDEFINED,
    Evidence,
    Header,
    SplitEvidence,
    score_bins,
    score_edges,
)
from benchmark_eval.results.schema import RunConfig
from benchmark_eval.scoring.error_types import MISSED, ErrorTypes, nearest_specimen
from benchmark_eval.scoring.metrics.density import FEW
from benchmark_eval.scoring.metrics.open_vocabulary import OpenVocabulary
from benchmark_eval.scoring.overlaps import Overlaps
from benchmark_eval.scoring.split_data import SplitData


def split_evidence(
    data: SplitData,
    of_image: Ints,
    errors: Codes,
    open_vocabulary: OpenVocabulary,
    threshold: float | None,
) -> SplitEvidence:
    """The evidence of one split.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    of_image : (n_images,) int
        From ``species_of_images``.
    errors : (2, n_categories + 1, len(ERROR_TYPES)) int32
        From ``count_types``.
    open_vocabulary : OpenVocabulary
        The true positives with out-of-vocabulary detections.
    threshold : float or None
        The operating threshold; None if undefined.

    Returns
    -------
    SplitEvidence
    """
    k = len(data.categories.ids)
    truth, detections, local = data.truth, data.detections, data.local
    score = detections.score[local.true_positive]
    true, predicted = data.gt_category, data.pred_category
    confusion, which = np.unique(true * k + predicted, return_inverse=True)

    def both(of: Ints, scores: Floats, n: int = k, where: Bools | None = None) -> Codes:
        """``_both`` of the rows ``where``, by default all."""
        rows = slice(None) if where is None else where
        return _both(of[rows], scores[rows], n, threshold)

    false = local.false_positive
    return SplitEvidence(
        n_images=_codes(np.bincount(of_image, minlength=k + 1)),
        n_scored=_codes(truth.scored_per_category(k)),
        n_found=both(true, score),
        n_right=both(true, score, where=data.agreement.species),
        n_genus=both(true, score, where=data.agreement.genus),
        n_found_open=both(open_vocabulary.true, open_vocabulary.score),
        n_right_open=both(open_vocabulary.true, open_vocabulary.score, where=open_vocabulary.right),
        n_given=both(predicted, score),
        errors=errors,
        confusion_true=_codes(confusion // max(k, 1)),
        confusion_predicted=_codes(confusion % max(k, 1)),
        confusion_n=both(which, score, len(confusion)),
        hit_true=_codes(true),
        hit_predicted=_codes(predicted),
        hit_score=score,
        hit_stratum=_strata(truth)[truth.image[local.matched_truth]],
        **_false_positives(of_image[detections.image[false]], detections.score[false], threshold),
    )


def model_evidence(
    benchmark: Benchmark,
    model: str,
    config: RunConfig,
    confidence: float | None,
    scoring_code: str,
    inputs: Mapping[str, str],
    splits: Mapping[str, SplitEvidence],
) -> Evidence:
    """The evidence of a model; ``confidence`` is its operating threshold, None if undefined."""
    return Evidence(
        Header(
            schema_version=EVIDENCE_VERSION,
            model=model,
            splits=list(splits),
            iou_threshold=config.iou_threshold,
            operating_confidence=confidence,
            scoring_code=scoring_code,
            inputs=dict(inputs),
            category_names=list(benchmark.categories.names),
        ),
        benchmark.categories.ids,
        score_edges(),
        dict(splits),
    )


def species_of_images(truth: SplitTruth, n_categories: int) -> Ints:
    """The species with the most scored specimens of each image; ``n_categories`` without any.

    On ties the first in the order of the categories.
    """
    of_image = np.full(len(truth.image_ids), n_categories, np.int64)
    scored = ~truth.crowd
    key = truth.image[scored] * (n_categories + 1) + truth.category[scored]
    pair, count = np.unique(key, return_counts=True)
    image, category = pair // (n_categories + 1), pair % (n_categories + 1)
    order = np.lexsort((-category, count, image))
    of_image[image[order]] = category[order]  # the last assignment counts: the largest count
    return of_image


def _codes(values: Ints) -> Codes:
    return values.astype(np.int32)


def _both(of: Ints, scores: Floats, n: int, threshold: float | None) -> Codes:
    """Counts of ``of`` in [0, n), (2, n): in all, and at and above the threshold."""
    counts = np.full((2, n), UNDEFINED, np.int32)
    counts[0] = np.bincount(of, minlength=n)
    if threshold is not None:
        counts[1] = np.bincount(of[scores >= threshold], minlength=n)
    return counts


def _strata(truth: SplitTruth) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Density stratum of each image (index into ``results.evidence.DENSITY``)."""
    specimens = np.bincount(truth.image, minlength=len(truth.image_ids))
    return ((specimens > 1).astype(np.int8) + (specimens > FEW)).astype(np.int8)


def _false_positives(species: Ints, score: Floats, threshold: float | None) -> dict[str, Any]:
    """Histogram of false positives by species of the image and confidence."""
    key = species * N_SCORE_BINS
    key += score_bins(score)
    counts = np.bincount(key)
    cell = np.flatnonzero(counts)
    n = np.full((2, len(cell)), UNDEFINED, np.int32)
    n[0] = counts[cell]
    if threshold is not None:
        kept = np.searchsorted(cell, key[score >= threshold])
        n[1] = np.bincount(kept, minlength=len(cell))
    return {
        "fp_species": _codes(cell // N_SCORE_BINS),
        "fp_bin": _codes(cell % N_SCORE_BINS),
        "fp_n": n,
    }


def detection_table(data: SplitData, types: ErrorTypes, overlaps: Overlaps) -> DetectionTable:
    """Detections outside crowd regions, and missed specimens, for detections.csv."""
    detections, truth, local = data.detections, data.truth, data.local
    rows, missed = local.evaluated, types.missed
    nearest = nearest_specimen(overlaps)
    specimen = nearest.truth.astype(np.int64)
    specimen[local.true_positive] = local.matched_truth
    iou = np.where(nearest.truth >= 0, nearest.iou, np.nan)
    iou[local.true_positive] = local.matched_iou
    of_row = specimen[rows]
    image = np.concatenate([detections.image[rows], truth.image[missed]])
    order = np.argsort(image, kind="stable")
    nothing, none = np.full(len(missed), np.nan), np.full(len(missed), -1, np.int64)

    def column(of_rows: Any, of_missed: Any) -> Any:
        return np.concatenate([of_rows, of_missed])[order]

    return DetectionTable(
        split=truth.name,
        categories=data.categories,
        image_id=truth.image_ids[image[order]],
        score=column(detections.score[rows], nothing),
        iou=column(iou[rows], nothing),
        is_tp=column(data.is_tp[rows].astype(np.int8), none.astype(np.int8)),
        predicted=column(detections.category[rows], none),
        true=column(np.append(truth.category, -1)[of_row], truth.category[missed]),  # -1 stays -1
        error_type=column(types.of_detection[rows], np.full(len(missed), MISSED, np.int8)),
    )
