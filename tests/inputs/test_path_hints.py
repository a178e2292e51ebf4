"""Hints for missing files: what exists nearby."""

import pytest

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.config import normalise_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.path_hints import HINTED, benchmark_hint, predictions_hint, with_hints
from benchmark_eval.inputs.prediction_files import predictions_file
from benchmark_eval.pipeline.plan import load_plan

SPLIT = "semantic_ood"
NAME = "semantic_ood_predictions.json"


def lay(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text("[]")
        else:
            path.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("existing", "words"),
    [
        (
            ["predictions_semantic_ood.json"],
            "contains predictions_semantic_ood.json: the same file under",
        ),
        (["semantic.json", "iid_test_predictions.json"], "contains semantic.json: the same"),
        (["ood.json.gz"], "contains ood.json.gz: the same"),
        (["Semantic_OOD_predictions.JSON"], "contains Semantic_OOD_predictions.JSON: the same"),
        (["semantic_ood_predictions.jsonl"], "contains semantic_ood_predictions.jsonl: the same"),
        (["semantik_0od_predictions.json"], "contains semantik_0od_predictions.json: the same"),
        ([f"out/{NAME}"], f"the file is one level below: m/out/{NAME}"),
        ([f"out/{NAME}.gz"], f"the file is one level below: m/out/{NAME}.gz"),
        ([f"../{NAME}"], f"the file is one level above: *{NAME}"),
        (["iid_test_predictions.json", "iid.json", "x.txt"], "contains iid.json, iid_test_pred"),
        ([f"a{k}" for k in range(7)], "the folder contains a0, a1, a2, a3, a4 and 2 more"),
        ([f"{NAME}/"], f"the folder contains {NAME}"),
        (["in.json", "\x1b[31m"], "the folder contains '\\x1b[31m', in.json"),
        ([], "the folder contains nothing"),
    ],
)
def test_the_hint_shows_the_content_of_the_models_folder(tmp_path, monkeypatch, existing, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    lay(tmp_path / "m", *existing)
    found, cause = predictions_hint("m", SPLIT)
    assert found == f"no such file, and no {NAME}.gz"
    start, _, end = words.partition("*")
    assert start in cause
    assert cause.endswith(end)


@pytest.mark.parametrize(
    ("existing", "asked", "found", "cause"),
    [
        (["p/resnet_k1/"], "p/resnet-k1", "no folder p/resnet-k1", "did you mean p/resnet_k1?"),
        (["p/ResNet/"], "p/resnet", "no folder p/resnet", "did you mean p/ResNet?"),
        (
            ["predictions/m/"],
            "prediction/m",
            "no folder prediction/m",
            "did you mean predictions/m?",
        ),
        (["predictions/n/"], "prediction/m", "no folder prediction/m", "did you mean predictions?"),
        (["p/"], "q/x/m", "no folder q/x/m", "q does not exist either"),
        (["p/all/m/"], "p/m", "no folder p/m", "is one level below, in p/all"),
        (["m/", "p/"], "p/m", "no folder p/m", "is one level above: *m"),
        (["p/a/", "p/b/"], "p/mmm", "no folder p/mmm", "the folder p contains a, b"),
        (["p/m"], "p/m", "p/m, which is not a folder", ""),
    ],
)
def test_hint_for_a_missing_folder(tmp_path, monkeypatch, existing, asked, found, cause):
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, *existing)
    what, why = predictions_hint(asked, SPLIT)
    assert what == found
    start, _, end = cause.partition("*")
    assert start in why
    assert why.endswith(end)


def test_evaluation_and_plan_give_the_same_hint(tmp_path):
    lay(tmp_path, "p/m/semantic.json")
    with pytest.raises(InputError) as of_evaluation:
        predictions_file(tmp_path / "p/m", SPLIT)
    (tmp_path / "manifest.csv").write_text("model_name,regime,k_or_p,seed\nm,global_uniform,1,0\n")
    config = normalise_config(
        {
            "benchmark_dir": str(tmp_path),
            "manifest": str(tmp_path / "manifest.csv"),
            "predictions_dir": str(tmp_path / "p"),
            "splits": [SPLIT],
        }
    )
    with pytest.raises(InputError) as of_plan:
        load_plan(config, tmp_path / "results", main=True)
    (one,), (other,) = of_evaluation.value.problems, of_plan.value.problems
    assert (one.found, one.cause) == (other.found, other.cause)
    assert "contains semantic.json" in one.cause


@pytest.fixture
def of_one_parent(tmp_path):
    """Models of one manifest whose names differ in a digit, and one folder without a model."""

    def plan(*absent, near=None):
        names = [f"resnet_gu_k{k}_s0" for k in (1, 10, 100)] + [f"x{k}" for k in range(40)]
        for name in names:
            if name not in absent:
                lay(tmp_path / "p" / name, NAME)
        if near:
            lay(tmp_path, f"p/{near}/")
        rows = [f"{name},global_uniform,1,{seed}" for seed, name in enumerate(names)]
        (tmp_path / "manifest.csv").write_text("\n".join(["model_name,regime,k_or_p,seed", *rows]))
        config = normalise_config(
            {
                "benchmark_dir": str(tmp_path),
                "manifest": str(tmp_path / "manifest.csv"),
                "predictions_dir": f"{tmp_path}/q/../p",
                "splits": [SPLIT],
            }
        )
        lay(tmp_path, "q/")
        with pytest.raises(InputError) as error:
            load_plan(config, tmp_path / "results", main=True)
        return error.value

    return plan


def test_the_folder_of_another_model_is_never_suggested(of_one_parent):
    error = of_one_parent("resnet_gu_k100_s0")
    assert "did you mean" not in str(error)
    assert "the folder" in str(error)
    error = of_one_parent("resnet_gu_k100_s0", near="resnet-gu-k100-s0")
    assert "did you mean" in error.problems[0].cause
    assert "p/resnet-gu-k100-s0?" in error.problems[0].cause


def test_every_missing_model_is_listed(of_one_parent):
    absent = [f"x{k}" for k in range(40)]
    text = str(of_one_parent(*absent))
    assert "40 problems found" in text
    assert "..." not in text
    lines = [line for line in text.splitlines() if "model 'x" in line]
    assert sorted(line.split("'")[1] for line in lines) == sorted(absent)
    assert f"    model 'x39', global_uniform k=1, seed 42: {NAME}" in lines


def test_missing_files_are_listed_completely():
    def problems(kind):
        return [Problem(kind, f"p/m{k}/a", "no file", "a file", f"m{k}") for k in range(2000)]

    text = str(InputError([*problems("missing-predictions"), *problems("empty-predictions")]))
    assert text.count("m1999: a") == 2
    twice = [
        Problem("missing-predictions", f"p/m{k}/{s}", "no", "a", f"m{k}", cause="c")
        for k in range(9)
        for s in "ab"
    ]
    assert str(InputError(twice)).endswith("    m8: a, b")


def test_only_the_first_missing_files_get_a_hint(tmp_path):
    missing = [
        Problem("missing-predictions", str(tmp_path / f"{k}/{NAME}"), "no such file", "predictions")
        for k in range(HINTED + 5)
    ]
    other = Problem("empty-predictions", "x", "an empty file", "predictions")
    hinted = with_hints([other, *missing])
    assert hinted[0] == other
    assert [bool(problem.cause) for problem in hinted[1:]] == [True] * HINTED + [False] * 5


@pytest.mark.parametrize(
    ("existing", "asked", "words"),
    [
        (["b/v2/detection/annotations_coco/"], "b", "one level below: b/v2"),
        (["b/detection/annotations_coco/"], "b/detection", "inside the benchmark *b"),
        (
            ["b/detection/annotations_coco/"],
            "b/detection/annotations_coco",
            "inside the benchmark *b",
        ),
        (["b/x", "b/y"], "b", "the folder contains x, y"),
        (["benchmark/detection/annotations_coco/"], "bencmark", "did you mean benchmark?"),
        (["benchmark/"], "bencmark", "the folder . contains benchmark"),
        (["demo/b/detection/annotations_coco/"], "dem/b", "did you mean demo/b?"),
        (["demo/b/", "demo/c/detection/annotations_coco/"], "dem/b", "dem does not exist either"),
        (["all/b/detection/annotations_coco/"], "b", "one level below, in all"),
        (["b"], "b", ""),
    ],
)
def test_hint_for_a_missing_benchmark(tmp_path, monkeypatch, existing, asked, words):
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, *existing)
    start, _, end = words.partition("*")
    cause = benchmark_hint(asked)
    assert start in cause
    assert cause.endswith(end)
    with pytest.raises(InputError) as error:
        load_benchmark(asked)
    assert any(cause in problem.cause for problem in error.value.problems)


@pytest.mark.parametrize(
    ("existing", "asked", "cause"),
    [
        (["manifest.csv", "manifests/"], "manifst.csv", "did you mean manifest.csv?"),
        (["demo/Manifest.CSV"], "dmo/manifest.csv", "did you mean demo/Manifest.CSV?"),
        (["demo/x.csv"], "dmo/manifest.csv", "no folder dmo: did you mean demo?"),
        (["x.csv"], "q/manifest.csv", "no folder q: the folder . contains x.csv"),
        (["x.csv", "y"], "manifest.csv", "the folder . contains x.csv, y"),
        (["manifest.csv/"], "manifest.csv", ""),
    ],
)
def test_hint_for_a_missing_manifest(tmp_path, monkeypatch, existing, asked, cause):
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, *existing)
    with pytest.raises(InputError) as error:
        read_manifest(asked)
    (problem,) = error.value.problems
    assert problem.cause == cause
    assert (problem.kind, problem.found) == (
        ("missing-file", "no such file") if cause else ("unreadable", problem.found)
    )
