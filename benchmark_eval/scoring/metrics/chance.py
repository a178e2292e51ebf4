"""Misidentifications against chance: how often they have the correct genus or tribe."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes
from benchmark_eval.core.chance import correct_by_chance
from benchmark_eval.core.numbers import mean, ratio, share
from benchmark_eval.results.schema import Chance
from benchmark_eval.scoring.split_data import SplitData


def chance(data: SplitData) -> Chance:
    """How often a misidentification has the correct genus or tribe, and how often by chance.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    Chance
        Observed and expected fraction and their ratio (enrichment), for genus and tribe. None
        without misidentifications; enrichment is None if the expected fraction is 0.

    Notes
    -----
    Ours. Over true positives of the localisation matching with a wrong species. By chance, the
    wrong species is drawn from the species that the model predicts for the true positives of
    the split, excluding the true one. With f_t the fraction of true positives predicted as
    species t, a true positive of species s is expected in the correct genus with probability
    (sum of f_t over the other species t of the genus of s) / (1 - f_s)
    (``core.chance.correct_by_chance``); ``expected_genus`` is the mean over misidentified true
    positives.
    """
    categories = data.categories
    wrong = ~data.agreement.species
    true = data.gt_category[wrong]
    predicted = categories.name_code[data.pred_category]
    given = np.bincount(predicted, minlength=int(categories.name_code.max(initial=0)) + 1)

    def rank(code: Codes, correct: Bools) -> tuple[float | None, float | None]:
        """Observed and expected fraction at one rank."""
        if not len(true):
            return None, None
        expected = correct_by_chance(given, categories.name_code, code)[true]
        return share(int(correct[wrong].sum()), len(true)), mean(expected)

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
