"""The candidates that cannot be told from the best one."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import Reason
from benchmark_eval.sweep.tie_groups import tie_group

NAN = math.nan


def candidates(shifts, n=30, r=3, seed=0, noise=0.03):
    rng = np.random.default_rng(seed)
    ability = rng.uniform(0.2, 0.7, (1, n, 1))
    cells = rng.normal(0, noise, (len(shifts), n, r))
    return ability + cells + np.array(shifts)[:, None, None]


def test_a_worse_candidate_leaves_the_group():
    found = tie_group(candidates([0.0, 0.1, 0.1005, -0.2]))
    assert found.tied == {1, 2}
    assert set(found.order[:2]) == {1, 2}
    assert found.order[2:] == (0, 3)
    assert (found.n_species, found.n_seeds, found.reason) == (30, 3, None)


@pytest.mark.parametrize("shift", [0.0, 0.005, 0.01, 0.02, 0.05])
def test_two_candidates_are_tied_if_their_interval_includes_0(shift):
    cells = candidates([0.0, shift], seed=4)
    interval = crossed_interval(crossed_table(cells[0], cells[1]), None)
    tied = interval.low <= 0 <= interval.high
    assert (len(tie_group(cells).tied) == 2) == tied


def test_the_common_variance_equals_that_of_least_squares():
    cells = candidates([0.0, 0.0, 0.0], n=6, r=4, noise=0.2)
    k, n, r = cells.shape
    c, s, t = (np.repeat(np.eye(size), 1, 0) for size in (k, n, r))

    def design(*parts):
        return np.hstack(parts)

    ones = [np.ones((size, 1)) for size in (k, n, r)]

    def kron(a, b, d):
        return np.kron(np.kron(a, b), d)

    base = [kron(c, ones[1], ones[2]), kron(ones[0], s, t)]
    by_species, by_seed = kron(c, s, ones[2]), kron(c, ones[1], t)

    def rest(*parts):
        x = design(*parts)
        y = cells.ravel()
        return ((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).sum()

    full = rest(*base, by_species, by_seed)
    df_species, df_seed = (k - 1) * (n - 1), (k - 1) * (r - 1)
    ms_species = (rest(*base, by_seed) - full) / df_species
    ms_seed = (rest(*base, by_species) - full) / df_seed
    ms_rest = full / ((k - 1) * (n - 1) * (r - 1))
    variance = max(ms_species + ms_seed - ms_rest, ms_species, ms_seed)
    t_value = (
        ms_species * stats.t.ppf(0.975, df_species) + ms_seed * stats.t.ppf(0.975, df_seed)
    ) / (ms_species + ms_seed)
    found = tie_group(cells)
    assert stats.t.ppf(0.975, found.df) == pytest.approx(t_value)
    quantile = stats.studentized_range.ppf(0.95, k, found.df)
    assert found.quantile == pytest.approx(quantile, rel=1e-4)
    # a candidate whose distance is just beyond the critical one leaves, just below stays
    own = crossed_interval(crossed_table(cells[0], cells[1]), None).se
    critical = quantile / math.sqrt(2) * max(math.sqrt(2 * variance / (n * r)), own)
    moved = cells.copy()
    moved[0] += 5.0
    moved[1] += 5.0 - (cells[1].mean() - cells[0].mean())
    for factor, tied in ((0.999, {0, 1}), (1.001, {0})):
        again = moved.copy()
        again[1] -= factor * critical
        assert tie_group(again).tied == tied


def test_the_order_of_candidates_does_not_matter():
    cells = candidates([0.0, 0.02, 0.1, 0.09])
    found = tie_group(cells)
    turned = tie_group(cells[::-1])
    assert {3 - i for i in turned.tied} == set(found.tied)
    assert found.means == pytest.approx(turned.means[::-1])


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (np.zeros((0, 4, 3)), Reason.NO_VALUES),
        (np.full((2, 4, 3), NAN), Reason.NO_VALUES),
        (candidates([0.0, 0.5], n=2), Reason.FEW_SPECIES),
        (candidates([0.0, 0.5], r=2), Reason.FEW_SEEDS),
        (candidates([0.0, 0.5], r=1), Reason.FEW_SEEDS),
        (np.zeros((3, 5, 3)), Reason.NO_VARIATION),
        (np.ones((3, 5, 3)), Reason.NO_VARIATION),
    ],
)
def test_without_a_test_everyone_is_tied_and_the_reason_says_why(cells, reason):
    found = tie_group(cells)
    assert found.reason == reason
    assert found.tied == set(range(len(cells)))


def test_one_candidate_is_its_own_group():
    found = tie_group(candidates([0.3]))
    assert (found.tied, found.order, found.reason) == ({0}, (0,), None)


def test_species_that_one_candidate_lacks_are_left_out():
    cells = candidates([0.0, 0.3], n=10)
    cells[0, 0, 1] = NAN
    found = tie_group(cells)
    assert (found.n_left_out, found.reason, found.tied) == (1, None, {1})
    cells[0, 1, 1] = NAN
    assert tie_group(cells).reason == Reason.SPECIES_LEFT_OUT
