"""``benchmark-eval check`` on the command line: output and exit codes."""

import json

import pytest
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.cli.main import main
from benchmark_eval.scoring.evaluate import Options, evaluate
from benchmark_eval.synthetic import make_synthetic


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return make_synthetic(tmp_path_factory.mktemp("tree"), scale=0.01, test_scale=0.1, jobs=1)


def check(*args):
    with pytest.raises(SystemExit) as stop:
        main(["check", *map(str, args)])
    return stop.value.code


def test_valid_inputs_give_only_notes_and_exit_code_0(tree, capsys):
    given = ["--benchmark-dir", tree.benchmark_dir, "--predictions-dir", tree.predictions_dir]
    assert check(*given, "--manifest", tree.manifest) == 0
    out = capsys.readouterr().out
    assert "0 problems, 0 warnings, " in out
    assert "(1 model, 3 prediction files" in out
    assert check(*given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["problems"], found["warnings"], found["prediction_files"]) == (0, 0, 3)
    assert {kind["level"] for kind in found["kinds"]} == {"note"}
    assert found["bytes"] == sum(p.stat().st_size for p in tree.predictions_dir.glob("*/*.json"))


def test_two_rows_with_one_folder_of_predictions_are_reported_once(tree, tmp_path, capsys):
    """The second row names the folder of the first, once directly and once through a link."""
    (model,) = tree.predictions_dir.iterdir()
    (tmp_path / "link").symlink_to(model)
    header = "model_name,regime,k_or_p,seed,predictions_dir\n"
    rows = [f"s{seed},global_uniform,5,{seed},{folder}" for seed, folder in
            enumerate((model, model, tmp_path / "link"))]  # fmt: skip
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(header + "\n".join(rows) + "\n")
    given = ["--benchmark-dir", tree.benchmark_dir, "--manifest", manifest]
    assert check(*given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {k["kind"]: k["count"] for k in found["kinds"] if k["level"] == "warning"} == {
        "shared-predictions-dir": 2
    }
    first, second = [f for f in found["findings"] if f["kind"] == "shared-predictions-dir"]
    assert first["record"] == "row 2 (line 3)"
    assert first["found"] == f"{model}, the folder of model 's0' in row 1 (line 2)"
    assert second["record"] == "row 3 (line 4)"
    assert second["found"] == f"{tmp_path / 'link'}, the folder of model 's0' in row 1 (line 2)"


def plain(text):
    """Text with line breaks replaced by spaces."""
    return " ".join(text.split())


@pytest.mark.slow  # writes and checks 26 large files
def test_many_mistakes_of_one_name_do_not_hide_others(tree, tmp_path, capsys):
    """24 files with corner boxes, then two with a score threshold: both mistakes are reported."""
    (model,) = tree.predictions_dir.iterdir()
    for split in ("iid_test", "semantic_ood"):
        records = json.loads((model / f"{split}_predictions.json").read_text())
        for k in range(12):
            (tmp_path / f"m{k:02}").mkdir(exist_ok=True)
            corners = [
                {**r, "score": r["score"] * (1 - k / 1e4), "bbox": [x, y, x + w, y + h]}
                for r in records
                for x, y, w, h in [r["bbox"]]
            ]
            path = tmp_path / f"m{k:02}/{split}_predictions.json"
            path.write_text(json.dumps(corners))
        (tmp_path / "n").mkdir(exist_ok=True)
        kept = [r for r in records if r["score"] >= 0.25]
        (tmp_path / f"n/{split}_predictions.json").write_text(json.dumps(kept))
    given = ["--benchmark-dir", tree.benchmark_dir, "--predictions-dir", tmp_path]
    given += ["--splits", "iid_test", "semantic_ood"]
    assert check(*given) == 0
    out = capsys.readouterr().out
    assert "warning: 2 x likely-mistake, score threshold in 2 files" in out
    assert (
        f"{tmp_path}/n/semantic_ood_predictions.json, model 'n':\n      no score below 0.2" in out
    )
    assert "conf=0.001" in out
    # boxes outside their images are explained by the box layout and not reported again
    assert "warning: 24 x likely-mistake, box layout in 24 files" in out
    assert "18 more: " in plain(out)
    assert "extend outside" not in out
    assert check(*given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {m["mistake"]: m["count"] for m in found["mistakes"]} == {
        "box layout": 24,
        "score threshold": 2,
    }
    rows = [row for row in found["findings"] if row["level"] == "warning"]
    assert len(rows) == 26
    assert {row["expected"] for row in rows} == {
        "boxes [x, y, w, h] in pixels of the published image",
        "all detections with a confidence of at least 0.001",
    }


def test_shifted_ids_are_reported_although_some_are_invalid(tree, tmp_path, capsys):
    """``check`` reports the same warning as an evaluation with ``on_invalid: drop``."""
    (model,) = tree.predictions_dir.iterdir()
    records = json.loads((model / "iid_test_predictions.json").read_text())
    records = [{**r, "category_id": r["category_id"] - 1} for r in records]
    (tmp_path / "p/m").mkdir(parents=True)
    (tmp_path / "p/m/iid_test_predictions.json").write_text(json.dumps(records))
    n_invalid = sum(r["category_id"] == 0 for r in records)
    sentence = "if 1 is added to every category_id: likely 0-based ids"
    evaluation, _ = evaluate(
        tree.benchmark_dir, tmp_path / "p/m", "m", Options(("iid_test",), on_invalid="drop")
    )
    warnings = [w for w in evaluation.per_split["iid_test"].warnings if sentence in w]
    assert len(warnings) == 1
    assert n_invalid > 1
    for key, level in (("drop", "warning"), ("error", "problem")):
        (tmp_path / "config.yaml").write_text(
            f"benchmark_dir: {tree.benchmark_dir}\npredictions_dir: {tmp_path}/p\n"
            f"splits: [iid_test]\non_invalid: {key}\n"
        )
        assert check("--configfile", tmp_path / "config.yaml", "--json") == (key == "error")
        found = json.loads(capsys.readouterr().out)
        kinds = {kind["kind"]: (kind["level"], kind["count"]) for kind in found["kinds"]}
        assert kinds["category-id-unknown"] == (level, n_invalid)
        row = next(r for r in found["findings"] if r["kind"] == "category-id-unknown")
        assert row["cause"] == f"{warnings[0]}; every record is affected, not only those listed"
        assert [r["found"] for r in found["findings"] if r["mistake"] == "shifted ids"] == warnings
        assert [m["mistake"] for m in found["mistakes"]] == ["shifted ids"]


def test_mistakes_are_not_reported_if_most_records_are_invalid(tree, tmp_path, capsys):
    """Scores in percent: only 1 is valid, so the valid records all have tied scores."""
    (model,) = tree.predictions_dir.iterdir()
    records = json.loads((model / "iid_test_predictions.json").read_text())
    for r in records:
        r["score"] = round(100 * r["score"]) + 1
    (tmp_path / "p/m").mkdir(parents=True)
    (tmp_path / "p/m/iid_test_predictions.json").write_text(json.dumps(records))
    given = ["--benchmark-dir", tree.benchmark_dir, "--predictions-dir", tmp_path / "p"]
    assert sum(r["score"] == 1 for r in records) > 20
    assert check(*given, "--splits", "iid_test", "--json") == 1
    assert json.loads(capsys.readouterr().out)["mistakes"] == []


def test_the_report_does_not_depend_on_the_number_of_jobs(tree, tmp_path, capsys):
    rows = [[10**6, 1, [0, 0, 1, 1], 0.5]] * 30
    for model in ("a", "b", "c"):
        write_predictions(tmp_path / model, "iid_test", rows)
    given = ["--benchmark-dir", tree.benchmark_dir, "--predictions-dir", tmp_path]
    texts = set()
    for jobs in (1, 2, 3):
        assert check(*given, "--splits", "iid_test", "--jobs", jobs) == 1
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    (text,) = texts
    # 20 of this kind, spread over the files, then further ones per file; the expected value once
    assert text.count("json, record ") == 20
    assert [text.count(f"{m}/iid_test_predictions.json, record ") for m in "abc"] == [7, 7, 6]
    assert text.count("expected: an image id of iid_test") == 1
    assert plain(text).count("predictions of another split") == 1
    more = [
        f"{tmp_path}/{m}/iid_test_predictions.json ({n})"
        for m, n in zip("abc", (23, 23, 24), strict=True)
    ]
    assert f" 70 more: {', '.join(more)} " in plain(text)
    assert "problem: 90 x image-id-unknown in 3 files: an image id that is not in the split" in text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "no benchmark to check: give --benchmark-dir"),
        (["--configfile", "nowhere.yaml"], "nowhere.yaml: No such file"),
        (["--benchmark-dir", ".", "--jobs", "0"], "--jobs"),
    ],
)
def test_usage_errors_give_exit_code_2(args, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert check(*args) == 2
    assert words in capsys.readouterr().err


def test_missing_folders_are_reported_with_the_other_problems(tree, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(
        "benchmark_dir: dowload\npredictions_dir: nowhere\niou: 2\nsplit: all\nengine: quick\n"
    )
    (tmp_path / "download").symlink_to(tree.benchmark_dir)
    assert check("--configfile", "config.yaml", "--json") == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["kind"], row["field"]) for row in found if row["level"] == "problem"] == [
        ("config-value", "iou"),
        ("config-value", "engine"),
        ("config-key", ""),
        ("missing-folder", "benchmark_dir"),
        ("missing-folder", "predictions_dir"),
    ]
    by_field = {row["field"]: row for row in found}
    assert by_field["benchmark_dir"]["found"] == "dowload, which does not exist"
    assert by_field["benchmark_dir"]["cause"] == "did you mean download?"
    assert by_field["predictions_dir"]["cause"] == "the folder . contains config.yaml, download"


@pytest.fixture
def sweep(tree, tmp_path, monkeypatch):
    """A function that checks a sweep of three models with changed config keys."""
    monkeypatch.chdir(tmp_path)
    (model,) = tree.predictions_dir.iterdir()
    (tmp_path / "predictions").mkdir()
    for seed in range(3):
        (tmp_path / f"predictions/model_s{seed}").symlink_to(model)
    rows = "".join(f"model_s{seed},global_uniform,1,{seed}\n" for seed in range(3))
    (tmp_path / "manifest.csv").write_text(f"model_name,regime,k_or_p,seed\n{rows}")

    def found(capsys, **changed):
        keys = {
            "benchmark_dir": tree.benchmark_dir,
            "predictions_dir": "predictions",
            "manifest": "manifest.csv",
            **changed,
        }
        (tmp_path / "c.yaml").write_text("".join(f"{k}: {v}\n" for k, v in keys.items()))
        check("--configfile", "c.yaml", "--json")
        rows = json.loads(capsys.readouterr().out)["findings"]
        return [
            (row["kind"], row["file"], row["cause"]) for row in rows if row["level"] == "problem"
        ], rows

    return found


def test_a_wrong_predictions_dir_is_reported_once(sweep, tmp_path, capsys):
    assert sweep(capsys)[0] == []
    problems, _ = sweep(capsys, predictions_dir="prediction")
    assert problems == [("missing-folder", "c.yaml", "did you mean predictions?")]
    # not required if the manifest has a folder for each model
    text = (tmp_path / "manifest.csv").read_text().splitlines()
    rows = [f"{row},predictions/{row.split(',')[0]}" for row in text[1:]]
    (tmp_path / "manifest.csv").write_text(f"{text[0]},predictions_dir\n" + "\n".join(rows))
    assert sweep(capsys, predictions_dir="prediction")[0] == []
    (tmp_path / "manifest.csv").write_text(f"{text[0]},predictions_dir\n{text[1]},\n{rows[1]}\n")
    problems, _ = sweep(capsys, predictions_dir="prediction")
    assert problems == [("missing-folder", "c.yaml", "did you mean predictions?")]


def test_a_missing_model_folder_is_reported_once(sweep, tmp_path, capsys):
    (tmp_path / "predictions/model_s1").rename(tmp_path / "predictions/modle_s1")
    problems, rows = sweep(capsys)
    cause = "did you mean predictions/modle_s1?"
    assert problems == [("missing-predictions", "predictions/model_s1", cause)]
    (row,) = [row for row in rows if row["kind"] == "missing-predictions"]
    assert row["found"] == "no folder predictions/model_s1"
    assert row["expected"].endswith("the predictions of iid_test, inat_test, semantic_ood")
    assert [row["file"] for row in rows if row["kind"] == "unlisted-predictions"] == [
        "predictions/modle_s1"
    ]


def test_a_folder_that_is_not_in_the_manifest_is_a_note(sweep, tmp_path, capsys):
    (tmp_path / "predictions/other").mkdir()
    assert [r for r in sweep(capsys)[1] if r["kind"] == "unlisted-predictions"] == []
    (tmp_path / "predictions/other/iid_test_predictions.json").write_text("[]")
    problems, rows = sweep(capsys)
    assert problems == []
    (row,) = [row for row in rows if row["kind"] == "unlisted-predictions"]
    assert (row["level"], row["file"]) == ("note", "predictions/other")
    assert "not in manifest.csv" in row["found"]


def test_a_wrong_manifest_and_a_wrong_folder_are_reported_together(sweep, capsys):
    problems, _ = sweep(capsys, manifest="manifst.csv", predictions_dir="prediction")
    assert problems == [
        ("missing-folder", "c.yaml", "did you mean predictions?"),
        ("missing-file", "manifst.csv", "did you mean manifest.csv?"),
    ]


def test_problems_of_a_config_without_a_benchmark_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifest.csv").write_text(
        "model_name,regime,k_or_p,seed\nm,global_uniform,1,0\nn,global_uniform,1,x\n"
        "o,global_uniform,2,0\n"
    )
    (tmp_path / "config.yaml").write_text(
        "benchmark: here\nmanifest: manifest.csv\npredictions_dir: 5\n"
    )
    assert check("--configfile", "config.yaml") == 1
    out = capsys.readouterr().out
    assert "did you mean 'benchmark_dir'?" in out
    assert "config.yaml, predictions_dir: 5\n" in out
    assert "line 3" in out
    (tmp_path / "manifest.csv").write_text("model_name,regime,k_or_p,seed\nm,global_uniform,1,0\n")
    (tmp_path / "config.yaml").write_text("benchmark_dir: nowhere\nmanifest: manifest.csv\n")
    assert check("--configfile", "config.yaml") == 1
    out = capsys.readouterr().out
    assert "nowhere, which does not exist" in out
    assert "no predictions_dir for 1 model, the first is 'm'" in out


def test_a_benchmark_in_a_subfolder_is_suggested(tree, capsys):
    assert check("--benchmark-dir", tree.benchmark_dir.parent) == 1
    out = plain(capsys.readouterr().out)
    expected = f"{tree.benchmark_dir.parent} is not the unpacked benchmark: the benchmark is one "
    assert f"{expected}level below: {tree.benchmark_dir} " in out


def test_problems_of_all_inputs_are_reported_together(tmp_path, capsys):
    write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9], 1]], annotation_ids=[5])
    write_split(tmp_path, "train", [[1, 1, [0, 0, 9, 9]]] * 2, annotation_ids=[7, 7])
    write_taxonomy(tmp_path, [1])
    write_predictions(tmp_path / "predictions/m", "iid_test", [[1, 1, [0, 0, 9, 9], 5]])
    (tmp_path / "manifest.csv").write_text(
        "model_name,regime,k_or_p,seed\nm,global_uniform,0,0\nm,global_uniform,1,x\n"
    )
    (tmp_path / "config.yaml").write_text(
        f"benchmark_dir: {tmp_path}\npredictions_dir: {tmp_path}/predictions\n"
        f"manifest: {tmp_path}/manifest.csv\nsplits: [iid_test]\niou: 2\nsplit: all\n"
    )
    assert check("--configfile", tmp_path / "config.yaml", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    kinds = {kind["kind"] for kind in found["kinds"] if kind["level"] == "problem"}
    assert kinds == {
        "config-value",
        "config-key",
        "duplicate-annotation-id",
        "k_or_p",
        "seed",
        "score-range",
    }


def test_the_default_config_is_that_of_the_working_directory(tree, tmp_path, monkeypatch, capsys):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(f"benchmark_dir: {tree.benchmark_dir}\n")
    monkeypatch.chdir(tmp_path)
    assert check() == 0
    assert "0 prediction files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "rows", "level"),
    [
        ("on_invalid: drop", [[1, 1, [0, 0, 9, 9], 5]], "warning"),
        ("on_invalid: error", [[1, 1, [0, 0, 9, 9], 5]], "problem"),
    ],
)
def test_dropped_records_are_warnings(key, rows, level, tmp_path, capsys):
    write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]], [1, 1, [0, 0, 9, 9], 1]])
    write_taxonomy(tmp_path, [1])
    write_predictions(tmp_path / "predictions/m", "iid_test", rows)
    (tmp_path / "config.yaml").write_text(
        f"benchmark_dir: {tmp_path}\npredictions_dir: {tmp_path}/predictions\n"
        f"splits: [iid_test]\n{key}\n"
    )
    assert check("--configfile", tmp_path / "config.yaml") == (level == "problem")
    assert f"{level}: 1 x score-range in 1 file" in capsys.readouterr().out


def test_control_characters_in_names_are_escaped(tree, tmp_path, capsys):
    name = "m\x1b[31m"
    write_predictions(tmp_path / name, "iid_test", [[10**6, 1, [0, 0, 1, 1], 0.5]])
    given = ["--benchmark-dir", tree.benchmark_dir, "--predictions-dir", tmp_path]
    assert check(*given, "--splits", "iid_test") == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "m\\x1b[31m" in out


def test_terminal_output_keeps_lines_and_shows_markup_as_text(tmp_path):
    import io

    from rich.console import Console

    from benchmark_eval.check.report import CheckReport, Finding
    from benchmark_eval.core.problems import Problem

    problem = Problem("digest", "[bold]a[/bold].json", "[red]x", "y", "record 1", "bbox", "why")
    more = Problem("digest", "b.json", "5 more", "y", times=5)
    findings = (Finding("problem", problem), Finding("problem", more))
    screen = io.StringIO()
    report = CheckReport(findings, n_models=1, n_files=2, n_detections=3, n_bytes=4_000_000)
    report.show(Console(file=screen, width=200, force_terminal=True, color_system=None))
    text = screen.getvalue()
    for words in ("[bold]a[/bold].json", "[red]x", "expected: y", "cause: why", "5 more: b.json"):
        assert words in text
    assert "6 x digest in 2 files: a file whose SHA-256 differs from MANIFEST.csv" in text
    assert "6 problems, 0 warnings, 0 notes (1 model, 2 prediction files, 3 detections" in text
