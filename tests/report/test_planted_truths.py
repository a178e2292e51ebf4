"""What is true of simulated models is in the report, and what is not true is not."""

import re

import pytest
from msgspec.structs import replace
from support import planted_sweep
from support.planted_sweep import GU, IN
from support.report_reading import ESTIMATE, assert_estimates, sections, value
from support.small_sweep import noisy, run_sweep

from benchmark_eval.report.document import render
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.lookup import best_threshold
from benchmark_eval.report.questions import species
from benchmark_eval.results.evidence import DENSITY

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
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return planted_sweep.run(folder, QUALITY), folder / "out"


@pytest.fixture(scope="module")
def text_and_tables(planted):
    return render(planted[0]), planted[1]


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


def test_unseen_species_are_compared_with_known_ones_at_equal_density_only(planted, report):
    table, _ = planted
    top = report["Bottom line"]
    assert "minus unseen" not in top
    assert "the two cannot be subtracted" in top
    line = top.partition("at equal density: ")[2].partition("\n")[0]
    lead = Facts(table).lead
    parts = re.findall(r"in distribution and .*? on images with (\w+)", line)
    enough = {
        stratum
        for stratum in DENSITY
        if {"iid_test", "semantic_ood"}
        <= {
            row.split
            for row in table.pooled_shares
            if (row.condition, row.band, row.stratum, row.share)
            == (lead.condition, "", stratum, "detection_recall")
            and row.n_images >= 10
        }
    }
    assert len(parts) == len(enough) > 0


def test_missed_specimens_are_also_given_at_the_operating_threshold(planted, report):
    table, _ = planted
    lead = Facts(table).lead
    body = report["Where are specimens lost?"]
    for split, place in (("iid_test", "In distribution"), ("inat_test", "On field photographs")):
        (line,) = [x for x in body.splitlines() if x.startswith(f"- {place}, {lead.condition} ")]
        found = re.search(r"At the operating threshold, .* which are (\d+) % of them", line)
        (recall,) = [
            row.metrics["recall"].mean
            for row in table.operating_curves
            if (row.condition, row.split) == (lead.condition, split)
            and row.confidence == best_threshold(table, lead.architecture).confidence
        ]
        # the threshold of the curve is on a grid, that of the errors is each model's own
        assert abs(int(found[1]) / 100 - (1 - recall)) < 0.1


def test_the_bin_that_is_farthest_off_is_given_beside_the_best_one(planted, report):
    table, _ = planted
    lead = Facts(table).lead
    bins = [
        row
        for row in table.reliability
        if (row.condition, row.split, row.event, row.threshold)
        == (lead.condition, "iid_test", "detected_and_identified", "operating")
    ]
    off = max(abs(row.mean_confidence - row.observed) for row in bins)
    (shown,) = [
        line for line in report["Can the confidence be trusted?"].splitlines() if "gap" in line
    ]
    confidence = float(re.search(r"at a mean confidence of (\S+)", shown)[1])
    (row,) = [row for row in bins if abs(row.mean_confidence - row.observed) == off]
    assert abs(confidence - row.mean_confidence) < 0.006
    assert f"{row.n / row.n_seeds:,.0f} per seed" in shown


def test_species_are_counted_the_same_way_in_sentence_and_figure_and_ties_are_not_cut(planted):
    table, _ = planted
    known = [row for row in table.species if row.role == "known"]
    recalls = (0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4)
    marked = [
        replace(row, iid_species_recall_operating=recall, do_not_rely=True, iid_n_specimens=12)
        for row, recall in zip(known, recalls, strict=False)
    ]
    undecided = [replace(row, do_not_rely=None, do_not_rely_reason="x") for row in known[7:9]]
    rest = [replace(row, do_not_rely=False) for row in known[9:]]
    facts = Facts(replace(table, species=[*marked, *undecided, *rest]))
    told = len(marked) + len(rest)
    text, title = species.sentence(facts), species.conclusion(facts)
    assert f"Do not rely on 7 of {told} known species (2 more are undecided)" in text
    assert title == f"7 of {told} known species should not be relied on (2 more are undecided)"
    assert all(row.species in text for row in marked)
    assert "no replication" in text


def test_more_images_help_is_not_said_where_a_last_step_is_lower(tmp_path):
    shifts = {("a", GU, "1"): 0.0, ("a", GU, "2"): 0.3, ("b", GU, "1"): 0.2, ("b", GU, "2"): 0.0}
    table, _ = run_sweep(tmp_path, [*noisy(shifts)])
    top = sections(render(table))["Bottom line"]
    assert "More images still help on some curves and harm on others" in top
    assert "(last step of 2 curves, all architectures: 1 higher and 1 lower)" in top


def test_the_tie_column_speaks_of_the_printed_condition(planted):
    table, _ = planted
    facts = Facts(table)
    best = facts.best("iid_AP_50_95")
    lines = sections(render(table))["Which architecture is best?"].splitlines()
    for name, row in facts.shown.items():
        (line,) = [x for x in lines if x.startswith(f"| {name} | ")]
        cell = [part.strip() for part in line.split("|")][8]
        compared = [*best.group, *best.lower]
        expected = "yes" if row.condition in best.group else "no"
        assert cell == (expected if row.condition in compared else "not compared")


def test_nothing_is_found_where_nothing_differs(tmp_path):
    same = {(name, GU, k): 0.7 for name in ("a", "b", "c") for k in ("1", "6")}
    text = render(planted_sweep.run(tmp_path, same))
    body = text.partition("## All conditions")[0]
    assert "all 3 architectures are tied" in body
    assert not re.search(r"\b(is|are) (higher|lower)\b", body)
    assert not re.search(r"\], (higher|lower)\b", body)
    assert "That more images still help is not shown" in body
