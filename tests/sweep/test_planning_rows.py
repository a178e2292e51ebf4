"""budget_planning.csv against costs inverted by hand."""

import csv
import math

import numpy as np
import pytest
from scipy.stats import t
from support.factories import BUDGETS
from support.small_sweep import run_sweep

from benchmark_eval import read_aggregated

GU, IN, TA = BUDGETS
VALUES = {"1": (0.27, 0.30, 0.33), "2": (0.37, 0.40, 0.43), "all": (0.77, 0.80, 0.83)}
"""A curve with the means 0.3, 0.4 and 0.8."""


def models(values=VALUES, regime=GU):
    for budget, by_seed in values.items():
        for seed, value in enumerate(by_seed):
            yield (f"{regime}_{budget}_{seed}", "a", regime, budget, seed), {"value": value}


def rows_of(table, unit="images", metric="iid_AP_50_95", regime=GU):
    return {
        row.fraction: row
        for row in table.budget_planning
        if (row.unit, row.metric, row.regime) == (unit, metric, regime)
    }


@pytest.mark.parametrize("unit", ["images", "specimens"])
def test_costs_against_the_inverted_curve(tmp_path, unit):
    table, _ = run_sweep(tmp_path, [*models()])
    costs = [getattr(row, f"n_{unit}") for row in table.budget_curves]
    found = rows_of(table, unit)
    assert list(found) == [0.5, 0.8, 0.9, 0.95]
    x = np.log(costs)

    def invert(level):
        return math.exp(np.interp(level, [0.3, 0.4, 0.8], x))

    assert found[0.5].cost == pytest.approx(costs[1])
    for fraction in (0.8, 0.9, 0.95):
        row = found[fraction]
        assert row.target == pytest.approx(fraction * 0.8)
        assert row.cost == pytest.approx(invert(fraction * 0.8))
        # each budget has the standard deviation 0.03; six degrees of freedom in all
        half = t.ppf(0.975, 6) * 0.03 * math.sqrt(1 / 3 + fraction**2 / 3)
        assert row.ci95_low == pytest.approx(invert(row.target - half))
        if row.target + half > 0.8:
            assert (row.ci95_high, row.high_beyond) == (None, "")  # there are no more images
            assert row.reason == "not reached with all images"
        else:
            assert row.ci95_high == pytest.approx(invert(row.target + half))
            assert row.reason is None
        assert (row.smallest, row.largest) == (costs[0], costs[-1])
    assert found[0.95].reason


def test_all_images_under_another_name_are_in_the_ceiling(tmp_path):
    # the species have up to 7 images: targets at k = 10 have all of theirs, as k = all
    targets = {"0": VALUES["1"], "10": (0.57, 0.60, 0.63)}
    rows = [*models(), *models(targets, TA)]
    found = rows_of(run_sweep(tmp_path, rows)[0])
    assert found[0.5].target == pytest.approx(0.5 * 0.7)  # of six runs


def test_only_budgets_with_fewer_images_can_be_too_small(tmp_path):
    natural = {"0.1": (0.2, 0.21, 0.22), "0.5": (0.3, 0.31, 0.32)}
    rows = [*models({"all": VALUES["all"]}), *models(natural, IN)]
    row = rows_of(run_sweep(tmp_path, rows)[0], regime=IN)[0.9]
    assert (row.cost, row.cost_beyond, row.reason) == (None, "> largest", None)


def test_a_level_below_the_smallest_budget_is_not_extrapolated(tmp_path):
    flat = {"1": (0.69, 0.70, 0.71), "all": (0.79, 0.80, 0.81)}
    row = rows_of(run_sweep(tmp_path, [*models(flat)])[0])[0.5]
    assert (row.cost, row.cost_beyond) == (None, "< smallest")
    with (tmp_path / "out/budget_planning.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert (written[0]["cost"], written[0]["cost_beyond"]) == ("", "< smallest")
    frame = read_aggregated(tmp_path / "out")["budget_planning"]
    assert frame["cost"].dtype == "float64"
    assert frame["cost_beyond"].tolist() == [each["cost_beyond"] for each in written]


def test_reasons(tmp_path):
    one_seed = {budget: values[:1] for budget, values in VALUES.items()}
    row = rows_of(run_sweep(tmp_path / "one", [*models(one_seed)])[0])[0.8]
    assert row.cost is not None
    assert (row.reason, row.ci95_low, row.ci95_high) == ("only one seed", None, None)

    row = rows_of(run_sweep(tmp_path / "budget", [*models({"all": VALUES["all"]})])[0])[0.8]
    assert (row.reason, row.cost, row.cost_beyond) == ("fewer than 2 budgets", None, "")

    no_ceiling = {"1": VALUES["1"], "2": VALUES["2"]}
    row = rows_of(run_sweep(tmp_path / "ceiling", [*models(no_ceiling)])[0])[0.8]
    assert (row.reason, row.cost, row.target) == ("no positive ceiling", None, None)
