"""Are wrong names near misses, or no better than chance."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes
from benchmark_eval.core.numbers import mean, ratio, share
from benchmark_eval.results.schema import Chance
from benchmark_eval.scoring.split_data import SplitData


def chance(data: SplitData) -> Chance:
    """How often a wrong name is in the right genus or tribe, against chance (ours).

    Chance: the wrong name is drawn from the labels that the model gives to the split's hits,
    without the true one. With f the share of each label, a hit of true species s is expected
    in the right genus with (sum of f over the other species of its genus) / (1 - f_s).
    """
    categories = data.categories
    wrong = ~data.agreement.species
    true = data.gt_category[wrong]
    named = categories.name_code[data.pred_category]
    f = np.bincount(named, minlength=int(categories.name_code.max(initial=0)) + 1) / max(
        len(named), 1
    )
    f_true = f[categories.name_code[true]]

    def rank(code: Codes, right: Bools) -> tuple[float | None, float | None]:
        if not len(true):
            return None, None
        # names, not ids: two ids of one name must not count its label share twice
        _, one_a_name = np.unique(categories.name_code, return_index=True)
        of_rank = code[one_a_name]
        ranked = of_rank >= 0
        total = np.bincount(
            of_rank[ranked],
            weights=f[categories.name_code[one_a_name]][ranked],
            minlength=int(code.max(initial=0)) + 1,
        )
        others = np.where(code[true] >= 0, total[code[true]] - f_true, 0.0)
        expected = np.maximum(others, 0.0) / (1 - f_true)
        return share(int(right[wrong].sum()), len(true)), mean(expected)

    genus, genus_chance = rank(categories.genus_code, data.agreement.genus)
    tribe, tribe_chance = rank(categories.tribe_code, data.agreement.tribe)
    return Chance(
        n_misidentified=len(true),
        observed_genus=genus,
        expected_genus=genus_chance,
        enrichment_genus=ratio(genus, genus_chance),
        observed_tribe=tribe,
        expected_tribe=tribe_chance,
        enrichment_tribe=ratio(tribe, tribe_chance),
    )
