"""Taxonomic agreement of true positives with their specimens."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools
from benchmark_eval.core.numbers import share
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import BandAgreement, Hierarchical
from benchmark_eval.scoring.split_data import Agreement, SplitData


def hierarchical(data: SplitData) -> Hierarchical:
    """Fraction of true positives with the correct species, genus, tribe and subfamily.

    Parameters
    ----------
    data : SplitData
        One model on one split.

    Returns
    -------
    Hierarchical
        Fractions are None without true positives. ``per_band`` holds the distance bands of the
        true species that have a true positive, nearest first.

    Notes
    -----
    Source: the benchmark's evaluator, v2.0.1. Over the true positives of the localisation
    matching. Cumulative: the correct species has the correct genus, tribe and subfamily too. A
    blank rank agrees with nothing; a blank band is no band (deviation 7 in docs/deviations.md).
    """
    n = len(data.local.true_positive)
    agree = data.agreement
    band = np.array([*data.categories.distance_band, ""])[data.gt_category] if n else np.array([""])
    bands = [b for b in sorted(set(band.tolist()), key=_nearest_first) if b]
    return Hierarchical(
        n_matched=n,
        correct_species=share(int(agree.species.sum()), n),
        correct_genus=share(int(agree.genus.sum()), n),
        correct_tribe=share(int(agree.tribe.sum()), n),
        correct_subfamily=share(int(agree.subfamily.sum()), n),
        per_band={b: _band(agree, band == b) for b in bands},
    )


def _nearest_first(band: str) -> tuple[int, str]:
    """Sort key of a distance band."""
    return (OOD_BANDS.index(band) if band in OOD_BANDS else len(OOD_BANDS), band)


def _band(agree: Agreement, rows: Bools) -> BandAgreement:
    """Agreement of the true positives ``rows``, at least one."""
    n = int(rows.sum())
    part = agree.subset(rows)
    return BandAgreement(
        n=n,
        correct_species=int(part.species.sum()) / n,
        correct_genus=int(part.genus.sum()) / n,
        correct_tribe=int(part.tribe.sum()) / n,
        correct_subfamily=int(part.subfamily.sum()) / n,
    )
