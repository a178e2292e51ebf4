"""Prices of training data: budgets, equal budgets and planning in money."""

import csv

import pytest
from support.factories import BUDGETS
from support.small_sweep import run_sweep

from benchmark_eval.core.errors import UsageError
from benchmark_eval.sweep.prices import Prices

GU, IN, _ = BUDGETS
ROWS = [
    ((f"{regime[:8]}{budget}{seed}", "a", regime, budget, seed), {"value": value + seed / 100})
    for regime, budget, value in (
        (GU, "1", 0.2),
        (GU, "2", 0.3),
        (GU, "all", 0.6),
        (IN, "0.5", 0.4),
        (IN, "1", 0.6),
    )
    for seed in range(3)
]


def test_budgets_are_compared_and_planned_by_price(tmp_path):
    table, _ = run_sweep(tmp_path, ROWS, price_per_image=0.5, price_per_specimen=2)
    for row in table.budget_curves:
        assert row.price == pytest.approx(0.5 * row.n_images + 2 * row.n_specimens, rel=1e-15)
    price = {(row.regime, row.k_or_p): row.price for row in table.budget_curves}
    (plan,) = [
        row
        for row in table.budget_planning
        if (row.unit, row.regime, row.metric, row.fraction) == ("price", GU, "iid_AP_50_95", 0.5)
    ]
    assert (plan.smallest, plan.largest) == (price[GU, "1"], price[GU, "all"])
    # half of the ceiling, 0.61, is reached between the means at k = 1 and k = 2
    assert plan.target == pytest.approx(0.305, abs=1e-12)
    low, high = price[GU, "1"], price[GU, "2"]
    expected = low * (high / low) ** ((0.305 - 0.21) / (0.31 - 0.21))
    assert plan.cost == pytest.approx(expected, rel=1e-12)
    (equal,) = [
        row
        for row in table.comparisons
        if (row.question, row.metric) == ("equal_budget_price", "iid_AP_50_95")
    ]
    span = f"{max(price[GU, '1'], price[IN, '0.5']):.0f} to {price[GU, 'all']:.0f}"
    assert equal.a == f"a {GU}, price {span}"
    assert table.inputs.options["price_per_image"] == 0.5
    assert table.inputs.options["price_per_specimen"] == 2.0
    with (tmp_path / "out/budget_curves.csv").open(newline="") as stream:
        written = [float(row["price"]) for row in csv.DictReader(stream)]
    assert written == [row.price for row in table.budget_curves]


def test_without_prices_nothing_is_in_money(tmp_path):
    table, _ = run_sweep(tmp_path, ROWS)
    assert {row.price for row in table.budget_curves} == {None}
    assert {row.unit for row in table.budget_planning} == {"images", "specimens"}
    assert not [row for row in table.comparisons if "price" in row.question]
    assert "price_per_image" not in table.inputs.options


def test_a_budget_without_train_json_has_no_price():
    assert Prices(per_image=1.0).of(None, 3.0) is None
    assert Prices(per_specimen=2.0).of(None, 3.0) == 6.0
    assert Prices(per_image=1.0, per_specimen=2.0).of(4.0, None) is None
    assert Prices(per_image=0.0).of(4.0, 5.0) == 0.0


@pytest.mark.parametrize("price", [-1, 1e308, float("nan"), float("inf")])
def test_an_impossible_price_is_refused(tmp_path, price):
    with pytest.raises(UsageError, match="price_per_specimen: found"):
        run_sweep(tmp_path, ROWS, price_per_specimen=price)
    assert not (tmp_path / "out").exists()
