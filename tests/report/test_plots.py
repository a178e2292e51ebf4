"""Plots show the numbers of the tables."""

import csv
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.text import Text
from msgspec.structs import replace
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation
from support.small_sweep import noisy, run_sweep
from support.workflow_sweep import Sweep

from benchmark_eval.core import fonts
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.intervals import Covers
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.report import captions, figures, looks
from benchmark_eval.report.conclusions import conclusions
from benchmark_eval.report.document import render
from benchmark_eval.report.draw import painters, plain, titles, write_plots
from benchmark_eval.report.plots.budget_panels import by_architecture
from benchmark_eval.report.plots.view import View
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep import aggregate
from benchmark_eval.sweep import table_rows as rows_of

pytestmark = pytest.mark.slow  # draws every plot

GU, IN, TA = BUDGETS
ROOT = Path(__file__).parents[2]


def lay(folder, cells):
    """A sweep of (architecture, regime, k, seed, value) on the small benchmark, aggregated."""
    benchmark = write_benchmark(folder / "benchmark")
    digests = load_benchmark(benchmark).digests
    rows = []
    for at, (architecture, regime, k, seed, made) in enumerate(cells):
        rows.append((f"m{at}", architecture, regime, k, seed))
        options = made if isinstance(made, dict) else {"value": made}
        write_evaluation(folder / "eval", evaluation(f"m{at}", benchmark=digests, **options))
    (folder / "manifest.csv").write_text(manifest_text(rows))
    return aggregate(
        eval_dir=folder / "eval",
        manifest=folder / "manifest.csv",
        benchmark=benchmark,
        output_dir=folder / "out",
    )


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two architectures, three regimes; a seed less at (b, gu, 5), an undefined AP at (a, all)."""
    folder = tmp_path_factory.mktemp("sweep")
    cells = []
    for a, architecture in enumerate(("a", "b")):
        for regime, ks in ((GU, ("1", "5", "all")), (IN, ("0.1", "1")), (TA, ("0", "5", "25"))):
            for i, k in enumerate(ks):
                for seed in range(3):
                    if (architecture, regime, k, seed) == ("b", GU, "5", 2):
                        continue
                    value = 0.1 + 0.2 * i + 0.03 * a + 0.01 * (seed - 1) ** 2 + 0.004 * seed
                    made = {"value": value, "species_ap": {1: value / 2, 3: value / 4}}
                    if (architecture, k, seed) == ("a", "all", 1):
                        made["per_split__iid_test__coco__AP_50_95"] = None
                    cells.append((architecture, regime, k, seed, made))
    return folder, lay(folder, cells)


@pytest.fixture(autouse=True)
def style():
    with figures.house_style():
        yield


def rows(folder, name):
    with (folder / "out" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def drawn(figure):
    """Every labelled line of a figure: (kind, key) -> (axes, x, y)."""
    found = {}
    for axes in figure.axes:
        for line in axes.lines:
            kind, _, key = str(line.get_label()).partition("|")
            if key:
                found.setdefault((kind, key), []).append((axes, *line.get_data()))
    return found


def intervals(figure, kind="retraining", along=1):
    """Every interval bar of a kind: key -> list of (position, low, high); ``along`` is its axis."""
    found = {}
    for axes in figure.axes:
        for item in axes.collections:
            if isinstance(item, LineCollection) and str(item.get_label()).startswith(f"{kind}|"):
                found[str(item.get_label())[len(kind) + 1 :]] = [
                    (ends[0, 1 - along], ends[0, along], ends[1, along])
                    for ends in item.get_segments()
                ]
    return found


def draw(table, name):
    return painters()[name](table)


def limits(cells, stem):
    """The defined intervals of csv rows."""
    return [
        (float(row[f"{stem}_low"]), float(row[f"{stem}_high"]))
        for row in cells
        if row[f"{stem}_low"]
    ]


def texts(figure):
    return [t.get_text() for axes in figure.axes for t in axes.texts]


def notes(figure):
    return " ".join(text.get_text() for text in figure.texts).replace("\n", " ")


@pytest.mark.parametrize("metric", [*HEADLINE, "iid_detection_recall", "novelty_det_AUROC"])
def test_curves_show_the_numbers_of_the_csv(sweep, metric):
    folder, table = sweep
    figure = by_architecture(View(table), "", [metric])
    lines = drawn(figure)
    thick, thin = intervals(figure), intervals(figure, "species")
    budgets = View(table).budgets
    checked = 0
    for architecture in ("a", "b"):
        for regime in (GU, IN, TA):
            key = f"{architecture}|{regime}|{metric}"
            ((axes, x, y),) = lines["mean", key]
            cells = [
                row
                for row in rows(folder, "learning_curves.csv")
                if (row["architecture"], row["regime"]) == (architecture, regime)
            ]
            assert list(y) == [float(row[f"{metric}_mean"]) for row in cells]
            at = budgets[regime].at
            assert np.allclose(x, [at[row["k_or_p"]] for row in cells], atol=0.2)
            ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            assert {t.get_text(): place for place, t in ticks} == at
            for bars, kind in ((thick, "retraining"), (thin, "species_retraining")):
                stem = f"{metric}_ci95_{kind}"
                expected = limits(cells, stem) if f"{stem}_low" in cells[0] else []
                assert [bar[1:] for bar in bars.get(key, [])] == expected
            dots = sorted(lines["seeds", key][0][2])
            assert dots == sorted(
                float(row[metric])
                for row in rows(folder, "models.csv")
                if (row["architecture"], row["regime"]) == (architecture, regime) and row[metric]
            )
            checked += len(y) + len(dots)
    assert checked > 50
    assert texts(figure).count("n=2") == (2 if metric == HEADLINE[0] else 1)


def test_the_interval_over_species_is_drawn_beside_that_over_retraining(tmp_path):
    made = list(noisy({("a", GU, "1"): 0.0, ("a", GU, "5"): 0.1}))
    table, cells = run_sweep(tmp_path / "sweep", made)
    figure = draw(table, "learning_iid_AP_50_95")
    stem = f"{HEADLINE[0]}_ci95_"
    for kind, column in (("species", "species_retraining"), ("retraining", "retraining")):
        (bars,) = intervals(figure, kind).values()
        assert [bar[1:] for bar in bars] == limits(cells, stem + column)
        assert len(bars) == 2
    assert "thin bar: over species and retraining" in notes(figure)
    (bars,) = intervals(draw(table, "learning_ood_class_agnostic_AR_100")).values()
    assert len(bars) == 2
    assert "over species" not in notes(draw(table, "learning_ood_class_agnostic_AR_100"))


def test_budgets_are_on_a_log2_axis_with_0_and_all_apart(sweep):
    budgets = View(sweep[1]).budgets
    assert budgets[GU].at["5"] - budgets[GU].at["1"] == pytest.approx(np.log2(5))
    assert budgets[IN].at == {"0.1": pytest.approx(np.log2(0.1)), "1": 0.0}
    assert budgets[GU].at["all"] == max(budgets[GU].at.values())
    assert budgets[GU].apart == [budgets[GU].at["all"]]
    assert budgets[TA].apart == [budgets[TA].at["0"]] == [min(budgets[TA].at.values())]
    figure = draw(sweep[1], "learning_iid_AP_50_95")
    labels = [[t.get_text() for t in axes.get_xticklabels()][::-1] for axes in figure.axes]
    assert labels == [["1", "5", "all"], ["0.1", "1"], ["0", "5", "25"]]
    # the line does not lead to what stands apart, except dotted
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert ":" in styles
    assert {line.get_linestyle() for line in figure.axes[1].lines} <= {"-", "None"}


def test_target_grid_shows_each_cell_and_what_is_0_by_construction(sweep):
    folder, table = sweep
    figure = draw(table, "target_grid")
    for axes, architecture in zip(figure.axes, ("a", "b"), strict=True):
        shown = {tuple(map(round, text.get_position())): text.get_text() for text in axes.texts}
        cells = [
            row
            for row in rows(folder, "target_species_curves.csv")
            if (row["architecture"], row["split"]) == (architecture, "iid_test")
        ]
        assert len(shown) == len(cells) == 9
        bands = ["near_genus", "mid_tribe", "far_tribe"]
        for row in cells:
            at = (["0", "5", "25"].index(row["k"]), bands.index(row["band"]))
            mean = f"{float(row['AP_50_95_mean']):.2f}"
            assert shown[at] == ("0" if row["k"] == "0" else mean)
        assert [patch.get_hatch() for patch in axes.patches].count("////") == 3
    assert "0 by construction" in notes(figure)


def test_gains_of_targets_show_the_numbers_of_the_csv(sweep):
    folder, table = sweep
    figure = draw(table, "target_gains")
    lines, bars = drawn(figure), intervals(figure, "species")
    compared = 0
    for architecture in ("a", "b"):
        for band in ("near_genus", "mid_tribe", "far_tribe"):
            key = f"{architecture}|target|{band}"
            cells = [
                row
                for row in rows(folder, "target_gains.csv")
                if (row["architecture"], row["split"], row["level"], row["band"], row["metric"])
                == (architecture, "iid_test", "band", band, "AP_50_95")
                and row["k"] != "0"
            ]
            ys = [float(row["gain"]) for row in cells if row["gain"]]
            assert [list(y) for _, _, y in lines.get(("mean", key), [])] == ([ys] if ys else [])
            assert [bar[1:] for bar in bars.get(key, [])] == limits(cells, "gain_ci95")
            compared += len(ys)
        others = [
            float(row["a_minus_b"])
            for row in rows(folder, "comparisons.csv")
            if (row["question"], row["scope"]) == ("other_species", architecture)
        ]
        shown = [
            y
            for (kind, key), found in lines.items()
            if kind == "mean" and key.startswith(f"{architecture}|other|")
            for y in found[0][2]
        ]
        assert sorted(shown) == sorted(others)
        assert others
    assert compared >= 8


@pytest.mark.parametrize("unit", ["n_images", "n_specimens"])
def test_budget_axis_shows_the_costs_of_the_csv(sweep, unit):
    folder, table = sweep
    figure = draw(table, f"budget_{unit[2:]}")
    lines = drawn(figure)
    for architecture in ("a", "b"):
        for regime in (GU, IN, TA):
            for metric in HEADLINE:
                ((_, x, y),) = lines["mean", f"{architecture}|{regime}|{metric}"]
                cells = [
                    row
                    for row in rows(folder, "budget_curves.csv")
                    if (row["architecture"], row["regime"]) == (architecture, regime)
                ]
                assert list(x) == [math.log2(float(row[unit])) for row in cells]
                assert list(y) == [float(row[f"{metric}_mean"]) for row in cells]
                # budget_curves.csv has no intervals: those of learning_curves.csv
                curves = [
                    row
                    for row in rows(folder, "learning_curves.csv")
                    if (row["architecture"], row["regime"]) == (architecture, regime)
                ]
                bars = intervals(figure).get(f"{architecture}|{regime}|{metric}", [])
                assert [bar[1:] for bar in bars] == limits(curves, f"{metric}_ci95_retraining")


def test_equal_budgets_show_the_differences_and_the_common_costs(sweep):
    folder, table = sweep
    figure = draw(table, "equal_budget")
    (row,) = (
        row
        for row in rows(folder, "comparisons.csv")
        if row["question"] == "equal_budget_images"
        and row["metric"] == HEADLINE[0]
        and (row["a"].split(",")[0], row["b"].split(",")[0]) == (f"a {GU}", f"a {IN}")
    )
    expected = f"im. {float(row['a_minus_b']):+.2f}".replace("-", "\N{MINUS SIGN}")
    assert any(text.startswith(expected) and row["verdict"] in text for text in texts(figure))
    costs = {
        regime: [float(r["n_images"]) for r in rows(folder, "budget_curves.csv")
                 if (r["architecture"], r["regime"]) == ("a", regime)]
        for regime in (GU, IN)
    }  # fmt: skip
    low = math.log2(max(min(each) for each in costs.values()))
    high = math.log2(min(max(each) for each in costs.values()))
    (shade,) = [p for p in figure.axes[0].patches if p.get_label() == "common"]
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("name", "question"), [("architecture_differences", "architectures"), ("steps", "steps")]
)
def test_forests_show_every_comparison_with_its_verdict(sweep, name, question):
    folder, table = sweep
    figure = draw(table, name)
    cells = [row for row in rows(folder, "comparisons.csv") if row["question"] == question]
    assert cells
    marks = {
        "higher": "D",
        "lower": "D",
        "inconclusive": "o",
        "inconclusive after correction": "o",
        "not tested": "x",
    }
    for metric in dict.fromkeys(row["metric"] for row in cells):
        own = [row for row in cells if row["metric"] == metric]
        shown = sorted(
            (x, line.get_marker())
            for axes in figure.axes
            for line in axes.lines
            if str(line.get_label()).endswith(f"|{metric}")
            for x in line.get_xdata()
        )
        assert shown == sorted(
            (float(row["a_minus_b"]), marks[row["verdict"]]) for row in own if row["a_minus_b"]
        )
        bars = intervals(figure, "ci95", along=0).get(metric, [])
        expected = [(low, high) for low, high in limits(own, "ci95") if low != high]
        assert [bar[1:] for bar in bars] == expected


def test_a_single_condition_is_centred_with_its_cost_as_tick(tmp_path):
    table = lay(tmp_path, [("a", GU, "1", seed, 0.5) for seed in range(2)])
    for unit in ("n_images", "n_specimens"):
        figure = draw(table, f"budget_{unit[2:]}")
        value = getattr(table.budget_curves[0], unit)
        for axes in figure.axes:
            low, high = axes.get_xlim()
            ticks = [2**t for t in axes.get_xticks() if low <= t <= high]
            assert ticks
            assert all(0.5 * value < tick < 2 * value for tick in ticks)
    figure = painters()["decomposition_iid"](table)
    for axes in figure.axes:
        low, high = axes.get_xlim()
        places = [
            x for line in axes.lines if "|" in str(line.get_label()) for x in line.get_xdata()
        ]
        assert max(places) - min(places) < 0.2 * (high - low)
    # no model on all images: the card is neither drawn nor mentioned
    assert not any("card" in text.get_text() for text in figure.legends[0].get_texts())
    assert not any("Shaded box: " in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(("iou", "boxes"), [(0.5, 9), (0.75, 0)])
def test_the_card_is_not_drawn_if_measured_at_another_iou(sweep, iou, boxes):
    table = sweep[1]
    options = {**table.inputs.options, "iou_threshold": iou}
    table = replace(table, inputs=replace(table.inputs, options=options))
    for name, there in (("decomposition_iid", boxes), ("learning_iid_AP_50", 2)):
        figure = painters()[name](table)
        drawn_boxes = [p for axes in figure.axes for p in axes.patches if p.get_label() == "card"]
        assert (len(drawn_boxes) > 0) is (there > 0), name
        notes = " ".join(text.get_text() for text in figure.texts)
        assert ("Shaded box: " in notes) is (there > 0), name


def test_the_best_threshold_of_the_report_is_marked(sweep):
    figure = draw(sweep[1], "operating_curve")
    text = render(sweep[1])
    for name in ("a", "b"):
        ((_, x, _),) = drawn(figure)["best threshold", f"{name}|iid_test"]
        assert f"| {name} | {x[0]:.2f} |" in text


def test_operating_curve_shows_the_numbers_of_the_csv(sweep):
    folder, table = sweep
    figure = draw(table, "operating_curve")
    lines = drawn(figure)
    for split in ("iid_test", "inat_test", "semantic_ood"):
        ((_, x, y),) = lines["threshold", f"a|{split}|recall"]
        cells = [
            row
            for row in rows(folder, "operating_curves.csv")
            if (row["architecture"], row["split"]) == ("a", split)
        ]
        assert list(x) == [float(row["confidence"]) for row in cells]
        assert list(y) == [float(row["recall_mean"]) for row in cells]
        # fewer than 10 detections: no precision
        assert ("threshold", f"a|{split}|precision") not in lines
    assert ("threshold", "a|semantic_ood|species_recall") not in lines
    facts = table.benchmark.splits["inat_test"]
    row = next(
        row
        for row in table.operating_curves
        if (row.architecture, row.split) == ("a", "inat_test")
        and row.confidence == lines["best threshold", "a|iid_test"][0][1][0]
    )
    true = row.metrics["recall"].mean * facts.n_scored
    false = row.metrics["false_positives_per_image"].mean * facts.n_images
    assert f"{true:,.0f} true, {false:,.0f} false" in texts(figure)


def test_precision_is_drawn_where_it_rests_on_ten_detections(sweep):
    table = sweep[1]
    splits = {name: replace(facts, n_scored=1000) for name, facts in table.benchmark.splits.items()}
    table = replace(table, benchmark=replace(table.benchmark, splits=splits))
    lines = drawn(draw(table, "operating_curve"))
    ((_, x, y),) = lines["threshold", "a|iid_test|precision"]
    cells = [row for row in table.operating_curves
             if (row.architecture, row.split) == ("a", "iid_test")]  # fmt: skip
    assert list(x) == [row.confidence for row in cells]
    assert list(y) == [row.metrics["precision"].mean for row in cells]


def share(stratum, value, n_images, **changes):
    """A row of pooled_shares.csv of architecture a."""
    made = {
        "architecture": "a", "regime": GU, "k_or_p": "all", "split": "semantic_ood",
        "band": "near_genus", "stratum": stratum, "share": "detection_recall",
        "n_images": n_images, "n_specimens": 50, "n_species": 5, "n_effective_species": 4.0,
        "n_seeds": 3, "pooled": 0.4, "ci95_low": 0.3, "ci95_high": 0.5, "covers": Covers.BOTH,
        "bootstrap_low": None, "bootstrap_high": None, "leave_one_out_low": None,
        "leave_one_out_high": None, "size_correlation": None, "reason": None, "no_verdict": None,
        "species_mean": value, "species_mean_n": 5, "species_mean_ci95_low": value - 0.1,
        "species_mean_ci95_high": value + 0.1, "species_mean_reason": None,
        "species_mean_n_left_out": 0, "species_mean_no_verdict": None,
    }  # fmt: skip
    return rows_of.ShareRow(**{**made, **changes})


def best_of_a(table):
    row = next(row for row in table.operating_curves if row.architecture == "a")
    return {"regime": row.regime, "k_or_p": row.k_or_p}


def test_a_stratum_of_few_images_has_no_line_and_no_interval(sweep):
    table = sweep[1]
    best = best_of_a(table)
    cells = [share("1", 0.9, 30, **best), share("2 to 10", 0.2, 9, **best),
             share(">10", 0.7, 10, **best)]  # fmt: skip
    figure = draw(replace(table, pooled_shares=cells, band_gaps=[]), "band_density")
    ((_, x, y),) = drawn(figure)["mean", "a|semantic_ood/near_genus"]
    assert np.array_equal(y, [0.9, np.nan, 0.7], equal_nan=True)
    ((_, few, value),) = drawn(figure)["few", "a|semantic_ood/near_genus"]
    assert (list(few), list(value)) == ([x[1]], [0.2])
    bars = intervals(figure, "species")["a|semantic_ood/near_genus"]
    assert [bar[1:] for bar in bars] == [(0.8, 1.0), (0.6, pytest.approx(0.8))]


def test_an_interval_of_zero_width_is_not_drawn(sweep):
    best = best_of_a(sweep[1])
    cell = share("1", 0.9, 30, **best, species_mean_ci95_low=0.9, species_mean_ci95_high=0.9)
    figure = draw(replace(sweep[1], pooled_shares=[cell], band_gaps=[]), "band_density")
    assert intervals(figure, "species") == {}


def test_reliability_shows_bins_of_at_least_ten_detections(sweep):
    table = sweep[1]
    made = {
        "architecture": "a", **best_of_a(table), "split": "iid_test", "event": "detected",
        "threshold": "all", "lower": 0.0, "upper": 1.0, "n_species": 5, "n_seeds": 3,
        "covers": Covers.BOTH, "reason": None,
    }  # fmt: skip
    cells = [
        rows_of.ReliabilityRow(**made, bin=at, n=n, mean_confidence=x, observed=y,
                               ci95_low=y - 0.05, ci95_high=y + 0.05)
        for at, (n, x, y) in enumerate([(20, 0.2, 0.1), (10, 0.6, 0.5), (9, 0.9, 0.9)])
    ]  # fmt: skip
    figure = draw(replace(table, reliability=cells), "reliability")
    ((_, x, y),) = drawn(figure)["mean", "detected|all|iid_test|a"]
    assert (list(x), list(y)) == ([0.2, 0.6], [0.1, 0.5])
    assert len(intervals(figure, "species")["detected|all|iid_test|a"]) == 2


def test_error_types_are_stacked_without_the_sum_of_wrong_names(sweep):
    table = sweep[1]
    made = {
        "architecture": "a", **best_of_a(table), "split": "iid_test", "n_seeds": 3,
        "per_100_images_ci95_retraining_low": None, "per_100_images_ci95_retraining_high": None,
        "per_100_images_reason": None, "dAP_50_ci95_retraining_low": 0.01,
        "dAP_50_ci95_retraining_high": 0.03, "dAP_50_reason": None,
    }  # fmt: skip
    values = {"wrong_name": 9.0, "wrong_name_congener": 4.0, "wrong_name_other": 5.0,
              "missed": 20.0, "correct": 70.0}  # fmt: skip
    cells = [rows_of.ErrorRow(**made, error_type=kind, per_100_images=value, dAP_50=0.02)
             for kind, value in values.items()]  # fmt: skip
    figure = draw(replace(table, error_types=cells), "error_types")
    bars = [(p.get_x(), p.get_width()) for p in figure.axes[0].patches]
    assert bars == [(0, 4), (4, 5), (9, 20)]
    assert [bar[1:] for bar in intervals(figure, along=0)["a"]] == [(0.01, 0.03)] * 3


def test_species_are_sorted_with_their_intervals_and_marks(sweep):
    table = sweep[1]
    figure = draw(table, "species")
    known = [row for row in table.species if row.iid_AP_50_95 is not None]
    assert len(known) == 5
    (axes,) = figure.axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    expected = sorted(known, key=lambda row: (-row.iid_AP_50_95, row.species))
    assert labels == [row.species for row in expected]
    bars = intervals(figure, along=0)
    for y, row in enumerate(expected):
        ((_, x, at),) = drawn(figure)["mean", str(row.category_id)]
        assert (list(x), list(at)) == ([row.iid_AP_50_95], [y])
        low, high = row.iid_AP_50_95_ci95_retraining_low, row.iid_AP_50_95_ci95_retraining_high
        if low is not None and low != high:
            assert bars[str(row.category_id)] == [(y, max(low, 0.0), min(high, 1.0))]


def test_novelty_histograms_and_their_separation(sweep):
    table = sweep[1]
    made = {"architecture": "a", **best_of_a(table), "n_seeds": 3}
    cells = [
        rows_of.HistogramRow(**made, group=group, lower=low, upper=low + 0.5, n=3.0, share=value)
        for group, values in (("known, correct", (0.2, 0.8)), ("near_genus", (0.6, 0.4)))
        for low, value in zip((0.0, 0.5), values, strict=True)
    ]
    whole = rows_of.NoveltyRow(
        **made, band="", stratum="", n_known=10.0, n_novel=12.0, n_known_species=5,
        n_novel_species=3, AUROC=0.7, AUROC_ci95_species_low=0.6, AUROC_ci95_species_high=0.8,
        FPR_95TPR=0.74, FPR_95TPR_ci95_species_low=None, FPR_95TPR_ci95_species_high=None,
        reason=None,
    )  # fmt: skip
    figure = draw(replace(table, novelty_histograms=cells, novelty=[whole]), "novelty_histograms")
    (axes,) = figure.axes
    shown = {str(p.get_label()): list(p.get_data().values) for p in axes.patches}
    assert shown == {"share|a|known, correct": [0.2, 0.8], "share|a|near_genus": [0.6, 0.4]}
    heading = axes.get_title(loc="left")
    assert "AUROC 0.70 [0.60, 0.80]" in heading
    assert "FPR at 95 % TPR 0.74" in heading


def test_confusions_by_genus_are_those_of_the_best_architecture(sweep):
    table = sweep[1]
    best = max(("a", "b"), key=lambda name: max(
        row.metrics[HEADLINE[0]].mean or 0.0 for row in table.learning_curves
        if row.architecture == name))  # fmt: skip
    made = {
        "architecture": best, "regime": GU, "k_or_p": "all", "split": "iid_test",
        "threshold": "operating", "n_seeds": 3, "n": 0.5, "n_specimens": 2,
    }  # fmt: skip
    cells = [
        rows_of.GenusConfusionRow(**made, true_genus=true, predicted_genus=predicted, share=part)
        for true, predicted, part in (("Xa", "Yb", 0.25), ("Xa", "Xa", 0.0625))
    ]
    figure = draw(replace(table, genus_confusions=cells), "confusion_genus")
    axes = figure.axes[0]
    genera = [tick.get_text() for tick in axes.get_yticklabels()]
    (squares,) = [c for c in axes.collections if c.get_label() == "confusions"]
    found = {}
    for path in squares.get_paths():
        box = path.get_extents()
        centre = (round((box.y0 + box.y1) / 2), round((box.x0 + box.x1) / 2))
        found[tuple(genera[at] for at in centre)] = (box.width / 0.94) ** 2 * 0.3
    assert found == {("Xa", "Yb"): pytest.approx(0.25), ("Xa", "Xa"): pytest.approx(0.0625)}


@pytest.mark.parametrize("name", ["band_density", "confusion_genus", "error_types", "reliability",
                                  "novelty_histograms"])  # fmt: skip
def test_a_plot_without_its_table_says_why(sweep, name):
    empty = replace(sweep[1], pooled_shares=[], genus_confusions=[], error_types=[], reliability=[],
                    novelty_histograms=[], without_evidence=["m0"])  # fmt: skip
    assert "evidence" in notes(draw(empty, name)) or name == "error_types"
    assert "Not shown: " in notes(draw(empty, name))


def test_every_architecture_has_a_colour_of_its_own(tmp_path):
    names = [f"net{at}" for at in range(11)]
    cells = [(n, GU, k, 0, 0.3 + 0.01 * at + 0.1 * (k == "5"))
             for at, n in enumerate(names) for k in ("1", "5")]  # fmt: skip
    table = lay(tmp_path, cells)
    figure = draw(table, "learning_iid_AP_50_95")
    lines = {key: item for axes in figure.axes for item in axes.lines
             if (key := str(item.get_label())).startswith("mean|")}  # fmt: skip
    # the best eight; the others are thin and grey
    assert [key.split("|")[1] for key in lines] == sorted(names[3:])
    assert len({line.get_color() for line in lines.values()}) == 8
    assert len({line.get_marker() for line in lines.values()}) == 8
    grey = [item for axes in figure.axes for item in axes.lines
            if str(item.get_label()).startswith("other|")]  # fmt: skip
    assert len(grey) == 3
    assert {line.get_color() for line in grey} == {looks.OTHER}
    assert any("3 other architectures" in t.get_text() for t in figure.legends[0].get_texts())
    assert "8 of 11 architectures" in notes(figure)
    for plot in captions.PLOTS:
        assert draw(table, plot.name).get_figheight() < 12, plot.name


def test_no_colour_has_two_meanings():
    palettes = [
        looks.ARCHITECTURE_COLORS,
        *([look.color for look in palette.values()]
          for palette in (looks.REGIME_LOOK, looks.BAND_LOOK, looks.TIER_LOOK)),
    ]  # fmt: skip
    colors = [color for palette in palettes for color in palette]
    assert len(set(colors)) == len(colors)
    for palette in (looks.REGIME_LOOK, looks.BAND_LOOK, looks.TIER_LOOK, looks.RELATION_LOOK):
        assert len({look.marker for look in palette.values()}) == len(palette)
    assert len({(f.color, f.hatch) for f in looks.ERROR_FILL.values()}) == len(looks.ERROR_FILL)


def test_no_text_is_smaller_than_7_points_on_a_page(sweep):
    for name, paint in painters().items():
        figure = paint(sweep[1])
        assert figure.get_figwidth() <= 7.3, name
        figure.draw_without_rendering()
        small = {
            text.get_text()
            for text in figure.findobj(Text)
            if text.get_text() and text.get_fontsize() < 7
        }
        assert not small, name


def test_every_plot_has_a_painter_and_its_caption_in_the_workflow():
    names = [plot.name for plot in captions.PLOTS]
    assert len(set(names)) == len(names)
    assert list(painters()) == names
    for plot in captions.PLOTS:
        text = (ROOT / "workflow/report" / f"{plot.name}.rst").read_text()
        assert text == plot.caption + "\n", "renew: python -m benchmark_eval.report.captions"
    extra = {p.stem for p in (ROOT / "workflow/report").glob("*.rst")} - set(names)
    assert extra == {"workflow"}  # the first page of the report


def test_the_outputs_of_the_workflow_are_the_plots(tmp_path):
    output = Sweep.make(tmp_path).run("--dry-run", "plot_sweep")
    (made,) = re.findall(r"^rule plot_sweep:\n    input: .*\n    output: (.*)$", output, re.M)
    plots = [f"results/plots/{plot.name}.svg" for plot in captions.PLOTS]
    assert [name for name in made.split(", ") if name.startswith("results/plots/")] == plots


def test_the_list_of_plots_is_imported_without_numpy_and_matplotlib():
    code = (
        "import sys, benchmark_eval.report.captions\n"
        "print(sorted({'numpy', 'matplotlib', 'pandas', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_plots_are_written_with_the_same_bytes_each_time(sweep, tmp_path):
    _, table = sweep
    names = ["learning_iid_AP_50", "target_grid", "operating_curve"]
    first = write_plots(table, tmp_path / "1", names=names)
    assert [path.name for path in first] == [
        f"{n}.{kind}" for n in names for kind in ("svg", "png")
    ]
    for path in write_plots(table, tmp_path / "2", names=names):
        assert path.read_bytes() == (tmp_path / "1" / path.name).read_bytes(), path.name
    svg = (tmp_path / "1" / f"{names[0]}.svg").read_text()
    ET.fromstring(svg)
    assert "<dc:date>" not in svg


STIX = "Aᶁ"
"""A name with a letter that DejaVu Sans lacks and STIX, which is part of matplotlib, has."""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A sweep whose architecture has names in several scripts."""
    names = ("小蠹虫", STIX, "короед 'DejaVu Sans'", "حشرة")
    cells = [(name, GU, k, 0, 0.5) for name in names for k in ("1", "5")]
    return names, lay(tmp_path_factory.mktemp("foreign"), cells)


def installed(monkeypatch, *files):
    monkeypatch.setattr(fonts, "_installed", lambda: files)
    fonts._fallback.cache_clear()


def test_svg_keeps_text_and_does_not_depend_on_the_installed_fonts(foreign, tmp_path, monkeypatch):
    names, table = foreign
    plots = ["learning_iid_AP_50"]
    installed(monkeypatch)
    (svg, png) = write_plots(table, tmp_path / "1", names=plots)
    installed(monkeypatch, fonts.plot_font().with_name("STIXGeneral.ttf"))
    (other_svg, other_png) = write_plots(table, tmp_path / "2", names=plots)
    fonts._fallback.cache_clear()
    assert svg.read_bytes() == other_svg.read_bytes()
    assert png.read_bytes() != other_png.read_bytes()  # drawn with the other font
    found = list(ET.fromstring(svg.read_text()).iter("{http://www.w3.org/2000/svg}text"))
    assert set(names) <= {text.text for text in found}
    families = {
        re.search("font-family: ([^;]*)|font: .*?px ([^;]*)", t.get("style"))[0] for t in found
    }
    assert len(families) == 1
    assert families.pop().endswith(
        "'DejaVu Sans', Verdana, 'Noto Sans', Arial, Helvetica, sans-serif"
    )


def test_one_warning_names_the_characters_without_a_font(
    foreign, tmp_path, monkeypatch, caplog, recwarn
):
    installed(monkeypatch, fonts.plot_font().with_name("STIXGeneral.ttf"))
    write_plots(foreign[1], tmp_path, names=["learning_iid_AP_50", "target_grid", "novelty"])
    fonts._fallback.cache_clear()
    (record,) = caplog.records
    assert (
        "no installed font has the characters 小, 虫, 蠹; images show boxes" in record.getMessage()
    )
    assert "fonts-noto-cjk" in record.getMessage()
    assert not recwarn.list


def test_control_characters_leave_an_svg_well_formed(tmp_path):
    with figures.house_style():
        page = figures.Page(1, 1)
        page.flat[0].set_ylabel("a\x1b[2J\x00b")
        page.flat[0].set_xticks([0, 1], ["x\x07", "y"])
        figure = page.headings("", [], "")
        figures.save(figure, tmp_path / "a", ["svg"])
    texts = {
        text.text for text in ET.parse(tmp_path / "a.svg").iter("{http://www.w3.org/2000/svg}text")
    }
    assert {r"a\x1b[2J\x00b", r"x\x07", "y"} <= texts


def test_svg_alone_needs_no_font(foreign, tmp_path, monkeypatch, caplog):
    installed(monkeypatch)
    write_plots(foreign[1], tmp_path, ["svg"], names=["learning_iid_AP_50"])
    fonts._fallback.cache_clear()
    assert not caplog.records


def test_the_files_do_not_depend_on_the_number_of_jobs(sweep, tmp_path):
    names = ["novelty", "operating_curve", "steps"]
    write_plots(sweep[1], tmp_path / "1", names=names)
    for path in write_plots(sweep[1], tmp_path / "2", names=names, jobs=2):
        assert path.read_bytes() == (tmp_path / "1" / path.name).read_bytes(), path.name


def test_the_heading_is_the_conclusion_of_the_report_without_markup(sweep):
    found = conclusions(sweep[1])
    assert found
    headings = titles(sweep[1])
    assert list(headings) == [plot.name for plot in captions.PLOTS]
    for plot in captions.PLOTS:
        assert headings[plot.name] == plain(found.get(plot.name) or plot.title)
    assert plain(r"**p\_1** \*x\* &lt; `y` _z") == "p_1 *x* < y _z"


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param([("a", GU, "1", 0, 0.5)], id="one model"),
        pytest.param([("a", GU, "1", 0, 0.5), ("a", GU, "5", 0, 0.6)], id="one seed"),
        pytest.param([("a", TA, "0", 0, None)], id="all undefined"),
        pytest.param([("a", IN, "0.1", s, 0.0) for s in range(2)], id="all zero"),
        pytest.param([("a", GU, "1", 0, {"value": 0.5, "splits": ("iid_test",)})], id="one split"),
        pytest.param(
            [("a", GU, "1", 0, {"value": 0.5, "splits": ("semantic_ood",)})], id="only ood"
        ),
    ],
)
def test_every_plot_is_drawn_for_any_incomplete_sweep(cells, tmp_path):
    table = lay(tmp_path, cells)
    for name, paint in painters().items():
        figure = paint(table)
        assert figure.get_suptitle(), name
        assert figure.texts or any(axes.lines for axes in figure.axes), name


def test_many_architectures_with_odd_names_and_many_budgets_are_drawn_as_text(tmp_path):
    names = [*(f"$x^{i}_%<b>&" for i in range(7)), "W" * 32]
    table = lay(tmp_path, [(n, GU, str(k), 0, 0.5) for n in names for k in range(1, 16)])
    figure = draw(table, "learning_iid_AP_50_95")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    ticks = [t.get_window_extent() for t in figure.axes[0].get_xticklabels()][::-1]
    assert len(ticks) > 3
    assert all(left.x1 < right.x0 for left, right in pairwise(ticks))


def test_axis_labels_fit_their_panel_and_the_page(sweep):
    for name, paint in painters().items():
        figure = paint(sweep[1])
        figure.draw_without_rendering()
        for axes in figure.axes:
            if axes.get_ylabel():
                height = axes.yaxis.label.get_window_extent().height
                assert height <= axes.get_window_extent().height, (name, axes.get_ylabel())
            label = axes.xaxis.label.get_window_extent()
            assert 0 <= label.x0 <= label.x1 <= figure.bbox.width, (name, axes.get_xlabel())
        for text in (*figure.texts, figure._suptitle):
            assert text.get_window_extent().x1 <= figure.bbox.width, (name, text.get_text())


def test_an_unknown_plot_is_rejected(sweep, tmp_path):
    with pytest.raises(UsageError, match="unknown plot: nothing"):
        write_plots(sweep[1], tmp_path, names=["nothing"])


def test_captions_are_plain_text():
    """Captions are read as Markdown and as reStructuredText: they have no markup of either."""
    for plot in captions.PLOTS:
        assert not set("`*|<>") & set(plot.caption), plot.name
