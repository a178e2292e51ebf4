"""Shares pooled over species of unequal size."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.core.rng import stream
from benchmark_eval.core.shares import (
    bell_mccaffrey,
    cluster_variance,
    kish,
    leave_one_species_out,
    pooled_share,
    spearman,
    species_bootstrap,
)


def column(*values):
    return np.array(values)[:, None]


def test_equal_sizes_by_hand():
    # 9, 3 and 6 of 10: r = 0.6, e = 0.3, -0.3, 0; v = 0.18 / (3 x 2) = 0.03; df = 2
    found = pooled_share(column(9, 3, 6), np.array([10, 10, 10]))
    half = 4.3026527 * math.sqrt(0.03) / (0.6 * 0.4)
    ends = [1 / (1 + math.exp(-(math.log(1.5) + sign * half))) for sign in (-1, 1)]
    assert [found.interval.low, found.interval.high] == pytest.approx(ends, abs=1e-7)
    assert found.interval.se == pytest.approx(math.sqrt(0.03))
    assert found.interval.df == pytest.approx(2.0)
    assert (found.interval.covers, found.n_specimens) == (Covers.SPECIES, 30)
    assert found.n_effective_species == pytest.approx(3.0)


def test_unequal_sizes_and_two_seeds_by_hand():
    # sizes 20, 10, 10: h = 0.5, 0.25, 0.25; found 30 of 40, 10 of 20, 4 of 20 over both seeds
    # r = 44 / 80 = 0.55; e = 0.2, -0.05, -0.35
    # 0.25 x 0.04 / 0.5 + 0.0625 x 0.0025 / 0.75 + 0.0625 x 0.1225 / 0.75 = 0.0304167
    # seeds: 24 / 40 and 20 / 40, variance 0.005, over R = 2: 0.0025
    found = pooled_share(np.array([[16, 14], [6, 4], [2, 2]]), np.array([20, 10, 10]))
    assert found.interval.mean == pytest.approx(0.55)
    assert found.interval.se**2 == pytest.approx(0.0304167 + 0.0025, abs=1e-7)
    assert found.n_effective_species == pytest.approx(40**2 / 600)
    # without the first: 14 / 40; without the last: 40 / 60
    assert found.leave_one_out_low == pytest.approx(14 / 40)
    assert found.leave_one_out_high == pytest.approx(40 / 60)
    assert (found.interval.covers, found.interval.no_verdict) == (Covers.BOTH, Reason.FEW_SEEDS)


@given(st.lists(st.integers(1, 500), min_size=2, max_size=20))
def test_degrees_of_freedom_equal_those_of_the_matrix(sizes):
    h = np.array(sizes) / sum(sizes)
    g = np.diag(h / np.sqrt(1 - h)) @ (np.eye(len(h)) - np.outer(np.ones(len(h)), h))
    q = g @ g.T
    expected = max(1.0, np.trace(q) ** 2 / (q**2).sum())
    assert bell_mccaffrey(h.tolist()) == pytest.approx(expected, rel=1e-6)


def test_equal_weights_are_student_t():
    values = [0.2, 0.5, 0.9, 0.4]
    errors = [value - 0.5 for value in values]
    assert cluster_variance([0.25] * 4, errors) == pytest.approx(stats.sem(values) ** 2)
    assert bell_mccaffrey([0.25] * 4) == pytest.approx(3.0)
    assert bell_mccaffrey([1.0]) == 1.0


def test_many_even_species_and_seeds_permit_a_verdict():
    rng = np.random.default_rng(2)
    sizes = np.full(20, 50)
    found = pooled_share(rng.binomial(50, rng.uniform(0.4, 0.8, (20, 1)), (20, 3)), sizes)
    assert found.interval.no_verdict is None
    assert found.n_effective_species == pytest.approx(20.0)
    assert found.size_correlation is None  # all species have the same size


def test_few_effective_species_permit_no_verdict():
    # two species hold most specimens, like those of the far band
    sizes = np.array([400, 440, 30, 30, 25, 25, 25, 25])
    found = pooled_share(np.stack([sizes // 2, sizes // 3, sizes // 4], axis=1), sizes)
    assert found.n_effective_species == pytest.approx(1000**2 / (sizes**2).sum())
    assert found.interval.low is not None
    assert found.interval.no_verdict == Reason.FEW_EFFECTIVE_SPECIES


def test_a_share_that_follows_the_size_permits_no_verdict():
    sizes = np.arange(40, 60)
    found = np.stack([sizes - 30, sizes - 29, sizes - 31], axis=1)
    share = pooled_share(found, sizes)
    assert share.size_correlation == pytest.approx(1.0)
    assert share.interval.no_verdict == Reason.SHARE_FOLLOWS_SIZE


@pytest.mark.parametrize(
    ("found", "sizes", "images", "reason"),
    [
        (np.zeros((0, 3), int), np.zeros(0, int), None, Reason.NO_VALUES),
        (np.zeros((3, 0), int), np.array([5, 5, 5]), None, Reason.NO_VALUES),
        (column(0, 0), np.array([0, 0]), None, Reason.NO_VALUES),
        (column(1, 2), np.array([5, 5]), None, Reason.FEW_SPECIES),
        (column(3), np.array([5]), None, Reason.FEW_SPECIES),
        (column(0, 0, 0), np.array([5, 5, 5]), None, Reason.AT_BOUND),
        (column(5, 5, 5), np.array([5, 5, 5]), None, Reason.AT_BOUND),
        (column(2, 2, 2), np.array([5, 5, 5]), None, Reason.NO_VARIATION),
        (column(1, 2, 3), np.array([5, 5, 5]), 9, Reason.FEW_IMAGES),
    ],
)
def test_without_an_interval_the_reason_says_why(found, sizes, images, reason):
    share = pooled_share(found, sizes, images).interval
    assert (share.low, share.high) == (None, None)
    assert share.no_interval == share.no_verdict == reason


def test_ten_images_are_enough():
    assert pooled_share(column(1, 2, 3), np.array([5, 5, 5]), 10).interval.low is not None


def test_species_without_specimens_are_ignored():
    with_empty = pooled_share(column(9, 0, 3, 6), np.array([10, 0, 10, 10]))
    assert with_empty == pooled_share(column(9, 3, 6), np.array([10, 10, 10]))


def test_a_denominator_may_differ_between_seeds():
    found, detected = np.array([[4, 6], [2, 3], [1, 0]]), np.array([[8, 8], [4, 3], [1, 0]])
    share = pooled_share(found, detected).interval
    assert share.mean == pytest.approx(16 / 24)
    by_seed = np.array([7 / 13, 9 / 11])
    h, e = np.array([16, 7, 1]) / 24, np.array([10 / 16, 5 / 7, 1.0]) - 16 / 24
    between = (h**2 * e**2 / (1 - h)).sum()
    assert share.se**2 == pytest.approx(between + by_seed.var(ddof=1) / 2)
    with pytest.raises(ValueError, match="shape"):
        pooled_share(found, detected[:2])


def test_the_bootstrap_equals_a_plain_one():
    found, sizes = np.array([5, 1, 30, 8]), np.array([10, 4, 40, 9])
    generator = stream(0, "species-cluster bootstrap", "4")
    shares = []
    for _ in range(2_000):
        chosen = generator.integers(0, 4, 4)
        shares.append(sum(found[i] for i in chosen) / sum(sizes[i] for i in chosen))
    ends = species_bootstrap(found, sizes)
    assert ends == pytest.approx(tuple(np.percentile(shares, [2.5, 97.5])), abs=1e-12)
    assert species_bootstrap(found, sizes) == ends
    assert species_bootstrap(found[:2], sizes[:2]) is None


def test_leaving_out_the_only_species_is_undefined():
    assert leave_one_species_out(np.array([3]), np.array([5])) is None
    assert leave_one_species_out(np.array([3, 1]), np.array([5, 4])) == (0.25, 0.6)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_spearman_equals_that_of_scipy(pairs):
    x, y = (np.array(side, float) for side in zip(*pairs, strict=True))
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert spearman(x[:2], y[:2]) is None


def test_effective_species():
    # the far band of the benchmark: two of eight species hold 84 % of the specimens
    assert kish(np.array([42, 42, 3, 3, 3, 3, 2, 2])) == pytest.approx(10_000 / 3572)
    assert kish(np.array([7, 7, 7])) == pytest.approx(3.0)


def test_the_quantile_weighs_species_and_seeds():
    # sizes 10; seeds differ by much, species by little: nearly t with one degree of freedom
    found = pooled_share(np.array([[2, 8], [3, 8], [2, 9]]), np.array([10, 10, 10])).interval
    shares = np.array([0.5, 0.55, 0.55])
    species, seeds = shares.var(ddof=1) / 3, np.array([7 / 30, 25 / 30]).var(ddof=1) / 2
    quantile = (species * stats.t.ppf(0.975, 2) + seeds * stats.t.ppf(0.975, 1)) / (species + seeds)
    assert stats.t.ppf(0.975, found.df) == pytest.approx(quantile)
    assert found.se**2 == pytest.approx(species + seeds)
