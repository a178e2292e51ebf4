"""A sweep that lacks something: the report says what it cannot tell, and why."""

import re

import pytest
from support.factories import BUDGETS
from support.report_reading import sections
from support.small_sweep import noisy, run_sweep

from benchmark_eval.report.document import render

GU, IN, TA = BUDGETS
CONDITIONS = {("a", GU, "1"): 0.0, ("a", GU, "2"): 0.3, ("b", GU, "1"): 0.0, ("b", GU, "2"): 0.3}
DECIDED = re.compile(r"\], (higher|lower)|\((higher|lower)[);]|\b(is|are) (higher|lower|best)\b")


def report(folder, rows, without=()):
    table, _ = run_sweep(folder, [*rows], without)
    text = render(table)
    body = text.partition("## Methods")[0]
    for word in ("None", "nan", "NaN", "inf"):
        assert not re.search(rf"\b{word}\b", body.replace("None.", "")), word
    return sections(text)


def test_one_seed(tmp_path):
    found = report(tmp_path, noisy(CONDITIONS, n_seeds=1))
    body = "".join(text for title, text in found.items() if title != "Methods")
    assert not DECIDED.search(body)
    assert "nothing was tested" in found["Bottom line"]
    assert "Whether more images still help is not tested" in found["Bottom line"]
    assert "not tested (fewer than 3 seeds)" in found["How much data is enough?"]
    # with one seed, a species interval is left, and says so
    assert re.search(r"\| k=1 \| \S+ \| \S+ \[\S+, \S+; species\], n=1", found["All conditions"])
    assert "Nothing was tested." in found["Methods"]


def test_two_seeds_have_intervals_and_no_verdict(tmp_path):
    found = report(tmp_path, noisy(CONDITIONS, n_seeds=2))
    body = "".join(text for title, text in found.items() if title != "Methods")
    assert not DECIDED.search(body)
    assert re.search(r"\], not tested \(fewer than 3 seeds\)", found["How much data is enough?"])


def test_one_model(tmp_path):
    found = report(tmp_path, noisy({("a", GU, "1"): 0.0}, n_seeds=1))
    top = found["Bottom line"]
    assert "No regime has two budgets, so that nothing can be said about more images." in top
    assert "No two regimes have a common range of known costs" in top
    assert (
        "Not available: this sweep has no regime with two budgets."
        in (found["How much data is enough?"])
    )
    assert (
        "Not available: this sweep has no two conditions of incremental_uniform_targets"
        in (found["What do images of a target species bring?"])
    )


def test_one_architecture_is_compared_with_no_other(tmp_path):
    own = {key: shift for key, shift in CONDITIONS.items() if key[0] == "a"}
    found = report(tmp_path, noisy(own))
    body = found["Which architecture is best?"]
    assert "a global_uniform k=2 has the highest mean of 2 conditions" in body
    assert "architectures are tied" not in body
    assert "minus b" not in body


def test_one_species_in_a_band(tmp_path):
    """The small benchmark has one unseen species per band."""
    body = report(tmp_path, noisy(CONDITIONS))["Does it work on unseen species?"]
    assert "not tested (fewer than 3 species)" in body
    assert not DECIDED.search(body)


@pytest.mark.parametrize(
    ("splits", "title", "line", "missing"),
    [
        (
            ["iid_test", "inat_test"],
            "Does it work on unseen species?",
            "this sweep has no evaluated unseen species",
            "- Split semantic_ood: not evaluated",
        ),
        (
            ["iid_test", "semantic_ood"],
            "Does it work on field photographs?",
            "this sweep has no species scored both in distribution and on field photographs",
            "- Split inat_test: not evaluated",
        ),
    ],
)
def test_a_split_that_was_not_evaluated(tmp_path, splits, title, line, missing):
    found = report(tmp_path, noisy(CONDITIONS, splits=splits))
    assert line in found[title]
    assert missing in found["What is missing"]
    assert "cannot be judged" in found["Bottom line"]
    if "semantic_ood" not in splits:
        assert "unseen species" not in found["Which architecture is best?"].partition("![")[0]


def test_a_benchmark_without_train_json(tmp_path):
    found = report(tmp_path, noisy(CONDITIONS), without=["train"])
    assert "- train.json: not in the benchmark" in found["What is missing"]
    assert (
        "Not available: this sweep has no two regimes with a common range of known costs"
        in (found["Which regime is best at equal budget?"])
    )
    assert "the costs of the conditions are unknown" in found["How much data is enough?"]
    assert "| a | global_uniform | k=1 | – |" in found["All conditions"]


def test_a_metric_that_is_undefined_everywhere(tmp_path):
    nothing = {"value": None, "species_ap": dict.fromkeys(range(1, 9))}
    nothing |= {f"per_split__{split}__coco__AP_50_95": None for split in ("iid_test", "inat_test")}
    found = report(tmp_path, noisy(CONDITIONS, **nothing))
    assert "the headline metrics are undefined for every model" in found["Bottom line"]
    assert "AP@[.5:.95], in-distribution: undefined for every model" in found["What is missing"]
    body = "".join(text for title, text in found.items() if title != "Methods")
    assert not re.search(r"\], (higher|lower)", body)


def test_field_photographs_alone_are_enough_for_the_best_condition(tmp_path):
    """Best conditions go by the first headline metric that is defined."""
    found = report(tmp_path, noisy(CONDITIONS, splits=["inat_test"]))
    assert re.search(r"^\| a \| global_uniform k=\d \|", found["Which architecture is best?"], re.M)


def test_many_architectures_have_four_columns_and_the_others_are_counted(tmp_path):
    names = "abcdef"
    shifts = {(name, GU, k): 0.03 * at + shift for at, name in enumerate(names)
              for k, shift in (("1", 0.0), ("2", 0.2))}  # fmt: skip
    found = report(tmp_path, noisy(shifts))
    body = found["How much data is enough?"]
    (header,) = re.findall(r"^\| Step \| (.*) \|$", body, re.M)
    assert len(header.split(" | ")) == 4
    assert header.startswith("f |")
    assert "2 more architectures: see [comparisons.csv](comparisons.csv)." in body
    assert re.search(r"global_uniform k=1 to k=2: higher for all 6 architectures\.", body)
    best = found["Which architecture is best?"]
    assert "f is best" in best or "are tied" in best
    # fifteen pairs at two conditions
    assert "Of 30 comparisons (30 tests)" in best


def test_an_architecture_with_two_seeds_is_not_said_to_be_tied(tmp_path):
    few = noisy({("c", GU, "2"): 0.3}, n_seeds=2)
    body = report(tmp_path, [*noisy(CONDITIONS), *few])["Which architecture is best?"]
    (line,) = [line for line in body.splitlines() if line.startswith("- In distribution")]
    assert ": a and b are tied (c: not tested, fewer than 3 seeds in common)." in line.replace(
        "b and a", "a and b"
    )
