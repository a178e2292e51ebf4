"""Every command that writes, and whatever may already be at its output.

The commands run through click; the bytes on disk are compared before and after.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmark_eval.cli.main import COMMANDS, cli
from benchmark_eval.core.errors import BenchmarkEvalError, exit_code
from benchmark_eval.core.outputs import RECORD, read_record

pytestmark = pytest.mark.slow  # draws plots, makes synthetic data

MODEL = "alder_gu_kall_s0"
PREDICTIONS = f"data/predictions/{MODEL}"
ANNOTATIONS = "data/benchmark/detection/annotations_coco"
COCO = f"{ANNOTATIONS}/semantic_ood.json"
EVALUATE = (
    f"evaluate --benchmark-dir data/benchmark --predictions-dir {PREDICTIONS} --quiet"
    " --splits iid_test --model-name m"
)
AGGREGATE = "aggregate --eval-dir eval --benchmark-dir data/benchmark"
MAP = "map -pd det -gt gt --no-plot --quiet"


@dataclass(frozen=True)
class Case:
    """A command with ``{out}`` for its output folder, one of its outputs, one of its inputs."""

    words: str
    output: str
    read: str

    def line(self, out="out"):
        return self.words.replace("{out}", str(out))


CASES = {
    "evaluate": Case(
        f"{EVALUATE} --output-dir {{out}}",
        "m_summary.json",
        f"{PREDICTIONS}/iid_test_predictions.json",
    ),
    "evaluate --log": Case(
        f"{EVALUATE} --output-dir scores --log {{out}}/run.log", "run.log", COCO
    ),
    "aggregate": Case(
        f"{AGGREGATE} --manifest data/manifest.csv --output-dir {{out}}",
        "models.csv",
        "data/manifest.csv",
    ),
    "aggregate, report": Case(
        f"{AGGREGATE} --manifest data/manifest.csv --output-dir {{out}}",
        "report.md",
        f"eval/{MODEL}_summary.json",
    ),
    "plot": Case(
        "plot --aggregated tables/aggregated.json --only novelty --format png --output-dir {out}",
        "novelty.png",
        "tables/aggregated.json",
    ),
    "compare": Case(
        f"compare eval/{MODEL}_summary.json strict --plot {{out}}/plot.png",
        "plot.png",
        f"eval/{MODEL}_summary.json",
    ),
    "report": Case(
        "report --aggregated tables/aggregated.json --output-dir {out}",
        "report.md",
        "tables/aggregated.json",
    ),
    "page": Case(
        "page --aggregated tables/aggregated.json --eval-dir eval --output {out}/report.html",
        "report.html",
        "tables/aggregated.json",
    ),
    "subsets": Case(
        "subsets --benchmark-dir data/benchmark --condition global_uniform 1 --seed 0"
        " --output-dir {out}",
        "gu_k1_s0/train.json",
        f"{ANNOTATIONS}/train.json",
    ),
    "subsets, manifest": Case(
        "subsets --benchmark-dir data/benchmark --condition global_uniform 1 --seed 0"
        " --output-dir {out}",
        "manifest.csv",
        "data/benchmark/species_taxonomy.csv",
    ),
    "convert": Case(f"convert {COCO} {{out}}/boxes.json --to coco", "boxes.json", COCO),
    "convert, class names": Case(
        "convert detections.json {out}/boxes.json --from coco-results --class-ids"
        " --to ultralytics-json --benchmark-dir data/benchmark --splits iid_test",
        "classes.txt",
        "detections.json",
    ),
    "convert to benchmark": Case(
        "convert detections.json {out} --to benchmark --from coco-results"
        " --benchmark-dir data/benchmark --splits iid_test",
        "iid_test_predictions.json",
        "detections.json",
    ),
    "gallery": Case(
        f"gallery --benchmark-dir data/benchmark --predictions-dir {PREDICTIONS} --splits iid_test"
        " --cases 1 --jobs 1 --quiet --model m --output-dir {out}",
        "index.html",
        "data/benchmark/image_licences.csv",
    ),
    "map": Case(f"{MAP} -od {{out}}", "results.json", "gt/a.txt"),
    "synth": Case("synth --scale 0.005 --jobs 1 --output-dir {out}", "manifest.csv", ""),
}
READ_ONLY = {"check", "verify", "catalogue"}
SNAKEMAKE = {"run"}
"""Writes nothing itself: it starts Snakemake."""
NEW_FOLDER = {"init"}
"""Commands that only write into a new or empty folder; so does ``convert`` for folders."""


def run(line):
    """Run a command line; returns its exit code and what it printed or raised."""
    result = CliRunner().invoke(cli, line.split())
    error = result.exception
    if isinstance(error, BenchmarkEvalError):
        return exit_code(error), str(error)
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return result.exit_code, result.output


def succeed(line):
    code, text = run(line)
    assert code == 0, text
    return text


def refuse(line, *words):
    """Run a command line that must be refused and change nothing."""
    before = everything()
    code, text = run(line)
    assert code == 2, text
    assert "nothing was written" in text
    for word in words:
        assert word in text
    assert everything() == before
    return text


def everything():
    """All files, links and folders below the current folder, with their content."""
    found = {}
    for path in sorted(Path().rglob("*")):
        if path.is_symlink():
            found[str(path)] = path.readlink()
        else:
            found[str(path)] = path.read_bytes() if path.is_file() else None
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A small benchmark, predictions, results and tables."""
    folder = tmp_path_factory.mktemp("world")
    before = Path.cwd()
    os.chdir(folder)
    try:
        succeed("synth --output-dir data --scale 0.005 --jobs 1")
        words = EVALUATE.replace("--splits iid_test ", "").replace("-name m", f"-name {MODEL}")
        succeed(f"{words} --output-dir eval")
        succeed(f"{words} --output-dir strict --iou 0.75")
        succeed(f"{AGGREGATE} --manifest data/manifest.csv --output-dir tables")
        shutil.copy(f"{PREDICTIONS}/iid_test_predictions.json", "detections.json")
        for name, line in (("gt", "x 0 0 9 9\n"), ("det", "x 0.9 0 0 9 9\n")):
            lay(f"{name}/a.txt", line)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _copy(world, tmp_path, monkeypatch):
    """Each test works in a copy of the world."""
    shutil.copytree(world, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


def lay(path, text="mine"):
    """A file of the user's."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def put(case):
    """A file of the user's at the output of a command."""
    lay(f"out/{case.output}")
    return f"out/{case.output}"


def names_in(folder):
    return [path.name for path in Path(folder).iterdir()]


def read(path):
    return Path(path).read_bytes()


def test_every_command_is_in_the_table():
    tested = {case.words.split()[0] for case in CASES.values()}
    assert tested | READ_ONLY | SNAKEMAKE | NEW_FOLDER == set(COMMANDS)
    for name in tested:
        assert "--force" in succeed(f"{name} --help")


def test_outputs_are_written_and_replaced_while_they_are_ours(case):
    succeed(case.line())
    first = everything()
    assert f"out/{case.output}" in first
    assert case.output in read_record("out")
    assert not [path for path in first if "/.benchmark-eval-" in path or path.endswith(".tmp")]
    succeed(case.line())
    second = everything()
    if case.output == "run.log":  # has the time of day
        first.pop("out/run.log"), second.pop("out/run.log")
        first.pop(f"out/{RECORD}"), second.pop(f"out/{RECORD}")
    assert second == first


def test_an_output_that_was_edited_is_kept(case):
    succeed(case.line())
    path = put(case)
    refuse(case.line(), path, "edited since")
    succeed(f"{case.line()} --force")
    assert read(path) != b"mine"
    succeed(case.line())


def test_a_file_of_the_user_is_kept(case):
    path = put(case)
    refuse(case.line(), path, "did not write", "--force")
    succeed(f"{case.line()} --force")
    assert read(path) != b"mine"
    succeed(case.line())


def test_an_input_is_kept_also_with_force(case):
    if not case.read:
        assert case.words.startswith("synth")
        return
    path = Path("out", case.output)
    path.parent.mkdir(parents=True)
    for make in (path.hardlink_to, path.symlink_to):
        make(Path(case.read).absolute())
        for force in ("", " --force"):
            refuse(case.line() + force, f"out/{case.output}", "an input of this command")
        path.unlink()


def test_a_link_is_not_followed(case):
    lay("precious")
    path = Path("out", case.output)
    path.parent.mkdir(parents=True)
    path.symlink_to(Path("precious").absolute())
    refuse(case.line(), str(path), "a link")
    succeed(f"{case.line()} --force")
    assert read("precious") == b"mine"
    assert not path.is_symlink()


def test_a_dangling_link_is_not_followed(case):
    path = Path("out", case.output)
    path.parent.mkdir(parents=True)
    path.symlink_to(Path("elsewhere").absolute())
    refuse(case.line(), "a link")
    succeed(f"{case.line()} --force")
    assert not Path("elsewhere").exists()


def test_a_folder_at_the_place_of_an_output_is_kept(case):
    Path("out", case.output).mkdir(parents=True)
    for force in ("", " --force"):
        refuse(case.line() + force, f"out/{case.output}: found a folder")


def test_an_output_folder_may_be_a_link(case):
    Path("scratch").mkdir()
    Path("out").symlink_to("scratch")
    succeed(case.line())
    assert Path(f"scratch/{case.output}").exists()
    succeed(case.line())


def test_a_damaged_record_is_refused(case):
    succeed(case.line())
    lay(f"out/{RECORD}", "{")
    refuse(case.line(), f"out/{RECORD}", "something other than a record")


# ------------------------------------------------------- outputs that the next run would read


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (f"{EVALUATE} --output-dir {ANNOTATIONS}", f"{ANNOTATIONS}/m_summary.json"),
        (
            f"{AGGREGATE} --manifest data/manifest.csv --output-dir {ANNOTATIONS}",
            f"{ANNOTATIONS}/aggregated.json",
        ),
        (f"convert {COCO} {ANNOTATIONS}/x.json --to coco --benchmark-dir data/benchmark", "x.json"),
        ("convert gt gt/all.json --to coco --images-dir images --from xyxy-text", "gt/all.json"),
        (f"{MAP} -od gt", "gt/results.txt"),
        (f"{MAP} -id images -od images", "images/results.json"),
        (f"{MAP} -id out/images -od out", "out/images"),
    ],
)
def test_an_output_that_the_next_run_would_read_is_refused(line, where):
    for folder in ("images", "out/images"):
        lay(f"{folder}/a.jpg", "a photograph")
    for force in ("", " --force"):
        refuse(line + force, where, "input folder")


@pytest.mark.parametrize(
    "line",
    [
        f"{EVALUATE} --output-dir {PREDICTIONS}",
        f"{EVALUATE} --output-dir data/benchmark",
        f"{AGGREGATE} --manifest data/manifest.csv --output-dir eval",
        "subsets --benchmark-dir data/benchmark --condition global_uniform 1 --seed 0"
        " --output-dir data/benchmark/subsets",
        "plot --aggregated tables/aggregated.json --only novelty --output-dir tables",
        "report --aggregated tables/aggregated.json --output-dir tables",
        f"{MAP} -od gt/out",
        "convert gt gt/yolo --to voc-xml",
    ],
)
def test_usual_layouts_are_not_refused(line):
    succeed(line)
    if " gt/yolo" not in line:  # a folder of labels must be new
        succeed(line)


# ---------------------------------------------------------------------- the cases from the field


def aggregate_here(manifest="models.csv"):
    shutil.move("data/manifest.csv", "models.csv")
    return f"{AGGREGATE} --manifest {manifest} --output-dir ."


def test_aggregate_keeps_a_manifest_that_is_named_like_a_table():
    line = aggregate_here()
    lay("report.md")
    text = refuse(line, "models.csv: found an input", "report.md: found a file")
    assert "--force" in text
    refuse(f"{line} --force", "models.csv: found an input")


@pytest.mark.parametrize("force", ["", " --force"])
def test_a_failing_aggregate_keeps_the_files_of_the_user(force):
    for name in ("report.md", "models.csv"):
        lay(name)
    Path(f"eval/{MODEL}_summary.json").unlink()
    before = everything()
    code, _ = run(f"{AGGREGATE} --manifest data/manifest.csv --output-dir .{force}")
    assert code == (1 if force else 2)
    assert everything() == before


def test_a_failing_aggregate_removes_only_its_own_files():
    case = CASES["aggregate"]
    succeed(case.line())
    Path("out/budget_curves.csv").unlink()
    lay("out/budget_curves.csv")
    lay("out/notes.txt")
    Path(f"eval/{MODEL}_summary.json").unlink()
    assert run(f"{case.line()} --force")[0] == 1
    assert sorted(names_in("out")) == [RECORD, "budget_curves.csv", "notes.txt"]


def test_subsets_keeps_the_manifest_of_init():
    succeed("init project --architecture yolo --architecture detr")
    os.chdir("project")
    assert len(read("manifest.csv").splitlines()) == 103
    words = "subsets --benchmark-dir ../data/benchmark --seed 0 --output-dir ."
    refuse(f"{words} --condition global_uniform 1", "manifest.csv", "did not write")


def test_subsets_fills_in_the_manifest_that_it_is_given():
    succeed("init project --condition global_uniform 1 --seed 0")
    words = "subsets --benchmark-dir data/benchmark --manifest project/manifest.csv --output-dir"
    Path("project/manifest.csv").rename("project/real.csv")
    Path("project/manifest.csv").symlink_to("real.csv")
    refuse(f"{words} project/subsets", "found a link")
    Path("project/real.csv").replace("project/manifest.csv")
    succeed(f"{words} project/subsets")
    assert b"subsets/gu_k1_s0/train.json" in read("project/manifest.csv")
    filled = everything()
    succeed(f"{words} project/subsets")
    assert everything() == filled


@pytest.mark.parametrize("force", ["", " --force"])
def test_convert_keeps_its_source(force):
    refuse(f"convert {COCO} {COCO} --to coco{force}", "an input of this command")
    Path("other").symlink_to("data")
    refuse(f"convert {COCO} other/{COCO[5:]} --to coco{force}", "an input of this command")


def test_convert_keeps_a_folder_with_files():
    refuse_folder = "convert gt out --to voc-xml --force"
    lay("out/a.xml")
    before = everything()
    code, text = run(refuse_folder)
    assert (code, "new or empty folder" in text) == (2, True)
    assert everything() == before


def test_synth_keeps_predictions_that_were_added():
    succeed("synth --output-dir out --scale 0.005 --jobs 1")
    shutil.copytree(f"out/predictions/{MODEL}", "out/predictions/mine")
    kept = read("out/predictions/mine/iid_test_predictions.json")
    succeed("synth --output-dir out --scale 0.005 --seed 1 --jobs 1")
    assert read("out/predictions/mine/iid_test_predictions.json") == kept
    assert read(f"out/predictions/{MODEL}/iid_test_predictions.json") != kept


def test_the_log_of_a_failed_run_is_recorded():
    Path(PREDICTIONS).rename("moved")
    line = CASES["evaluate --log"].line()
    for _ in range(2):
        code, text = run(line)
        assert (code, "iid_test_predictions.json" in text) == (1, True)
    Path("moved").rename(PREDICTIONS)
    succeed(line)


def test_evaluate_without_detections_keeps_a_table_of_the_user():
    lay("out/m_detections.csv")
    line = f"{EVALUATE} --no-detections --output-dir out"
    refuse(line, "m_detections.csv")
    succeed(f"{EVALUATE} --output-dir out --force")
    succeed(line)
    assert not Path("out/m_detections.csv").exists()


def test_commands_share_a_folder_and_its_record():
    for case in ("evaluate", "aggregate", "plot"):
        succeed(CASES[case].line())
    names = set(read_record("out"))
    assert {"m_summary.json", "models.csv", "report.md", "novelty.png"} <= names
    assert names | {RECORD} == set(names_in("out"))
    for case in ("plot", "report", "aggregate", "evaluate"):
        succeed(CASES[case].line())
    assert set(read_record("out")) == names
    assert b'"version": 1' in read(f"out/{RECORD}")
    assert str(Path.cwd()).encode() not in read(f"out/{RECORD}")


def test_verify_and_check_ignore_the_record():
    shutil.copytree("eval", "out/models")
    shutil.copytree("tables", "out/aggregated")
    assert run("verify out")[0] == 0
    shutil.copy(f"eval/{RECORD}", "data/predictions")
    shutil.copy(f"eval/{RECORD}", PREDICTIONS)
    shutil.copy(f"eval/{RECORD}", ANNOTATIONS)
    words = "--benchmark-dir data/benchmark --manifest data/manifest.csv"
    code, text = run(f"check {words} --predictions-dir data/predictions --quiet")
    assert code == 0, text
    assert "benchmark-eval.json" not in text
