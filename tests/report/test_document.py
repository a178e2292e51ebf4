"""The text of the report: results with their uncertainty, and what is missing."""

import json
import re

import pytest
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation

from benchmark_eval.cli.main import main
from benchmark_eval.core.intervals import estimate as over_seeds
from benchmark_eval.core.outputs import RECORD
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.report import document, write_report
from benchmark_eval.report.captions import PLOTS
from benchmark_eval.report.document import render
from benchmark_eval.report.markdown import cell, escape, estimate, listing, signed
from benchmark_eval.report.sentences import Facts
from benchmark_eval.sweep import aggregate
from benchmark_eval.sweep.comparisons import compare

GU, IN, TA = BUDGETS


@pytest.fixture
def sweep(tmp_path):
    benchmark = write_benchmark(tmp_path / "benchmark")
    digests = load_benchmark(benchmark).digests

    def sweep(cells, header="model_name,architecture,regime,k_or_p,seed"):
        rows = []
        (tmp_path / "eval").mkdir(exist_ok=True)
        for row, made in cells:
            rows.append(row)
            if made is not None:
                options = dict(made) if isinstance(made, dict) else {"value": made}
                item = evaluation(row[0], benchmark=digests, **options)
                write_evaluation(tmp_path / "eval", item)
        (tmp_path / "manifest.csv").write_text(manifest_text(rows, header))
        return aggregate(
            eval_dir=tmp_path / "eval",
            manifest=tmp_path / "manifest.csv",
            benchmark=benchmark,
            output_dir=tmp_path / "out",
            allow_missing=True,
        )

    return sweep


def three(name, architecture, regime, k, middle, spread=0.01):
    """Three seeds around a value."""
    return [
        ((f"{name}{s}", architecture, regime, k, s), middle + (s - 1) * spread) for s in range(3)
    ]


def section(text, title):
    return re.search(rf"^## {re.escape(title)}.*?\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def test_numbers_have_their_interval_and_n():
    assert estimate(over_seeds([0.5])) == "0.500 (n=1)"
    assert estimate(over_seeds([0.50, 0.54, 0.58])) == "0.540 (0.441 to 0.639; n=3)"
    assert estimate(over_seeds([])) == "undefined (n=0)"
    # an interval of width 0 would look like certainty
    assert estimate(over_seeds([0.287, 0.287, 0.287])) == "0.287 (seeds agree; n=3)"
    assert estimate(over_seeds([0.287, 0.288, 0.287])) == "0.287 (0.286 to 0.289; n=3)"
    assert cell(over_seeds([0.50, 0.54, 0.58]), 3) == "0.540 ± 0.040, n=3"
    assert cell(over_seeds([0.2, None, 0.4]), 3) == "0.300 ± 0.141, n=2 of 3"
    assert cell(over_seeds([0.5]), 1) == "0.500, n=1"
    assert cell(over_seeds([None]), 1) == "–, n=0 of 1"
    assert cell(over_seeds([]), 0) == "–"
    assert signed(-0.0001) == "+0.000"


def test_words():
    assert counted(1, "model") == "1 model"
    assert counted(1530, "model") == "1,530 models"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(list("abcde"), most=3) == "a, b, c and 2 more"


def test_growth_is_positive_or_inconclusive(sweep):
    cells = [*three("a1", "a", GU, "1", 0.1), *three("a5", "a", GU, "5", 0.4)]
    cells += [*three("a9", "a", GU, "all", 0.41), *three("b1", "b", GU, "1", 0.3, 0.2)]
    cells += [*three("b5", "b", GU, "5", 0.4, 0.2), *three("b9", "b", GU, "all", 0.41, 0.2)]
    text = section(render(sweep(cells)), "Data efficiency")
    assert "AP@[.5:.95] is positive for a; inconclusive (the intervals overlap) for b." in text
    assert "global_uniform, from k=1 to k=all" in text
    assert (
        "For a, it changes from 0.100 (0.075 to 0.125; n=3) to 0.410 (0.385 to 0.435; n=3)." in text
    )
    step = "over the last step, from k=5, is inconclusive (the intervals overlap) for both"
    assert step in text
    assert "a has the highest mean, 0.410" in text
    assert (
        "each of the others, the difference is inconclusive (the intervals overlap) for b." in text
    )


def test_architectures_of_an_incomplete_sweep_are_reported_at_their_own_budgets(sweep):
    cells = [*three("a1", "a", GU, "1", 0.1), *three("a5", "a", GU, "5", 0.4)]
    cells += [*three("b1", "b", GU, "1", 0.1), *three("b9", "b", GU, "all", 0.1)]
    cells += [*three("c1", "c", GU, "1", 0.1)]
    text = render(sweep(cells))
    growth = section(text, "Data efficiency")
    assert (
        "- global_uniform, from k=1 to k=5: the change in AP@[.5:.95] is positive for a. For a, it"
        in growth
    )
    assert (
        "- global_uniform, from k=1 to k=all: the change in AP@[.5:.95] is inconclusive (the "
        "intervals overlap) for b. For b, it" in growth
    )
    # with two budgets, the last step is the whole change
    assert "last step" not in growth
    assert "| Architecture | Regime | Smallest budget | Largest |" in growth
    rare = section(text, "Rare and common")
    for budget, name, rest in (("5", "a", "from k=1 "), ("all", "b", ""), ("1", "c", "")):
        start = f"- global_uniform, at k={budget}: head minus tail AP@.5 is "
        (line,) = [line for line in rare.splitlines() if line.startswith(start)]
        assert f"is positive for {name}. For {name}, it is" in line
        assert rest in line


def test_architectures_have_their_own_costs_and_target_budgets(sweep):
    cells = [*three("g", "a", GU, "1", 0.2), *three("i", "a", IN, "0.25", 0.5)]
    cells += [*three("h", "b", GU, "2", 0.2), *three("j", "b", IN, "0.5", 0.5)]
    # a has k = 5, 25 and b smaller ones, so that the budgets are not in order of appearance
    far = {"value": 0.4, "species_ap": {5: 0.1}}
    for name, ks in (("a", ("5", "25")), ("b", ("0", "1"))):
        cells += [((f"{name}{k}{s}", name, TA, k, s), far) for k in ks for s in range(3)]
    text = render(sweep(cells))
    regimes = [line for line in text.splitlines() if line.startswith("- Regimes")]
    assert "k=1: about 5 images; incremental_natural p=0.25: about 6 images" in regimes[0]
    assert regimes[0].endswith("global_uniform minus incremental_natural is negative for a.")
    assert regimes[1].endswith("global_uniform minus incremental_natural is negative for b.")
    targets = section(text, "Target species")
    for k, name in (("5", "a"), ("1", "b"), ("25", "a")):
        assert (
            f"- Near minus far target species, at k={k}: the difference in AP@.5 is positive for "
            f"{name}." in targets
        )
    assert targets.count("- Near minus far target species, at k=1:") == 1
    for k, name in (("25", "a"), ("1", "b")):
        assert f"at k={k}: the difference in AP@.5 is negative for {name}." in targets
    header = "| Architecture | Target species | AP@.5 at k=0 | AP@.5 at k=1 | AP@.5 at k=5 |"
    assert header in targets


def test_an_architecture_is_named_if_others_have_no_number(sweep):
    none = {"value": 0.4, "per_split__semantic_ood__density__strata__1__image_mean_recall": None}
    cells = [*three("a", "a", GU, "1", 0.2)]
    cells += [((f"b{s}", "b", GU, "1", s), none) for s in range(3)]
    text = section(render(sweep(cells)), "Field photographs")
    assert "than ten is inconclusive (the interval includes 0) for a. For a," in text


def test_differences_within_a_model_are_judged_by_their_own_interval(sweep):
    def made(seed):
        at = 0.3 + 0.2 * seed  # seeds far apart, the difference always about the same
        gap = 0.05 + 0.001 * seed
        ood, iid = "per_split__semantic_ood__", "per_split__iid_test__decomposition__"
        return {
            "value": 0.5,
            "species_ap": {1: at + gap, 5: at},
            f"{ood}ood_by_band__by_band__near_genus__class_agnostic_AR_100": at + gap,
            f"{ood}ood_by_band__by_band__far_tribe__class_agnostic_AR_100": at,
            "summary__ood_band_gap_AR_100": gap,
            f"{ood}density__strata__1__image_mean_recall": at + gap,
            f"{ood}density__strata__>10__image_mean_recall": at,
            f"{iid}classification_loss": at / 2 + gap,
            f"{iid}localisation_loss": at / 2,
        }

    cells = [((f"m{k}{s}", "a", TA, k, s), made(s)) for k in ("1", "5") for s in range(3)]
    table = sweep(cells)
    text = render(table)
    difference = "0.051 (0.049 to 0.053; n=3)"
    away = section(text, "Field photographs")
    assert "near minus far class-agnostic AR@100 is positive. AR@100 is" in away
    assert "than ten is positive. Recall is" in away
    assert away.count(f"a difference of {difference}.") == 2
    losses = section(text, "Detection versus identification")
    assert f"misidentified minus missed specimens is positive. It is {difference}:" in losses
    targets = section(text, "Target species")
    assert "the difference in AP@.5 is positive. AP@.5 is" in targets
    assert f"a difference of {difference}." in targets
    row = table.learning_curves[0]
    assert compare(*(row.metrics[f"ood_{b}_AR_100"] for b in ("near_genus", "far_tribe"))) == (
        "overlap"
    )
    # by columns: seeds 0, 1, 2 differ by 0.05, 0.051 and 0.052
    assert {name: value.n for name, value in row.differences.items()} == {
        "iid_classification_minus_localisation_loss": 3,
        "inat_classification_minus_localisation_loss": 3,
        "ood_image_mean_recall_1_minus_over_10": 3,
        "iid_target_near_minus_far_AP_50": 3,
    }


def test_comparisons_are_counted_by_the_rule_that_decides_them(sweep):
    facts = Facts(sweep([*three("a", "a", GU, "1", 0.2), *three("b", "a", GU, "5", 0.4)]))
    facts.growth("iid_AP_50_95")
    assert facts.judged == {"means": 1, "differences": 0}
    facts.imbalance()  # the gap at k=5, and against that at k=1
    assert facts.judged == {"means": 2, "differences": 1}
    facts.confidence()
    assert facts.judged == {"means": 2, "differences": 3}
    guide = section(render(facts.data), "How to read these numbers")
    assert re.search(r"makes \d+ of the first kind and \d+ of the second", guide)


def test_inconclusive_means_and_differences_have_their_own_explanations(sweep):
    # seeds so far apart that every verdict is inconclusive
    cells = [(row, {"value": value, "distinct": True}) for k, at in (("1", 0.4), ("5", 0.5))
             for row, value in three(f"a{k}", "a", GU, k, at, 0.3)]  # fmt: skip
    lines = [line for line in render(sweep(cells)).splitlines() if line.startswith("- ")]
    reasons = ("the intervals overlap", "the interval includes 0)")
    starts = {
        reason: {line.split(":")[0].split(",")[0] for line in lines if reason in line}
        for reason in reasons
    }
    assert starts[reasons[0]] == {"- global_uniform"}
    assert {"- Distance", "- Field photographs", "- global_uniform"} <= starts[reasons[1]]
    for line in lines:
        if reasons[0] in line:
            assert "the change in AP@[.5:.95]" in line or "Its change from k=1 is" in line


def test_seeds_with_the_same_file_are_not_independent(sweep):
    def made(seed, digest):
        return {"value": 0.2 + seed / 1000, "predictions": {"iid_test": digest, "inat_test": "c"}}

    cells = [((f"a{s}", "a", GU, "1", s), made(s, "d")) for s in range(3)]
    cells += [((f"b{s}", "a", GU, "5", s), made(300 + s, f"{s}")) for s in range(3)]
    table = sweep(cells)
    text = render(table)
    assert "**Not independent:** seeds of one condition have identical prediction files" in text
    first, second = section(text, "Warnings").strip().splitlines()
    assert first.startswith("- iid_test, 3 models (a0, a1 and a2): identical prediction files.")
    assert second.startswith("- inat_test, 6 models (a0, a1, a2, b0, b1 and 1 more): identical")
    growth = section(text, "Data efficiency")
    assert (
        "is not tested (fewer than 2 independent seeds). It changes from 0.201 (n=3, same files)"
        in growth
    )
    rows = section(text, "All conditions")
    assert (
        "0.201 ± 0.001, n=3, same files | 0.201 ± 0.001, n=3, same files | 0.201 ± 0.001, n=3 |"
        in rows
    )
    assert "0.501 ± 0.001, n=3 | 0.501 ± 0.001, n=3, same files" in rows
    assert [row.identical for row in table.learning_curves] == [
        ["iid_test", "inat_test"],
        ["inat_test"],
    ]


def test_results_at_the_best_threshold_have_their_interval_and_n(sweep):
    text = section(render(sweep(three("a", "a", GU, "1", 0.2))), "Detection versus identification")
    (row,) = re.findall(r"^\| Architecture \| Threshold .*\n.*\n(.*)$", text, re.M)
    assert row.count("; n=3) |") == 5


def test_an_architecture_called_default_is_named_beside_others(sweep):
    cells = [*three("m", "default", GU, "1", 0.2), *three("n", "b", GU, "1", 0.2)]
    cells[0] = (cells[0][0], None)
    text = render(sweep(cells))
    assert "all models" not in text
    assert "| default | global_uniform k=1 |" in section(text, "Headline")
    assert "- default, global_uniform k=1: seed 0" in section(text, "What is missing")
    assert "2 architectures (b and default)" in text


def test_one_seed_is_not_tested(sweep):
    text = render(sweep([(("a", "a", GU, "1", 0), 0.1), (("b", "a", GU, "5", 0), 0.9)]))
    assert "not tested (fewer than 2 independent seeds)" in section(text, "Data efficiency")
    assert "0.100 (n=1)" in text


def test_regimes_are_compared_at_equal_cost(sweep):
    cells = [*three("g", "a", GU, "1", 0.2), *three("i", "a", IN, "0.25", 0.5)]
    text = section(render(sweep(cells)), "Data efficiency")
    assert "global_uniform minus incremental_natural is negative." in text
    assert "k=1, about 5 images: 0.200" in text
    cells = [*three("g", "a", GU, "1", 0.2), *three("i", "a", IN, "1", 0.5)]
    assert "cannot be compared at equal cost" in section(render(sweep(cells)), "Data efficiency")


def test_bottleneck(sweep):
    def made(found, named):
        return {
            "value": 0.5,
            "per_split__iid_test__decomposition__detection_recall": found,
            "per_split__iid_test__decomposition__classification_given_detection_acc": named,
            "per_split__iid_test__decomposition__species_recall": found * named,
            "per_split__iid_test__decomposition__classification_loss": found * (1 - named),
            "per_split__iid_test__decomposition__localisation_loss": 1 - found,
        }

    page = render(sweep([((f"m{s}", "a", GU, "1", s), made(0.9, 0.6)) for s in range(3)]))
    text = section(page, "Detection versus identification")
    assert "In distribution, misidentified minus missed specimens is positive." in text
    assert "rests on this agreement alone" in section(page, "How to read these numbers")
    assert "0.360 (seeds agree; n=3) | 0.100 (seeds agree; n=3) |" in text


def test_missing_cells_are_listed_by_condition(sweep):
    cells = [*three("a", "a", GU, "1", 0.2), *three("b", "a", GU, "5", 0.4)]
    cells[5] = (cells[5][0], None)
    text = render(sweep([*cells, (("x", "b", GU, "1", 0), 0.1)]))
    missing = section(text, "What is missing")
    assert "- a, global_uniform k=5: seed 2 (b2: no result)" in missing
    assert "- b, global_uniform k=1: seed 1 and seed 2 (not in the manifest)" in missing
    assert "- b, global_uniform k=5: seed 0, seed 1 and seed 2 (not in the manifest)" in missing
    assert "- Regime incremental_natural: not in the manifest" in missing
    assert "**Incomplete:** 6 cells of the sweep have no result" in text
    assert "k=5 (incomplete)" in section(text, "All conditions")


def test_a_complete_sweep_has_nothing_missing(sweep):
    cells = [*three("a", "a", GU, "1", 0.2), *three("b", "a", IN, "0.1", 0.2)]
    cells += three("c", "a", TA, "0", 0.2)
    text = section(render(sweep(cells)), "What is missing")
    assert text.strip() == "Nothing: every condition of the manifest has all seeds."


def test_equal_warnings_are_listed_once_with_their_models(sweep):
    def warned(seed):
        return {
            "value": 0.3,
            "warnings": [
                ("iid_test", "7 boxes <b>excluded</b>"),
                ("semantic_ood", f"{seed + 2},000 boxes of 9.{seed} % odd"),
            ],
        }

    text = render(sweep([((f"m{s}", "a", GU, "1", s), warned(s)) for s in range(3)]))
    first, second = section(text, "Warnings").strip().splitlines()
    assert first == "- iid_test, 3 models (m0, m1 and m2): 7 boxes &lt;b&gt;excluded&lt;/b&gt;"
    assert second.startswith(
        "- semantic_ood, 3 models (m0, m1 and m2): numbers differ, for example: 2,000 boxes"
    )


def test_warnings_are_announced_above_the_first_table_and_their_models_marked(sweep, tmp_path):
    warned = {"value": 0.3, "warnings": [("iid_test", "9 boxes odd")]}
    cells = [*three("a", "a", GU, "1", 0.2), *three("b", "b", GU, "1", 0.2)]
    cells[1] = (cells[1][0], warned)
    path = write_report(sweep(cells), tmp_path)
    text = path.read_text()
    headline = section(text, "Headline")
    assert headline.index("**1 model has warnings: see [Warnings](#warnings).**") < headline.index(
        "| Architecture |"
    )
    assert "| a | global_uniform k=1 (warnings) |" in headline
    assert "| b | global_uniform k=1 |" in headline
    rows = section(text, "All conditions")
    assert "| a | global_uniform | k=1 (warnings) |" in rows
    assert document.warnings_notice(path) == f"1 model has warnings: see {path}"
    path = write_report(sweep(three("c", "c", GU, "1", 0.2)), tmp_path)
    assert "have warnings" not in path.read_text()
    assert document.warnings_notice(path) is None
    assert document.warnings_notice(tmp_path / "none.md") is None


def test_all_images_are_one_training_set_whatever_the_regime(sweep):
    # 0.5, 0.51, 0.52 and 0.44, 0.46, 0.48 have the mean 0.485; t(5) = 2.5706, std 0.0308
    cells = [*three("g5", "a", GU, "5", 0.43), *three("g", "a", GU, "all", 0.51)]
    cells += [*three("i", "a", IN, "0.1", 0.2), *three("j", "a", IN, "1", 0.46, 0.02)]
    text = render(sweep(cells))
    pooled = "0.485 (0.453 to 0.517; n=6)"
    same = "global_uniform k=all and incremental_natural p=1 are the same training set"
    assert same in section(text, "Headline")
    assert f"| a | {pooled} |" in section(text, "Headline")
    growth = section(text, "Data efficiency")
    # two budgets: the only step is from 5 to all; three seeds (0.485 to 0.535) and six against
    # 0.430 (0.405 to 0.455)
    assert "the change in AP@[.5:.95] is positive. It changes from 0.430" in growth
    assert (
        "incremental_natural p=1 is the same training set as k=all; with its seeds included, the "
        "change over this step is inconclusive (the intervals overlap)." in growth
    )
    # copies of one file are not independent
    same_files = [(row, {"value": made, "predictions": {"iid_test": "d"}}) for row, made in cells]
    assert "0.485 (n=6, same files)" in section(render(sweep(same_files)), "Headline")
    # one regime alone is not pooled
    assert same not in render(sweep(cells[:6]))


def test_notes_are_listed_like_warnings(sweep):
    def noted(seed):
        return {"value": 0.3, "per_split__iid_test__notes": [f"{seed + 3} images without a box"]}

    cells = [((f"m{s}", "a", GU, "1", s), noted(s)) for s in range(2)]
    cells.append((("m2", "a", GU, "1", 2), 0.3))
    table = sweep(cells)
    assert [(note.split, note.alike, note.models) for note in table.notes] == [
        ("iid_test", False, ["m0", "m1"])
    ]
    text = render(table)
    assert section(text, "Warnings").strip() == "None."
    assert section(text, "Notes").strip() == (
        "- iid_test, 2 models (m0 and m1): numbers differ, for example: 3 images without a box"
    )


def test_notes_that_differ_in_number_and_plural_are_grouped(sweep):
    def noted(seed):
        n = "1 image" if seed == 0 else f"{seed + 1} images"
        return {"value": 0.3, "notes": [("iid_test", f"{n} beyond the cap")]}

    table = sweep([((f"m{s}", "a", GU, "1", s), noted(s)) for s in range(3)])
    assert [item.models for item in table.notes] == [["m0", "m1", "m2"]]


def test_numbers_of_images_are_labelled_as_counted_or_expected(sweep, tmp_path):
    notes = [{"id": i, "image_id": i} for i in (1, 2)]
    (tmp_path / "t.json").write_text(json.dumps({"annotations": notes}))
    cells = [(("m", "a", GU, "1", 0, "t.json"), 0.5)]
    header = "model_name,architecture,regime,k_or_p,seed,train_annotations"
    rows = section(render(sweep(cells, header)), "All conditions")
    assert "Distinct training images: counted in the training annotations that" in rows
    assert "| k=1 | 2 |" in rows
    rows = section(render(sweep([*cells, (("n", "a", GU, "5", 0, ""), 0.5)], header)), "All cond")
    assert "counted in the training annotations that the manifest names, or ('about') exp" in rows
    assert "| k=1 | 2 |" in rows
    assert "| k=5 | about 12 |" in rows
    rows = section(render(sweep([(("n", "a", GU, "5", 0, ""), 0.5)], header)), "All conditions")
    assert "Distinct training images: expected values over" in rows
    assert "| k=5 | 12 |" in rows


def test_the_report_has_caveats_and_provenance(sweep, tmp_path):
    table = sweep(three("a", "a", GU, "1", 0.2))
    text = render(table)
    caveats = section(text, "How to read these numbers")
    for word in (
        "nearly all specimens are large",
        "upper bound",
        "The two largest account for",
        "2 scored",
    ):
        assert word in caveats
    provenance = section(text, "Provenance")
    assert table.benchmark.digest in provenance
    assert table.inputs.manifest in provenance
    assert str(tmp_path) not in text


def test_names_from_the_manifest_are_plain_text(sweep):
    name = "<img src=x>|[a](http://x)*_`"
    table = sweep([((f"m{s}<script>", name, GU, "1", s), 0.2 + s / 10) for s in range(2)])
    text = render(table)
    assert "<img" not in text
    assert "<script>" not in text
    assert "](http" not in text
    rows = [line for line in section(text, "All conditions").splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert escape("a_b*c") == r"a_b\*c"
    assert escape("_a_ __b a_") == r"\_a\_ \_\_b a\_"
    assert escape("a: b https://x :c:") == "a: b https&#58;//x &#58;c:"


def test_every_plot_is_linked_with_its_caption_under_its_question(sweep):
    known = three("a", "a", GU, "1", 0.2)
    targets = [((f"t{s}", "a", TA, "1", s), {"value": 0.2, "species_ap": {1: 0.1}}) for s in (0, 1)]
    text = render(sweep([*known, *targets]))
    for plot in PLOTS:
        assert f"![{plot.title}](../plots/{plot.name}.svg)" in section(text, plot.question)
        assert plot.caption in text
    bare = render(sweep(known), plots=None)
    assert "![" not in bare


def test_plots_of_target_species_are_omitted_without_target_species(sweep):
    text = render(sweep(three("a", "a", GU, "1", 0.2)))
    assert "![" not in section(text, "Target species")
    assert "![" in section(text, "Confidence")


@pytest.mark.parametrize(
    "cells",
    [
        [(("m", "a", GU, "1", 0), 0.5)],
        [(("m", "a", TA, "0", 0), None), (("n", "a", TA, "0", 1), 0.1)],
        [(("m", "a", IN, "0.1", 0), {"value": None})],
        [(("m", "a", GU, "1", 0), {"value": 0.5, "splits": ("semantic_ood",)})],
        [(("m", "a", GU, "1", 0), {"value": 0.5, "splits": ("inat_test",)})],
    ],
    ids=["one model", "one missing", "undefined", "only ood", "only inat"],
)
def test_a_report_is_written_for_any_incomplete_sweep(sweep, cells, tmp_path):
    table = sweep(cells)
    path = write_report(table, tmp_path / "r")
    text = path.read_text()
    assert path.name == document.REPORT
    for title in ("What was run", "Headline", "Target species", "Confidence", "Provenance"):
        assert section(text, title).strip()
    assert "None" not in text.replace("None.", "")
    assert "nan" not in text.lower().replace("provenance", "")


def test_a_single_unnamed_architecture_is_not_named(sweep):
    rows = [(("a", GU, "1", 0), 0.5), (("b", GU, "1", 1), 0.6)]
    text = render(sweep(rows, header="model_name,regime,k_or_p,seed"))
    assert "default" not in text
    assert "2 models under 1 training condition, seeds 0 and 1." in text


def test_commands_write_plots_and_report(sweep, tmp_path):
    sweep(three("a", "a", GU, "1", 0.2))
    aggregated = str(tmp_path / "out" / "aggregated.json")
    main(["plot", "--aggregated", aggregated, "--output-dir", str(tmp_path / "plots"),
          "--format", "svg", "--only", "imbalance_gap"])  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "plots").iterdir()) == [RECORD, "imbalance_gap.svg"]
    main(["report", "--aggregated", aggregated, "--output-dir", str(tmp_path / "out")])
    assert (tmp_path / "out" / "report.md").read_text().startswith("# Report of the sweep\n")


def test_a_failed_aggregation_removes_the_report(sweep, tmp_path, capsys):
    sweep(three("a", "a", GU, "1", 0.2))
    call = ["aggregate", "--eval-dir", str(tmp_path / "eval"), "--manifest",
            str(tmp_path / "manifest.csv"), "--benchmark-dir", str(tmp_path / "benchmark"),
            "--output-dir", str(tmp_path / "out")]  # fmt: skip
    main(call)
    assert "benchmark-eval plot" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.md").exists()
    (tmp_path / "eval" / "a0_summary.json").unlink()
    with pytest.raises(SystemExit):
        main(call)
    assert list((tmp_path / "out").iterdir()) == []
