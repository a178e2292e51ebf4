"""Jobs hold what they have read against what their stamps say."""

import contextlib
import json
import shutil

import pytest
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.inputs.benchmark_index import write_index
from benchmark_eval.pipeline.fingerprints import text_digest
from benchmark_eval.pipeline.provenance_check import require_fresh_extras, require_fresh_summaries
from benchmark_eval.scoring.evaluate import evaluate_to_files

MODEL = "m"
ROW = ["yolo", "global_uniform", "1", 0]


@pytest.fixture
def place(tmp_path):
    """An evaluated model, with the stamps that its workflow would have written."""
    write_split(tmp_path / "b", "iid_test", [[1, 1, [0, 0, 50, 50]]])
    write_taxonomy(tmp_path / "b", [1])
    write_predictions(tmp_path / "p", "iid_test", [[1, 1, [0, 0, 50, 50], 0.9]])
    evaluation = evaluate(tmp_path)
    inputs = evaluation.provenance.inputs
    files = {n.rpartition("/")[2]: d for n, d in inputs.items() if n.startswith("benchmark/")}
    stamp(tmp_path, "benchmark", {"files": files})
    stamp(
        tmp_path,
        f"models/{MODEL}",
        {
            "code": evaluation.provenance.scoring_code,
            "iou": 0.5,
            "engine": "fast",
            "on_invalid": "error",
            "predictions": {"iid_test": inputs["predictions/iid_test"]},
        },
    )
    plan(tmp_path)
    return tmp_path


def stamp(place, name, content):
    path = place / "state" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def plan(place):
    """The sweep's stamp, which names the others."""
    state = place / "state"
    of_model = text_digest((state / f"models/{MODEL}.json").read_text())
    of_benchmark = text_digest((state / "benchmark.json").read_text())
    models = {MODEL: [*ROW, None, of_model]}
    stamp(place, "sweep", {"benchmark": of_benchmark, "models": models})


def edited(place, name, **changes):
    content = json.loads((place / "state" / f"{name}.json").read_text())
    return stamp(place, name, content | changes)


def evaluate(place, **more):
    return evaluate_to_files(
        benchmark=more.pop("benchmark", place / "b"),
        predictions_dir=place / "p",
        output_dir=place / "models" / MODEL,
        model_name=MODEL,
        splits=["iid_test"],
        **more,
    )


def require(place, row=ROW):
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    require_fresh_summaries([summary], place / "state", {MODEL: row})


def test_what_fits_its_stamp_passes(place):
    require(place)
    evaluate(place, stamp=place / "state/models/m.json")
    write_index(place / "b", place / "i.npz", stamp=place / "state/benchmark.json")


def test_an_evaluation_of_exchanged_predictions_fails_and_writes_nothing(place):
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    before = summary.read_bytes()
    write_predictions(place / "p", "iid_test", [])
    with pytest.raises(InputError, match=r"predictions of iid_test.*changed while"):
        evaluate(place, stamp=place / "state/models/m.json")
    assert summary.read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"predictions'])
@pytest.mark.parametrize("name", ["models/m", "benchmark", "sweep"])
def test_a_file_that_is_no_stamp_is_told(place, name, content):
    (place / f"state/{name}.json").write_text(content)
    told = rf"state/{name}\.json: found something else than the stamp"
    if name != "sweep":
        with pytest.raises(UsageError, match=told):
            evaluate(place, stamp=place / "state/models/m.json")
    with pytest.raises(UsageError, match=told):
        require(place)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"code": "other"}, "scoring code"),
        ({"iou": 0.75}, "iou"),
        ({"engine": "pycocotools"}, "engine"),
        ({"on_invalid": "drop"}, "on_invalid"),
    ],
)
def test_an_evaluation_with_other_options_than_planned_fails_and_writes_nothing(
    place, changes, words
):
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    summary.unlink()
    path = edited(place, "models/m", **changes)
    with pytest.raises(InputError, match=f"made with another {words} than its stamp says") as told:
        evaluate(place, stamp=path)
    assert len(told.value.problems) == 1
    assert not summary.exists()


@pytest.mark.parametrize("change", ["edited", "added"])
def test_an_index_of_an_exchanged_benchmark_fails_and_is_not_written(place, change):
    if change == "edited":
        write_taxonomy(place / "b", [1, 2])
    else:
        write_split(place / "b", "inat_test", [[1, 1, [0, 0, 5, 5]]])
    with pytest.raises(InputError, match="changed while the workflow ran"):
        write_index(place / "b", place / "i.npz", stamp=place / "state/benchmark.json")
    assert not (place / "i.npz").exists()


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("models/m", {"code": "other"}, "scoring code"),
        ("models/m", {"iou": 0.75}, "iou"),
        ("models/m", {"engine": "pycocotools"}, "engine"),
        ("models/m", {"on_invalid": "drop"}, "on_invalid"),
        ("models/m", {"predictions": {"iid_test": "0"}}, "predictions of iid_test"),
        ("models/m", {"predictions": {}}, "splits"),
        ("benchmark", {"files": {}}, "benchmark"),
    ],
)
def test_a_summary_of_other_inputs_or_options_is_stale(place, name, changes, words):
    edited(place, name, **changes)
    plan(place)
    with pytest.raises(InputError, match=f"made with another {words} than") as fault:
        require(place)
    assert {problem.kind for problem in fault.value.problems} == {"stale-summary"}


@pytest.mark.parametrize("name", ["models/m", "benchmark"])
def test_stamps_that_changed_since_the_plan_are_no_fault_of_a_summary(place, name):
    path = edited(place, name, code="other", files={})
    with pytest.raises(InputError) as fault:
        require(place)
    assert (str(path), "changed-meanwhile") in [
        (problem.file, problem.kind) for problem in fault.value.problems
    ]
    if name == "models/m":
        assert len(fault.value.problems) == 1


def test_a_model_is_not_scored_on_the_index_of_another_benchmark(place):
    write_index(place / "b", place / "own.npz")
    shutil.copytree(place / "b", place / "other")
    write_taxonomy(place / "other", [1, 2])
    write_index(place / "other", place / "foreign.npz")
    of_model = place / "state/models/m.json"
    evaluate(place, benchmark=place / "own.npz", stamp=of_model)
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    before = summary.read_bytes()
    with pytest.raises(InputError, match=r"foreign\.npz: found made from another benchmark"):
        evaluate(place, benchmark=place / "foreign.npz", stamp=of_model)
    assert summary.read_bytes() == before


@pytest.mark.parametrize("row", [["yolo", "global_uniform", "5", 0], None])
def test_a_manifest_that_changed_meanwhile_is_told(place, row):
    summary = place / "models" / MODEL / f"{MODEL}_summary.json"
    with pytest.raises(InputError, match="manifest, model m"):
        require_fresh_summaries([summary], place / "state", {MODEL: row} if row else {})


@pytest.mark.parametrize(
    ("trained", "own", "words"),
    [
        ({"a": "1", "b": "2"}, "3", None),
        ({"a": "1", "b": "9"}, "3", "train_annotations of b: found SHA-256 9; expected 2"),
        ({"a": "1"}, "3", "train_annotations of b: found SHA-256 of no such file; expected 2"),
        ({"a": "1", "b": "2", "c": "2"}, "3", "train_annotations of c.* wanted no such file"),
        ({"a": "1", "b": "2"}, "9", "custom_metrics file: found SHA-256 9; expected 3"),
        (
            {"a": "1", "b": "2"},
            None,
            "custom_metrics file: found SHA-256 of no such file; expected 3",
        ),
    ],
)
def test_other_files_of_a_sweep_are_those_of_its_stamp(tmp_path, trained, own, words):
    rows = {"a": [*ROW, "1", "x"], "b": [*ROW, "2", "x"], "c": [*ROW, None, "x"]}
    path = stamp(tmp_path, "sweep", {"models": rows, "custom_metrics": ["3"]})
    with pytest.raises(InputError, match=words) if words else contextlib.nullcontext():
        require_fresh_extras(path, trained, own)
