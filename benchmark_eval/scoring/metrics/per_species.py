"""Each listed species by itself."""

from __future__ import annotations

import numpy as np

from benchmark_eval.results.schema import SpeciesScore
from benchmark_eval.scoring.coco import Scores
from benchmark_eval.scoring.split_data import SplitData


def per_species(data: SplitData, scores: Scores) -> dict[str, SpeciesScore]:
    """AP (COCO, area all, 100 detections) and counts of every category the split lists.

    Keyed by the category id as text. ``n_matched_tp`` and the right names are over the species'
    specimens in the localisation matching.
    """
    k = len(data.categories.ids)
    true = data.gt_category
    n_gt = data.truth.scored_per_category(k)
    found = np.bincount(true, minlength=k)
    right = np.bincount(true[data.agreement.species], minlength=k)
    genus = np.bincount(true[data.agreement.genus], minlength=k)
    out: dict[str, SpeciesScore] = {}
    for label, row in enumerate(data.truth.listed.tolist()):
        ap_50, ap_50_95 = scores.ap_of(label)
        out[str(data.categories.ids[row])] = SpeciesScore(
            name=data.categories.names[row],
            AP_50=ap_50,
            AP_50_95=ap_50_95,
            n_gt=int(n_gt[row]),
            n_matched_tp=int(found[row]),
            n_correct_species=int(right[row]),
            n_correct_genus=int(genus[row]),
        )
    return out
