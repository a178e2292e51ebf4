"""The shares of wrong verdicts that report and docs quote are those of the rules themselves."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from benchmark_eval.sweep.comparisons import FALSE_OVER_DIFFERENCES, FALSE_OVER_MEANS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    place = ROOT / "benchmarks/seed_intervals.py"
    spec = importlib.util.spec_from_file_location("seed_intervals", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_how_often_chance_alone_speaks(script):
    means, differences = script.errors(20_000, np.random.default_rng(0), 3)
    # four standard errors of a share of 20,000 draws
    assert means == pytest.approx(FALSE_OVER_MEANS, abs=0.002)
    assert differences == pytest.approx(FALSE_OVER_DIFFERENCES, abs=0.006)


def test_how_much_too_high_the_best_of_equal_conditions_looks(script):
    high, half, held = script.best(10_000, np.random.default_rng(0), 17)
    page = (ROOT / "docs/questions/data-efficiency.md").read_text()
    told = re.search(
        r"lies (\d\.\d+) standard deviations.* the (\d\.\d+)\n.*in (\d+) %", page, re.S
    )
    assert high == pytest.approx(float(told[1]), abs=0.02)
    assert half == pytest.approx(float(told[2]), abs=0.06)
    assert held == pytest.approx(float(told[3]) / 100, abs=0.02)
    # one condition alone is not too high
    assert script.best(10_000, np.random.default_rng(0), 1)[0] == pytest.approx(0.0, abs=0.03)
