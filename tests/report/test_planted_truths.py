"""What is true of simulated models is in the report, and what is not true is not."""

import re

import pytest
from support import planted_sweep
from support.planted_sweep import GU, IN
from support.report_reading import ESTIMATE, assert_estimates, sections, value
from support.small_sweep import noisy, run_sweep

from benchmark_eval.report.document import render

QUALITY = {
    ("alder", GU, "1"): 0.3,
    ("alder", GU, "6"): 0.6,
    ("alder", GU, "all"): 0.9,
    # a useless regime: the names do not improve with its budget
    ("alder", IN, "0.25"): 0.2,
    ("alder", IN, "0.5"): 0.2,
    ("birch", GU, "all"): 0.9,
    ("cedar", GU, "all"): 0.5,
}


@pytest.fixture(scope="module")
def text_and_tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return render(planted_sweep.run(folder, QUALITY)), folder / "out"


@pytest.fixture(scope="module")
def report(text_and_tables):
    return sections(text_and_tables[0])


def test_every_estimate_is_one_of_the_tables(text_and_tables):
    """As for a sweep without evidence, which has fewer tables (``test_read_back``)."""
    assert assert_estimates(*text_and_tables) > 200


def first_estimate(pattern, text):
    found = re.search(pattern + r" ?" + ESTIMATE.pattern, text)
    assert found, (pattern, text)
    return [value(found[name])[0] for name in ("mean", "low", "high")]


def test_an_architecture_that_is_better_by_a_known_amount(tmp_path):
    table, _ = run_sweep(tmp_path, [*noisy({("a", GU, "1"): 0.0, ("b", GU, "1"): 0.2})])
    top = sections(render(table))["Bottom line"]
    assert "In distribution, b is best, and a is lower" in top
    mean, low, high = first_estimate("b minus a is", top)
    assert low < 0.2 < high
    assert abs(mean - 0.2) < 0.02
    assert re.search(r"b minus a is \S+ \[[^]]*\] \(higher\)", top)


def test_an_architecture_that_is_worse_is_lower(report):
    top, body = report["Bottom line"], report["Which architecture is best?"]
    assert "alder and birch are tied, and cedar is lower" in top
    (line,) = [
        line for line in body.splitlines() if line.startswith("  - alder is higher than cedar")
    ]
    assert f"at alder {GU} k=all" in line
    _, low, _ = first_estimate("the largest difference is", line)
    assert low > 0


def test_architectures_without_a_difference_are_inconclusive(report):
    top = report["Bottom line"]
    assert re.search(
        r"(alder minus birch|birch minus alder) is \S+ \[[^]]*\] \(inconclusive\)", top
    )
    assert "birch is higher than alder" not in report["Which architecture is best?"]
    assert "alder is higher than birch" not in report["Which architecture is best?"]


def test_steps_that_help_are_higher_and_those_of_a_useless_regime_are_not(report):
    body = report["How much data is enough?"]
    in_distribution = body.partition("On field")[0]
    assert re.search(rf"{GU} k=6 to k=all: higher", in_distribution)
    (line,) = [x for x in in_distribution.splitlines() if f"{IN} p=0.25 to p=0.5" in x]
    assert "inconclusive" in line
    assert "higher" not in line
    assert f"| {GU}, k=1 to k=6 | " in body


def test_a_useless_regime_loses_at_equal_budget(report):
    top = report["Bottom line"]
    assert f"{GU} is higher than {IN} (36 to 72 images)" in top


def test_a_species_that_is_never_named_is_not_to_be_relied_on(report):
    body = report["Which species should not be relied on?"]
    never, taken = (planted_sweep.name_of(n) for n in (5, 6))
    (row,) = [line for line in body.splitlines() if line.startswith(f"| {never} |")]
    assert "species recall below 0.5 in 3 of 3 seeds" in row
    assert f"labelled {taken} in 3 of 3 seeds" in row
    assert never in report["Bottom line"]
    # no species that is named right in nine of ten cases
    for number in (1, 2, 3, 7, 8, 9):
        assert f"| {planted_sweep.name_of(number)} |" not in body
    losses = report["Where are specimens lost?"]
    assert f"| {never} | {taken} |" in losses
    assert f"is {never} labelled {taken}" in losses


def test_a_far_band_that_is_only_denser_is_not_called_lower(report):
    body = report["Does it work on unseen species?"]
    (line,) = [x for x in body.splitlines() if x.startswith("- Near minus far")]
    assert "at equal density of their images" in line
    assert "inconclusive" in line
    near, far = ESTIMATE.findall(line.partition("without regard to density")[2])
    assert value(near[0])[0] - value(far[0])[0] > 0.05


def test_nothing_is_found_where_nothing_differs(tmp_path):
    same = {(name, GU, k): 0.7 for name in ("a", "b", "c") for k in ("1", "6")}
    text = render(planted_sweep.run(tmp_path, same))
    body = text.partition("## All conditions")[0]
    assert "all 3 architectures are tied" in body
    assert not re.search(r"\b(is|are) (higher|lower)\b", body)
    assert not re.search(r"\], (higher|lower)\b", body)
    assert "That more images still help is not shown" in body
