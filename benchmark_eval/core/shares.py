"""Shares pooled over species of unequal size: their interval, and how far they can be trusted.

A pooled share (found specimens of all species / annotated specimens of all species) is the mean of
the species' shares weighted by their sizes. A few large species can decide it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.crossed import MeanSquare, combine
from benchmark_eval.core.intervals import (
    LEVEL,
    MIN_SEEDS,
    MIN_SPECIES,
    Covers,
    Interval,
    Reason,
    expit,
    logit,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING, pearson
from benchmark_eval.core.rng import stream

BOOTSTRAP_DRAWS = 2_000
MIN_IMAGES = 10
"""Fewest images of a stratum that permit an interval."""
MIN_EFFECTIVE_SPECIES = 10
MAX_SIZE_CORRELATION = 0.3
"""Largest |Spearman correlation| of share and size that permits a verdict on a pooled share."""


class PooledShare(msgspec.Struct, frozen=True, kw_only=True):
    """A share pooled over species and seeds, with everything that belongs beside it.

    ``bootstrap_low`` and ``bootstrap_high`` are the percentile interval of the species-cluster
    bootstrap of the dataset card, which covers too little and gives no verdict.
    ``leave_one_out_low`` and ``leave_one_out_high`` are the smallest and largest share when one
    species is left out. ``size_correlation`` is Spearman's correlation of a species' share with
    its number of specimens. Each is None where it is undefined.
    """

    interval: Interval
    n_specimens: int
    n_effective_species: float | None
    bootstrap_low: float | None
    bootstrap_high: float | None
    leave_one_out_low: float | None
    leave_one_out_high: float | None
    size_correlation: float | None


def pooled_share(found: Ints, annotated: Ints, n_images: int | None = None) -> PooledShare:
    """A share pooled over species and seeds.

    With h_j the fraction of all specimens that belong to species j and e_j its share minus the
    pooled one, the variance is sum h_j^2 e_j^2 / (1 - h_j) + (variance of the seeds' shares) / R.
    The interval is one on the logit scale. Its quantile is the mean of those with Bell and
    McCaffrey's degrees of freedom and with R - 1, weighted by the two terms.

    Parameters
    ----------
    found
        (species, seeds), specimens counted in the numerator.
    annotated
        (species,), the specimens of each species, or (species, seeds) if the denominator differs
        between seeds (such as the detected specimens). Species without any are ignored.
    n_images
        The images of the stratum; fewer than 10: no interval. None: not a stratum.

    Returns
    -------
    PooledShare
        Its interval covers species and retraining, of one seed species only. No interval for
        fewer than three species or 10 images, for a share of exactly 0 or 1, and if neither
        species nor seeds differ. No verdict for fewer than three seeds, fewer than 10 effective
        species (Kish), or if share and size correlate over species by more than 0.3.

    Notes
    -----
    Bell and McCaffrey (2002), "Bias reduction in standard errors for linear regression with
    multi-stage samples"; Cochran (1964) for the quantile, as in ``core.crossed.crossed_interval``;
    Kish (1965), "Survey Sampling". The second term counts the residual of
    species and seeds twice, which makes the interval conservative.
    """
    sizes = np.repeat(annotated[:, None], found.shape[1], 1) if annotated.ndim == 1 else annotated
    if sizes.shape != found.shape:
        raise ValueError(f"found has shape {found.shape}, annotated {annotated.shape}")
    seeds_used = sizes.sum(axis=0) > 0
    found, sizes = found[:, seeds_used], sizes[:, seeds_used]
    some = sizes.sum(axis=1) > 0
    found, sizes = found[some], sizes[some]
    f, n = found.sum(axis=1), sizes.sum(axis=1)
    if not len(n):
        nothing = Interval(mean=None, covers=Covers.SPECIES, n_species=0, n_seeds=0)
        return PooledShare(
            interval=without_interval(nothing, Reason.NO_VALUES),
            n_specimens=0,
            n_effective_species=None,
            bootstrap_low=None,
            bootstrap_high=None,
            leave_one_out_low=None,
            leave_one_out_high=None,
            size_correlation=None,
        )
    n_seeds, n_effective = found.shape[1], kish(n)
    correlation = spearman(f / n, n.astype(np.float64))
    by_seed = (found.sum(axis=0) / sizes.sum(axis=0)).tolist()
    interval = share_interval(f.tolist(), n.tolist(), by_seed, n_images)
    if interval.no_verdict is None:
        if n_effective < MIN_EFFECTIVE_SPECIES:
            interval = replace(interval, no_verdict=Reason.FEW_EFFECTIVE_SPECIES)
        elif correlation is not None and abs(correlation) > MAX_SIZE_CORRELATION:
            interval = replace(interval, no_verdict=Reason.SHARE_FOLLOWS_SIZE)
    # of a share of exactly 0 or 1, no draw differs
    bootstrap = None if interval.mean in (0.0, 1.0) else species_bootstrap(f, n)
    omitted = leave_one_species_out(f, n)
    return PooledShare(
        interval=interval,
        n_specimens=round(int(n.sum()) / n_seeds),
        n_effective_species=n_effective,
        bootstrap_low=bootstrap[0] if bootstrap else None,
        bootstrap_high=bootstrap[1] if bootstrap else None,
        leave_one_out_low=omitted[0] if omitted else None,
        leave_one_out_high=omitted[1] if omitted else None,
        size_correlation=correlation,
    )


def share_interval(
    found: list[int], sizes: list[int], by_seed: list[float], n_images: int | None
) -> Interval:
    """The interval of ``pooled_share`` from counts.

    Parameters
    ----------
    found, sizes
        Specimens in the numerator and denominator of each species, summed over seeds; no size is 0.
    by_seed
        The pooled share of each seed.
    n_images
        As for ``pooled_share``.

    Returns
    -------
    Interval
        As in ``pooled_share``, without the reasons that depend on the effective number of species.
    """
    total, r = sum(sizes), len(by_seed)
    share = sum(found) / total
    result = Interval(
        mean=share,
        covers=Covers.BOTH if r > 1 else Covers.SPECIES,
        n_species=len(sizes),
        n_seeds=r,
    )
    if n_images is not None and n_images < MIN_IMAGES:
        return without_interval(result, Reason.FEW_IMAGES)
    if len(sizes) < MIN_SPECIES:
        return without_interval(result, Reason.FEW_SPECIES)
    if share in (0.0, 1.0):
        return without_interval(result, Reason.AT_BOUND)
    weights = [size / total for size in sizes]
    errors = [f / size - share for f, size in zip(found, sizes, strict=True)]
    total_variance = MeanSquare(cluster_variance(weights, errors), bell_mccaffrey(weights))
    if r > 1:
        mean = math.fsum(by_seed) / r
        over_seeds = math.fsum((value - mean) ** 2 for value in by_seed) / (r - 1) / r
        total_variance = combine(total_variance, MeanSquare(over_seeds, r - 1), 0.0)
    if total_variance.value <= ROUNDING**2:
        return without_interval(result, Reason.NO_VARIATION)
    se, df = math.sqrt(total_variance.value), total_variance.df
    half = t_quantile(df) * se / (share * (1.0 - share))
    return replace(
        result,
        low=expit(logit(share) - half),
        high=expit(logit(share) + half),
        se=se,
        df=df,
        no_verdict=Reason.FEW_SEEDS if r < MIN_SEEDS else None,
    )


def cluster_variance(weights: list[float], errors: list[float]) -> float:
    """The bias-reduced variance of a weighted mean over independent species.

    sum h_j^2 e_j^2 / (1 - h_j), with ``weights`` h that sum to 1 and ``errors`` e, each species'
    value minus the mean. At least two species.
    """
    return math.fsum(
        (h * e) ** 2 / (1.0 - h) for h, e in zip(weights, errors, strict=True) if h < 1.0
    )


def bell_mccaffrey(weights: list[float]) -> float:
    """Degrees of freedom of ``cluster_variance``, at least 1.

    With G = diag(h / sqrt(1 - h)) (I - 1 h') and Q = G G', they are tr(Q)^2 / sum(Q^2), where the
    last sum runs over all entries. n equal weights give n - 1.

    Notes
    -----
    Bell and McCaffrey (2002). Q_ij = a_i a_j (1[i = j] - h_i - h_j + q) with a = h / sqrt(1 - h)
    and q = sum h^2.

    Examples
    --------
    >>> round(bell_mccaffrey([0.25, 0.25, 0.25, 0.25]), 12)
    3.0
    """
    return _bell_mccaffrey(tuple(weights))


@lru_cache(maxsize=4096)  # the conditions of a sweep share their weights
def _bell_mccaffrey(weights: tuple[float, ...]) -> float:
    q = math.fsum(h * h for h in weights)
    h = np.array([weight for weight in weights if weight < 1.0])
    b = h * h / (1.0 - h)
    # 1 - 2 h + q, without cancellation where one species holds nearly all specimens
    diagonal = (1.0 - h) ** 2 + (q - h * h)
    square = b[:, None] * b * (q - h[:, None] - h) ** 2
    np.fill_diagonal(square, (b * diagonal) ** 2)
    trace, total = math.fsum((b * diagonal).tolist()), math.fsum(square.ravel().tolist())
    return max(1.0, trace * trace / total) if total > 0 else 1.0


def kish(sizes: Ints) -> float:
    """Kish's effective number of species, (sum N)^2 / sum N^2, from sizes (species,).

    Examples
    --------
    >>> import numpy as np
    >>> round(kish(np.array([84, 8, 8])), 2)
    1.39
    """
    values: list[int] = sizes.tolist()
    return sum(values) ** 2 / sum(size * size for size in values)


def leave_one_species_out(found: Ints, sizes: Ints) -> tuple[float, float] | None:
    """The smallest and largest pooled share when one species is left out.

    ``found`` and ``sizes`` are counts (species,), each size positive. None for one species.
    """
    if len(sizes) < 2:
        return None
    shares = ((found.sum() - found) / (sizes.sum() - sizes)).tolist()
    return min(shares), max(shares)


@lru_cache(maxsize=256)
def species_draws(n_species: int, sample: str = "species-cluster bootstrap") -> Floats:
    """How often each bootstrap draw has each species, (draws, species).

    The same for every table of this many species. ``sample`` names independent draws. Products
    with counts are sums of whole numbers: exact, whatever the order of the additions.
    """
    generator = stream(0, sample, str(n_species))
    chosen = generator.integers(0, n_species, (BOOTSTRAP_DRAWS, n_species))
    key = chosen + n_species * np.arange(BOOTSTRAP_DRAWS)[:, None]
    counts = np.bincount(key.ravel(), minlength=BOOTSTRAP_DRAWS * n_species)
    return counts.reshape(BOOTSTRAP_DRAWS, n_species).astype(np.float64)


def species_bootstrap(found: Ints, sizes: Ints) -> tuple[float, float] | None:
    """The percentile interval of the dataset card's species-cluster bootstrap, 2,000 draws.

    ``found`` and ``sizes`` are counts (species,), each size positive. Species are drawn with
    replacement; linear quantiles. None for fewer than three species. It covers less
    than 0.9 (see docs/statistics.md) and is shown for comparison only.
    """
    if len(sizes) < MIN_SPECIES:
        return None
    draws = species_draws(len(sizes))
    return percentile_interval((draws @ found) / _drawn_sizes(tuple(sizes.tolist())))


@lru_cache(maxsize=256)  # the conditions of a sweep share their sizes
def _drawn_sizes(sizes: tuple[int, ...]) -> Floats:
    """The specimens of each bootstrap draw, (draws,)."""
    drawn: Floats = species_draws(len(sizes)) @ np.array(sizes, np.float64)
    return drawn


def percentile_interval(values: Floats) -> tuple[float, float]:
    """The interval between the quantiles of bootstrap values, linear between them."""
    n, tail = len(values), (1 - LEVEL) / 2
    places = [q * (n - 1) for q in (tail, 1 - tail)]
    below = [min(int(place), max(0, n - 2)) for place in places]
    ends = sorted({at for first in below for at in (first, min(first + 1, n - 1))})
    ordered = np.partition(values, ends)

    def quantile(place: float, first: int) -> float:
        low, high = float(ordered[first]), float(ordered[min(first + 1, n - 1)])
        return low + (place - first) * (high - low)

    return quantile(places[0], below[0]), quantile(places[1], below[1])


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's correlation, mid-ranks on ties; None for fewer than three points or a constant.

    Examples
    --------
    >>> import numpy as np
    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0])), 12)
    1.0
    """
    return pearson(_mid_ranks(x), _mid_ranks(y))


def _mid_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of their ranks."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    # the first place of each group of equal values, and the end
    first = np.flatnonzero(np.r_[True, ascending[1:] != ascending[:-1], True])
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((first[:-1] + 1 + first[1:]) / 2, np.diff(first))
    return ranks
