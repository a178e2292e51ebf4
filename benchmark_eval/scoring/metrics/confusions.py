"""Which species are taken for which: the most frequent wrong names."""

from __future__ import annotations

import numpy as np

from benchmark_eval.results.schema import LISTED, Confusion
from benchmark_eval.scoring.split_data import SplitData


def confusions(data: SplitData) -> list[Confusion]:
    """The ten most frequent pairs of true and wrong species over hits (ours).

    Most frequent first, then by the true and the named category id. From the split's
    localisation matching.
    """
    categories = data.categories
    wrong = ~data.agreement.species
    k = len(categories.ids)
    pair, count = np.unique(
        data.gt_category[wrong] * k + data.pred_category[wrong], return_counts=True
    )
    most = np.argsort(-count, kind="stable")[:LISTED]
    found = np.bincount(data.gt_category, minlength=k)
    genus = categories.genus_code
    return [
        Confusion(
            gt_species=categories.names[true],
            pred_species=categories.names[named],
            n=int(n),
            n_matched_tp=int(found[true]),
            same_genus=bool(genus[true] == genus[named] and genus[true] >= 0),
        )
        for (true, named), n in zip(
            (divmod(p, k) for p in pair[most].tolist()), count[most].tolist(), strict=True
        )
    ]
