"""Near against far unseen species at equal density."""

import numpy as np
import pytest
from scipy import stats

from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.core.shares import cluster_variance, pooled_share
from benchmark_eval.sweep.band_gaps import BandCounts, band_gap


def band(found, annotated, n_images=None):
    annotated = np.array(annotated)
    return BandCounts(np.array(found), annotated, n_images or [50] * len(annotated))


def random_band(n, seed, r=3, level=0.7, sizes=40):
    rng = np.random.default_rng(seed)
    annotated = np.full((2, n), sizes)
    p = np.clip(rng.normal(level, 0.1, n), 0, 1)[None, :] - np.array([[0.0], [0.2]])
    return band(rng.binomial(sizes, p[..., None], (2, n, r)), annotated)


def test_one_stratum_and_equal_sizes_is_the_welch_test_plus_seeds():
    near = band([[[9], [7], [8], [5]]], [[10, 10, 10, 10]])
    far = band([[[4], [6], [1]]], [[10, 10, 10]])
    a, b = np.array([0.9, 0.7, 0.8, 0.5]), np.array([0.4, 0.6, 0.1])
    for weighting in ("species", "specimens"):
        found = band_gap(near, far, weighting).interval
        welch = stats.ttest_ind(a, b, equal_var=False)
        assert found.mean == pytest.approx(a.mean() - b.mean())
        assert found.mean / found.se == pytest.approx(welch.statistic)
        assert found.df == pytest.approx(welch.df)
        assert (found.covers, found.no_verdict) == (Covers.SPECIES, Reason.FEW_SEEDS)


def test_standardisation_by_hand():
    # near: 30 specimens on open images, 10 on dense ones: weights 0.75 and 0.25
    near = band([[[8], [9], [7]], [[1], [2], [3]]], [[10, 10, 10], [2, 4, 4]])
    # far is mostly on dense images; unstandardised, it looks worse than it is
    far = band([[[2], [1], [1]], [[4], [5], [6]]], [[2, 2, 2], [10, 10, 10]])
    found = band_gap(near, far, "specimens")
    assert found.near == pytest.approx(0.75 * 24 / 30 + 0.25 * 6 / 10)
    assert found.far == pytest.approx(0.75 * 4 / 6 + 0.25 * 15 / 30)
    assert (found.strata, found.coverage) == ((0, 1), 1.0)
    by_species = band_gap(near, far, "species")
    assert by_species.near == pytest.approx(0.75 * 0.8 + 0.25 * (0.5 + 0.5 + 0.75) / 3)
    # each of three species has a third of the weight: deviations from the mean over 3 x 2
    values = np.array([0.8, 0.9, 0.7]) * 0.75 + np.array([0.5, 0.5, 0.75]) * 0.25
    far_values = np.array([1.0, 0.5, 0.5]) * 0.75 + np.array([0.4, 0.5, 0.6]) * 0.25
    expected = sum(v.var(ddof=1) / 3 for v in (values, far_values))
    assert by_species.interval.se**2 == pytest.approx(expected)


def test_a_band_that_is_only_denser_has_no_gap_within_strata():
    rng = np.random.default_rng(5)
    p = np.array([0.9, 0.4])[:, None]
    annotated = [np.repeat([[n], [m]], 12, axis=1) for n, m in ((60, 15), (15, 60))]
    sides = [band(rng.binomial(a[..., None], p[..., None], (2, 12, 3)), a) for a in annotated]
    found = band_gap(*sides, "specimens")
    assert found.interval.low < 0 < found.interval.high
    pooled = [
        pooled_share(side.found.sum(axis=0), side.annotated.sum(axis=0)).interval.mean
        for side in sides
    ]
    # pooled over density, the second band seems much worse
    assert pooled[0] - pooled[1] > 0.2


def test_the_seeds_add_the_variance_of_their_differences():
    near, far = random_band(12, 1), random_band(12, 2)
    found = band_gap(near, far)
    by_seed = [
        np.mean([(side.found[g] / side.annotated[g][:, None]).mean(axis=0) for g in (0, 1)], axis=0)
        for side in (near, far)
    ]
    species = 0.0
    for side in (near, far):
        values = (side.found / side.annotated[..., None]).mean(axis=(0, 2))
        species += cluster_variance([1 / 12] * 12, list(values - values.mean()))
    seeds = (by_seed[0] - by_seed[1]).var(ddof=1) / 3
    assert found.interval.se**2 == pytest.approx(species + seeds)
    assert (found.interval.covers, found.interval.no_verdict) == (Covers.BOTH, None)
    assert found.interval.n_species == 24


def test_strata_with_few_images_or_one_species_are_not_used():
    annotated = [[10, 10, 10], [10, 10, 10], [3, 0, 0]]
    near = band(np.ones((3, 3, 2), int), annotated, [50, 9, 50])
    far = band(np.ones((3, 3, 2), int), [[10, 10, 10]] * 3)
    found = band_gap(near, far)
    assert found.strata == (0,)
    # 30 of 63 near specimens
    assert found.coverage == pytest.approx(30 / 63)
    assert (found.near, found.far, found.interval.mean) == (None, None, None)
    assert found.interval.no_interval == Reason.LOW_STRATA_COVERAGE


@pytest.mark.parametrize(
    ("near", "far", "reason"),
    [
        (band(np.zeros((1, 3, 3), int), [[0, 0, 0]]), random_band(5, 0), Reason.NO_VALUES),
        (band(np.ones((1, 3, 0), int), [[5, 5, 5]]), random_band(5, 0), Reason.NO_VALUES),
        (
            band(np.ones((1, 2, 3), int), [[5, 4]]),
            band(np.ones((1, 4, 3), int), [[5] * 4]),
            Reason.FEW_SPECIES,
        ),
        (
            band(np.full((1, 4, 3), 5), [[5] * 4]),
            band(np.zeros((1, 4, 3), int), [[5] * 4]),
            Reason.NO_VARIATION,
        ),
    ],
)
def test_without_an_interval_the_reason_says_why(near, far, reason):
    found = band_gap(near, far).interval
    assert (found.low, found.no_interval, found.no_verdict) == (None, reason, reason)


def test_specimens_of_few_effective_species_permit_no_verdict():
    near, far = random_band(12, 1), random_band(8, 2)
    assert band_gap(near, far, "specimens").interval.no_verdict == Reason.FEW_EFFECTIVE_SPECIES
    assert band_gap(near, far, "species").interval.no_verdict is None


def test_a_share_that_follows_the_size_permits_no_verdict():
    near = random_band(12, 1)
    sizes = np.array([np.arange(30, 42)] * 2)
    far = band(np.repeat((sizes - 25)[..., None], 3, axis=2), sizes)
    assert band_gap(near, far, "specimens").interval.no_verdict == Reason.SHARE_FOLLOWS_SIZE


def test_the_quantile_weighs_species_and_seeds():
    near, far = random_band(12, 1), random_band(8, 2)
    found = band_gap(near, far).interval
    sides = []
    for side in (near, far):
        values = (side.found / side.annotated[..., None]).mean(axis=(0, 2))
        sides.append((values.var(ddof=1) / len(values), len(values) - 1))
    species = sum(v for v, _ in sides)
    welch = species**2 / sum(v**2 / df for v, df in sides)
    seeds = found.se**2 - species
    expected = (species * stats.t.ppf(0.975, welch) + seeds * stats.t.ppf(0.975, 2)) / found.se**2
    assert stats.t.ppf(0.975, found.df) == pytest.approx(expected)
