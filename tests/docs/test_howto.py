"""Runs the recipes of docs/howto.md on a small sweep."""

import csv
import os
import re
import shutil
import subprocess

import pytest
from support.factories import write_benchmark
from support.workflow_sweep import ROOT, Sweep, edit_unseen, write_predictions

from benchmark_eval.cli.run import command
from benchmark_eval.training.scaffold import init_project

pytestmark = pytest.mark.workflow

PAGE = (ROOT / "docs/howto.md").read_text()
GRID = [("global_uniform", "1"), ("incremental_natural", "0.10")]
SEEDS = (0, 1)
ALL = {f"yolo_{condition}_s{seed}" for condition in ("gu_k1", "in_p010") for seed in SEEDS}
AFTER = {"aggregate", "plot_sweep", "report", "page"}
# records the arguments of `benchmark-eval run` instead of running it
RECORDER = """benchmark-eval() {
    [ "$1" = run ]; shift; printf "%s\\n" "$@" > "$CALL"
}
"""


def recipe(title, language="bash"):
    """The code of a section of the page."""
    (section,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", section, re.M | re.S))


class Project:
    """A project folder as on the page: made by init, with predictions."""

    def __init__(self, folder):
        self.folder = folder
        self.sweep = Sweep(folder)

    @classmethod
    def make(cls, parent):
        write_benchmark(parent / "BENCHMARK")
        folder = parent / "project"
        init_project(
            folder,
            benchmark_dir=parent / "BENCHMARK",
            architectures=["yolo"],
            conditions=GRID,
            seeds=SEEDS,
        )
        folders = sorted((folder / "predictions").iterdir())
        for quality, predictions in enumerate(folders):
            predictions.rmdir()
            write_predictions(predictions, parent / "BENCHMARK", quality)
        return cls(folder)

    def copy(self, parent):
        """A copy of the project and its benchmark in another folder."""
        shutil.copytree(self.folder.parent, parent, dirs_exist_ok=True)
        return Project(parent / "project")

    def follow(self, title):
        """Run a recipe without its sweep; return the arguments of snakemake, without --cores."""
        call = self.folder / ".call"
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", RECORDER + recipe(title)],
            cwd=self.folder,
            env={**os.environ, "CALL": str(call)},
            check=True,
        )
        given = command.make_context("run", call.read_text().splitlines()).params
        configfiles = ["--configfile", *given["configfiles"]] if given["configfiles"] else []
        dry_run = ["--dry-run"] if given["dry_run"] else []
        return [*configfiles, *dry_run, *given["snakemake_options"]]

    def planned(self, title):
        """The models and the other rules that would run after a recipe."""
        return self.sweep.planned(*self.follow(title))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    project = Project.make(tmp_path_factory.mktemp("howto"))
    project.sweep.run()
    return project


@pytest.fixture
def project(finished, tmp_path):
    return finished.copy(tmp_path)


def test_every_recipe_is_tested():
    titles = re.findall(r"^## (.*)$", PAGE, re.M)
    tests = (ROOT / "tests/docs/test_howto.py").read_text()
    assert [t for t in titles if f'"{t}"' not in tests] == []


def test_add_a_seed(project):
    folder = project.folder
    write_predictions(folder / "predictions/yolo_gu_k1_s3", folder.parent / "BENCHMARK", 7)
    header = (folder / "manifest.csv").read_text().splitlines()[0]
    assert f"# {header}\n" in recipe("Add a seed")
    assert project.planned("Add a seed") == ({"yolo_gu_k1_s3"}, AFTER)


def test_replace_a_model(project):
    folder = project.folder
    shutil.copytree(folder / "predictions/yolo_gu_k1_s0", folder / "new")
    edit_unseen(folder / "new/iid_test_predictions.json")
    assert project.planned("Replace a model") == ({"yolo_gu_k1_s0"}, AFTER)


def test_remove_a_condition(project):
    assert project.planned("Remove a condition") == (set(), AFTER)
    assert "yolo_in_" not in (project.folder / "manifest.csv").read_text()


def test_run_without_a_missing_model(project):
    assert project.planned("Run without a missing model") == (set(), AFTER)
    project.sweep.run("--dry-run", ok=False)  # without that key it is an error


def test_use_another_version_of_the_benchmark(project):
    other = project.folder / "benchmark-v2"
    shutil.copytree(project.folder.parent / "BENCHMARK", other)
    taxonomy = other / "species_taxonomy.csv"
    taxonomy.write_text(taxonomy.read_text() + "\n")
    models, rules = project.planned("Use another version of the benchmark")
    assert (models, rules) == (ALL, {"index_benchmark", *AFTER})


def test_score_only_one_split(project):
    for path in project.folder.glob("predictions/*/inat_test_predictions.json"):
        path.unlink()
    assert project.planned("Score only one split") == (ALL, AFTER)


def test_read_predictions_from_another_folder(project):
    assert project.planned("Read predictions from another folder") == (set(), set())
    with (project.folder / "manifest.csv").open(newline="") as stream:
        places = {row["model_name"]: row["predictions_dir"] for row in csv.DictReader(stream)}
    assert places == dict.fromkeys(ALL, "") | {"yolo_gu_k1_s0": "elsewhere"}


def test_two_sweeps_side_by_side(project):
    arguments = project.follow("Two sweeps side by side")
    models, rules = project.sweep.planned(*arguments)
    assert (models, rules) == (ALL, {"index_benchmark", *AFTER})
    assert project.sweep.planned() == (set(), set())


def test_add_your_own_metrics(project):
    code = recipe("Add your own metrics", "python")
    (project.folder / "custom_metrics.py").write_text(code)
    arguments = project.follow("Add your own metrics")
    assert project.sweep.planned(*arguments) == (set(), AFTER)
    project.sweep.run("tables", *arguments)
    with (project.folder / "results/aggregated/learning_curves.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["custom_iid_worst_AP_50_n"] for row in rows] == ["2", "2"]
    assert all(float(row["custom_iid_n_never_identified_mean"]) >= 0 for row in rows)


def test_read_the_results_in_a_notebook(project, monkeypatch, capsys):
    monkeypatch.chdir(project.folder)
    exec(recipe("Read the results in a notebook", "python"), variables := {})
    assert variables["curves"]["n_seeds"].tolist() == [2, 2]
    assert "iid_test" in capsys.readouterr().out


def test_share_the_results(project):
    project.sweep.run(*project.follow("Share the results"))
    assert (project.folder / "report.zip").stat().st_size > 100_000


def test_find_out_why_a_job_runs_again(project):
    edit_unseen(project.folder / "predictions/yolo_gu_k1_s1/iid_test_predictions.json")
    output = project.sweep.run(*project.follow("Find out why a job runs again"))
    assert "1 model to be evaluated again, because predictions changed: yolo_gu_k1_s1" in output
