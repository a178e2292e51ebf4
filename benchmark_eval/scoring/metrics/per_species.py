"""AP and counts of each species."""

from __future__ import annotations

import numpy as np

from benchmark_eval.results.schema import SpeciesScore
from benchmark_eval.scoring.coco import Scores
from benchmark_eval.scoring.split_data import SplitData


def per_species(data: SplitData, scores: Scores) -> dict[str, SpeciesScore]:
    """AP and counts of every category that the split lists.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    scores : Scores
        Scores of the suite by species.

    Returns
    -------
    dict of str to SpeciesScore
        By category id, ascending. AP is None without scored specimens.

    Notes
    -----
    AP from COCO (area "all", 100 detections), as in the benchmark's evaluator, v2.0.1.
    ``n_matched_tp``, ``n_correct_species`` and ``n_correct_genus`` are ours: specimens of the
    species detected in the localisation matching, and those with the correct species or genus.
    """
    k = len(data.categories.ids)
    true = data.gt_category
    n_gt = data.truth.scored_per_category(k)
    n_tp = np.bincount(true, minlength=k)
    species = np.bincount(true[data.agreement.species], minlength=k)
    genus = np.bincount(true[data.agreement.genus], minlength=k)
    out: dict[str, SpeciesScore] = {}
    for label, row in enumerate(data.truth.listed.tolist()):
        ap_50, ap_50_95 = scores.ap_of(label)
        out[str(data.categories.ids[row])] = SpeciesScore(
            name=data.categories.names[row],
            AP_50=ap_50,
            AP_50_95=ap_50_95,
            n_gt=int(n_gt[row]),
            n_matched_tp=int(n_tp[row]),
            n_correct_species=int(species[row]),
            n_correct_genus=int(genus[row]),
        )
    return out
