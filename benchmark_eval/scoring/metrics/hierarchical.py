"""How close a hit's name is on the taxonomic tree."""

from __future__ import annotations

import numpy as np

from benchmark_eval.core.arrays import Bools
from benchmark_eval.core.numbers import share
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.schema import BandAgreement, Hierarchical
from benchmark_eval.scoring.split_data import Agreement, SplitData


def hierarchical(data: SplitData) -> Hierarchical:
    """Share of hits right at species, genus, tribe and subfamily, and by the true species' band.

    Cumulative, from the localisation matching (benchmark evaluator). Bands without a hit are
    absent; a blank band is no band.
    """
    n = len(data.local.true_positive)
    agree = data.agreement
    band = np.array([*data.categories.distance_band, ""])[data.gt_category] if n else np.array([""])
    found = [b for b in sorted(set(band.tolist()), key=_nearest_first) if b]
    return Hierarchical(
        n_matched=n,
        correct_species=share(int(agree.species.sum()), n),
        correct_genus=share(int(agree.genus.sum()), n),
        correct_tribe=share(int(agree.tribe.sum()), n),
        correct_subfamily=share(int(agree.subfamily.sum()), n),
        per_band={b: _band(agree, band == b) for b in found},
    )


def _nearest_first(band: str) -> tuple[int, str]:
    return (OOD_BANDS.index(band) if band in OOD_BANDS else len(OOD_BANDS), band)


def _band(agree: Agreement, rows: Bools) -> BandAgreement:
    n = int(rows.sum())
    part = agree.subset(rows)
    return BandAgreement(
        n=n,
        correct_species=int(part.species.sum()) / n,
        correct_genus=int(part.genus.sum()) / n,
        correct_tribe=int(part.tribe.sum()) / n,
        correct_subfamily=int(part.subfamily.sum()) / n,
    )
