"""The workflow as users see it: Snakemake itself, on a tiny sweep.

The sweep is run once, and each test works on a copy of it. Most tests check what Snakemake plans
(``--dry-run``); those on errors and on identical bytes run it.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv

import pytest
from support.workflow_lint import lints
from support.workflow_sweep import (
    MODELS,
    ROOT,
    Sweep,
    edit_unseen,
    two_modules,
    write_predictions,
)

from benchmark_eval import __version__
from benchmark_eval.core.records import record_name
from benchmark_eval.pipeline import jobs
from benchmark_eval.sweep import tables

pytestmark = pytest.mark.workflow

ALL = set(MODELS)
READ = {"plot_sweep", "report"}
AFTER = {"aggregate", *READ}
NOTHING = (set(), set())


@pytest.fixture(scope="session")
def copied_workflow(tmp_path_factory):
    """A copy of the workflow and of the package that tests can edit."""
    folder = tmp_path_factory.mktemp("other") / "repository"
    for name in ("workflow", "benchmark_eval", "config", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Snakefile", folder / "Snakefile")
    return folder


def git_commit(folder, tag):
    """Make a git repository of a folder, with one tagged commit."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init"], ["add", "."], [*identity, "commit", "-m", "x"], ["tag", tag]):
        subprocess.run(["git", "-C", folder, *command], check=True, capture_output=True)


# results of a run


@pytest.mark.matrix
def test_a_run_writes_every_file_and_keeps_model_names(base):
    results = base.folder / "results"
    for model in MODELS:
        assert json.loads(base.summary(model).read_text())["model"] == model
        for suffix in (
            "summary.csv",
            "per_species.csv",
            "report.txt",
            "detections.csv",
            "evidence.npz",
        ):
            assert (results / f"models/{model}/{model}_{suffix}").stat().st_size
        assert (results / f"logs/evaluate_model/{model}.log").stat().st_size
        assert (results / f"benchmarks/evaluate_model/{model}.tsv").stat().st_size
    assert {path.name for path in (results / "models").iterdir()} == ALL
    aggregated = {path.name for path in (results / "aggregated").iterdir()}
    assert aggregated == {*tables.FILES, "report.md"}
    assert list((results / "plots").glob("*.svg"))
    assert not list((results / "plots").glob("*.png"))
    assert not list(results.rglob("*.tmp"))


@pytest.mark.matrix
def test_a_second_run_has_nothing_to_do(sweep):
    assert "Nothing to be done" in sweep.run()
    assert sweep.compared() == Sweep(sweep.folder).compared()


def test_deleted_results_are_recreated_and_nothing_else(sweep):
    results, good = sweep.folder / "results", sweep.compared()
    expected = {
        "benchmark/index.npz": (set(), {"index_benchmark"}),
        "models/NA/NA_per_species.csv": ({"NA"}, set()),
        ".state/models/007.made": ({"007"}, {"aggregate"}),
        "aggregated/learning_curves.csv": (set(), {"aggregate"}),
        "plots/target_grid.svg": (set(), READ),
    }
    for name, jobs_of in expected.items():
        content = (results / name).read_bytes()
        (results / name).unlink()
        assert sweep.planned() == jobs_of, name
        (results / name).write_bytes(content)
    assert sweep.planned() == NOTHING
    for name in expected:
        (results / name).unlink()
    sweep.run()
    assert sweep.compared() == good
    assert sweep.planned() == NOTHING


def test_lint_finds_no_problems(base, tmp_path):
    assert lints(Sweep(tmp_path).run("--lint", ok=False)) == []


def test_lint_finds_other_problems(copied_workflow, tmp_path):
    copy = shutil.copytree(copied_workflow, tmp_path / "repository")
    rules = copy / "workflow/rules/report.smk"
    rules.write_text(
        rules.read_text().replace('    log:\n        "results/logs/report.log",\n', "")
    )
    found = lints(Sweep(tmp_path, copy / "Snakefile").run("--lint", ok=False))
    assert len(found) == 1
    assert found[0].startswith("rule report ")
    with pytest.raises(ValueError, match="no such file"):
        lints("WorkflowError: no such file")


def test_a_config_without_data_says_what_to_set(tmp_path):
    """The shipped config, used from a folder without a config."""
    output = Sweep(tmp_path).run(ok=False)
    assert "nothing to score: benchmark_dir and manifest not set" in output
    assert "make demo" in output
    assert "evaluate_model" in Sweep(tmp_path).run("--list-rules")


def test_invalid_yaml_in_the_config_is_reported_with_file_and_line(tmp_path):
    sweep = Sweep(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("iou: 0.5\nmanifest data/manifest.csv\n")
    output = sweep.run("--dry-run", ok=False)
    assert "config/config.yaml: found" in output
    assert "line 2" in output
    (tmp_path / "config/config.yaml").write_text("- iou\n")
    message = "config/config.yaml: no keys at the top level"
    assert message in sweep.run("--dry-run", ok=False)


def test_a_config_on_the_command_line_replaces_the_default_one(base, tmp_path):
    sweep = Sweep(tmp_path)
    shutil.copytree(base.folder / "data", tmp_path / "data")
    (tmp_path / "config").mkdir()
    sweep.configure(iou=0.75)  # also sets plots to SVG only
    other = {key: f"data/{key[:-4]}" for key in ("benchmark_dir", "predictions_dir")}
    (tmp_path / "other.yaml").write_text(json.dumps({**other, "manifest": "data/manifest.csv"}))
    output = sweep.run("--dry-run", "--printshellcmds", "--configfile", "other.yaml")
    assert output.count(" --iou 0.5 ") == len(MODELS)
    assert ".png" in output
    assert " --iou 0.75 " in sweep.run("--dry-run", "--printshellcmds")


@pytest.mark.matrix
def test_several_config_files_are_merged(base, tmp_path):
    sweep = Sweep(tmp_path)
    shutil.copytree(base.folder / "data", tmp_path / "data")
    (tmp_path / "config").mkdir()
    sweep.configure(iou=0.75, splits=["iid_test", "inat_test"], on_invalid="drop")
    (tmp_path / "variant.yaml").write_text("splits: [semantic_ood]\niou: 0.6\n")
    merged = ["--dry-run", "--printshellcmds", "--configfile", "config/config.yaml", "variant.yaml"]
    output = sweep.run(*merged)
    command = " --splits semantic_ood --iou {} --engine fast --on-invalid drop"
    assert output.count(command.format(0.6)) == len(MODELS)  # a list is replaced as a whole
    assert ".png" not in output
    assert command.format(0.7) in sweep.run(*merged, "--config", "iou=0.7")
    message = "nothing to score: benchmark_dir and manifest not set"
    assert message in sweep.run("--dry-run", "--configfile", "variant.yaml", ok=False)


# what makes results stale, and what does not


LARGE = 1_000_001
"""Snakemake compares larger files by modification time only (--max-checksum-file-size)."""


def redate(sweep, large=()):
    """Date inputs in the future, and results in the future and in the past."""
    results = sweep.folder / "results"
    for name in large:
        with (results / name).open("ab") as stream:
            stream.write(b" " * LARGE)
    ahead, past = time.time() + 10_000, 10**9
    for folder in (sweep.folder / "data", results):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for number, path in enumerate(files):
            when = past if folder == results and number % 2 else ahead
            os.utime(path, (when, when))
    for name in large:
        os.utime(results / name, (ahead, ahead))


@pytest.mark.matrix
def test_dates_of_inputs_and_results_never_matter(base, sweep):
    """Not even with large files, without the metadata of Snakemake, or in an actual run."""
    good = sweep.compared()
    redate(sweep, ["benchmark/index.npz", "aggregated/aggregated.json"])
    assert sweep.planned() == NOTHING
    shutil.rmtree(sweep.folder / ".snakemake")
    assert sweep.planned("--rerun-triggers", "mtime") == NOTHING
    assert sweep.planned("--forcerun", "plot_sweep") == (set(), READ)
    assert sweep.planned("--config", "iou=0.75") == (ALL, AFTER)
    shutil.rmtree(sweep.folder / "results")
    shutil.copytree(base.folder / "results", sweep.folder / "results")
    redate(sweep)
    edit_unseen(sweep.predictions("NA"))
    assert sweep.planned("--max-checksum-file-size", "0") == ({"NA"}, AFTER)
    sweep.run("tables", "--max-checksum-file-size", "0")
    after = sweep.tables()
    changed = {name for name in after if after[name] != good.get(name)}
    assert {name.split("/")[1] for name in changed if name.startswith("models/")} == {"NA"}
    assert sweep.planned("tables", "--max-checksum-file-size", "0") == NOTHING


def test_the_same_data_under_another_path_reruns_nothing(sweep):
    (sweep.folder / "data").rename(sweep.folder / "else where")
    folders = {"benchmark_dir": "benchmark", "predictions_dir": "predictions"}
    paths = {key: f"else where/{name}" for key, name in folders.items()}
    sweep.configure(**paths, manifest="else where/manifest.csv")
    assert sweep.planned() == NOTHING


@pytest.mark.matrix
def test_an_edit_that_changes_neither_size_nor_mtime_reruns_that_model(sweep):
    model = "007"
    before = {name: sweep.summary(name).stat().st_mtime_ns for name in MODELS}
    edit_unseen(sweep.predictions(model))
    sweep.run("tables")
    after = {name: sweep.summary(name).stat().st_mtime_ns for name in MODELS}
    assert {name for name in MODELS if before[name] != after[name]} == {model}
    assert sweep.planned("tables") == NOTHING


def test_an_edit_reruns_that_model_without_the_metadata_of_snakemake(sweep):
    shutil.rmtree(sweep.folder / ".snakemake")
    assert sweep.planned() == NOTHING
    edit_unseen(sweep.predictions("NA", "semantic_ood"))
    assert sweep.planned() == ({"NA"}, AFTER)


def test_an_edit_reruns_that_model_with_the_mtime_trigger_only(sweep):
    edit_unseen(sweep.predictions("1e5", "inat_test"))
    assert sweep.planned("--rerun-triggers", "mtime") == ({"1e5"}, AFTER)


def test_a_reverted_edit_reruns_nothing(sweep):
    path = sweep.predictions("None")
    original = path.read_bytes()
    edit_unseen(path)
    assert sweep.planned() == ({"None"}, AFTER)
    path.write_bytes(original)
    assert sweep.planned() == NOTHING


def test_a_changed_benchmark_reruns_everything(sweep):
    path = sweep.folder / "data/benchmark/species_taxonomy.csv"
    path.write_text(path.read_text().replace("Xa", "Xb"))
    assert sweep.planned() == (ALL, {"index_benchmark", *AFTER})


def test_code_edits_rerun_the_jobs_that_use_the_code(sweep, copied_workflow, tmp_path):
    copy = shutil.copytree(copied_workflow, tmp_path / "repository")
    sweep.snakefile = copy / "Snakefile"
    sweep.env["PYTHONPATH"] = str(copy)
    assert sweep.planned() == NOTHING
    edits = [
        ("report/facts.py", (set(), READ)),
        ("report/style.mplstyle", (set(), READ)),
        ("sweep/tables.py", (set(), AFTER)),
        ("voc/__init__.py", NOTHING),
        ("pipeline/plan.py", NOTHING),
        ("scoring/metrics/calibration.py", (ALL, AFTER)),
    ]
    for name, expected in edits:
        path = copy / "benchmark_eval" / name
        original = path.read_text()
        path.write_text(original + "\n# an edit\n")
        assert sweep.planned() == expected, name
        path.write_text(original)
    assert sweep.planned() == NOTHING


def test_touched_scripts_and_a_fresh_clone_rerun_nothing(sweep, copied_workflow, tmp_path):
    copy = shutil.copytree(copied_workflow, tmp_path / "another clone", copy_function=shutil.copy)
    ahead = time.time() + 100
    for path in copy.rglob("*.py"):
        os.utime(path, (ahead, ahead))
    sweep.snakefile = copy / "Snakefile"
    sweep.env["PYTHONPATH"] = str(copy)
    assert sweep.planned() == NOTHING
    sweep.run("--force", "results/models/NA/NA_summary.json")  # its script has a space in its path


BEHIND_THE_INDEX = (ALL, {"index_benchmark", *AFTER})


def test_no_job_is_dropped_behind_an_ancient_input(sweep):
    """Snakemake 9.27 drops jobs if the maker of their ancient input runs (snakemake#4166)."""
    results = sweep.folder / "results"
    assert sweep.planned("--forcerun", "index_benchmark") == BEHIND_THE_INDEX
    assert sweep.planned("--forcerun", "evaluate_model") == (ALL, AFTER)
    assert sweep.planned("--forcerun", "aggregate") == (set(), AFTER)
    assert sweep.planned("--forceall") == BEHIND_THE_INDEX
    edit_unseen(sweep.predictions("NA"))
    table = "results/models/NA/NA_summary.csv"
    assert sweep.planned(table) == ({"NA"}, set())
    assert sweep.planned("results/models/007/007_summary.csv") == NOTHING
    assert sweep.planned("--forcerun", "plot_sweep") == ({"NA"}, AFTER)
    (results / "benchmark/index.npz").unlink()
    assert sweep.planned() == ({"NA"}, {"index_benchmark", *AFTER})
    assert sweep.planned("tables") == ({"NA"}, {"index_benchmark", "aggregate"})
    assert sweep.planned("--forcerun", "report") == ({"NA"}, {"index_benchmark", *AFTER})
    # lost files of several jobs, none of which reads the others
    for name in ("models/007/007_report.txt", "aggregated/models.csv", "plots/novelty.svg"):
        (results / name).unlink()
    assert sweep.planned() == ({"NA", "007"}, {"index_benchmark", *AFTER})


def test_jobs_that_would_import_other_code_stop_the_workflow(sweep, copied_workflow, tmp_path):
    """Python would take the package from the current folder; jobs are started with -P."""
    sweep.env["PYTHONPATH"] = str(ROOT)
    other = tmp_path / "sweep/benchmark_eval"
    shutil.copytree(copied_workflow / "benchmark_eval", other)
    assert sweep.planned() == NOTHING  # a copy of the same code
    with (other / "scoring/coco.py").open("a") as stream:
        stream.write("# an edit\n")
    output = sweep.run("--dry-run", ok=False)
    assert "two copies of benchmark_eval with different code" in output
    assert str(other) in output


def test_a_package_of_another_version_is_refused_with_an_install_command(
    sweep, copied_workflow, tmp_path
):
    copy = shutil.copytree(copied_workflow, tmp_path / "other version")
    sweep.snakefile = copy / "Snakefile"
    path = copy / "workflow/Snakefile"
    path.write_text(re.sub('^VERSION = ".*"$', 'VERSION = "99.0"', path.read_text(), flags=re.M))
    output = sweep.run("--dry-run", ok=False)
    assert f"found version {__version__} of the package benchmark-eval" in output
    assert "expected 99.0, the version of this workflow" in output
    assert f"{sys.executable} -m pip install '{copy}'" in output


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ('__version__ = "0.0.1"', "found version 0.0.1 of the package benchmark-eval"),
        ('raise ModuleNotFoundError(name="benchmark_eval")', "cannot import benchmark_eval"),
    ],
)
def test_a_workflow_from_git_names_its_tag_in_the_install_command(
    copied_workflow, tmp_path, package, message
):
    copy = shutil.copytree(copied_workflow, tmp_path / "clone")
    git_commit(copy, tag="v1")
    (tmp_path / "Snakefile").write_text(f"""
module beetles:
    snakefile: gitfile({str(copy)!r}, "workflow/Snakefile", tag="v1")
    config: {{}}
use rule * from beetles
""")
    (tmp_path / "benchmark_eval").mkdir()
    (tmp_path / "benchmark_eval/__init__.py").write_text(package)
    sweep = Sweep(tmp_path, tmp_path / "Snakefile")
    sweep.env["PYTHONPATH"] = str(tmp_path)
    output = sweep.run("--dry-run", ok=False)
    assert message in output
    assert f" -m pip install git+file://{copy}@v1" in output


def test_a_moved_environment_reruns_nothing_and_jobs_use_it(sweep, tmp_path):
    other = tmp_path / "an other place"
    venv.create(other, symlinks=True)
    packages = next(other.glob("lib/*/site-packages")) / "tested.pth"
    packages.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    sweep.python = str(other / "bin/python")
    sweep.env["PATH"] = "/usr/bin:/bin"
    assert sweep.planned() == NOTHING
    output = sweep.run("--printshellcmds", "--force", "results/models/NA/NA_summary.json")
    assert f"'{sweep.python}' -P {ROOT}/workflow/scripts/evaluate_model.py" in output


def test_a_new_row_runs_that_model_and_a_removed_row_runs_none(sweep):
    write_predictions(
        sweep.folder / "data/predictions/new", sweep.folder / "data/benchmark", offset=9
    )
    sweep.write_manifest({**MODELS, "new": ("global_uniform", "all", 1)})
    assert sweep.planned() == ({"new"}, AFTER)
    sweep.write_manifest({name: MODELS[name] for name in MODELS if name != "007"})
    assert sweep.planned() == (set(), AFTER)
    sweep.write_manifest(MODELS)
    assert sweep.planned() == NOTHING


def test_changing_the_condition_of_a_row_reruns_the_aggregation(sweep):
    sweep.write_manifest({**MODELS, "NA": ("global_uniform", "5", 0)})
    assert sweep.planned() == (set(), AFTER)
    sweep.write_manifest(dict(reversed(MODELS.items())))
    assert sweep.planned() == NOTHING


def test_models_can_be_evaluated_in_batches(base, tmp_path):
    sweep = base.copy(tmp_path / "sweep")
    shutil.rmtree(sweep.folder / "results")
    first, rules = sweep.planned("--batch", "aggregate=1/2")
    assert first
    assert first < ALL
    assert rules == {"index_benchmark"}
    sweep.run("--batch", "aggregate=1/2")
    assert sweep.planned("--batch", "aggregate=2/2") == (ALL - first, AFTER)
    output = sweep.run("--dry-run", "--batch", "all=1/2", ok=False)
    assert "in 2 batches: --batch aggregate=1/2" in output


def test_every_rule_is_described(tmp_path):
    """Also that the profile beside workflow/Snakefile is found from another folder."""
    sweep = Sweep(tmp_path, ROOT / "workflow/Snakefile")
    output = sweep.run("--list")
    assert f"profile {ROOT}/workflow/profiles/default" in output
    listed = output.splitlines()[-11:]
    assert [line for line in listed if not re.fullmatch(r"\w+ \([A-Z].*\.\)", line)] == []
    assert listed[0].startswith("aggregate ")
    assert listed[-1].startswith("tables ")


def test_a_url_in_the_config_is_refused_before_planning(base):
    output = base.run("--dry-run", "--config", "predictions_dir=s3://bucket/p", ok=False)
    assert (
        "predictions_dir: found 's3://bucket/p'; expected a path (a URL: all data must be" in output
    )
    assert "Traceback" not in output


def test_targets_for_a_part_of_the_sweep(base, tmp_path):
    sweep = base.copy(tmp_path / "sweep")
    shutil.rmtree(sweep.folder / "results")
    index = {"index_benchmark"}
    assert sweep.planned("global_uniform") == ({"NA", "007", "1e5"}, index)
    assert sweep.planned("incremental_natural") == ({"it's 5% $HOME;"}, index)
    assert sweep.planned("results/models/None/None_summary.json") == ({"None"}, index)
    assert sweep.planned("tables") == (ALL, index | {"aggregate"})


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("iou=0.75", (ALL, AFTER)),
        ("detections=false", (ALL, AFTER)),
        ("operating_confidence=0.25", (ALL, AFTER)),
        ("plot_formats=[png,svg]", (set(), READ)),
        ("allow_missing=false", NOTHING),
    ],
)
def test_options_rerun_only_what_they_affect(base, tmp_path, option, expected):
    # fingerprints must suffice, without the params trigger
    sweep = base.copy(tmp_path / "sweep")
    assert sweep.planned("--rerun-triggers", "mtime", "--config", option) == expected


# errors before any job runs


def test_all_problems_of_a_config_are_reported_in_one_message(sweep):
    sweep.configure(engine="quick", iuo=0.5)
    output = sweep.run("--config", "allow_missing=perhaps", ok=False)
    assert "3 problems found" in output
    for text in ("engine: found 'quick'", "did you mean 'iou'?", "allow_missing: found 'perhaps'"):
        assert text in output
    assert "Traceback" not in output


def test_every_missing_file_is_reported_with_its_model_and_condition(sweep):
    sweep.predictions("1e5", "inat_test").unlink()
    sweep.predictions("1e5", "semantic_ood").write_bytes(b"")
    shutil.rmtree(sweep.folder / "data/predictions/NA")
    output = sweep.run(ok=False)
    assert "5 problems found" in output
    lines = [line for line in output.splitlines() if "_predictions.json" in line]
    assert [line.split(", ")[0].split("/")[-1] for line in lines] == [
        "iid_test_predictions.json",
        "inat_test_predictions.json",
        "semantic_ood_predictions.json",
        "inat_test_predictions.json",
        "semantic_ood_predictions.json",
    ]
    assert "model 'NA', global_uniform k=1, seed 0" in lines[0]
    assert "model '1e5', global_uniform k=all, seed 0" in lines[3]
    assert "found an empty file" in lines[4]


def test_missing_models_can_be_allowed_and_are_reported(sweep):
    shutil.rmtree(sweep.folder / "data/predictions/NA")
    sweep.configure(allow_missing=True)
    assert sweep.planned() == (set(), AFTER)
    sweep.run()
    assert sweep.planned() == NOTHING
    aggregated = json.loads((sweep.folder / "results/aggregated/aggregated.json").read_text())
    # the manifest's seeds are uneven, so cells without a model are listed too
    assert [cell["model"] for cell in aggregated["missing"] if cell["model"]] == ["NA"]
    assert "NA" in (sweep.folder / "results/aggregated/report.md").read_text()


def test_no_predictions_at_all_is_an_error_even_with_allow_missing(sweep):
    sweep.configure(allow_missing=True, predictions_dir="data/predictionz")
    output = sweep.run(ok=False)
    assert "none of its 5 models" in output
    assert "data/predictionz" in output


def test_both_a_json_and_a_gzip_file_is_an_error(sweep):
    path = sweep.predictions("007")
    path.with_name(f"{path.name}.gz").write_bytes(b"x")
    sweep.configure(allow_missing=True)
    output = sweep.run(ok=False)
    assert f"found this file and {path.name}.gz; expected only one of the two" in output
    assert "1 problem found" in output


def test_all_invalid_model_names_are_rejected_together(sweep):
    invalid = ["a/b", "..", "-x", ".x", " x", "x\ty", "na"]
    sweep.write_manifest(
        {**MODELS, **{name: ("global_uniform", "5", at) for at, name in enumerate(invalid)}}
    )
    output = sweep.run("--dry-run", ok=False)
    assert "7 problems found" in output
    assert [f"row {at} (line {at + 1})" in output for at in range(5, 14)] == [
        False,
        *[True] * 7,
        False,
    ]


def test_names_that_snakemake_would_parse_as_wildcards_are_rejected(sweep):
    sweep.write_manifest(
        {"{model}": MODELS["NA"], "<results>": MODELS["007"], "1e5": MODELS["1e5"]}
    )
    output = sweep.run("--dry-run", ok=False)
    assert "2 problems found" in output
    assert "row 1 (line 2), model_name: found '{model}'" in output


@pytest.mark.parametrize("lost", ["manifest.csv", "benchmark/species_taxonomy.csv"])
def test_an_unreadable_input_is_reported_by_name(sweep, lost):
    (sweep.folder / "data" / lost).unlink()
    output = sweep.run("--dry-run", ok=False)
    assert f"data/{lost}" in output
    assert "No such file" in output or "no such file" in output


# after a failed or killed run


@pytest.mark.matrix
def test_a_failed_rerun_leaves_no_stale_tables_and_plots(sweep):
    good = sweep.tables()
    path = sweep.predictions("007")
    original = path.read_bytes()
    path.write_bytes(original[:-1])
    output = sweep.run(ok=False)
    assert str(path.relative_to(sweep.folder)) in output
    assert "1 model not evaluated: 007. See the errors above" in output
    results = sweep.folder / "results"
    assert not list(results.glob("aggregated/*"))
    assert not list(results.glob("plots/*"))
    assert not sweep.summary("007").exists()
    assert sweep.summary("NA").exists()
    log = (results / "logs/evaluate_model/007.log").read_text()
    assert "iid_test_predictions.json" in log
    path.write_bytes(original)
    sweep.run("tables")
    assert sweep.tables() == good


def test_a_manually_restored_summary_is_rejected_with_the_command_to_run(sweep):
    model = "None"
    files = [sweep.summary(model), sweep.summary(model).with_name(f"{model}_evidence.npz")]
    old = [path.read_bytes() for path in files]
    edit_unseen(sweep.predictions(model))
    output = sweep.run(f"results/models/{model}/{model}_summary.json")
    assert "removed results/aggregated/aggregated.json and 26 more: inputs, options" in output
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    files[0].write_bytes(old[0])
    output = sweep.run("tables", ok=False)
    assert f"{model}_evidence.npz: found evidence of another evaluation" in output
    assert jobs.MODELS_AGAIN in output
    files[1].write_bytes(old[1])
    output = sweep.run("tables", ok=False)
    assert f"{model}_summary.json: found computed with predictions of iid_test SHA-256" in output
    assert jobs.MODELS_AGAIN in output
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    sweep.run("tables", "--forcerun", "evaluate_model")
    assert json.loads(files[0].read_bytes()) != json.loads(old[0])
    assert sweep.planned("tables") == NOTHING


def test_a_killed_run_completes_after_unlock(sweep, record_property):
    good = sweep.tables()
    shutil.rmtree(sweep.folder / "results")
    with subprocess.Popen(
        sweep.command("tables"),
        cwd=sweep.folder,
        env=sweep.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        incomplete = sweep.folder / ".snakemake/incomplete"
        models = sweep.folder / "results/models"
        until = time.monotonic() + 60
        while not (models.exists() and any(incomplete.iterdir())) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    record_property("kills", 1)
    assert "--unlock" in sweep.run("tables", ok=False)
    sweep.run("--unlock")
    sweep.run("--rerun-incomplete", "tables")
    assert sweep.tables() == good


def test_a_running_sweep_is_not_disturbed(sweep):
    """Its fingerprints are kept and no other run starts, even without Snakemake's lock."""
    edit_unseen(sweep.predictions("NA"))
    before = sweep.listing()
    with (sweep.folder / "results/.state/lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep.planned() == ({"NA"}, AFTER)
        output = sweep.run("--forceall", ok=False)
        assert "another Snakemake process is using results; nothing was run" in output
        assert "Traceback" not in output
    assert sweep.listing() == before


def test_tables_of_other_options_are_never_mistaken_for_current_ones(sweep):
    """Not even if options are reverted after a run with other options."""
    good = sweep.tables()
    sweep.configure(iou=0.75)
    sweep.run("tables")
    aggregated = json.loads((sweep.folder / "results/aggregated/aggregated.json").read_bytes())
    assert aggregated["inputs"]["options"]["iou_threshold"] == 0.75
    sweep.configure()
    assert sweep.planned("tables") == (ALL, {"aggregate"})
    sweep.run("tables")
    assert sweep.tables() == good


def test_the_state_of_an_earlier_version_leads_to_a_rerun(sweep):
    """Records without a digest in their names or none, and files that are no longer used."""
    good, state = sweep.tables(), sweep.folder / "results/.state"
    for path in state.glob("*.made"):
        part = path.name.partition(".")[0]
        path.rename(state / f"{part}.made.json")
    for path in state.glob("models/*.made"):
        path.unlink()
    for name in ("running.json", "sweep.faulty", "benchmark.made.json"):
        (state / name).write_text("{}")
    assert sweep.planned() == BEHIND_THE_INDEX
    output = sweep.run("tables")
    assert "removed results/aggregated/aggregated.json and 26 more: no record of" in output
    assert {name: data for name, data in sweep.tables().items() if name in good} == good
    assert sweep.planned("tables") == NOTHING


def test_lost_records_and_report_are_recreated_in_one_run(sweep):
    """Results without a record are removed, and all jobs that depend on them are planned."""
    good, target = sweep.compared(), "results/aggregated/report.md"
    shutil.rmtree(sweep.folder / "results/.state")
    (sweep.folder / target).unlink()
    assert sweep.planned("tables") == (ALL, {"index_benchmark", "aggregate"})
    assert sweep.planned(target) == BEHIND_THE_INDEX
    sweep.run(target)
    assert sweep.compared() == good


def test_looking_changes_nothing(sweep):
    """Neither dry runs nor queries, even if the next run would, because all results are stale."""
    shutil.rmtree(sweep.folder / ".snakemake")
    before = sweep.listing()
    for query in ("--rulegraph", "--summary", "--list-rules", "--unlock"):
        sweep.run(query, "--config", "iou=0.75")
        assert sweep.listing() == before, query
    assert sweep.planned("--config", "iou=0.75") == (ALL, AFTER)
    assert sweep.listing() == before
    assert sweep.planned() == NOTHING
    sweep.run("--report=report.html")
    assert sweep.listing() == before


def test_snakemakes_report_refuses_results_of_an_earlier_run(sweep):
    edit_unseen(sweep.predictions("NA"))
    for option in ([], ["--config", "iou=0.75"]):
        output = sweep.run("--report=report.html", *option, ok=False)
        assert "results: the tables do not exist or are from an earlier run" in output
        assert "Run snakemake with the same options, then repeat this command" in output
        assert "Traceback" not in output
    assert not (sweep.folder / "report.html").exists()


def test_results_of_another_sweep_stop_the_run_before_its_first_job(sweep):
    before = sweep.listing()
    sweep.predictions("NA").parent.rename(sweep.folder / "data/predictions/other")
    sweep.write_manifest({"other": MODELS["NA"]})
    for dry in ([], ["--dry-run"]):
        output = sweep.run(*dry, ok=False)
        assert "results holds another sweep: its 5 models (007, 1e5, NA and 2 more)" in output
        assert "--directory FOLDER" in output
        assert "Traceback" not in output
    assert sweep.listing() == before


def test_touch_keeps_files_but_results_of_other_options_remain_outdated(sweep):
    before = sweep.compared()
    sweep.configure(iou=0.75)
    sweep.run("--touch")
    assert sweep.compared() == before
    assert sweep.planned() == (ALL, AFTER)


SLEEPER = """
import sys, time

if "evaluate_model.py" in " ".join(sys.orig_argv):
    time.sleep(1.1)
"""


@pytest.mark.parametrize("limit", [[], ["--max-jobs-per-timespan", "9/1s"]])
def test_waiting_jobs_are_scheduled_only_when_a_job_finishes(sweep, tmp_path, limit):
    """Otherwise thousands of jobs keep a core busy; a limit set by the user is kept."""
    (tmp_path / "sitecustomize.py").write_text(SLEEPER)
    sweep.env["PYTHONPATH"] = str(tmp_path)
    shutil.rmtree(sweep.folder / "results")
    output = sweep.run("--cores", "1", "--verbose", *limit, "tables")
    jobs = output.count("Finished jobid: ")
    assert jobs == 8  # the index, five models, their tables, the target
    assert (output.count("Ready jobs: ") > jobs) is bool(limit)


# environments


def test_a_locale_that_cannot_encode_a_name_is_reported(sweep):
    shutil.rmtree(sweep.folder / "results")
    sweep.predictions("NA").parent.rename(sweep.folder / "data/predictions/K\u00e4fer")
    models = {("K\u00e4fer" if name == "NA" else name): row for name, row in MODELS.items()}
    sweep.write_manifest(models)
    sweep.env = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    output = sweep.run("--dry-run", ok=False)
    assert "K\\xe4fer" in output
    assert "set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8" in output
    assert "UnicodeEncodeError" not in output
    sweep.env = {"LC_ALL": "C", "PYTHONUTF8": "1"}
    assert sweep.planned() == (set(models), {"index_benchmark", *AFTER})
    sweep.run("results/models/K\u00e4fer/K\u00e4fer_summary.json")


@pytest.mark.parametrize("cores", ["1", "16"])
def test_the_same_bytes_in_other_environments(base, tmp_path, cores):
    other = Sweep(tmp_path / "an other place")
    shutil.copytree(base.folder / "data", other.folder / "data", copy_function=shutil.copy)
    (other.folder / "config").mkdir()
    other.configure()
    other.write_manifest(dict(reversed(MODELS.items())))
    other.env = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    # plots and report are one job each: comparing them once is enough
    other.run("--cores", cores, *(["tables"] if cores == "16" else []))
    look = Sweep.tables if cores == "16" else Sweep.compared
    found, expected = look(other), look(base)
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


def test_a_working_directory_with_data_only(base, tmp_path):
    """Uses --directory from another folder, with the config given on the command line."""
    folder = tmp_path / "work here"
    shutil.copytree(base.folder / "data", folder / "data")
    config = ["--configfile", str(base.folder / "config/config.yaml")]
    sweep = Sweep(folder)
    expected = (ALL, {"index_benchmark", *AFTER})
    assert sweep.planned("--directory", str(folder), *config, cwd=tmp_path) == expected
    assert not (folder / "results").exists()
    assert not (tmp_path / "results").exists()


def tables_of(results):
    return {path.name: path.read_bytes() for path in results.glob("aggregated/*.[cj]s*")}


HOOKS = """
onstart:
    strict.onstart()
    plain.onstart()

onsuccess:
    strict.onsuccess()
    plain.onsuccess()

onerror:
    strict.onerror()
    plain.onerror()
"""


def test_each_module_has_its_own_tables_and_messages(base, tmp_path):
    sweep = two_modules(base, tmp_path, HOOKS)
    path = sweep.predictions("007")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    output = sweep.run("--keep-going", "strict_tables", "plain_tables", ok=False)
    assert "See the errors above and strict/results/logs/evaluate_model/<model>.log" in output
    assert "See the errors above and results/logs/evaluate_model/<model>.log" in output
    path.write_bytes(whole)
    sweep.run("strict_tables", "plain_tables")
    assert tables_of(tmp_path / "results") == tables_of(base.folder / "results")
    assert sorted(tables_of(tmp_path / "strict/results")) == sorted(tables.FILES)
    together = (tmp_path / "strict/results/aggregated/aggregated.json").read_text()
    assert '"iou_threshold": 0.75' in together


def test_rules_of_a_module_can_be_changed(base, tmp_path):
    """No warning is printed, such as that of a localrules statement in a module."""
    sweep = base.copy(tmp_path / "sweep")
    shutil.rmtree(sweep.folder / "results")
    sweep.snakefile = sweep.folder / "Snakefile"
    sweep.snakefile.write_text(f"""
configfile: "config/config.yaml"
module beetles:
    snakefile: {str(ROOT / "workflow/Snakefile")!r}
    config: config
use rule * from beetles
use rule plot_sweep from beetles with:
    resources: mem_mb=1234
use rule report from beetles with:
    threads: 2
""")
    output = sweep.run("--dry-run", "--forcerun", "report")
    assert "localrules" not in output
    jobs = dict(re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", output, re.MULTILINE))
    assert "mem_mb=1234" in jobs["plot_sweep"]
    assert "threads: 2" in jobs["report"]
    assert "mem_mb=2000" in jobs["aggregate"]


def test_the_workflow_runs_as_snakedeploy_deploys_it(base, copied_workflow, tmp_path):
    """The Snakefile is what snakedeploy 0.17 writes; config/ and profiles/ are copies."""
    clone = shutil.copytree(copied_workflow, tmp_path / "clone")
    git_commit(clone, tag="v1")
    project = base.copy(tmp_path / "project")
    shutil.rmtree(project.folder / "results")
    shutil.copytree(clone / "profiles", project.folder / "profiles")
    project.snakefile = project.folder / "workflow/Snakefile"
    project.snakefile.parent.mkdir()
    project.snakefile.write_text(f"""\
from snakemake.utils import min_version


min_version("6.10.0")


configfile: "config/config.yaml"


# declare {clone} as a module
module clone:
    snakefile:
        gitfile("{clone}", path="workflow/Snakefile", tag="v1")
    config:
        config


# use all rules from {clone}
use rule * from clone
""")
    project.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    output = project.run("results/models/NA/NA_summary.json")
    assert "Using workflow specific profile profiles/default" in output
    assert project.summary("NA").read_bytes() == base.summary("NA").read_bytes()


@pytest.mark.matrix
def test_the_workflow_runs_as_a_module_of_another_workflow(base, tmp_path):
    """Without hooks, as snakedeploy writes it."""
    sweep = two_modules(base, tmp_path)
    _, rules = sweep.planned()
    assert {"strict_evaluate_model", "plain_evaluate_model", "plain_report"} <= rules
    # tables of other inputs are removed in the module's own folder
    record = tmp_path / "strict/results/.state" / record_name("sweep", "0" * 64)
    record.parent.mkdir(parents=True)
    old = tmp_path / "strict/results/aggregated/aggregated.json"
    old.parent.mkdir()
    for path in (record, old):
        path.write_text("{}")
    output = sweep.run(
        "strict/results/models/NA/NA_summary.json", "results/models/NA/NA_summary.json"
    )
    assert "removed strict/results/aggregated/aggregated.json: inputs, options" in output
    assert not old.exists()
    assert not record.exists()
    strict = json.loads((tmp_path / "strict/results/models/NA/NA_summary.json").read_text())
    assert strict["config"]["iou_threshold"] == 0.75
    plain = tmp_path / "results/models/NA/NA_summary.json"
    assert plain.read_bytes() == base.summary("NA").read_bytes()
