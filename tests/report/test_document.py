"""The text of the report: results with their uncertainty, and what is missing."""

import json
import re

import pytest
from msgspec.structs import replace
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation
from support.small_sweep import noisy

from benchmark_eval.cli.main import main
from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.intervals import estimate as mean_over
from benchmark_eval.core.outputs import RECORD
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.report import document, write_report
from benchmark_eval.report.captions import PLOTS
from benchmark_eval.report.conclusions import conclusions
from benchmark_eval.report.document import render
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.markdown import (
    escape,
    listing,
    number,
    over_seeds,
    spread,
    with_interval,
)
from benchmark_eval.report.questions import bottom_line
from benchmark_eval.sweep import aggregate

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


def test_numbers_have_the_precision_of_their_interval():
    assert with_interval(0.5371, 0.5271, 0.5471) == "0.537 [0.527, 0.547]"
    assert with_interval(0.5371, 0.3971, 0.6771) == "0.54 [0.40, 0.68]"
    # 35 keeps both digits of the half-width, 36 one
    assert with_interval(0.5, 0.465, 0.535) == "0.500 [0.465, 0.535]"
    assert with_interval(0.5, 0.464, 0.536) == "0.50 [0.46, 0.54]"
    assert with_interval(0.5, 0.0, 1.0) == "0.50 [0.00, 1.00]"
    assert with_interval(0.5, 0.49999, 0.50001) == "0.5000 [0.5000, 0.5000]"
    assert with_interval(0.08, 0.002, 0.158, sign=True) == "+0.08 [0.002, 0.16]"
    assert with_interval(-0.0001, -0.1, 0.1, sign=True) == "+0.00 [-0.10, 0.10]"
    retraining = {"covers": Covers.RETRAINING}
    assert with_interval(0.5, 0.4, 0.6, **retraining) == "0.50 [0.40, 0.60; retraining]"
    assert with_interval(0.5, None, None, reason="one seed") == "0.50 (no interval: one seed)"
    assert with_interval(None, None, None, reason="no defined value") == (
        "undefined (no defined value)"
    )
    # an interval of width 0 would look like certainty
    assert with_interval(0.5, 0.5, 0.5) == "0.50 (no interval: no variation)"


def test_means_over_seeds():
    assert over_seeds(mean_over([0.50, 0.54, 0.58])) == "0.54 [0.44, 0.64; retraining]"
    assert over_seeds(mean_over([0.5])) == "0.50 (no interval: only one seed)"
    assert over_seeds(mean_over([])) == "undefined (no defined value)"
    assert over_seeds(mean_over([0.5, 0.5])) == "0.50 (no interval: no variation)"
    assert spread(mean_over([0.50, 0.54, 0.58])) == "0.54 (SD 0.04)"
    assert spread(mean_over([0.5])) == "0.50"
    assert number(None) == "–"


def test_words():
    assert counted(1, "model") == "1 model"
    assert counted(1530, "model") == "1,530 models"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(list("abcde"), most=3) == "a, b, c and 2 more"


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
    assert "not tested (no variation)" in section(text, "How much data is enough?")
    rows = section(text, "All conditions")
    copied = "0.20 (no interval: seeds with the same prediction file), n=3"
    assert f"| k=1 (warnings) | 5 | {copied} | {copied} | 0.20" in rows
    assert [row.identical for row in table.learning_curves] == [
        ["iid_test", "inat_test"],
        ["inat_test"],
    ]


def test_an_architecture_called_default_is_named_beside_others(sweep):
    cells = [*three("m", "default", GU, "1", 0.2), *three("n", "b", GU, "1", 0.2)]
    cells[0] = (cells[0][0], None)
    text = render(sweep(cells))
    assert "all models" not in text
    assert "| default | global_uniform k=1 |" in section(text, "Which architecture is best?")
    assert "- default, global_uniform k=1: seed 0" in section(text, "What is missing")
    assert "2 architectures (b and default)" in text


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
    table = sweep(cells)
    (line,) = section(render(table), "What is missing").strip().splitlines()
    assert line.startswith("- Evidence (`<model>_evidence.npz`) of 9 models (a0, a1")
    text = section(render(replace(table, without_evidence=[])), "What is missing")
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
    top = section(text, "Bottom line")
    assert top.index("**1 model has warnings: see [Warnings](#warnings).**") < top.index("1. **")
    best = section(text, "Which architecture is best?")
    assert "| a | global_uniform k=1 (warnings) |" in best
    assert "| b | global_uniform k=1 |" in best
    rows = section(text, "All conditions")
    assert "| a | global_uniform | k=1 (warnings) |" in rows
    assert document.warnings_notice(path) == f"1 model has warnings: see {path}"
    path = write_report(sweep(three("c", "c", GU, "1", 0.2)), tmp_path)
    assert "have warnings" not in path.read_text()
    assert document.warnings_notice(path) is None
    assert document.warnings_notice(tmp_path / "none.md") is None


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
    assert "names or expected values over the random draw of images (about)." in rows
    assert "| k=1 | 2 |" in rows
    assert "| k=5 | about 12 |" in rows
    rows = section(render(sweep([(("n", "a", GU, "5", 0, ""), 0.5)], header)), "All conditions")
    assert "Distinct training images: expected values over" in rows
    assert "| k=5 | 12 |" in rows


def test_methods_name_versions_digests_options_tests_and_citation(sweep, tmp_path):
    shifts = {("a", GU, "1"): 0.0, ("a", GU, "2"): 0.2, ("b", GU, "1"): 0.0}
    table = sweep(noisy(shifts))
    text = render(table)
    methods = section(text, "Methods")
    for word in (
        table.benchmark.digest,
        table.inputs.manifest,
        table.inputs.scoring_code,
        f"benchmark-eval {table.inputs.package_version}",
        "| Option `iou_threshold` | 0.5 |",
        "Holm",
        "CITATION.cff",
        "10.5281/zenodo",
    ):
        assert word in methods, word
    tests = {(r.question, r.metric, r.scope): r.n_tests for r in table.comparisons}
    n = counted(sum(tests.values()), "test")
    asked = counted(sum(map(bool, tests.values())), "question")
    assert f"This report rests on {n} in {asked}" in methods
    for question in dict.fromkeys(r.question for r in table.comparisons):
        own = [number for (name, _, _), number in tests.items() if name == question]
        (row,) = re.findall(rf"^\| {question} \| (\d+) \| (\d+) \|", methods, re.M)
        assert row == (str(sum(map(bool, own))), str(sum(own)))
    assert str(tmp_path) not in text


def test_caveats_stand_in_their_section(sweep):
    text = render(sweep(three("a", "a", GU, "1", 0.2)))
    for title, words in (
        ("Does it work on unseen species?", "By construction"),
        ("Does it work on unseen species?", "The two largest account for"),
        ("Does it work on field photographs?", "2 scored specimens"),
        ("Can the confidence be trusted?", "it counts specimens, not species"),
    ):
        caution = section(text, title).partition("*Caution.*")[2]
        assert words in caution, words
    assert "By construction" not in section(text, "Methods")


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


def test_each_question_has_one_figure_with_its_conclusion_and_every_plot_is_linked_once(sweep):
    known = three("a", "a", GU, "1", 0.2)
    targets = [((f"t{s}", "a", TA, "1", s), {"value": 0.2, "species_ap": {1: 0.1}}) for s in (0, 1)]
    table = sweep([*known, *targets])
    text = render(table)
    drawn = re.findall(r"\]\(\.\./plots/(\w+)\.svg\)", text)
    assert sorted(drawn) == sorted(plot.name for plot in PLOTS)
    titles = conclusions(table)
    pictures = re.findall(r"^!\[(.*)\]\(\.\./plots/(\w+)\.svg\)$", text, re.M)
    captions = {plot.name: plot.caption for plot in PLOTS}
    for title, name in pictures:
        assert title == titles[name]
        assert captions[name] in text
    for title in re.findall(r"^## (.*)$", text, re.M):
        assert section(text, title).count("![") <= 1
    assert "![" not in render(table, plots=None)


def test_plots_of_target_species_are_omitted_without_target_species(sweep):
    text = render(sweep(three("a", "a", GU, "1", 0.2)))
    assert "![" not in section(text, "What do images of a target species bring?")
    assert "![" in section(text, "Can the confidence be trusted?")


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
    for title in re.findall(r"^## (.*)$", text, re.M):
        assert section(text, title).strip(), title
    assert len(bottom_line(Facts(table))) == 5
    assert all(sentence.endswith((".", ")")) for _, sentence in bottom_line(Facts(table)))
    assert "None" not in text.replace("None.", "")
    assert "nan" not in text.lower().replace("provenance", "")


def test_a_single_unnamed_architecture_is_not_named(sweep):
    rows = [(("a", GU, "1", 0), 0.5), (("b", GU, "1", 1), 0.6)]
    text = render(sweep(rows, header="model_name,regime,k_or_p,seed"))
    assert "default" not in text
    assert "2 models under 1 training condition, seeds 0 and 1, evaluated on" in text


def test_commands_write_plots_and_report(sweep, tmp_path):
    sweep(three("a", "a", GU, "1", 0.2))
    aggregated = str(tmp_path / "out" / "aggregated.json")
    main(["plot", "--aggregated", aggregated, "--output-dir", str(tmp_path / "plots"),
          "--format", "svg", "--only", "imbalance_tiers"])  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "plots").iterdir()) == [RECORD, "imbalance_tiers.svg"]
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
