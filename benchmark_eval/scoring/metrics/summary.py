"""Metrics across splits: gaps to field photographs and unseen species, bands, novelty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import UnsetType

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.numbers import difference, mean
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import Headline, OodBand, SplitEvaluation, Summary

TPR = 0.95


def headline(splits: Mapping[str, SplitEvaluation]) -> Headline:
    """The benchmark's three headline metrics; None for a split that was not evaluated."""
    iid, inat, ood = (splits.get(s) for s in ("iid_test", "inat_test", "semantic_ood"))
    return Headline(
        iid_test=iid.coco.AP_50_95 if iid else None,
        inat_test=inat.coco.AP_50_95 if inat else None,
        semantic_ood=ood.class_agnostic.AR_100 if ood else None,
    )


def summary(
    splits: Mapping[str, SplitEvaluation], confidence: Mapping[str, TruePositiveConfidence]
) -> Summary:
    """All metrics across splits.

    Parameters
    ----------
    splits : mapping of str to SplitEvaluation
        The evaluated splits by name.
    confidence : mapping of str to TruePositiveConfidence
        Confidence of the true positives of each split.

    Returns
    -------
    Summary
        A difference is None if either side is undefined.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1. Photography gaps: iid_test minus inat_test.
    Generalization gaps and confidence drop: iid_test minus semantic_ood, class-agnostic. Band
    gaps: near_genus minus far_tribe. Novelty: how well 1 - confidence separates true positives
    on semantic_ood (positive) from those on iid_test (negative), as AUROC and as the false
    positive rate at 95 % true positive rate, with the threshold at the linearly interpolated
    5 % quantile of the positives.
    """
    iid, inat, ood = (splits.get(s) for s in ("iid_test", "inat_test", "semantic_ood"))
    near, far = (_band(ood, name) for name in ("near_genus", "far_tribe"))

    def gap(a: object | None, b: object | None, block: str | None, key: str) -> float | None:
        """``a.block.key - b.block.key``."""
        if a is None or b is None:
            return None
        if block is not None:
            a, b = getattr(a, block), getattr(b, block)
        return difference(getattr(a, key), getattr(b, key))

    return Summary(
        photography_robustness_gap_AP_50=gap(iid, inat, "coco", "AP_50"),
        photography_robustness_gap_AP_50_95=gap(iid, inat, "coco", "AP_50_95"),
        **_shared_species(iid, inat),
        species_generalization_gap_AR_100=gap(iid, ood, "class_agnostic", "AR_100"),
        species_generalization_gap_AP_50=gap(iid, ood, "class_agnostic", "AP_50"),
        confidence_drop_OOD=gap(iid, ood, "calibration", "mean_confidence"),
        ood_band_gap_AP_50=gap(near, far, None, "class_agnostic_AP_50"),
        ood_band_gap_AR_100=gap(near, far, None, "class_agnostic_AR_100"),
        ood_band_gap_correct_genus=gap(near, far, None, "correct_genus"),
        ood_band_gap_correct_tribe=gap(near, far, None, "correct_tribe"),
        ood_band_gap_confidence=gap(near, far, None, "mean_confidence_matched"),
        **_novelty(confidence.get("iid_test"), confidence.get("semantic_ood")),
    )


def _band(ood: SplitEvaluation | None, name: str) -> OodBand | None:
    """A distance band, if evaluated."""
    if ood is None or isinstance(ood.ood_by_band, UnsetType):
        return None
    return ood.ood_by_band.by_band.get(name)


def _shared_species(iid: SplitEvaluation | None, inat: SplitEvaluation | None) -> dict[str, Any]:
    """Mean AP difference over species scored on both splits, so the species mix is equal."""
    keys = {
        "AP_50": "photography_robustness_gap_AP_50_shared_species",
        "AP_50_95": "photography_robustness_gap_AP_50_95_shared_species",
    }
    out: dict[str, Any] = dict.fromkeys(keys.values())
    out["n_shared_species_iid_inat"] = None
    if iid is None or inat is None:
        return out
    by_name = [
        {s.name: s for s in split.per_species.values() if s.AP_50 is not None}
        for split in (iid, inat)
    ]
    shared = sorted(by_name[0].keys() & by_name[1].keys())
    out["n_shared_species_iid_inat"] = len(shared)
    for key, name in keys.items():
        gaps = [getattr(by_name[0][s], key) - getattr(by_name[1][s], key) for s in shared]
        out[name] = mean(np.array(gaps, np.float64))
    return out


class TruePositiveConfidence:
    """Confidence of the true positives of a split, in all and by distance band."""

    def __init__(self, score: Floats, band: np.ndarray[Any, np.dtype[np.str_]]) -> None:
        self.score = score
        self.by_band: dict[str, Floats] = {name: score[band == name] for name in OOD_BANDS}


def _novelty(
    known: TruePositiveConfidence | None, novel: TruePositiveConfidence | None
) -> dict[str, Any]:
    """Separation of unseen from known species by the novelty score 1 - confidence."""
    names = [
        f"{stem}_{band}"
        for band in OOD_BANDS
        for stem in ("novelty_det_AUROC", "novelty_novel_mean_conf")
    ]
    out: dict[str, Any] = dict.fromkeys(
        [
            "novelty_det_AUROC",
            "novelty_det_FPR_95TPR",
            "novelty_known_mean_conf",
            "novelty_novel_mean_conf",
            "n_known_tp",
            "n_novel_tp",
            *names,
        ]
    )
    if known is None or novel is None or not len(known.score) or not len(novel.score):
        return out
    negative, positive = 1 - known.score, 1 - novel.score
    out["novelty_det_AUROC"] = auroc(positive, negative)
    out["novelty_det_FPR_95TPR"] = mean(
        (negative >= np.quantile(positive, 1 - TPR)).astype(np.float64)
    )
    out["novelty_known_mean_conf"] = mean(known.score)
    out["novelty_novel_mean_conf"] = mean(novel.score)
    out["n_known_tp"], out["n_novel_tp"] = len(negative), len(positive)
    for band, score in novel.by_band.items():
        if len(score):
            out[f"novelty_det_AUROC_{band}"] = auroc(1 - score, negative)
            out[f"novelty_novel_mean_conf_{band}"] = mean(score)
    return out


def auroc(positive: Floats, negative: Floats) -> float:
    """Area under the ROC curve: probability that a positive outranks a negative.

    Parameters
    ----------
    positive, negative : (n,) and (m,) float
        Scores of the two classes, neither empty.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    The Mann-Whitney U statistic / (n * m), from mid-ranks: a tie counts one half.
    """
    _, number, count = np.unique(
        np.concatenate([positive, negative]), return_inverse=True, return_counts=True
    )
    mid_rank = np.cumsum(count) - (count - 1) / 2
    n, m = len(positive), len(negative)
    return float((mid_rank[number[:n]].sum() - n * (n + 1) / 2) / (n * m))
