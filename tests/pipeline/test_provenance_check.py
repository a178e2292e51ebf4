"""Jobs compare the inputs they read with their fingerprints and reject those that differ."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.core.code_digest import code_digest
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.records import record_content, record_name
from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.pipeline import jobs
from benchmark_eval.pipeline.fingerprints import fingerprint_text, text_digest
from benchmark_eval.pipeline.provenance_check import (
    OF_A_MODEL,
    read_fingerprint,
    require_code,
    require_files,
)
from benchmark_eval.scoring.evaluate import evaluate_to_files

MODEL = "m"
ROW = ["yolo", "global_uniform", "1", 0]
OWN = "def custom_metrics(evaluation):\n    return {'n': 1}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A planned sweep of one model: its files and the fingerprints that the workflow writes."""
    monkeypatch.chdir(tmp_path)
    write_split(tmp_path / "b", "iid_test", [[1, 1, [0, 0, 50, 50]]])
    write_split(tmp_path / "b", "train", [[1, 1, [0, 0, 50, 50]]])
    write_taxonomy(tmp_path / "b", [1])
    write_predictions(tmp_path / "p", "iid_test", [[1, 1, [0, 0, 50, 50], 0.9]])
    write_index(tmp_path / "b", tmp_path / "i.npz")
    shutil.copy(tmp_path / "b/detection/annotations_coco/train.json", tmp_path / "subset.json")
    (tmp_path / "own.py").write_text(OWN)
    write_manifest(ROW)
    evaluation = evaluate_to_files(
        benchmark="i.npz", predictions_dir="p", output_dir="first", model_name=MODEL,
        splits=["iid_test"],
    )  # fmt: skip
    inputs = evaluation.provenance.inputs
    files = {n.rpartition("/")[2]: d for n, d in inputs.items() if n.startswith("benchmark/")}
    write("benchmark", {"code": code_digest("index"), "files": files})
    of_model = {
        "code": code_digest("scoring"),
        "iou": 0.5,
        "engine": "fast",
        "on_invalid": "error",
        "operating_confidence": None,
        "predictions": {"iid_test": inputs["predictions/iid_test"]},
    }
    write(f"models/{MODEL}", of_model)
    plan()
    return tmp_path


def write_manifest(row):
    cells = ",".join(str(cell) for cell in row)
    header = "model_name,architecture,regime,k_or_p,seed,train_annotations"
    Path("manifest.csv").write_text(f"{header}\n{MODEL},{cells},subset.json\n")


def path_of(name):
    return Path("state") / f"{name}.json"


def write(name, content):
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(fingerprint_text(content))


def edited(name, **changes):
    write(name, json.loads(path_of(name).read_text()) | changes)


def sha(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def plan():
    """Write the fingerprint of the sweep, which contains the digests of the others."""
    of_benchmark, of_model = (
        text_digest(path_of(name).read_text()) for name in ("benchmark", f"models/{MODEL}")
    )
    sweep = {
        "code": code_digest("sweep"),
        "benchmark": of_benchmark,
        "models": {MODEL: [*ROW, sha("subset.json"), of_model]},
        "missing": [],
        "custom_metrics": [sha("own.py")],
        "prices": [None, 2.5],
    }
    write("sweep", sweep)


def evaluate(index="i.npz"):
    jobs.evaluate_model(
        index=index, predictions_dir="p", output_dir=f"models/{MODEL}", model_name=MODEL,
        splits=["iid_test"], iou=0.5, engine="fast", on_invalid="error",
        operating_confidence=None, detections="hits",
        fingerprint=path_of(f"models/{MODEL}"), record=f"state/models/{MODEL}.made",
        log="logs/m.log",
    )  # fmt: skip


def index(path):
    jobs.index_benchmark(
        benchmark_dir="b", index=path, fingerprint=path_of("benchmark"),
        record=record("index", "benchmark"), log="logs/i.log",
    )  # fmt: skip


def record(part="sweep", name="sweep"):
    return path_of(name).with_name(record_name(part, text_digest(path_of(name).read_text())))


def aggregate(planned=None):
    jobs.aggregate(
        eval_dir="models", manifest="manifest.csv", index="i.npz", output_dir="aggregated",
        allow_missing=False, custom_metrics="own.py", price_per_image=None,
        price_per_specimen=2.5, fingerprint=path_of("sweep"),
        record=planned or record(), log="logs/a.log",
    )  # fmt: skip


def refused(capsys, job, *words):
    """Run a job that fails; its message contains these words and no traceback."""
    capsys.readouterr()
    with pytest.raises(SystemExit):
        job()
    message = capsys.readouterr().err
    assert [word for word in words if word not in message] == [], message
    assert "Traceback" not in message
    return message


def test_a_summary_with_an_edited_number_is_refused(place, capsys):
    evaluate()
    summary = place / f"models/{MODEL}/{MODEL}_summary.json"
    text = summary.read_text()
    number = re.search(r'"AP_50": (0\.\d+)', text)[1]
    summary.write_text(text.replace(number, "0.77777"))
    refused(capsys, aggregate, str(summary.name), "SHA-256", "edited manually")
    assert not (place / "aggregated/aggregated.json").exists()


def test_jobs_that_match_their_fingerprints_succeed_and_are_recorded(place):
    index("made.npz")
    assert record("index", "benchmark").read_bytes() == path_of("benchmark").read_bytes()
    assert (place / "made.npz").read_bytes() == (place / "i.npz").read_bytes()
    evaluate()
    made = place / f"state/models/{MODEL}.made"
    summary = place / f"models/{MODEL}/{MODEL}_summary.json"
    assert made.read_bytes() == record_content(path_of(f"models/{MODEL}").read_bytes(), summary)
    aggregate()
    tables = place / "aggregated/aggregated.json"
    assert record().read_bytes() == record_content(path_of("sweep").read_bytes(), tables)
    assert (place / "aggregated/aggregated.json").stat().st_size


def test_predictions_replaced_after_planning_are_rejected_and_nothing_is_written(place, capsys):
    made = place / f"state/models/{MODEL}.made"
    made.parent.mkdir(exist_ok=True)
    made.write_text("of an earlier job")
    write_predictions(place / "p", "iid_test", [])
    refused(capsys, evaluate, "predictions of iid_test", "it changed after snakemake planned")
    assert not (place / "models").exists()
    assert not made.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"predictions'])
@pytest.mark.parametrize("name", ["models/m", "benchmark", "sweep"])
def test_an_invalid_fingerprint_is_rejected_by_name(place, capsys, name, content):
    evaluate()
    path_of(name).write_text(content)
    words = (f"state/{name}.json: found other content", "run snakemake again")
    if name != "sweep":
        refused(capsys, evaluate, *words)
    refused(capsys, aggregate, *words)


def test_a_missing_fingerprint_is_rejected_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"none\.json: found No such file or directory"):
        read_fingerprint(tmp_path / "none.json", *OF_A_MODEL)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"code": "0" * 64}, "code of benchmark_eval (scoring)"),
        ({"iou": 0.75}, "evaluation of m, iou: found 0.5; expected 0.75"),
        ({"engine": "pycocotools"}, "evaluation of m, engine: found fast"),
        ({"on_invalid": "drop"}, "evaluation of m, on_invalid: found error"),
        ({"operating_confidence": 0.5}, "operating_confidence: found nothing; expected 0.5"),
    ],
)
def test_options_or_code_that_differ_from_the_plan_are_rejected(place, capsys, changes, words):
    edited("models/m", **changes)
    assert "1 problem found" in refused(capsys, evaluate, words)
    assert not (place / "models").exists()


@pytest.mark.parametrize("part", ["index", "sweep", "report"])
def test_code_edited_after_planning_is_rejected_in_every_job(place, part):
    write("x", {"code": code_digest(part)})
    require_code(read_fingerprint(path_of("x"), "code"), part)
    write("x", {"code": "0" * 64})
    with pytest.raises(InputError, match="it changed after snakemake planned"):
        require_code(read_fingerprint(path_of("x"), "code"), part)


@pytest.mark.parametrize("change", ["edited", "added"])
def test_no_index_is_written_if_the_benchmark_changed_after_planning(place, capsys, change):
    if change == "edited":
        write_taxonomy(place / "b", [1, 2])
    else:
        write_split(place / "b", "inat_test", [[1, 1, [0, 0, 5, 5]]])
    refused(
        capsys, lambda: index("new.npz"), "benchmark file", "it changed after snakemake planned"
    )
    assert not (place / "new.npz").exists()


@pytest.mark.parametrize("kind", ["foreign", "truncated", "empty"])
def test_a_foreign_or_damaged_index_is_rejected_with_the_command_to_run(place, capsys, kind):
    evaluate()
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    before, index = summary.read_bytes(), place / "i.npz"
    if kind == "foreign":
        write_taxonomy(place / "b", [1, 2])
        write_index(place / "b", index)
    else:
        index.write_bytes(index.read_bytes()[:-9] if kind == "truncated" else b"")
    for job in (evaluate, aggregate):
        refused(capsys, job, "i.npz: found", "snakemake --forcerun index_benchmark")
    assert summary.read_bytes() == before
    assert not (place / "aggregated").exists()


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("models/m", {"code": "other"}, "scoring code"),
        ("models/m", {"iou": 0.75}, "iou 0.5; expected 0.75, as planned"),
        ("models/m", {"engine": "pycocotools"}, "engine fast"),
        ("models/m", {"on_invalid": "drop"}, "on_invalid error"),
        ("models/m", {"operating_confidence": 0.5}, "operating_confidence nothing"),
        ("models/m", {"predictions": {"iid_test": "0"}}, "predictions of iid_test SHA-256"),
        ("models/m", {"predictions": {}}, "splits"),
    ],
)
def test_a_summary_of_other_inputs_or_options_is_stale(place, capsys, name, changes, words):
    evaluate()
    edited(name, **changes)
    plan()
    message = refused(
        capsys, aggregate, "models/m/m_summary.json: found computed with", words, "1 problem found"
    )
    assert message.rstrip().endswith(jobs.MODELS_AGAIN)
    assert not record().exists()


@pytest.mark.parametrize("name", ["models/m", "benchmark"])
def test_a_fingerprint_changed_after_planning_does_not_make_summaries_stale(place, capsys, name):
    evaluate()
    edited(name, more="x")
    message = refused(capsys, aggregate, f"state/{name}.json: found a different fingerprint")
    assert "1 problem found" in message
    assert "forcerun" not in message


def test_tables_are_never_made_without_the_evidence_of_a_model(place, capsys):
    evaluate()
    (place / "models/m/m_evidence.npz").unlink()
    words = ("models/m/m_evidence.npz: no such file", "deleted since the evaluation")
    refused(capsys, aggregate, *words)


def test_evidence_of_another_evaluation_is_refused(place, capsys):
    evaluate()
    path = place / "models/m/m_evidence.npz"
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(bytes(data))
    refused(capsys, aggregate, "m_evidence.npz", "1 problem found")


def test_other_prices_than_planned_are_refused(place, capsys):
    evaluate()
    edited("sweep", prices=[1.0, 2.5])
    refused(capsys, aggregate, "price_per_image: found nothing; expected 1.0, as planned")


def test_a_sweep_that_was_replanned_in_the_meantime_is_rejected(place, capsys):
    evaluate()
    planned = record()
    edited("sweep", missing=["x"])
    refused(capsys, lambda: aggregate(planned), "state/sweep.json: found a different fingerprint")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("manifest.csv", "manifest, model m: found ['yolo', 'global_uniform', '5', 0]"),
        ("subset.json", "train_annotations of m: found SHA-256"),
        ("own.py", "custom_metrics: found"),
    ],
)
def test_no_tables_are_left_if_other_inputs_changed_after_planning(place, capsys, changed, words):
    evaluate()
    aggregate()
    if changed == "manifest.csv":
        write_manifest(["yolo", "global_uniform", "5", 0])
    else:
        with Path(changed).open("a") as stream:
            stream.write("\n")
    refused(capsys, aggregate, words, "it changed after snakemake planned", "1 problem found")
    assert not list((place / "aggregated").iterdir())
    write_manifest(ROW)
    plan()
    aggregate()


def test_plots_and_report_reject_damaged_tables_with_the_command_to_run(place, capsys):
    evaluate()
    aggregate()
    write("report", {"code": code_digest("report"), "plot_formats": ["svg"], "sweep": "x"})
    digest = text_digest(path_of("report").read_text())
    tables = place / "aggregated/aggregated.json"
    tables.write_bytes(tables.read_bytes()[:-9])
    common = {
        "aggregated": "aggregated/aggregated.json",
        "output_dir": "aggregated",
        "fingerprint": path_of("report"),
        "log": "logs/r.log",
    }
    made = {part: place / "state" / record_name(part, digest) for part in ("plots", "report")}
    words = ("aggregated.json", "snakemake --forcerun aggregate")
    refused(capsys, lambda: jobs.report(**common, plot_format="svg", record=made["report"]), *words)
    refused(
        capsys,
        lambda: jobs.plot_sweep(**common, formats=["svg"], jobs=1, record=made["plots"]),
        *words,
    )
    assert not any(path.exists() for path in made.values())


def test_files_are_compared_by_name_and_content():
    require_files({"a": "1"}, {"a": "1"}, "file")
    with pytest.raises(InputError) as caught:
        require_files({"a": "1", "b": "2", "d": "4"}, {"a": "1", "b": "9", "c": "3"}, "file")
    assert [str(problem).partition(" (")[0] for problem in caught.value.problems] == [
        "file b: found 9; expected 2, as planned",
        "file c: found 3; expected nothing, as planned",
        "file d: found nothing; expected 4, as planned",
    ]
