"""The numbers and verdicts of a report are those of the tables, and no verdict is missing."""

import re

import pytest
from msgspec.structs import replace
from support.factories import BUDGETS
from support.report_reading import (
    ESTIMATE,
    assert_estimates,
    read_csv,
    sections,
    shows,
    tables,
)
from support.small_sweep import noisy, run_sweep

from benchmark_eval.report.document import render

GU, IN, TA = BUDGETS
NAMES = ("alder", "birch", "cedar")
LABELS = {
    "AP@[.5:.95], in distribution": "iid_AP_50_95",
    "AP@[.5:.95], on field photographs": "inat_AP_50_95",
    "species-mean detection recall, on unseen species": "ood_species_mean_detection_recall",
}
WORD = r"higher|lower|inconclusive after correction|inconclusive|not tested \([^()]+\)"
OPPOSITE = {"higher": "lower", "lower": "higher"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of all regimes, its report and the folder of its tables."""
    folder = tmp_path_factory.mktemp("sweep")
    gains = {(GU, "1"): 0.0, (GU, "2"): 0.15, (GU, "all"): 0.3, (IN, "0.5"): 0.25, (IN, "1"): 0.3}
    gains |= {(TA, "0"): 0.1, (TA, "1"): 0.2, (TA, "5"): 0.3}
    better = {"alder": 0.0, "birch": 0.002, "cedar": -0.1}
    shifts = {
        (name, *condition): gain + better[name]
        for name in NAMES
        for condition, gain in gains.items()
    }
    table, _ = run_sweep(folder / "s", [*noisy(shifts)])
    return table, render(table), folder / "s/out"


def test_every_estimate_is_one_of_the_tables_and_names_what_its_interval_covers(swept):
    _, text, folder = swept
    assert assert_estimates(text, folder) > 250


def test_one_design_has_one_line_on_rare_species_and_the_false_verdicts_are_counted(swept):
    table, text, _ = swept
    lines = [
        line
        for line in sections(text)["Are rare species worse?"].splitlines()
        if line.startswith("- At ")
    ]
    # k=all and p=1 train on the same images
    assert [re.search(r"(\S+=\S+), AP", line)[1] for line in lines] == ["k=all"]
    assert "retraining]" not in lines[0]
    questions = {(r.question, r.metric, r.scope) for r in table.comparisons if r.n_tests}
    n = len(questions)
    assert f"0.05 x {n} = {0.05 * n:.1f} questions" in sections(text)["Methods"]


def test_head_minus_tail_is_printed_where_it_has_an_interval_over_species(swept):
    table, _, _ = swept
    own = [row for row in table.tiers if row.tier != "head minus tail"]
    text = render(replace(table, tiers=own))
    answer = sections(text)["Are rare species worse?"].partition("*Caution.*")[0]
    assert "head minus tail" not in answer.lower()
    rows = [
        replace(row, tier="head minus tail", mean=0.2, ci95_low=-0.1, ci95_high=0.5)
        for row in own
        if row.tier == "head"
    ]
    made = sections(render(replace(table, tiers=[*own, *rows])))
    body = made["Are rare species worse?"]
    (line,) = [line for line in body.splitlines() if line.startswith("- At ")]
    assert line.endswith("; head minus tail is 0.20 [-0.10, 0.50].")
    (found,) = tables(body)
    assert {row["Head minus tail"] for row in found} == {"0.20 [-0.10, 0.50]"}


def comparisons(folder, question, **wanted):
    return [
        row
        for row in read_csv(folder, "comparisons.csv")
        if row["question"] == question and all(row[key] == value for key, value in wanted.items())
    ]


def agrees(cell, row, turned=False):
    """Whether ``+0.06 [0.03, 0.09], higher`` or ``... (higher`` shows a comparison."""
    effect = ESTIMATE.match(cell)
    sign = -1 if turned else 1
    ends = ("ci95_high", "ci95_low") if turned else ("ci95_low", "ci95_high")
    if row["ci95_low"]:
        values = [sign * float(row[key]) for key in ("a_minus_b", *ends)]
        assert all(map(shows, (effect[key] for key in ("mean", "low", "high")), values)), cell
        rest = cell[effect.end() :]
    else:
        rest = cell
    verdict = row["verdict"]
    verdict = OPPOSITE.get(verdict, verdict) if turned else verdict
    word = f"{verdict} ({row['reason']})" if row["reason"] else verdict
    assert word in rest, (cell, word)
    return True


def test_the_table_of_steps_shows_every_step(swept):
    _, text, folder = swept
    body = sections(text)["How much data is enough?"]
    (found,) = [rows for rows in tables(body) if "Step" in rows[0]]
    seen = 0
    for line in found:
        regime, before, after = re.fullmatch(r"(\w+), (\S+) to (\S+)", line["Step"]).groups()
        for name in NAMES:
            scope = f"{name} {regime}"
            (row,) = comparisons(folder, "steps", metric="iid_AP_50_95", scope=scope,
                                 a=f"{scope} {after}", b=f"{scope} {before}")  # fmt: skip
            seen += agrees(line[name], row)
    assert seen == len(comparisons(folder, "steps", metric="iid_AP_50_95"))
    # the decided steps of other metrics are named
    for metric in LABELS.values():
        for row in comparisons(folder, "steps", metric=metric):
            if row["verdict"] in OPPOSITE and metric != "iid_AP_50_95":
                step = " to ".join(row[side].rpartition(" ")[2] for side in "ba")
                assert re.search(rf"{row['verdict'].capitalize()}: .*{step}", body)


def test_the_table_of_regimes_shows_every_pair(swept):
    _, text, folder = swept
    body = sections(text)["Which regime is best at equal budget?"]
    (found,) = tables(body)
    seen = 0
    for line in found:
        a, b = line["Difference"].split(" minus ")
        unit = line["Range"].rpartition(" ")[2]
        for name in NAMES:
            (row,) = [
                row
                for row in comparisons(
                    folder, f"equal_budget_{unit}", metric=LABELS[line["Metric"]]
                )
                if row["a"].startswith(f"{name} {a}, ") and row["b"].startswith(f"{name} {b}, ")
            ]
            assert row["a"].endswith(line["Range"].replace(",", ""))
            seen += agrees(line[name], row)
    assert seen == sum(
        len(comparisons(folder, f"equal_budget_{unit}")) for unit in ("images", "specimens")
    )


def test_the_bottom_line_has_five_sentences_whose_numbers_are_those_of_the_tables(swept):
    _, text, folder = swept
    top = sections(text)["Bottom line"]
    lines = dict(re.findall(r"^\d\. \*\*(.*?)\.\*\* (.*)$", top, re.M))
    assert [*lines] == ["Architecture", "Data", "Regime", "Field and unseen species", "Species"]

    best = comparisons(folder, "best", metric="iid_AP_50_95")
    own = best[0]["a"]
    tied = {own.split()[0]} | {r["b"].split()[0] for r in best if r["verdict"] == "inconclusive"}
    assert tied == {"alder", "birch"}
    tied_text = re.search(
        r"In distribution, (.*?) are tied, and cedar is lower", lines["Architecture"]
    )
    assert set(tied_text[1].split(" and ")) == tied
    pairs = re.findall(
        rf"(\w+) minus (\w+) is ({ESTIMATE.pattern.replace('?P<', '?P<_')}) \(({WORD})\)",
        lines["Architecture"],
    )
    assert len(pairs) == 2
    condition = own.partition(" ")[2]
    for a, b, cell, *_, word in pairs:
        sides = [f"{name} {condition}" for name in (a, b)]
        rows = comparisons(folder, "architectures", metric="iid_AP_50_95")
        (row,) = [r for r in rows if {r["a"], r["b"]} == set(sides)]
        assert agrees(f"{cell}, {word}", row, turned=row["a"] != sides[0])

    lead = own.split()[0]
    steps = re.findall(
        rf"for (\w+) (\S+) to (\S+) by ({ESTIMATE.pattern.replace('?P<', '?P<_')} \((?:{WORD}))",
        lines["Data"],
    )
    assert [step[0] for step in steps] == [GU, IN]
    for regime, before, after, cell, *_ in steps:
        sides = {"a": f"{lead} {regime} {after}", "b": f"{lead} {regime} {before}"}
        (row,) = comparisons(folder, "steps", metric="iid_AP_50_95", **sides)
        assert agrees(cell, row)
        gain = re.search(rf"{re.escape(cell)}; \S+ to \S+ images, (\S+) per", lines["Data"])
        images = re.search(rf"{re.escape(cell)}; (\S+) to (\d+) images", lines["Data"])
        doubled = images and int(images[2]) / int(images[1]) >= 1.41
        assert (gain is None) == (not row["per_doubling_images"] or not doubled)
        assert gain is None or shows(gain[1], float(row["per_doubling_images"]))
    planned = [
        row
        for row in read_csv(folder, "budget_planning.csv")
        if (row["architecture"], row["metric"], row["unit"], row["fraction"])
        == (lead, "iid_AP_50_95", "images", "0.9")
    ]
    for row in planned:
        if row["regime"] != TA and row["cost"]:
            (number,) = re.findall(
                rf"(\d+) (?:\[[^]]*\] |\([^)]*\) )?images of {row['regime']}", lines["Data"]
            )
            assert shows(number, float(row["cost"]))

    regimes = re.findall(rf"(\w+) (is higher than|against) (\w+) \(([^)]*)\): ({ESTIMATE.pattern})",
                         lines["Regime"].replace("?P<", ""))  # fmt: skip
    assert regimes
    for a, word, b, shown, cell, *_ in regimes:
        span = shown.replace(",", "")
        sides = {f"{lead} {name}, {span}" for name in (a, b)}
        rows = comparisons(folder, "equal_budget_images", metric="iid_AP_50_95")
        (row,) = [r for r in rows if {r["a"], r["b"]} == sides]
        turned = row["a"] != f"{lead} {a}, {span}"
        verdict = "higher" if word == "is higher than" else row["verdict"]
        assert agrees(f"{cell}, {verdict}", row, turned=turned)


def test_verdicts_by_architecture_are_those_of_the_tables(swept):
    _, text, folder = swept
    body = sections(text)["How much data is enough?"]
    lines = re.findall(r"^  - (\w+) (\S+) to (\S+): (.*)\.$", body, re.M)
    assert len(lines) == 9
    for at, (regime, before, after, verdicts) in enumerate(lines):
        metric = [*LABELS.values()][at // 3]
        said = {}
        for part in verdicts.split("; "):
            word, names = re.fullmatch(rf"({WORD}) for (.*)", part).groups()
            names = (
                NAMES
                if names == "all 3 architectures"
                else re.findall(r"[a-z]+(?= \(|,| and|$)", names)
            )
            said |= dict.fromkeys(names, word)
        rows = [
            row
            for row in comparisons(folder, "steps", metric=metric)
            if row["a"].endswith(f"{regime} {after}") and row["b"].endswith(f"{regime} {before}")
        ]
        shown = {
            row["scope"].split()[0]: f"{row['verdict']} ({row['reason']})"
            if row["reason"]
            else row["verdict"]
            for row in rows
        }
        assert said == shown


def test_the_counts_of_verdicts_are_those_of_the_tables(swept):
    table, text, _ = swept
    counts = re.findall(r"Of (\d+) comparisons \((\d+) tests?\): (.*?)\.", text)
    assert len(counts) > 10
    n_rows = {}
    for row in table.comparisons:
        n_rows.setdefault((row.question, row.metric), []).append(row)
    known = [
        (str(len(rows)), str(sum(row.verdict != "not tested" for row in rows)))
        for rows in n_rows.values()
    ] + [
        (str(len(rows)), str(sum(row.verdict != "not tested" for row in rows)))
        for question in ("bands", "other_species")
        for rows in [[row for row in table.comparisons if row.question == question]]
    ]
    for n, tests, words in counts:
        assert (n, tests) in known
        assert sum(
            int(number) for number in re.findall(r"(\d+) (?:higher|inconc|not)", words)
        ) == int(n)


def test_every_pair_of_architectures_that_differs_is_named(swept):
    _, text, folder = swept
    body = sections(text)["Which architecture is best?"]
    decided = [r for r in comparisons(folder, "architectures") if r["verdict"] in OPPOSITE]
    assert decided
    for row in decided:
        high, low = (row["a"], row["b"]) if row["verdict"] == "higher" else (row["b"], row["a"])
        names = [side.split()[0] for side in (high, low)]
        lines = [
            line
            for line in body.splitlines()
            if line.startswith(f"  - {names[0]} is higher than {names[1]} at")
        ]
        assert any(re.search(rf"{re.escape(high)}[,; ]", line) for line in lines), row


def test_all_conditions_are_those_of_the_tables(swept):
    _, text, folder = swept
    (found,) = tables(sections(text)["All conditions"])
    rows = read_csv(folder, "learning_curves.csv")
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        assert (line["Architecture"], line["Regime"]) == (row["architecture"], row["regime"])
        assert line["Budget"].partition(" ")[0].endswith(f"={row['k_or_p']}")
        cells = [line[name] for name in line if "," in name]
        for cell, name in zip(
            cells, ("iid_AP_50_95", "inat_AP_50_95", "ood_class_agnostic_AR_100"), strict=True
        ):
            assert shows(cell.partition(" ")[0], float(row[f"{name}_mean"]))
            assert cell.endswith(f"n={row[f'{name}_n']}")
