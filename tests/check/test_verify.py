"""``benchmark-eval verify``: every change to results or inputs is told, and nothing else."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from benchmark_eval.cli.main import main
from benchmark_eval.sweep import tables

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
    """A copy of a finished sweep, with a config that names its data by relative paths."""
    shutil.copytree(made, tmp_path / "sweep")
    (tmp_path / "sweep/config").mkdir()
    config = {name: name for name in ("benchmark", "predictions")}
    keys = {f"{name}_dir": place for name, place in config.items()}
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


def test_what_a_sweep_leaves_agrees_and_stays_untouched(folder, monkeypatch, capsys):
    before = files(folder)
    code, said = verify(folder, monkeypatch, capsys)
    n_files = 10 * (5 + 3) + len(tables.FILES) + 1  # five of a model, its predictions; report.md
    assert (code, said) == (0, f"10 models, {n_files} files compared: they agree\n")
    assert files(folder) == before


def test_without_a_config_it_says_what_it_could_not_compare(folder, monkeypatch, capsys):
    shutil.rmtree(folder / "config")
    code, said = verify(folder, monkeypatch, capsys)
    assert code == 0, said
    assert "not compared: predictions and manifest: no config names them" in said
    assert "not compared: per_species.csv and tables of the sweep: no benchmark" in said


def _models(suffix):
    return f"results/models/{MODEL}/{MODEL}_{suffix}"


CHANGES = {
    "a number of a table": (
        lambda f: edit(f / _models("summary.csv"), b"AP_50_95,0.", b"AP_50_95,1."),
        [f"{MODEL}_summary.csv: found another line", f"what {MODEL}_summary.json gives"],
        1,
    ),
    "a word of the report": (
        lambda f: edit(f / _models("report.txt"), b"Headline", b"Headlime"),
        [f"{MODEL}_report.txt: found another line 7"],
        1,
    ),
    "a species": (
        lambda f: edit(f / _models("per_species.csv"), b"Genus1 species1", b"Genus1 species2"),
        [f"{MODEL}_per_species.csv: found another line 2"],
        1,
    ),
    "a hit that is gone": (
        lambda f: edit(f / _models("detections.csv"), b"\niid_test,", b"iid_test,"),
        [f"{MODEL}_detections.csv: found ", "a row a hit of the summary"],
        1,
    ),
    "a file that is gone": (
        lambda f: (f / _models("per_species.csv")).unlink(),
        [f"{MODEL}_per_species.csv: found No such file"],
        1,
    ),
    "a number of a summary": (
        lambda f: edit(f / _models("summary.json"), b'"AP_50": 0.', b'"AP_50": 0.0'),
        [f"{MODEL}_report.txt: found another line", f"another summary of '{MODEL}'"],
        5,
    ),
    "a summary cut short": (
        lambda f: (f / _models("summary.json")).write_bytes(b"{"),
        [f"{MODEL}_summary.json", "evaluate the model again"],
        2,
    ),
    "a summary of another version": (
        lambda f: edit(f / _models("summary.json"), b'"schema_version": ', b'"schema_version": 9'),
        [f"{MODEL}_summary.json", "found schema_version 9"],
        2,
    ),
    "a summary of other code": (
        lambda f: edit(f / _models("summary.json"), b'"scoring_code": "', b'"scoring_code": "x'),
        ["made by the scoring code x", "evaluate the model again"],
        3,
    ),
    "a copy under another name": (
        lambda f: shutil.copy(f / _models("summary.json"), f / "results/models/other_summary.json"),
        [f"found '{MODEL}'; expected 'other'"],
        2,  # the tables name models that they have passed over
    ),
    "a model that is gone": (
        lambda f: shutil.rmtree(f / f"results/models/{MODEL}"),
        [f"{MODEL}: no summary", "aggregate again"],
        3,
    ),
    "a number of a curve": (
        lambda f: edit(f / "results/aggregated/learning_curves.csv", b"0.", b"1."),
        ["learning_curves.csv: found another line 2", "what aggregated.json gives"],
        1,
    ),
    "a number of the report": (
        lambda f: edit(f / "results/aggregated/report.md", b"n=2", b"n=3"),
        ["report.md: found another line"],
        1,
    ),
    "a number of all tables": (
        lambda f: edit(f / "results/aggregated/aggregated.json", b'"n_images": ', b'"n_images": 1'),
        ["aggregated.json: found another line", "the manifest and the benchmark give"],
        2,
    ),
    "tables cut short": (
        lambda f: (f / "results/aggregated/aggregated.json").write_bytes(b"{"),
        ["aggregated.json", "aggregate again"],
        1,
    ),
    "a prediction": (
        lambda f: edit(f / f"predictions/{MODEL}/iid_test_predictions.json", b"0.", b"0.0"),
        ["iid_test_predictions.json: found SHA-256", "predictions that changed since"],
        1,
    ),
    "a prediction file that is gone": (
        lambda f: (f / f"predictions/{MODEL}/iid_test_predictions.json").unlink(),
        ["iid_test_predictions.json", "no such file"],
        1,
    ),
    "a seed of the manifest": (
        lambda f: edit(f / "manifest.csv", f"{MODEL},global_uniform,1".encode(),
                       f"{MODEL},global_uniform,2".encode()),
        ["aggregated.json: found another line"],
        1,
    ),
    "a broken manifest": (
        lambda f: (f / "manifest.csv").write_text("model\n"),
        ["manifest.csv, header: found the column 'model'"],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told_with_its_place_and_nothing_else(folder, name, monkeypatch, capsys):
    change, words, n_problems = CHANGES[name]
    change(folder)
    code, said = verify(folder, monkeypatch, capsys)
    assert code == 1
    assert [word for word in words if word not in said] == [], said
    assert said.startswith(f"{n_problems} problem"), said
    assert "they do not agree" in said


def test_a_changed_benchmark_is_told_for_every_model(folder, monkeypatch, capsys):
    path = folder / "benchmark/detection/annotations_coco/iid_test.json"
    path.write_bytes(path.read_bytes() + b"\n")
    code, said = verify(folder, monkeypatch, capsys)
    assert code == 1
    assert said.count("the benchmark changed since: evaluate the model again") == 1
    assert "10 problems of kind 'other-benchmark' in all" in said


def test_a_single_evaluation_can_be_verified_too(folder, monkeypatch, capsys):
    place = folder / f"results/models/{MODEL}"
    shutil.rmtree(folder / "config")
    assert verify(folder, monkeypatch, capsys, str(place))[0] == 0
    edit(place / f"{MODEL}_summary.csv", b"0.", b"1.")
    assert verify(folder, monkeypatch, capsys, str(place))[0] == 1


@pytest.mark.parametrize("place", ["nowhere", "manifest.csv", "benchmark"])
def test_what_holds_no_results_ends_in_2(folder, place, monkeypatch, capsys):
    code, said = verify(folder, monkeypatch, capsys, place)
    assert code == 2
    assert place in said
