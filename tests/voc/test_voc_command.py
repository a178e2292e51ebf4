"""``benchmark-eval map``: options of the original tool, exit codes, output streams."""

import json
import subprocess
import sys

import click
import pytest
from PIL import Image
from support.voc_files import write_folder

from benchmark_eval.cli._several import repeated
from benchmark_eval.cli.main import main

TRUTH = {"a": ["Ips typographus 0 0 9 9", "x 50 50 59 59", "y 0 0 9 9"]}
FOUND = {"a": ["Ips typographus 0.9 0 0 9 5", "x 0.8 50 50 59 59"]}


@pytest.fixture
def folders(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    write_folder(tmp_path / "det", FOUND)
    (tmp_path / "img").mkdir()
    Image.new("RGB", (80, 80), "green").save(tmp_path / "img" / "a.png")
    return tmp_path


def run(*words):
    """The exit code of the command line."""
    try:
        main([str(word) for word in words])
    except SystemExit as stop:
        return stop.code or 0
    return 0


def results(folder):
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize(
    "flags",
    [
        ("-pd", "-gt", "-id", "-od", "-a", "-np", "-q", "-i", "--set-class-iou"),
        (
            "--prediction_dir",
            "--ground_truth_dir",
            "--image_dir",
            "--output_dir",
            "--animate",
            "--no-plot",
            "--quiet",
            "--ignore",
            "--set_class_iou",
        ),
        (
            "--prediction-dir",
            "--ground-truth-dir",
            "--image-dir",
            "--output-dir",
            "--animate",
            "--no_plot",
            "--quiet",
            "--ignore",
            "--set-class-iou",
        ),
    ],
    ids=["short", "underscores", "dashes"],
)
def test_all_options_of_the_original_tool(folders, capsys, flags):
    pd, gt, image, od, animate, no_plot, quiet, ignore, set_iou = flags
    out = folders / "out"
    code = run(
        *("map", pd, folders / "det", gt, folders / "gt", image, folders / "img", od, out),
        *(ignore, "y", "z", set_iou, "Ips typographus", "0.7", "x", "0.9", animate, no_plot, quiet),
    )
    assert code == 0
    printed = capsys.readouterr()
    assert printed.out == "mAP = 50.00%\n"
    assert printed.err == "note: ignored class 'z' does not occur in any file\n"
    content = results(out)
    assert content["ignored"] == ["y", "z"]
    assert [(c["name"], c["iou_threshold"]) for c in content["classes"]] == [
        ("Ips typographus", 0.7),
        ("x", 0.9),
    ]
    assert (out / "animation.gif").exists()
    assert (out / "images" / "a.jpg").exists()
    assert not (out / "plots").exists()


@pytest.mark.slow  # draws plots
def test_results_are_printed_and_written(folders, capsys):
    assert run("map", "-pd", folders / "det", "-gt", folders / "gt", "-od", folders / "out") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("mAP = 66.67%  (PASCAL VOC 2012, mean over 3 classes)\n")
    assert printed.endswith(f"written to {folders / 'out'}\n")
    assert (folders / "out" / "results.txt").read_text() in printed
    assert (folders / "out" / "plots" / "average_precision.png").exists()


def test_coordinates_and_iou_threshold(folders, capsys):
    map_ = ("map", "-pd", folders / "det", "-gt", folders / "gt", "-q")
    assert run(*map_, "--iou", "0.6") == 0  # 10 x 6 of 10 x 10 pixels
    assert run(*map_, "--iou", "0.6", "--coordinates", "continuous") == 0  # 9 x 5 of 9 x 9
    assert capsys.readouterr().out == "mAP = 66.67%\nmAP = 33.33%\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set-class-iou", "x"], "expected pairs of a class and its IoU"),
        (["--set-class-iou", "Ips", "typographus", "0.5"], "in quotes"),
        (["--set-class-iou", "x", "half"], "found 'half' after class 'x'"),
        (["--set-class-iou", "x", "0.5", "x", "0.6"], "found class 'x' twice"),
        (["--set-class-iou", "x", "0.5", "-q", "--set_class_iou", "x", "0.5"], "'x' twice"),
        (["--set-class-iou", "x", "50"], "a percentage"),
        (["--set-class-iou", "x", "nan"], "got nan"),
        (["--set-class-iou", "xx", "0.5"], "did you mean 'x'?"),
        (["--set-class-iou"], "requires at least one value"),
        (["--ignore", "-q"], "requires at least one value"),
        (["-i", "x", "--set-class-iou", "x", "0.5"], "expected one of the two"),
        (["-a"], "image_dir and animate require output_dir"),
        (["-od", ""], "found an empty string; expected a folder"),
        (["-od", "out", "-a"], "animate requires image_dir"),
        (["-id", "nowhere", "-od", "out"], "expected a folder of images"),
        (["--iou", "2"], "iou must be in (0, 1], got 2"),
        (["--draw-confidence", "-1"], "draw_confidence must be in [0, 1], got -1"),
        (["surplus"], "unexpected extra argument"),
        (["--nonsense"], "No such option"),
    ],
)
def test_invalid_usage_exits_with_2(folders, capsys, words, message):
    assert run("map", "-pd", folders / "det", "-gt", folders / "gt", *words) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert not (folders / "out").exists()


def test_a_missing_folder_exits_with_2(folders, capsys):
    assert run("map", "-pd", folders / "nothing", "-gt", folders / "gt") == 2
    assert "nothing: found No such file or directory" in capsys.readouterr().err
    assert run("map", "-gt", folders / "gt") == 2
    assert "--prediction_dir" in capsys.readouterr().err


def test_invalid_inputs_exit_with_1(folders, capsys):
    (folders / "det" / "a.txt").write_text("x 0.5 1 2 3\n")
    (folders / "det" / "b.txt").write_text("")
    code = run("map", "-pd", folders / "det", "-gt", folders / "gt", "-od", folders / "out")
    assert code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "2 problems found" in printed.err
    assert "a.txt, line 1: found 'x 0.5 1 2 3'; expected <class> <confidence>" in printed.err
    assert "det, b.txt: no b.txt in" in printed.err
    assert not (folders / "out").exists()


def test_help_lists_the_options(capsys):
    assert run("map", "-h") == 0
    printed = capsys.readouterr().out
    for word in ("-pd", "--prediction_dir", "--prediction-dir", "CLASS IOU [CLASS IOU ...]"):
        assert word in printed


def test_a_class_name_may_begin_with_a_dash(folders, capsys):
    assert run("map", "-pd", folders / "det", "-gt", folders / "gt", "-q", "--ignore=-x") == 0
    assert "'-x' does not occur in any file" in capsys.readouterr().err


def test_several_values_become_repeated_options():
    several = {"-i", "--ignore"}
    assert repeated(["-i", "a", "b c", "-q", "d"], several) == ["-i", "a", "-i", "b c", "-q", "d"]
    assert repeated(["x", "--ignore", "a", "-i", "b"], several) == [
        *("x", "--ignore", "a", "-i", "b"),
    ]
    assert repeated(["-i", "a", "--", "-i", "b"], several) == ["-i", "a", "--", "-i", "b"]
    assert repeated(["--ignore=a", "b"], several) == ["--ignore=a", "b"]
    assert repeated([], several) == []
    with pytest.raises(click.BadOptionUsage):
        repeated(["-i"], several)
    with pytest.raises(click.BadOptionUsage):
        repeated(["-i", "--", "a"], several)


def test_scoring_imports_neither_matplotlib_nor_pillow(folders):
    code = (
        "import sys\n"
        "from benchmark_eval.voc import run_map\n"
        "run_map('det', 'gt', output_dir='out', plots=False)\n"
        "print([m for m in ('matplotlib', 'PIL', 'pandas', 'scipy') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folders, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
