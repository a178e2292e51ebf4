"""Plots show the numbers of the tables."""

import csv
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation
from support.workflow_sweep import Sweep

from benchmark_eval.core import fonts
from benchmark_eval.core.errors import UsageError
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.report import captions, figures
from benchmark_eval.report.document import render
from benchmark_eval.report.draw import painters, write_plots
from benchmark_eval.report.lookup import Lookup
from benchmark_eval.report.plots import budgets, curves, targets
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep import aggregate

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
    plt.close("all")


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


def intervals(figure):
    """Every interval bar: key -> list of (x, low, high)."""
    found = {}
    for axes in figure.axes:
        for item in axes.collections:
            if isinstance(item, LineCollection) and str(item.get_label()).startswith("ci95|"):
                found[str(item.get_label())[5:]] = [
                    (segment[0, 0], segment[0, 1], segment[1, 1]) for segment in item.get_segments()
                ]
    return found


@pytest.mark.parametrize("metric", [*HEADLINE, "iid_detection_recall", "novelty_det_AUROC"])
def test_curves_show_the_numbers_of_the_csv(sweep, metric):
    folder, table = sweep
    figure = curves.learning(table, metric)
    look = Lookup(table)
    lines, bars = drawn(figure), intervals(figure)
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
            # each point is at the tick of its budget
            ticks = dict(
                zip(axes.get_xticks(), (t.get_text() for t in axes.get_xticklabels()), strict=True)
            )
            assert [ticks[round(at)] for at in x] == [row["k_or_p"] for row in cells]
            assert look.budgets[regime] == list(ticks.values())
            expected = [
                (float(row[f"{metric}_ci95_low"]), float(row[f"{metric}_ci95_high"]))
                for row in cells
                if row[f"{metric}_ci95_low"]
            ]
            assert [bar[1:] for bar in bars[key]] == expected
            dots = sorted(lines["seeds", key][0][2])
            assert dots == sorted(
                float(row[metric])
                for row in rows(folder, "models.csv")
                if (row["architecture"], row["regime"]) == (architecture, regime) and row[metric]
            )
            checked += len(y) + len(dots)
    assert checked > 50
    texts = [t.get_text() for axes in figure.axes for t in axes.texts]
    assert texts.count("n=2") == (2 if metric == HEADLINE[0] else 1)
    plt.close(figure)


def test_zero_and_all_are_on_the_axes(sweep):
    figure = curves.learning(sweep[1], HEADLINE[0])
    labels = [[t.get_text() for t in axes.get_xticklabels()] for axes in figure.axes]
    assert labels == [["1", "5", "all"], ["0.1", "1"], ["0", "5", "25"]]
    plt.close(figure)


def test_target_grid_shows_value_and_n_of_each_cell(sweep):
    folder, table = sweep
    figure = targets.grid(table)
    for axes, architecture in zip(figure.axes, ("a", "b"), strict=True):
        shown = {
            (round(text.get_position()[0]), round(text.get_position()[1])): text.get_text()
            for text in axes.texts
            if not text.get_text().startswith("n=")
        }
        cells = [
            row
            for row in rows(folder, "target_species_curves.csv")
            if (row["architecture"], row["split"]) == (architecture, "iid_test")
        ]
        assert len(shown) == len(cells) == 9
        bands = ["near_genus", "mid_tribe", "far_tribe"]
        for row in cells:
            at = (["0", "5", "25"].index(row["k"]), bands.index(row["band"]))
            assert shown[at] == f"{float(row['AP_50_mean']):.2f}"
        assert [t.get_text() for t in axes.texts if t.get_text().startswith("n=")] == ["n=3"] * 9
    plt.close(figure)


def test_target_vs_nontarget_shows_the_numbers_of_the_csv(sweep):
    folder, table = sweep
    lines = drawn(figure := targets.target_vs_nontarget(table))
    for architecture in ("a", "b"):
        for side in ("target", "nontarget", "gap"):
            ((_, _, y),) = lines["mean", f"{architecture}|{TA}|iid_test/{side}/AP_50"]
            assert list(y) == [
                float(row[f"{side}_AP_50_mean"])
                for row in rows(folder, "target_vs_nontarget.csv")
                if (row["architecture"], row["split"]) == (architecture, "iid_test")
            ]
    plt.close(figure)


@pytest.mark.parametrize("unit", ["n_images", "n_specimens"])
def test_budget_axis_shows_the_costs_of_the_csv(sweep, unit):
    folder, table = sweep
    lines = drawn(figure := budgets.cost(table, unit))
    for architecture in ("a", "b"):
        for regime in (GU, IN, TA):
            for metric in HEADLINE:
                ((_, x, y),) = lines["cost", f"{architecture}|{regime}|{metric}"]
                cells = [
                    row
                    for row in rows(folder, "budget_curves.csv")
                    if (row["architecture"], row["regime"]) == (architecture, regime)
                ]
                assert list(x) == [float(row[unit]) for row in cells]
                assert list(y) == [float(row[f"{metric}_mean"]) for row in cells]
                # budget_curves.csv has no intervals: those of learning_curves.csv
                expected = [
                    (float(row[f"{metric}_ci95_low"]), float(row[f"{metric}_ci95_high"]))
                    for row in rows(folder, "learning_curves.csv")
                    if (row["architecture"], row["regime"]) == (architecture, regime)
                ]
                bars = intervals(figure)[f"{architecture}|{regime}|{metric}"]
                assert [bar[1:] for bar in bars] == expected
                assert [bar[0] for bar in bars] == list(x)
    plt.close(figure)


def test_a_single_condition_is_centred_with_its_cost_as_tick(tmp_path):
    table = lay(tmp_path, [("a", GU, "1", seed, 0.5) for seed in range(2)])
    for unit in ("n_images", "n_specimens"):
        figure = budgets.cost(table, unit)
        figure.draw_without_rendering()
        value = getattr(table.budget_curves[0], unit)
        for axes in figure.axes:
            low, high = axes.get_xlim()
            ticks = [t for t in axes.get_xticks() if low <= t <= high]
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


def test_lines_of_targets_and_others_meet_where_their_difference_is_zero(tmp_path):
    cells = [
        ("a", TA, k, s, {"value": 0.5, "species_ap": {1: at, 3: at}})
        for k, at in (("0", 0.1), ("25", 0.9))
        for s in range(2)
    ]
    table = lay(tmp_path, cells)
    # two cells fill their panel
    assert targets.grid(table).axes[0].get_xlim() == (-0.5, 1.5)
    lines = drawn(targets.target_vs_nontarget(table))
    place = {side: lines["mean", f"a|{TA}|iid_test/{side}/AP_50"][0][1:] for side in
             ("target", "nontarget", "gap")}  # fmt: skip

    def crossing(x, y):
        return x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0])

    met = crossing(place["target"][0], place["target"][1] - place["nontarget"][1])
    assert abs(met - crossing(*place["gap"])) < 0.12


@pytest.mark.parametrize(("iou", "boxes"), [(0.5, 9), (0.75, 0)])
def test_the_card_is_not_drawn_if_measured_at_another_iou(sweep, iou, boxes):
    from msgspec.structs import replace

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
    figure = painters()["operating_curve"](sweep[1])
    text = render(sweep[1])
    for name in ("a", "b"):
        ((_, x, _),) = drawn(figure)["best threshold", f"{name}|iid_test"]
        assert f"| {name} | {x[0]:.2f} |" in text


def test_operating_curve_shows_the_numbers_of_the_csv(sweep):
    folder, table = sweep
    lines = drawn(figure := painters()["operating_curve"](table))
    for split in ("iid_test", "inat_test", "semantic_ood"):
        ((_, x, y),) = lines["threshold", f"a|{split}|precision"]
        cells = [
            row
            for row in rows(folder, "operating_curves.csv")
            if (row["architecture"], row["split"]) == ("a", split)
        ]
        assert list(x) == [float(row["confidence"]) for row in cells]
        assert list(y) == [float(row["precision_mean"]) for row in cells]
    plt.close(figure)


def test_density_shows_the_numbers_of_the_csv(sweep):
    folder, table = sweep
    lines = drawn(figure := painters()["density_detection_recall"](table))
    ((_, x, y),) = lines["mean", "b|semantic_ood/far_tribe|image_mean_recall"]
    best = {row["regime"] + row["k_or_p"] for row in rows(folder, "operating_curves.csv")
            if row["architecture"] == "b"}  # fmt: skip
    cells = {
        row["stratum"]: row
        for row in rows(folder, "density_curves.csv")
        if (row["architecture"], row["split"], row["band"]) == ("b", "semantic_ood", "far_tribe")
        and row["regime"] + row["k_or_p"] in best
    }
    strata = ("1", "2 to 10", ">10")
    assert list(y) == [float(cells[s]["image_mean_recall_mean"]) for s in strata]
    assert list(np.round(x)) == [0, 1, 2]
    plt.close(figure)


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
    assert not plt.get_fignums()


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
    texts = list(ET.fromstring(svg.read_text()).iter("{http://www.w3.org/2000/svg}text"))
    assert set(names) <= {text.text for text in texts}
    families = {
        re.search("font-family: ([^;]*)|font: .*?px ([^;]*)", t.get("style"))[0] for t in texts
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
        figure, axes = figures.panels(1, 1)
        axes[0][0].set_ylabel("a\x1b[2J\x00b")
        axes[0][0].set_xticks([0, 1], ["x\x07", "y"])
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


def test_rounding_errors_of_the_layout_do_not_change_the_files(sweep, tmp_path, monkeypatch):
    _, table = sweep
    names = ["novelty", "operating_curve", "budget_images"]
    write_plots(table, tmp_path / "1", names=names)
    lay_out = Figure.draw_without_rendering

    def nudged(figure):
        lay_out(figure)
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([v * (1 + 3e-15) for v in axes.get_position().bounds])

    monkeypatch.setattr(Figure, "draw_without_rendering", nudged)
    for path in write_plots(table, tmp_path / "2", names=names):
        assert path.read_bytes() == (tmp_path / "1" / path.name).read_bytes(), path.name


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
        plt.close(figure)


def test_many_architectures_with_odd_names_and_many_budgets_are_drawn_as_text(tmp_path):
    names = [*(f"$x^{i}_%<b>&" for i in range(7)), "W" * 32]
    table = lay(tmp_path, [(n, GU, str(k), 0, 0.5) for n in names for k in range(1, 16)])
    figure = curves.learning(table, HEADLINE[0])
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    page = figure.get_window_extent()
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= page.x1
    assert len(figure.axes[0].get_xticks()) <= 12


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
        plt.close(figure)


def test_an_unknown_plot_is_rejected(sweep, tmp_path):
    with pytest.raises(UsageError, match="unknown plot: nothing"):
        write_plots(sweep[1], tmp_path, names=["nothing"])


def test_captions_are_plain_text():
    """Captions are read as Markdown and as reStructuredText: they have no markup of either."""
    for plot in captions.PLOTS:
        assert not set("`*|<>") & set(plot.caption), plot.name
