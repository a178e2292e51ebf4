"""The intervals and verdicts hold what docs/statistics.md says, on a few simulated sweeps."""

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/statistics.md"
# a few draws must not fail for their own simulation error
SLACK = 4.0


@pytest.fixture(scope="module")
def script():
    place = ROOT / "benchmarks/simulate_statistics.py"
    spec = importlib.util.spec_from_file_location("simulate_statistics", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def sections(script):
    return {each.name: each for each in script.simulate(script.Effort(40, quick=True))}


@pytest.mark.slow
def test_all_gates_hold(sections):
    assert [line for each in sections.values() for line in each.failures(SLACK)] == []
    rates = [cell for each in sections.values() for row in each.rows for cell in row]
    assert sum(getattr(rate, "least", None) is not None for rate in rates) > 30
    assert sum(getattr(rate, "most", None) is not None for rate in rates) > 15


@pytest.mark.slow
def test_intervals_that_are_too_narrow_fail_the_gates(script, monkeypatch):
    def narrow(table, bounds):
        found = crossed_interval(table, bounds)
        if found.se is None:
            return found
        return msgspec.structs.replace(found, low=found.mean - found.se, high=found.mean + found.se)

    crossed_interval = script.crossed_interval
    monkeypatch.setattr(script, "crossed_interval", narrow)
    effort = script.Effort(40, quick=True)
    levels, differences = script.crossed(effort, np.random.default_rng(0))
    assert levels.failures(SLACK)
    assert differences.failures(SLACK)


@pytest.mark.slow
def test_the_page_has_the_tables_of_the_script(sections):
    page = PAGE.read_text()
    for name, section in sections.items():
        head = re.escape(f"<!-- simulated by benchmarks/simulate_statistics.py: {name} -->")
        (text,) = re.findall(rf"{head}\n\n(.*?)\n\n<!-- end -->", page, re.S)
        lines = text.splitlines()
        assert lines[0] == f"| {' | '.join(section.titles)} |"
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
        # a quick run has some of the page's rows
        labels = {tuple(row[: section.titles.index("simulation error") - 1]) for row in rows}
        for row in section.rows:
            label = tuple(cell for cell in row if isinstance(cell, str))
            first = next(i for i, cell in enumerate(row) if not isinstance(cell, str))
            if "equal budget" not in label:
                assert label[:first] in labels
        gate = section.titles.index("gate")
        for row in rows:
            value, sign, bound = float(row[gate - 2]), *(row[gate].split() or ["-"])[:1], row[gate]
            if sign == ">=":
                assert value >= float(bound.split()[1]), row
            elif sign == "<=":
                assert value <= float(bound.split()[1]), row


def test_rates_and_their_gates(script):
    rate = script.rate([True] * 96 + [False] * 4, least=0.95)
    assert (rate.value, rate.gate()) == (0.96, ">= 0.95")
    assert rate.error == pytest.approx((0.96 * 0.04 / 100) ** 0.5)
    assert rate.passes(0.0)
    assert not replace(rate, least=0.97).passes(0.0)
    assert replace(rate, least=0.97).passes(1.0)
    assert not replace(rate, least=None, most=0.9).passes(1.0)
    section = script.Section("x", ("n", "rate", "simulation error", "gate", "other"))
    section.rows.append(("3", rate, script.rate([True])))
    assert section.table().splitlines()[-1] == "| 3 | 0.960 | 0.020 | >= 0.95 | 1.000 |"


def test_the_simulation_is_reproducible(script):
    effort = script.Effort(10, quick=True)
    runs = [script.retraining(effort, script.stream(7, "x")).table() for _ in range(2)]
    assert runs[0] == runs[1]
