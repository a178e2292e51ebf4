"""The most frequent confusions between species."""

from __future__ import annotations

import numpy as np

from benchmark_eval.results.schema import LISTED, Confusion
from benchmark_eval.scoring.split_data import SplitData


def confusions(data: SplitData) -> list[Confusion]:
    """The most frequent pairs of true and wrong species over true positives.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    list of Confusion
        At most ``LISTED`` pairs by descending count, then true, then predicted category id.

    Notes
    -----
    Ours. Over the true positives of the localisation matching.
    """
    categories = data.categories
    wrong = ~data.agreement.species
    k = len(categories.ids)
    pair, count = np.unique(
        data.gt_category[wrong] * k + data.pred_category[wrong], return_counts=True
    )
    most = np.argsort(-count, kind="stable")[:LISTED]
    n_matched_tp = np.bincount(data.gt_category, minlength=k)
    genus = categories.genus_code
    return [
        Confusion(
            gt_species=categories.names[true],
            pred_species=categories.names[predicted],
            n=int(n),
            n_matched_tp=int(n_matched_tp[true]),
            same_genus=bool(genus[true] == genus[predicted] and genus[true] >= 0),
        )
        for (true, predicted), n in zip(
            (divmod(p, k) for p in pair[most].tolist()), count[most].tolist(), strict=True
        )
    ]
