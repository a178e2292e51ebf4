"""``benchmark-eval verify`` reports every change to results or inputs, and nothing else."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from benchmark_eval.cli.main import main
from benchmark_eval.sweep import tables

pytestmark = pytest.mark.slow  # copies and verifies a whole sweep for each change

MODEL = "alder_k1_s0"


def golden():
    place = Path(__file__).parents[1] / "sweep/golden/sweep.py"
    spec = importlib.util.spec_from_file_location("golden_sweep", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "sweep"
    golden().run(folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of a finished sweep, with a config that uses relative paths."""
    shutil.copytree(made, tmp_path / "sweep")
    (tmp_path / "sweep/config").mkdir()
    keys = {f"{name}_dir": name for name in ("benchmark", "predictions")}
    (tmp_path / "sweep/config/config.yaml").write_text(
        json.dumps({**keys, "manifest": "manifest.csv"})
    )
    return tmp_path / "sweep"


def verify(folder, monkeypatch, capsys, *args):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stop:
        main(["verify", *args])
    captured = capsys.readouterr()
    return stop.value.code, captured.out + captured.err


def edit(path, old, new):
    data = path.read_bytes()
    assert old in data, path
    path.write_bytes(data.replace(old, new, 1))


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_results_of_a_sweep_are_consistent_and_not_modified(folder, monkeypatch, capsys):
    before = files(folder)
    code, output = verify(folder, monkeypatch, capsys)
    # per model six result files and three prediction files; the tables; report.md
    n_files = 10 * (6 + 3) + len(tables.FILES) + 1
    assert (code, output) == (0, f"10 models, {n_files} files compared: all consistent\n")
    assert files(folder) == before


def test_results_that_the_last_run_did_not_update_are_refused(folder, monkeypatch, capsys):
    """By every command that reads the tables; the fingerprints were written, but no job ran."""
    for name in (".state", "plots"):
        (folder / "results" / name).mkdir(exist_ok=True)
    for part in ("sweep", "report"):
        (folder / f"results/.state/{part}.json").write_text("planned")
    code, output = verify(folder, monkeypatch, capsys)
    assert code == 1
    assert "3 problems found" in output
    for name in ("aggregated/aggregated.json", "plots", "aggregated/report.md"):
        assert f"results/{name}: found results of an earlier run" in output
    for command in ("plot", "report"):
        tables_file = "results/aggregated/aggregated.json"
        with pytest.raises(SystemExit) as stop:
            main([command, "--aggregated", tables_file, "--output-dir", "out"])
        assert stop.value.code == 1
        error = capsys.readouterr().err
        assert f"{tables_file}: found results of an earlier run" in error
        assert "run snakemake without a target" in error
    assert not (folder / "out").exists()


def test_without_a_config_the_files_not_compared_are_listed(folder, monkeypatch, capsys):
    shutil.rmtree(folder / "config")
    code, output = verify(folder, monkeypatch, capsys)
    assert code == 0, output
    assert "not compared: prediction files and manifest: no config names them" in output
    assert "not compared: per_species.csv and the tables of the sweep: no benchmark" in output


def _models(suffix):
    return f"results/models/{MODEL}/{MODEL}_{suffix}"


CHANGES = {
    "a number of a table": (
        lambda f: edit(f / _models("summary.csv"), b"AP_50_95,0.", b"AP_50_95,1."),
        [f"{MODEL}_summary.csv: found different content", f"computed from {MODEL}_summary.json"],
        1,
    ),
    "a word of the report": (
        lambda f: edit(f / _models("report.txt"), b"Localisation", b"Localisatiom"),
        [f"{MODEL}_report.txt: found different content in line 2"],
        1,
    ),
    "a species": (
        lambda f: edit(f / _models("per_species.csv"), b"Genus1 species1", b"Genus1 species2"),
        [f"{MODEL}_per_species.csv: found different content in line 2"],
        1,
    ),
    "a removed true positive": (
        lambda f: edit(f / _models("detections.csv"), b"\niid_test,", b"iid_test,"),
        [f"{MODEL}_detections.csv: found ", "one row per true positive of the summary"],
        1,
    ),
    "a removed file": (
        lambda f: (f / _models("per_species.csv")).unlink(),
        [f"{MODEL}_per_species.csv: No such file"],
        1,
    ),
    "a number of a summary": (
        lambda f: edit(f / _models("summary.json"), b'"AP_50": 0.', b'"AP_50": 0.0'),
        [f"{MODEL}_report.txt: found different content", f"another summary of '{MODEL}'"],
        5,
    ),
    "a truncated summary": (
        lambda f: (f / _models("summary.json")).write_bytes(b"{"),
        [f"{MODEL}_summary.json", "evaluate the model again"],
        2,
    ),
    "a summary of another version": (
        lambda f: edit(f / _models("summary.json"), b'"schema_version": ', b'"schema_version": 9'),
        [f"{MODEL}_summary.json", "found schema_version 9"],
        2,
    ),
    "a summary of other scoring code": (
        lambda f: edit(f / _models("summary.json"), b'"scoring_code": "', b'"scoring_code": "x'),
        ["found scoring code x", "evaluate the model again", "evidence of another evaluation"],
        4,
    ),
    "a byte of the evidence": (
        lambda f: edit(f / _models("evidence.npz"), b"iid_test/n_scored", b"iid_test/n_scoreD"),
        [f"{MODEL}_evidence.npz: found SHA-256", "as in the summary"],
        1,
    ),
    "a truncated evidence": (
        lambda f: (f / _models("evidence.npz")).write_bytes(b"PK"),
        [f"{MODEL}_evidence.npz: found BadZipFile", "truncated, edited, or another file"],
        1,
    ),
    "the evidence of another model": (
        lambda f: shutil.copy(
            f / "results/models/alder_k1_s1/alder_k1_s1_evidence.npz", f / _models("evidence.npz")
        ),
        [f"{MODEL}_evidence.npz, model: found 'alder_k1_s1'; expected '{MODEL}'"],
        1,
    ),
    "a removed evidence": (
        lambda f: (f / _models("evidence.npz")).unlink(),
        [f"{MODEL}_evidence.npz: No such file"],
        1,
    ),
    "a copy under another name": (
        lambda f: shutil.copy(f / _models("summary.json"), f / "results/models/other_summary.json"),
        [f"found model '{MODEL}'; expected model 'other'"],
        2,  # the tables list excluded models
    ),
    "a removed model": (
        lambda f: shutil.rmtree(f / f"results/models/{MODEL}"),
        [f"{MODEL}: no summary", "aggregate again"],
        3,
    ),
    "a number of a curve": (
        lambda f: edit(f / "results/aggregated/learning_curves.csv", b"0.", b"1."),
        ["learning_curves.csv: found different content in line 2", "from aggregated.json"],
        1,
    ),
    "a number of the report": (
        lambda f: edit(f / "results/aggregated/report.md", b"n=2", b"n=3"),
        ["report.md: found different content"],
        1,
    ),
    "a number of all tables": (
        lambda f: edit(f / "results/aggregated/aggregated.json", b'"n_images": ', b'"n_images": 1'),
        ["aggregated.json: found different content", "the manifest and the benchmark"],
        2,
    ),
    "truncated tables": (
        lambda f: (f / "results/aggregated/aggregated.json").write_bytes(b"{"),
        ["aggregated.json", "aggregate again"],
        1,
    ),
    "a prediction": (
        lambda f: edit(f / f"predictions/{MODEL}/iid_test_predictions.json", b"0.", b"0.0"),
        ["iid_test_predictions.json: found SHA-256", "predictions changed after the evaluation"],
        1,
    ),
    "a removed prediction file": (
        lambda f: (f / f"predictions/{MODEL}/iid_test_predictions.json").unlink(),
        ["iid_test_predictions.json", "no such file"],
        1,
    ),
    "a seed of the manifest": (
        lambda f: edit(f / "manifest.csv", f"{MODEL},global_uniform,1".encode(),
                       f"{MODEL},global_uniform,2".encode()),
        ["aggregated.json: found different content"],
        1,
    ),
    "a broken manifest": (
        lambda f: (f / "manifest.csv").write_text("model\n"),
        ["manifest.csv, header: found column 'model'"],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_reported_with_its_location_and_nothing_else(folder, name, monkeypatch, capsys):
    change, words, n_problems = CHANGES[name]
    change(folder)
    code, output = verify(folder, monkeypatch, capsys)
    assert code == 1
    assert [word for word in words if word not in output] == [], output
    assert output.startswith(f"{n_problems} problem"), output
    assert "compared: differences found" in output


def test_a_changed_benchmark_is_reported_for_every_model(folder, monkeypatch, capsys):
    path = folder / "benchmark/detection/annotations_coco/iid_test.json"
    path.write_bytes(path.read_bytes() + b"\n")
    code, output = verify(folder, monkeypatch, capsys)
    assert code == 1
    assert output.count("the benchmark changed after the evaluation: evaluate the model again") == 1
    assert "10 problems of kind 'other-benchmark' in all" in output


def test_a_single_evaluation_can_be_verified(folder, monkeypatch, capsys):
    place = folder / f"results/models/{MODEL}"
    shutil.rmtree(folder / "config")
    assert verify(folder, monkeypatch, capsys, str(place))[0] == 0
    edit(place / f"{MODEL}_summary.csv", b"0.", b"1.")
    assert verify(folder, monkeypatch, capsys, str(place))[0] == 1


@pytest.mark.parametrize("place", ["nowhere", "manifest.csv", "benchmark"])
def test_a_folder_without_results_gives_exit_code_2(folder, place, monkeypatch, capsys):
    code, output = verify(folder, monkeypatch, capsys, place)
    assert code == 2
    assert place in output
