"""How often a wrong species has the correct genus or tribe by chance."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Codes, Floats, Ints


def correct_by_chance(given: Ints, name_code: Codes, taxon_code: Codes) -> Floats:
    """The chance that a misidentified specimen of each category gets the correct taxon.

    A wrong species is drawn in proportion to how often each species is given. With f_t the share
    of species t in all labels, a specimen of species s is expected in its taxon with probability
    (sum of f_t over the other species t of that taxon) / (1 - f_s).

    Parameters
    ----------
    given
        (species names,), how often each name is given.
    name_code
        (categories,), the name of each category: two ids can share a name.
    taxon_code
        (categories,), the genus or tribe of each category; -1 if it is not known.

    Returns
    -------
    Floats
        (categories,); 0 without a known taxon, and of a species that is the only label.
    """
    f = given / max(int(given.sum()), 1)
    f_own = f[name_code]
    # names, not ids: two ids of one name must not count its f twice
    _, first_of_name = np.unique(name_code, return_index=True)
    of_name = taxon_code[first_of_name]
    known = of_name >= 0
    total = np.bincount(
        of_name[known],
        weights=f[name_code[first_of_name]][known],
        minlength=int(taxon_code.max(initial=0)) + 1,
    )
    others = np.where(taxon_code >= 0, total[taxon_code] - f_own, 0.0)
    return np.divide(
        np.maximum(others, 0.0), 1 - f_own, out=np.zeros(len(name_code)), where=f_own < 1
    )
