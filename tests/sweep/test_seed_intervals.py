"""The rates of false verdicts in report and docs are those of the rules."""

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


def test_rates_of_false_verdicts(script):
    means, differences = script.errors(20_000, np.random.default_rng(0), 3)
    # four standard errors of a rate over 20,000 draws
    assert means == pytest.approx(FALSE_OVER_MEANS, abs=0.002)
    assert differences == pytest.approx(FALSE_OVER_DIFFERENCES, abs=0.006)


def test_bias_of_the_best_of_equal_conditions(script):
    high, half, held = script.best(10_000, np.random.default_rng(0), 17)
    page = (ROOT / "docs/questions/data-efficiency.md").read_text()
    stated = re.search(
        r"lies (\d\.\d+) standard deviations.*?\((\d\.\d+)\).*?true mean in (\d+) %", page, re.S
    )
    assert high == pytest.approx(float(stated[1]), abs=0.02)
    assert half == pytest.approx(float(stated[2]), abs=0.06)
    assert held == pytest.approx(float(stated[3]) / 100, abs=0.02)
    # one condition alone has no bias
    assert script.best(10_000, np.random.default_rng(0), 1)[0] == pytest.approx(0.0, abs=0.03)
