"""Names, keys and paths with terminal escapes and line breaks: none reaches the terminal or a log.

Every command is run with them; its output has printable characters only, and no line that a name
began.
"""

import json

import pytest
from PIL import Image
from support.format_files import lay, lay_file
from support.layout import (
    ANNOTATIONS,
    IMAGE_SIZE,
    species,
    write_predictions,
    write_split,
    write_taxonomy,
)

from benchmark_eval.cli.main import main

NAME = "Ips\nforged: 0 problems\x1b]0;x\x07\x9b2J\u202e\r"
SEEN = r"Ips\nforged: 0 problems\x1b]0;x\x07\x9b2J\u202e\r"
"""How the name is printed."""
TRUTH = [[1, 1, [0, 0, 50, 50]], [1, 2, [100, 0, 50, 50]], [2, 1, [0, 0, 50, 50]]]
FOUND = [[1, 1, [0, 0, 50, 50], 0.9], [1, 1, [100, 0, 50, 50], 0.8], [2, 2, [0, 0, 50, 50], 0.7]]


def assert_harmless(text):
    assert text.replace("\n", "").isprintable(), repr(text)
    assert not [line for line in text.split("\n") if line.lstrip().startswith("forged")], text


@pytest.fixture
def call(capsys):
    """Run a command; returns its exit code and everything that it printed."""

    def run(*words):
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        printed = captured.out + captured.err
        assert_harmless(printed)
        return code, printed

    return run


@pytest.fixture
def place(tmp_path):
    """A benchmark whose first species has the hostile name, and the predictions of one model."""
    write_split(tmp_path / "b", "train", TRUTH)
    write_split(tmp_path / "b", "iid_test", TRUTH)
    write_taxonomy(tmp_path / "b", [1, 2])
    write_predictions(tmp_path / "p", "iid_test", FOUND)
    for path in (tmp_path / "b" / ANNOTATIONS).iterdir():
        path.write_text(path.read_text().replace(json.dumps(species(1)), json.dumps(NAME)))
    return tmp_path


def arguments(place):
    return [
        "--benchmark-dir",
        place / "b",
        "--predictions-dir",
        place / "p",
        "--splits",
        "iid_test",
    ]


def test_check(place, call):
    code, printed = call("check", *arguments(place))
    assert code == 0
    assert SEEN in printed
    code, printed = call("check", *arguments(place), "--json")
    assert printed.isascii()
    assert any(repr(NAME) in finding["record"] for finding in json.loads(printed)["findings"])


def test_evaluate_verify_and_its_log(place, call):
    out, log = place / "o", place / "m.log"
    words = ["evaluate", *arguments(place), "--output-dir", out, "--model-name", "m"]
    code, printed = call(*words)
    assert code == 0
    assert SEEN in printed  # a species without a genus
    assert_harmless((out / "m_report.txt").read_text())
    assert call(*words, "--log", log)[0] == 0
    assert SEEN in log.read_text()
    assert_harmless(log.read_text())
    # a row of the detections has line breaks in its names
    assert NAME.split("\n", maxsplit=1)[0] in (out / "m_detections.csv").read_text()
    code, printed = call("verify", out)
    assert (code, printed.splitlines()[-1]) == (0, "1 model, 5 files compared: all consistent")


def test_an_error_in_a_log(place, call):
    (place / "p" / "iid_test_predictions.json").write_text(json.dumps([{NAME: 1}]))
    log = place / "m.log"
    words = ["evaluate", *arguments(place), "--output-dir", place / "o", "--log", log]
    assert call(*words)[0] == 1
    assert_harmless(log.read_text())


def test_subsets_note_species_with_few_images(place, call):
    code, printed = call("subsets", "--benchmark-dir", place / "b", "--output-dir", place / "s",
                         "--condition", "global_uniform", "5")  # fmt: skip
    assert code == 0
    assert SEEN in printed


def test_map_refuses_them(tmp_path, call):
    gt = lay(tmp_path / "gt", {"a.txt": "x\x1b[2J\x9b\u202e 1 1 9 9\n"})
    found = lay(tmp_path / "d", {"a.txt": "x 0.9 1 1 9 9\n"})
    code, printed = call("map", "-pd", found, "-gt", gt)
    assert code == 1
    assert r"a.txt, line 1, class: found 'x\x1b[2J\x9b\u202e' with a non-printable" in printed
    lay(gt, {"a.txt": "x 1 1 9 9\n"})
    assert call("map", "-pd", found, "-gt", gt, "-i", NAME)[0] == 2


@pytest.mark.parametrize(
    "content",
    [
        {NAME: {"scores": [0.5], "labels": [NAME], "boxes": [[1, 1, 2]]}},
        {NAME: NAME},
        [{"image_id": NAME, "category_id": 1, "bbox": [1, 1, 2, 2], "score": NAME}],
        {"images": [], "annotations": [], "categories": [{"id": NAME, "name": NAME}]},
        NAME,
    ],
)
def test_convert(tmp_path, call, content):
    source = lay_file(tmp_path / "r.json", content)
    for format_name in ("huggingface", "coco-results", "coco"):
        code, printed = call(
            "convert", source, tmp_path / "o", "--from", format_name, "--to", "coco"
        )
        assert code == 1
        assert printed


def test_the_report_of_a_conversion(tmp_path, call):
    one = [{"file_name": "a.jpg", "scores": [0.5], "labels": ["Ips"], "boxes": [[1, 1, 2, 2]]}]
    target = tmp_path / NAME
    code, printed = call("convert", lay_file(tmp_path / "r.json", one), target, "--to", "coco")
    assert code == 0
    assert SEEN in printed


@pytest.mark.parametrize(
    "words",
    [
        [NAME],
        ["check", NAME],
        ["check", f"--{NAME}"],
        ["check", "--splits", NAME],
        ["check", "--benchmark-dir", NAME],
        ["check", "--configfile", NAME],
        ["evaluate", "--benchmark-dir", NAME, "--predictions-dir", NAME, "--output-dir", "x"],
        ["evaluate", "--benchmark-dir", ".", "--predictions-dir", ".", "--output-dir", ".", "--iou",
         NAME],
        ["verify", NAME],
        ["convert", NAME, "x", "--to", "coco"],
        ["convert", "x", "y", "--to", NAME],
        ["map", "-pd", NAME, "-gt", NAME],
        ["map", "-pd", ".", "-gt", ".", "--set-class-iou", NAME, NAME],
        ["plot", "--aggregated", NAME, "--output-dir", "x"],
        ["report", "--aggregated", NAME, "--output-dir", "x"],
        ["compare", NAME, f"x={NAME}"],
        ["compare", f"{NAME}*", f".:{NAME}"],
        ["compare", "x", "y", "--plot", NAME],
        ["compare", "x", "y", "--custom-metrics", NAME],
        ["aggregate", "--benchmark-dir", NAME, "--eval-dir", NAME, "--manifest", NAME,
         "--output-dir", "x"],
        ["subsets", "--benchmark-dir", NAME, "--output-dir", "x"],
        ["gallery", "--benchmark-dir", NAME, "--predictions-dir", NAME, "--output-dir", "x",
         "--model", "m"],
        ["gallery", "--configfile", "x", "--output-dir", "x", "--model", NAME],
    ],
)  # fmt: skip
def test_arguments(tmp_path, monkeypatch, call, words):
    monkeypatch.chdir(tmp_path)
    code, printed = call(*words)
    assert code in (1, 2)
    assert "forged" in printed
    assert list(tmp_path.iterdir()) == []


def test_the_path_of_a_new_project(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    code, printed = call("init", NAME)
    assert code == 0
    assert SEEN in printed


def test_the_gallery_and_its_warnings(place, call):
    for path in (place / "b" / ANNOTATIONS).iterdir():
        path.write_text(path.read_text().replace("1.jpg", json.dumps(NAME)[1:-1]))
    images = place / "b/detection/images"
    images.mkdir(parents=True)
    Image.new("RGB", IMAGE_SIZE).save(images / "2.jpg")
    code, printed = call("gallery", *arguments(place), "--model", "m", "--output-dir", place / "g")
    assert code == 0
    assert f"image {NAME!r}: no image file of this name" in printed
    assert_harmless((place / "g" / "index.html").read_text())


def test_a_manifest_and_the_report_of_a_sweep(place, call):
    assert (
        call("evaluate", *arguments(place), "--output-dir", place / "e", "--model-name", "m")[0]
        == 0
    )
    manifest = place / "manifest.csv"
    given = ["--benchmark-dir", place / "b", "--eval-dir", place / "e", "--manifest", manifest,
             "--output-dir", place / "t"]  # fmt: skip
    manifest.write_text(f'model_name,regime,k_or_p,seed\n"{NAME}",global_uniform,5,0\n')
    assert call("aggregate", *given)[0] == 1
    manifest.write_text("model_name,regime,k_or_p,seed\nm,global_uniform,5,0\n")
    assert call("aggregate", *given)[0] == 0
    assert_harmless((place / "t" / "report.md").read_text())
