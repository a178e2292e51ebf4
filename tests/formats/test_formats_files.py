"""Example files of every format, converted by the command line, with known results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.format_files import IMAGES, SPECIES, lay, lay_file, run, write_benchmark

from benchmark_eval.cli.convert import FORMAT_NAMES
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.formats import (
    FORMATS,
    Options,
    build_image_lookup,
    convert_annotations,
    detect_format,
    from_arrays,
    read_class_names,
    split_images,
    write_boxes,
)
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.predictions import read_predictions

MODEL_CLASSES = ("Hylastes ater", "Hylastes opacus", "Ips typographus")
"""The order of a model: class 0 is category 7, class 1 is 8, class 2 is 3."""

# image id, category id, x, y, w, h, score
EXPECTED = [
    (11, 3, 100.0, 50.0, 300.0, 200.0, 0.9),
    (11, 7, 500.0, 0.0, 500.0, 500.0, 0.25),
    (12, 8, 10.5, 20.25, 100.0, 50.0, 0.5),
]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture
def names(tmp_path):
    return lay_file(tmp_path / "names.txt", "\n".join(MODEL_CLASSES) + "\n")


def predictions(folder, split="iid_test"):
    records = json.loads((folder / f"{split}_predictions.json").read_text())
    return [(r["image_id"], r["category_id"], *r["bbox"], r["score"]) for r in records]


def to_benchmark(source, out, benchmark, *args):
    """Convert to prediction files; returns their records and the printed report."""
    result = run(
        source,
        out,
        "--to",
        "benchmark",
        "--benchmark-dir",
        benchmark,
        "--splits",
        "iid_test",
        *args,
    )
    if result.exception is not None:
        raise result.exception
    # the evaluation can read the file
    read = read_predictions(
        out / "iid_test_predictions.json", load_benchmark(benchmark), "iid_test"
    )
    assert len(read) == len(predictions(out))
    return predictions(out), result.output


# --- each format to the benchmark -------------------------------------------------------------


def test_ultralytics_save_txt(benchmark, tmp_path, names):
    # 1000 x 500: centre (250, 150) size (300, 200); then the right half; 200 x 100 for 007
    labels = lay(
        tmp_path / "labels",
        {
            "beetle-a.txt": "2 0.25 0.3 0.3 0.4 0.9\n0 0.75 0.5 0.5 1 0.25\n",
            "007.txt": "1 0.3025 0.4525 0.5 0.5 0.5\n",
        },
    )
    records, report = to_benchmark(
        labels, tmp_path / "out", benchmark, "--names", names, "--missing-is-empty"
    )
    assert records == [EXPECTED[2], *EXPECTED[:2]]  # files in the order of their names
    assert "3 boxes on 3 images: yolo -> benchmark" in report
    assert "class numbers are 0-based, as defined by YOLO text" in report


def test_yolo_uses_classes_txt_in_the_same_folder(benchmark, tmp_path):
    labels = lay(
        tmp_path / "labels",
        {
            "beetle-a.txt": "\n2 0.25 0.3 0.3 0.4 0.9\n\n0 0.75 0.5 0.5 1 2.5e-1",
            "007.txt": "1\t0.3025 0.4525 0.5 0.5 0.5\r\n",
            "c.v2.txt": "",
            "classes.txt": "\n".join(MODEL_CLASSES),
        },
    )
    records, _ = to_benchmark(labels, tmp_path / "out", benchmark)
    assert records == [EXPECTED[2], *EXPECTED[:2]]


ULTRALYTICS = [
    {"image_id": "beetle-a", "category_id": 3, "bbox": [100.0, 50.0, 300.0, 200.0], "score": 0.9},
    {"image_id": "beetle-a", "category_id": 1, "bbox": [500.0, 0.0, 500.0, 500.0], "score": 0.25},
    {"image_id": 7, "category_id": 2, "bbox": [10.5, 20.25, 100.0, 50.0], "score": 0.5},
]


def test_ultralytics_save_json(benchmark, tmp_path, names):
    """image_id 7 is the file 007.jpg, not an image id; newer releases use 1-based classes."""
    source = lay_file(tmp_path / "predictions.json", ULTRALYTICS)
    records, report = to_benchmark(
        source, tmp_path / "out", benchmark, "--names", names, "--first-class", "1"
    )
    assert records == EXPECTED
    assert "ultralytics-json -> benchmark" in report
    older = [{**r, "category_id": r["category_id"] - 1} for r in ULTRALYTICS]
    source = lay_file(tmp_path / "older.json", older)
    records, _ = to_benchmark(
        source, tmp_path / "out", benchmark, "--names", names, "--first-class", "0"
    )
    assert records == EXPECTED


def test_ultralytics_file_name_takes_precedence_over_image_id(benchmark, tmp_path, names):
    newer = [{**ULTRALYTICS[2], "image_id": 999, "file_name": "007.jpg"}]
    source = lay_file(tmp_path / "p.json", newer)
    records, _ = to_benchmark(
        source, tmp_path / "out", benchmark, "--names", names, "--first-class", "1"
    )
    assert records == [EXPECTED[2]]


RESULTS = [
    {"image_id": i, "category_id": c, "bbox": list(box), "score": score}
    for i, c, *box, score in EXPECTED
]


def test_detectron2_with_category_ids(benchmark, tmp_path):
    records = [{**r, "segmentation": {"size": [1, 1], "counts": "0"}} for r in RESULTS]
    source = lay_file(tmp_path / "coco_instances_results.json", records)
    found, report = to_benchmark(
        source, tmp_path / "out", benchmark, "--from", "detectron2", "--class-ids"
    )
    assert found == EXPECTED
    assert "not carried over: masks (segmentation): 3" in report


def test_detectron2_with_class_numbers(benchmark, tmp_path, names):
    row = {7: 0, 8: 1, 3: 2}
    source = lay_file(
        tmp_path / "r.json", [{**r, "category_id": row[r["category_id"]]} for r in RESULTS]
    )
    found, _ = to_benchmark(
        source, tmp_path / "out", benchmark, "--from", "detectron2", "--names", names,
        "--first-class", "0",
    )  # fmt: skip
    assert found == EXPECTED


def test_coco_results_are_unchanged(benchmark, tmp_path):
    source = lay_file(tmp_path / "r.json", [{**RESULTS[0], "image_id": 11.0}, *RESULTS[1:]])
    found, report = to_benchmark(source, tmp_path / "out", benchmark)
    assert found == EXPECTED
    assert "class numbers are the benchmark's category ids" in report


def test_huggingface_arrays_by_file_name(benchmark, tmp_path, names):
    source = lay_file(
        tmp_path / "hf.json",
        {
            "beetle-a.jpg": {
                "scores": [0.9, 0.25],
                "labels": [2, 0],
                "boxes": [[100, 50, 400, 250], [500.0, 0.0, 1000.0, 500.0]],
            },
            "007.jpg": {"scores": [0.5], "labels": [1], "boxes": [[10.5, 20.25, 110.5, 70.25]]},
            "c.v2.png": {"scores": [], "labels": [], "boxes": []},
        },
    )
    found, _ = to_benchmark(
        source, tmp_path / "out", benchmark, "--names", names, "--first-class", "0"
    )
    assert found == EXPECTED


def test_huggingface_by_image_id_and_pipeline(benchmark, tmp_path, names):
    by_id = [
        {"image_id": 12, "scores": [0.5], "labels": [1], "boxes": [[10.5, 20.25, 110.5, 70.25]]}
    ]
    found, _ = to_benchmark(
        lay_file(tmp_path / "ids.json", by_id), tmp_path / "out", benchmark,
        "--names", names, "--first-class", "0",
    )  # fmt: skip
    assert found == [EXPECTED[2]]
    box = {"xmin": 10.5, "ymin": 20.25, "xmax": 110.5, "ymax": 70.25}
    pipeline = {"007.jpg": [{"score": 0.5, "label": "Hylastes opacus", "box": box}]}
    found, _ = to_benchmark(lay_file(tmp_path / "pipe.json", pipeline), tmp_path / "out", benchmark)
    assert found == [EXPECTED[2]]


class Tensor:
    """Stand-in for a framework's tensor: an object that numpy can convert."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def test_huggingface_arrays_from_python(benchmark, tmp_path):
    results = {
        11: {
            "scores": Tensor([0.9, 0.25]),
            "labels": Tensor([2.0, 0.0]),
            "boxes": Tensor([[100, 50, 400, 250], [500, 0, 1000, 500]]),
        },
        "007.jpg": {
            "scores": np.array([0.5], np.float32),
            "labels": np.array([1]),
            "boxes": np.array([[10.5, 20.25, 110.5, 70.25]], np.float32),
        },
        42: {"scores": [], "labels": [], "boxes": []},
    }
    options = Options(
        names=read_class_names(lay_file(tmp_path / "n.txt", "\n".join(MODEL_CLASSES))),
        first_class=0,
        categories=load_benchmark(benchmark).categories,
        images=split_images(benchmark, "iid_test"),
    )
    write_boxes(
        from_arrays(results, options), tmp_path / "iid_test_predictions.json", "coco-results"
    )
    assert predictions(tmp_path) == EXPECTED
    results[11]["boxes"] = Tensor([[100, 50, 400]])
    results["007.jpg"]["labels"] = []
    with pytest.raises(InputError) as caught:
        from_arrays(results, options)
    assert "boxes of shape (1, 3)" in str(caught.value)
    assert "1 scores, 0 labels, 1 boxes" in str(caught.value)


def test_the_example_in_the_documentation_runs(benchmark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = dict(enumerate(MODEL_CLASSES))
    lay_file(tmp_path / "config.json", {"id2label": labels})
    page = (Path(__file__).parents[2] / "docs" / "convert.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    found = {"scores": [0.5], "labels": [1], "boxes": [[10.5, 20.25, 110.5, 70.25]]}
    results = {12: {key: np.array(values) for key, values in found.items()}}
    exec(program, {"BENCHMARK": benchmark, "results": results})
    assert predictions(tmp_path / "predictions" / "m1") == [EXPECTED[2]]


DARKFLOW = {
    "beetle-a.json": [
        {"label": "Ips typographus", "confidence": 0.9, "topleft": {"x": 100, "y": 50},
         "bottomright": {"x": 400, "y": 250}},
        {"label": "Hylastes ater", "confidence": 0.25, "topleft": {"x": 500, "y": 0},
         "bottomright": {"x": 1000, "y": 500}},
    ],
    "007.json": [
        {"label": "Hylastes opacus", "confidence": 0.5, "topleft": {"x": 10.5, "y": 20.25},
         "bottomright": {"x": 110.5, "y": 70.25}},
    ],
    "c.v2.json": [],
}  # fmt: skip


def test_darkflow_json(benchmark, tmp_path):
    found, report = to_benchmark(lay(tmp_path / "d", DARKFLOW), tmp_path / "out", benchmark)
    assert found == [EXPECTED[2], *EXPECTED[:2]]
    assert "darkflow -> benchmark" in report
    assert "corners are edges in the source" in report


XYXY = {
    "beetle-a.txt": "Ips typographus 0.9 100 50 400 250\nHylastes ater 2.5e-1 500 0 1000 500\n",
    "007.txt": "\ufeffHylastes opacus 0.5 10.5 20.25 110.5 70.25\r\n",
    "c.v2.txt": "",
}


def test_xyxy_text(benchmark, tmp_path):
    found, _ = to_benchmark(lay(tmp_path / "x", XYXY), tmp_path / "out", benchmark)
    assert found == [EXPECTED[2], *EXPECTED[:2]]


VOC = """<?xml version="1.0"?>
<annotation>
  <folder>x</folder><filename>beetle-a.jpg</filename>
  <size><width>1000</width><height>500</height><depth>3</depth></size>
  <object><name>Ips typographus</name><pose>Left</pose><truncated>1</truncated>
    <difficult>0</difficult>
    <bndbox><xmax>400</xmax><xmin>101</xmin><ymin>51</ymin><ymax>250</ymax></bndbox></object>
  <object><name>Hylastes ater</name><difficult>1</difficult>
    <bndbox><xmin>501</xmin><ymin>1</ymin><xmax>1000</xmax><ymax>500</ymax></bndbox></object>
</annotation>
"""


def test_pascal_voc_xml_to_coco_annotations(benchmark, tmp_path):
    """1-based inclusive pixels: 101..400 is 300 px, from 100 to 400."""
    source = lay(tmp_path / "xml", {"beetle-a.xml": VOC})
    result = run(
        source, tmp_path / "gt.json", "--to", "coco", "--benchmark-dir", benchmark, "--splits",
        "iid_test", "--missing-is-empty", "--pixels", "voc",
    )  # fmt: skip
    assert result.exception is None
    coco = json.loads((tmp_path / "gt.json").read_text())
    assert [(i["id"], i["file_name"], i["width"], i["height"]) for i in coco["images"]] == [
        (i, *rest) for i, rest in IMAGES.items()
    ]
    assert coco["categories"] == [
        {"id": 7, "name": "Hylastes ater"}, {"id": 3, "name": "Ips typographus"}
    ]  # fmt: skip
    assert coco["annotations"] == [
        {"id": 1, "image_id": 11, "category_id": 3, "bbox": [100.0, 50.0, 300.0, 200.0],
         "area": 60000.0, "iscrowd": 0},
        {"id": 2, "image_id": 11, "category_id": 7, "bbox": [500.0, 0.0, 500.0, 500.0],
         "area": 250000.0, "iscrowd": 1},
    ]  # fmt: skip
    assert "not carried over: <pose> of objects: 1" in result.output
    assert "not carried over: <truncated> of objects: 1" in result.output
    assert "corners are voc in the source" in result.output


# --- from the benchmark ------------------------------------------------------------------------


def from_benchmark(benchmark, tmp_path, target, *args):
    source = lay_file(tmp_path / "iid_test_predictions.json", RESULTS)
    result = run(
        source, target, "--benchmark-dir", benchmark, "--splits", "iid_test", "--from",
        "coco-results", *args,
    )  # fmt: skip
    if result.exception is not None:
        raise result.exception
    return result.output


def text_of(folder):
    return {p.name: p.read_text() for p in sorted(folder.iterdir())}


def test_to_yolo_with_given_class_order(benchmark, tmp_path, names):
    report = from_benchmark(
        benchmark, tmp_path, tmp_path / "y", "--to", "yolo", "--to-names", names
    )
    assert text_of(tmp_path / "y") == {
        "007.txt": "1 0.3025 0.4525 0.5 0.5 0.5\n",
        "beetle-a.txt": "2 0.25 0.3 0.3 0.4 0.9\n0 0.75 0.5 0.5 1 0.25\n",
        "c.v2.txt": "",
        "classes.txt": "Hylastes ater\nHylastes opacus\nIps typographus\n",
    }
    assert "not carried over: image ids: 3" in report


def test_to_xyxy_text_with_inclusive_pixels(benchmark, tmp_path):
    from_benchmark(
        benchmark, tmp_path, tmp_path / "x", "--to", "xyxy-text", "--to-pixels", "inclusive"
    )
    assert text_of(tmp_path / "x") == {
        "007.txt": "Hylastes opacus 0.5 10.5 20.25 109.5 69.25\n",
        "beetle-a.txt": "Ips typographus 0.9 100 50 399 249\nHylastes ater 0.25 500 0 999 499\n",
        "c.v2.txt": "",
    }


def test_to_pascal_voc_xml(benchmark, tmp_path):
    report = from_benchmark(
        benchmark, tmp_path, tmp_path / "v", "--to", "voc-xml", "--to-pixels", "voc"
    )
    text = (tmp_path / "v" / "beetle-a.xml").read_text()
    assert "<filename>beetle-a.jpg</filename>" in text
    assert "<width>1000</width>" in text
    first = text.index("<xmin>101</xmin>")
    assert text.index("<ymin>51</ymin>") > first
    assert "<xmax>400</xmax>" in text
    assert "not carried over: confidences: 3" in report


def test_to_darkflow_huggingface_and_ultralytics(benchmark, tmp_path, names):
    from_benchmark(benchmark, tmp_path, tmp_path / "d", "--to", "darkflow")
    assert {n: json.loads(t) for n, t in text_of(tmp_path / "d").items()} == DARKFLOW
    from_benchmark(benchmark, tmp_path, tmp_path / "hf.json", "--to", "huggingface")
    hf = json.loads((tmp_path / "hf.json").read_text())
    assert hf["c.v2.png"] == []
    assert hf["007.jpg"][0]["box"] == {"xmin": 10.5, "ymin": 20.25, "xmax": 110.5, "ymax": 70.25}
    report = from_benchmark(
        benchmark, tmp_path, tmp_path / "u" / "p.json", "--to", "ultralytics-json",
        "--to-names", names,
    )  # fmt: skip
    records = json.loads((tmp_path / "u" / "p.json").read_text())
    assert [{k: v for k, v in r.items() if k != "file_name"} for r in records] == ULTRALYTICS
    assert (tmp_path / "u" / "classes.txt").read_text().split("\n")[:-1] == list(MODEL_CLASSES)
    assert "which is written alongside" in report


def test_training_labels_from_a_subset(tmp_path):
    """YOLO labels cannot represent crowd regions: they are dropped and counted."""
    coco = {
        "images": [{"id": 1, "file_name": "x.jpg", "width": 100, "height": 100},
                   {"id": 2, "file_name": "y.jpg", "width": 100, "height": 100}],
        "categories": [{"id": 9, "name": "B b"}, {"id": 4, "name": "A a"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 9, "bbox": [0, 0, 50, 50], "iscrowd": 0},
            {"id": 2, "image_id": 1, "category_id": 4, "bbox": [0, 0, 50, 50], "iscrowd": 1},
        ],
    }  # fmt: skip
    result = run(lay_file(tmp_path / "train.json", coco), tmp_path / "labels", "--to", "yolo")
    assert result.exception is None
    assert text_of(tmp_path / "labels") == {
        "classes.txt": "A a\nB b\n", "x.txt": "1 0.25 0.25 0.5 0.5\n", "y.txt": "",
    }  # fmt: skip
    assert "1 box on 2 images: coco -> yolo" in result.output
    assert "not carried over: crowd or difficult boxes: 1" in result.output


def test_map_tool_ground_truth_with_difficult(tmp_path):
    gt = {"a.txt": "tv monitor 2 10 173 238\nbook 437 246 518 351 difficult\n"}
    result = run(lay(tmp_path / "gt", gt), tmp_path / "xml", "--to", "voc-xml")
    assert result.exception is None
    text = (tmp_path / "xml" / "a.xml").read_text()
    assert "<name>tv monitor</name>" in text
    assert text.count("<difficult>1</difficult>") == 1
    back = run(tmp_path / "xml", tmp_path / "again", "--to", "xyxy-text")
    assert back.exception is None
    assert text_of(tmp_path / "again") == gt


# --- format detection --------------------------------------------------------------------------


def test_the_format_is_detected_by_suffix_and_content(tmp_path):
    cases = {
        "voc-xml": lay(tmp_path / "v", {"a.xml": VOC}),
        "darkflow": lay(tmp_path / "d", DARKFLOW),
        "xyxy-text": lay(tmp_path / "x", XYXY),
        "yolo": lay(tmp_path / "y", {"e.txt": "", "f.txt": "3 0.5 0.5 1 1 0.9\n"}),
        "coco-results": lay_file(tmp_path / "r.json", RESULTS),
        "ultralytics-json": lay_file(tmp_path / "u.json", ULTRALYTICS),
        "coco": lay_file(tmp_path / "c.json", {"images": [], "annotations": [], "categories": []}),
        "huggingface": lay_file(tmp_path / "h.json", {"a": {"scores": [], "boxes": []}}),
    }
    assert {name: detect_format(path) for name, path in cases.items()} == {n: n for n in cases}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.xml": VOC, "a.json": []}, ".json and .xml files"),
        ({"a.txt": "", "b.txt": "\n"}, "only empty text files"),
        ({"a.json": [{"x": 1}]}, "not in darkflow or ultralytics-results format"),
        ({"notes.md": ""}, "no .xml, .json or .txt file"),
    ],
)
def test_an_ambiguous_format_is_an_error(tmp_path, files, said):
    with pytest.raises(UsageError, match=r"specify the format with --from") as caught:
        detect_format(lay(tmp_path / "f", files))
    assert said in str(caught.value)


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 1}', "[1]", "[[", '[{"a": 1}]'])
def test_json_of_unknown_structure(tmp_path, content):
    with pytest.raises(UsageError, match="specify the format with --from"):
        detect_format(lay_file(tmp_path / "f.json", content))


@pytest.mark.parametrize("content", ["null", "true", "5", '"x"'])
def test_json_that_is_neither_a_list_nor_an_object(tmp_path, content):
    with pytest.raises(UsageError, match="expected a list or an object") as caught:
        detect_format(lay_file(tmp_path / "f.json", content))
    assert content in str(caught.value)


# --- names, lookups, splits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n.txt", "B b\nA a\n\n"),
        ("obj.names", "B b\r\nA a"),
        ("data.yaml", "nc: 2\nnames: ['B b', 'A a']\n"),
        ("data.yml", "names:\n  1: A a\n  0: B b\n"),
        ("names.json", ["B b", "A a"]),
        ("config.json", {"id2label": {"0": "B b", "1": "A a"}}),
        ("coco.json", {"categories": [{"id": 5, "name": "A a"}, {"id": 2, "name": "B b"}]}),
    ],
)
def test_class_names_from_files_of_frameworks(tmp_path, name, content):
    assert read_class_names(lay_file(tmp_path / name, content)).names == ("B b", "A a")


def test_image_lookup(benchmark):
    lookup = build_image_lookup(benchmark, "iid_test")
    folder = benchmark / "detection" / "images" / "iid_test"
    assert lookup == {i: folder / name for i, (name, _, _) in IMAGES.items()}


def test_several_splits_in_one_call(tmp_path):
    folder = write_benchmark(tmp_path / "b")
    coco = folder / "detection" / "annotations_coco"
    (coco / "inat_test.json").write_bytes((coco / "iid_test.json").read_bytes())
    for split in ("iid_test", "inat_test"):
        lay(tmp_path / "runs" / split, XYXY)
    args = [tmp_path / "runs" / "{split}", tmp_path / "out", "--to", "benchmark",
            "--benchmark-dir", folder, "--splits", "iid_test", "inat_test"]  # fmt: skip
    result = run(*args)
    assert result.exception is None
    assert result.output.count("xyxy-text -> benchmark") == 2
    assert predictions(tmp_path / "out", "inat_test") == [EXPECTED[2], *EXPECTED[:2]]
    # a problem in one split: the other is not written either
    (tmp_path / "runs" / "inat_test" / "alien.txt").write_text("Ips typographus 1 1 1 2 2\n")
    (tmp_path / "out" / "iid_test_predictions.json").write_text("old")
    result = run(*args)
    assert isinstance(result.exception, UsageError)
    result = run(*args, "--force")
    assert isinstance(result.exception, InputError)
    assert (tmp_path / "out" / "iid_test_predictions.json").read_text() == "old"


def test_the_command_line_lists_every_format():
    assert list(FORMAT_NAMES) == list(FORMATS)


def test_the_library_returns_the_report(benchmark, tmp_path):
    (report,) = convert_annotations(
        lay(tmp_path / "x", XYXY), tmp_path / "out", to_format="benchmark",
        benchmark_dir=benchmark, splits="iid_test",
    )  # fmt: skip
    assert (report.n_boxes, report.n_images, report.lost) == (3, 3, {})
    assert report.written == tmp_path / "out" / "iid_test_predictions.json"
    assert set(SPECIES.values()) >= set(MODEL_CLASSES)
