"""Near against far unseen species, at equal density of their images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.crossed import MeanSquare, combine
from benchmark_eval.core.intervals import (
    DIFFERENCE,
    MIN_SEEDS,
    MIN_SPECIES,
    Covers,
    Interval,
    Reason,
    cut,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING
from benchmark_eval.core.shares import (
    MAX_SIZE_CORRELATION,
    MIN_EFFECTIVE_SPECIES,
    MIN_IMAGES,
    bell_mccaffrey,
    cluster_variance,
    kish,
    spearman,
)

MIN_COVERAGE = 0.8
"""Smallest fraction of near specimens in the shared strata for which a gap is shown."""
MIN_STRATUM_SPECIES = 2
"""Fewest species of each band in a stratum: the variance between species needs two."""


@dataclass(frozen=True, slots=True)
class BandCounts:
    """The specimens of one band by density stratum.

    ``found`` is (strata, species, seeds), ``annotated`` (strata, species), ``n_images`` (strata,).
    """

    found: Ints
    annotated: Ints
    n_images: Sequence[int]


@dataclass(frozen=True, slots=True)
class BandGap:
    """The difference near - far of a share, standardised to the density of near.

    ``strata`` are the rows of the strata used, ``coverage`` is the fraction of near specimens in
    them. ``near`` and ``far`` are the standardised shares; None if nothing is shown.
    """

    interval: Interval
    near: float | None
    far: float | None
    strata: tuple[int, ...]
    coverage: float | None


@dataclass(frozen=True, slots=True)
class _Side:
    """One band: its share, that of each seed, the variance between species and its df."""

    share: float
    by_seed: list[float]
    variance: float
    df: float
    n_species: int
    doubt: Reason | None


def band_gap(
    near: BandCounts, far: BandCounts, weighting: Literal["species", "specimens"] = "species"
) -> BandGap:
    """The difference of a share between two bands within density strata.

    A band whose images are denser has a lower recall whatever its distance. Both bands are
    therefore averaged over the same strata, with the fractions of near's specimens as weights.

    Parameters
    ----------
    near, far
        The counts of both bands, with the same strata and seeds.
    weighting
        Within a stratum, ``"species"`` averages the species' shares and ``"specimens"`` pools
        their specimens.

    Returns
    -------
    BandGap
        Of the strata with at least 10 images and two species in both bands. The interval covers
        species and retraining, of one seed species only. Nothing is shown if these strata hold
        less than 80 % of near's specimens. No interval for fewer than three species in a band, or
        without variation. No verdict for fewer than three seeds; pooled over specimens, none
        either for fewer than 10 effective species in a band, or if share and size correlate.

    Notes
    -----
    Direct standardisation. The bands' species are independent, so that their variances add. Each
    is ``core.shares.cluster_variance`` of the species' weights summed over the strata; the seeds
    add the variance of their differences over R. The species' degrees of freedom are Welch's; the
    quantile is Cochran's, as in ``core.crossed.crossed_interval``.
    """
    strata = [
        g
        for g in range(len(near.n_images))
        if all(
            band.n_images[g] >= MIN_IMAGES
            and int((band.annotated[g] > 0).sum()) >= MIN_STRATUM_SPECIES
            for band in (near, far)
        )
    ]
    total = int(near.annotated.sum())
    sizes = [int(near.annotated[g].sum()) for g in strata]
    coverage = sum(sizes) / total if total else None
    r = near.found.shape[2]
    nothing = Interval(
        mean=None, covers=Covers.BOTH if r > 1 else Covers.SPECIES, n_species=0, n_seeds=r
    )
    if coverage is None or not r:
        return BandGap(without_interval(nothing, Reason.NO_VALUES), None, None, (), None)
    if coverage < MIN_COVERAGE:
        nothing = without_interval(nothing, Reason.LOW_STRATA_COVERAGE)
        return BandGap(nothing, None, None, tuple(strata), coverage)
    weights = [size / sum(sizes) for size in sizes]
    a, b = (_side(band, strata, weights, weighting) for band in (near, far))
    return BandGap(_interval(a, b, r), a.share, b.share, tuple(strata), coverage)


def _interval(near: _Side, far: _Side, r: int) -> Interval:
    found = Interval(
        mean=near.share - far.share,
        covers=Covers.BOTH if r > 1 else Covers.SPECIES,
        n_species=near.n_species + far.n_species,
        n_seeds=r,
    )
    if min(near.n_species, far.n_species) < MIN_SPECIES:
        return without_interval(found, Reason.FEW_SPECIES)
    sides = (near, far)
    over_species = math.fsum(side.variance for side in sides)
    below = math.fsum(side.variance**2 / side.df for side in sides)
    total = MeanSquare(over_species, over_species**2 / below if below > 0 else 1.0)
    if r > 1:
        by_seed = [x - y for x, y in zip(near.by_seed, far.by_seed, strict=True)]
        mean = math.fsum(by_seed) / r
        spread = math.fsum((value - mean) ** 2 for value in by_seed) / (r - 1) / r
        total = combine(total, MeanSquare(spread, r - 1), 0.0)
    if total.value <= ROUNDING**2:
        return without_interval(found, Reason.NO_VARIATION)
    se, df = math.sqrt(total.value), total.df
    half = t_quantile(df) * se
    return replace(
        found,
        low=cut(near.share - far.share - half, DIFFERENCE),
        high=cut(near.share - far.share + half, DIFFERENCE),
        se=se,
        df=df,
        no_verdict=Reason.FEW_SEEDS if r < MIN_SEEDS else near.doubt or far.doubt,
    )


def _side(
    band: BandCounts, strata: Sequence[int], weights: Sequence[float], weighting: str
) -> _Side:
    present: Bools = band.annotated[list(strata)].sum(axis=0) > 0
    n, r = int(present.sum()), band.found.shape[2]
    # each species' weight in the band's share, and its weighted deviation from it
    total, deviation = [0.0] * n, [0.0] * n
    shares, by_seed = [], [[] for _ in range(r)]  # type: list[float], list[list[float]]
    for g, weight in zip(strata, weights, strict=True):
        sizes = band.annotated[g][present].tolist()
        found = band.found[g][present].tolist()
        whole = sum(sizes) if weighting == "specimens" else sum(size > 0 for size in sizes)
        h = [(size if weighting == "specimens" else 1) / whole if size else 0.0 for size in sizes]
        values = [
            math.fsum(row) / (r * size) if size else 0.0
            for row, size in zip(found, sizes, strict=True)
        ]
        share = math.fsum(x * y for x, y in zip(h, values, strict=True))
        shares.append(weight * share)
        for s in range(r):
            of_seed = [
                each * row[s] / size if size else 0.0
                for each, row, size in zip(h, found, sizes, strict=True)
            ]
            by_seed[s].append(weight * math.fsum(of_seed))
        for j in range(n):
            total[j] += weight * h[j]
            deviation[j] += weight * h[j] * (values[j] - share)
    share = math.fsum(shares)
    errors = [d / w if w else 0.0 for d, w in zip(deviation, total, strict=True)]
    doubt = _doubt(band, strata, present) if weighting == "specimens" else None
    return _Side(
        share,
        [math.fsum(parts) for parts in by_seed],
        cluster_variance(total, errors),
        bell_mccaffrey(total),
        n,
        doubt,
    )


def _doubt(band: BandCounts, strata: Sequence[int], present: Bools) -> Reason | None:
    """Why a share pooled over the specimens of a band gives no verdict."""
    sizes = band.annotated[list(strata)].sum(axis=0)[present]
    if kish(sizes) < MIN_EFFECTIVE_SPECIES:
        return Reason.FEW_EFFECTIVE_SPECIES
    found = band.found[list(strata)].sum(axis=(0, 2))[present]
    shares: Floats = found / sizes
    correlation = spearman(shares, sizes.astype(np.float64))
    if correlation is not None and abs(correlation) > MAX_SIZE_CORRELATION:
        return Reason.SHARE_FOLLOWS_SIZE
    return None
