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
import sysconfig
import time
import venv

import pytest
from support.workflow_sweep import MODELS, ROOT, SPLITS, Sweep, edit_unseen, write_predictions

from benchmark_eval.pipeline import jobs
from benchmark_eval.pipeline.outdated import record_name
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
    for name in ("Snakefile", "environment.yml"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


# results of a run


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


def test_a_second_run_has_nothing_to_do(sweep):
    assert "Nothing to be done" in sweep.run()
    assert sweep.compared() == Sweep(sweep.folder).compared()


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("models/NA/NA_per_species.csv", ({"NA"}, AFTER)),
        ("aggregated/learning_curves.csv", (set(), AFTER)),
        ("plots/target_grid.svg", (set(), READ)),
    ],
)
def test_a_deleted_result_is_recreated(sweep, lost, expected):
    (sweep.folder / "results" / lost).unlink()
    assert sweep.planned() == expected
    sweep.run()
    assert (sweep.folder / "results" / lost).stat().st_size
    assert sweep.planned() == NOTHING


def test_lint_finds_no_problems(base, tmp_path):
    assert "good condition" in Sweep(tmp_path).run("--lint")


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


# what makes results stale, and what does not


def test_touching_every_prediction_file_reruns_nothing(sweep):
    for model in MODELS:
        for split in SPLITS:
            sweep.predictions(model, split).touch()
    (sweep.folder / "data/manifest.csv").touch()
    for path in (sweep.folder / "data/benchmark").rglob("*.json"):
        path.touch()
    assert sweep.planned() == NOTHING


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
    # a dry run does not change what the next one reports
    assert sweep.planned() == ({"NA"}, AFTER)


def test_an_edit_reruns_that_model_with_the_mtime_trigger_only(sweep):
    assert sweep.planned("--rerun-triggers", "mtime") == NOTHING
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
        ("report/sentences.py", (set(), READ)),
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


def test_no_output_of_a_rule_is_ancient():
    """Snakemake 9.27 drops jobs whose ancient input is recreated (snakemake#4166)."""
    text = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    inside = re.findall(r"=ancient\((.*)\)", text)
    assert len(inside) == 3
    assert all(name.startswith("local(") for name in inside)


def test_jobs_that_would_import_another_copy_stop_the_workflow(sweep, copied_workflow):
    sweep.env["PYTHONPATH"] = str(copied_workflow)
    output = sweep.run("--dry-run", ok=False)
    assert "two copies of benchmark_eval" in output
    assert str(copied_workflow / "benchmark_eval") in output


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
    old = sweep.summary(model).read_bytes()
    edit_unseen(sweep.predictions(model))
    output = sweep.run(f"results/models/{model}/{model}_summary.json")
    assert "removed results/aggregated/aggregated.json and 8 more: inputs, options" in output
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    sweep.summary(model).write_bytes(old)
    output = sweep.run("tables", ok=False)
    assert f"{model}_summary.json: found computed with predictions of iid_test SHA-256" in output
    assert jobs.MODELS_AGAIN in output
    assert not (sweep.folder / "results/aggregated/aggregated.json").exists()
    sweep.run("tables", "--forcerun", "evaluate_model")
    assert json.loads(sweep.summary(model).read_bytes()) != json.loads(old)
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
    fingerprint = sweep.folder / "results/.state/models/NA.json"
    before = fingerprint.read_bytes()
    with (sweep.folder / "results/.state/lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep.planned() == NOTHING
        assert "another Snakemake process is using results" in sweep.run("--forceall", ok=False)
        assert fingerprint.read_bytes() == before
    assert sweep.planned() == ({"NA"}, AFTER)


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
    """Records without a digest in their names, and files that are no longer used."""
    state = sweep.folder / "results/.state"
    for path in state.glob("*.made"):
        part = path.name.partition(".")[0]
        path.rename(state / f"{part}.made.json")
    for name in ("running.json", "sweep.faulty", "benchmark.made.json"):
        (state / name).write_text("{}")
    assert sweep.planned() == (set(), AFTER)
    output = sweep.run("tables")
    assert "removed results/aggregated/aggregated.json and 8 more: no record of" in output
    assert sweep.planned("tables") == NOTHING


def test_lost_fingerprints_and_report_are_recreated_in_one_run(sweep):
    """Results without a record are removed, and all jobs that depend on them are planned."""
    good, target = sweep.compared(), "results/aggregated/report.md"
    shutil.rmtree(sweep.folder / "results/.state")
    (sweep.folder / target).unlink()
    assert sweep.planned("tables") == (set(), {"aggregate"})
    assert sweep.planned(target) == (set(), AFTER)
    sweep.run(target)
    assert sweep.compared() == good


def test_queries_delete_nothing(sweep):
    """Even if the next run would, because all results are stale."""

    def results():
        found = sweep.folder.joinpath("results").rglob("*")
        return {path for path in found if path.is_file() and path.parent.name != ".state"}

    good, before = sweep.compared(), results()
    sweep.configure(iou=0.75)
    for query in ("--lint", "--rulegraph", "--summary", "--report=report.html"):
        sweep.run(query)
        assert results() == before, query
    assert sweep.planned() == (ALL, AFTER)
    assert results() == before
    sweep.configure()
    assert sweep.planned() == NOTHING
    assert sweep.compared() == good


def test_touch_keeps_files_but_tables_of_other_options_remain_stale(sweep):
    before = {name: data for name, data in sweep.compared().items() if ".state" not in name}
    sweep.configure(iou=0.75)
    sweep.run("--touch")
    assert sweep.planned() == (set(), AFTER)
    after = {name: data for name, data in sweep.compared().items() if ".state" not in name}
    assert after == before
    output = sweep.run("tables", ok=False)
    assert "found computed with iou 0.5; expected 0.75, as planned" in output
    assert jobs.MODELS_AGAIN in output
    assert not list(sweep.folder.glob("results/aggregated/*"))


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
    assert (folder / "results/.state/sweep.json").exists()
    assert not (tmp_path / "results").exists()


def tables_of(results):
    return {path.name: path.read_bytes() for path in results.glob("aggregated/*.[cj]s*")}


def two_modules(base, folder):
    """A workflow that uses this one twice, with two IoU thresholds."""
    shutil.copytree(base.folder / "data", folder / "data")
    (folder / "Snakefile").write_text(f"""
CONFIG = {{
    "benchmark_dir": "data/benchmark",
    "predictions_dir": "data/predictions",
    "manifest": "data/manifest.csv",
}}


module strict:
    snakefile: {str(ROOT / "workflow/Snakefile")!r}
    config: {{**CONFIG, "iou": 0.75}}
    prefix: "strict"


use rule * from strict as strict_*


module plain:
    snakefile: {str(ROOT / "workflow/Snakefile")!r}
    config: CONFIG


use rule * from plain as plain_*


rule both:
    input: rules.strict_all.input, rules.plain_all.input
    default_target: True


onstart:
    strict.onstart()
    plain.onstart()

onsuccess:
    strict.onsuccess()
    plain.onsuccess()

onerror:
    strict.onerror()
    plain.onerror()
""")
    return Sweep(folder, snakefile=folder / "Snakefile")


def test_each_module_has_its_own_tables_and_messages(base, tmp_path):
    sweep = two_modules(base, tmp_path)
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


def test_the_workflow_runs_as_a_module_of_another_workflow(base, tmp_path):
    sweep = two_modules(base, tmp_path)
    _, rules = sweep.planned()
    assert {"strict_evaluate_model", "plain_evaluate_model", "plain_report"} <= rules
    # tables of other inputs are removed in the module's own folder
    record = tmp_path / "strict/results/.state" / record_name("sweep", "0" * 64)
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
