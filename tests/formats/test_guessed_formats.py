"""The format is guessed from most lines of most files, and every message under a guess says so."""

import json

import pytest
from support.format_files import lay, lay_file, run, write_benchmark

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.formats import detect_format

NAMES = "Hylastes ater\nHylastes opacus\nIps typographus\n"
YOLO = "1 0.5 0.5 0.1 0.1 0.9\n"
XYXY = "Ips typographus 0.9 100 50 400 250\n"
RECORD = {"image_id": 11, "category_id": 3, "bbox": [1, 1, 2, 2], "score": 0.5}


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture
def convert(benchmark, tmp_path):
    """Convert to prediction files; returns the records and the report, or the error's message."""
    names = lay_file(tmp_path / "names.txt", NAMES)

    def call(source, *args):
        out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        args = [names if arg == "NAMES" else arg for arg in args]
        result = run(source, out, "--to", "benchmark", "--benchmark-dir", benchmark,
                     "--splits", "iid_test", *args)  # fmt: skip
        if result.exception is not None:
            assert isinstance(result.exception, (InputError, UsageError)), result.exception
            assert not out.exists()
            return str(result.exception)
        return json.loads((out / "iid_test_predictions.json").read_text()), result.output

    return call


EMPTY = ("--missing-is-empty",)
AS_YOLO = ("--names", "NAMES", *EMPTY)


# --- text -----------------------------------------------------------------------------------------


def test_most_lines_of_most_files_decide(tmp_path):
    """The first file, and the first line of each file, are of the other format."""
    files = {"a.txt": XYXY * 3, "b.txt": XYXY + YOLO * 2, "c.txt": "oops\n" + YOLO * 3}
    assert detect_format(lay(tmp_path / "y", files)) == "yolo"


def test_the_report_and_every_error_name_the_guess(convert, tmp_path):
    source = lay(tmp_path / "y", {"beetle-a.txt": YOLO, "007.txt": "", "c.v2.txt": YOLO})
    _, report = convert(source, "--names", "NAMES")
    assert "the format yolo was guessed from 2 of 2 files; --from sets the format" in report
    assert "guessed" not in convert(source, "--names", "NAMES", "--from", "yolo")[1]
    (source / "007.txt").write_text(XYXY)
    said = convert(source, "--names", "NAMES")
    assert "007.txt line 1: found 7 values" in said
    assert "read as yolo, guessed from 2 of 3 files: --from sets the format" in said
    said = convert(source)
    assert said.count("--from sets the format") >= 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 0.5 0.5 0.1 0.1 0.9 17", "tracks with ids (model.track)"),
        ("1 0.5 0.5 0.1 0.1 17", "a track id without a confidence"),
        ("1 0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2", "oriented boxes (OBB) with four corners"),
        ("1 0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2 0.9", "oriented boxes (OBB) with four corners"),
        ("1 0.1 0.1 0.2 0.1 0.3 0.3 0.2 0.4 0.1 0.4 0.05 0.2 0.9", "polygons of a segmentation"),
        ("1 0.5 0.5 0.4 0.4 0.4 0.4 1 0.5 0.6 2 0 0 0", "keypoints of a pose model"),
        ("1 0.5 0.5 0.4 0.4 0.4 0.4 1 0.5 0.6 2 0 0 0 0.9", "keypoints of a pose model"),
        ("1 0.5 0.5 0.1 0.1 1.0000001", "found 1.0000001; expected a number in [0, 1]"),
        ("Car 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56",
         "KITTI labels"),
        ("1,1,794.2,247.5,71.2,174.8,-1,-1,-1,-1", "MOT tracks"),
        ("377,117,463,117,465,130,378,130,Genaxis Theatre", "ICDAR text"),
        ('38, 43, 920, 215, "Tiredness"', "ICDAR text"),
    ],
)  # fmt: skip
def test_lines_of_other_kinds_are_named(convert, tmp_path, line, said):
    """Without --from, and with it."""
    source = lay(tmp_path / "y", {"007.txt": f"{line}\n" * 3})
    assert said in convert(source, *AS_YOLO)
    assert said in convert(source, *AS_YOLO, "--from", "yolo")


def test_coordinates_just_above_one_are_yolo(convert, tmp_path):
    """A sum of rounded numbers may exceed 1."""
    source = lay(tmp_path / "y", {"007.txt": "1 0.5 0.5 1.0000001 1 0.9\n"})
    records, report = convert(source, *AS_YOLO)
    assert records[0]["bbox"] == pytest.approx([0, 0, 200, 100], abs=1e-4)
    assert "yolo -> benchmark" in report


def test_width_and_height_as_text(convert, tmp_path):
    line = "Ips typographus 0.9 120 60 30 20\n"
    source = lay(tmp_path / "w", {"beetle-a.txt": line * 3, "007.txt": line})
    records, report = convert(source, *EMPTY)
    assert records[0]["bbox"] == [120.0, 60.0, 30.0, 20.0]
    assert "the format xywh-text was guessed" in report
    (source / "007.txt").write_text("Ips typographus 0.9 120 60 -30 20\n")
    said = convert(source, *EMPTY)
    assert "line 1, width: found '-30'; expected width >= 0" in said


@pytest.mark.parametrize("format_name", ["yolo", "xyxy-text", "voc-xml"])
def test_files_in_subfolders_are_read(convert, tmp_path, format_name):
    """Never skipped under --missing-is-empty."""
    xml = (
        "<annotation><object><name>Ips typographus</name><bndbox><xmin>1</xmin><ymin>2</ymin>"
        "<xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>"
    )
    text = {"yolo": YOLO, "xyxy-text": "Ips typographus 0.9 1 2 3 4\n", "voc-xml": xml}[format_name]
    suffix = ".xml" if format_name == "voc-xml" else ".txt"
    lay(tmp_path / "l" / "part", {f"beetle-a{suffix}": text})
    lay(tmp_path / "l", {f"007{suffix}": text})
    args = ["--from", format_name, "--to", "coco" if suffix == ".xml" else "huggingface"]
    if format_name == "yolo":
        names = lay_file(tmp_path / "n.txt", NAMES)
        args += ["--names", names, "--images-dir", images(tmp_path)]
    result = run(tmp_path / "l", tmp_path / "out.json", *args)
    assert result.exception is None, result.exception
    assert "2 boxes on " in result.output
    lay(tmp_path / "l" / "other", {f"007{suffix}": text})
    if format_name != "voc-xml":
        assert "'007' and 'other/007' for '007.jpg'" in convert(
            tmp_path / "l", *AS_YOLO[:2], *EMPTY
        )


def images(tmp_path):
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("beetle-a.jpg", "007.jpg"):
        Image.new("L", (20, 20)).save(folder / name)
    return folder


def test_two_files_of_one_image(convert, tmp_path):
    source = lay(tmp_path / "y", {"007.txt": YOLO, "007.TXT": YOLO})
    assert "found another file of the same image" in convert(source, *AS_YOLO)


# --- JSON and XML -----------------------------------------------------------------------------


LABELME = {"version": "5.0", "imagePath": "a.jpg", "shapes": []}
CVAT = '<annotations><version>1.1</version><image id="0" name="a.jpg"></image></annotations>'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", LABELME, "LabelMe JSON"),
        ("a.xml", CVAT, "CVAT XML"),
        ("a.json", [{"id": 1, "data": {"image": "a.jpg"}, "annotations": []}], "Label Studio JSON"),
    ],
)
def test_formats_that_are_not_read_are_named(convert, tmp_path, name, content, said):
    cure = "which is not read: export COCO, YOLO or Pascal VOC instead"
    assert f"found {said}, {cure}" in convert(lay_file(tmp_path / name, content))
    assert f"found {said}, {cure}" in convert(lay(tmp_path / "f", {name: content}))
    if name == "a.xml":
        assert said in convert(tmp_path / "f", "--from", "voc-xml", *EMPTY)


RESULT = {"name": "Ips typographus", "class": 2, "confidence": 0.9,
          "box": {"x1": 100.0, "y1": 50.0, "x2": 400.0, "y2": 250.0}}  # fmt: skip
WRITTEN = [{"image_id": 11, "category_id": 3, "bbox": [100.0, 50.0, 300.0, 200.0], "score": 0.9}]


def test_results_to_json_of_ultralytics(convert, tmp_path):
    """A folder with one file per image, or one object; track ids and masks are counted."""
    more = {**RESULT, "track_id": 3, "segments": {"x": [1.0], "y": [1.0]}, "keypoints": None}
    source = lay(tmp_path / "r", {"beetle-a.json": [more], "007.json": [], "c.v2.json": []})
    records, report = convert(source)
    assert records == WRITTEN
    assert "ultralytics-results -> benchmark" in report
    assert "not carried over: track ids: 1" in report
    assert "not carried over: masks (segmentation): 1" in report
    whole = lay_file(tmp_path / "all.json", {"beetle-a.jpg": [RESULT], "007.jpg": []})
    assert convert(whole)[0] == WRITTEN
    said = convert(lay_file(tmp_path / "one.json", [RESULT]))
    assert "found the detections of one image, as Results.to_json() writes them" in said
    oriented = {**RESULT, "box": {**RESULT["box"], "x3": 1.0, "y3": 1.0, "x4": 1.0, "y4": 1.0}}
    said = convert(lay_file(tmp_path / "obb.json", {"beetle-a.jpg": [oriented]}))
    assert "oriented boxes (OBB)" in said


def test_bbox_json_of_mmdetection(convert, tmp_path):
    source = lay_file(tmp_path / "results.bbox.json", [RECORD])
    said = convert(source)
    assert "class numbers (3) without names" in said
    assert "read as mmdetection, guessed from the suffix .bbox.json" in said
    assert convert(source, "--class-ids")[0] == [RECORD]


# --- content ------------------------------------------------------------------------------------


def coco(*annotations, **image):
    return {
        "licenses": [{"id": 1, "name": "CC0"}],
        "images": [{"id": 1, "file_name": "beetle-a.jpg", "width": 1000, "height": 500} | image],
        "categories": [{"id": 5, "name": "Ips typographus"}],
        "annotations": [
            {"id": at, "image_id": 1, "category_id": 5, "bbox": [100, 50, 300, 200]} | note
            for at, note in enumerate(annotations, start=1)
        ],
    }


def test_scores_of_coco_annotations_are_kept(convert, tmp_path):
    """FiftyOne's export of detections, into every format that can hold them."""
    content = coco({"score": 0.9, "segmentation": [], "iscrowd": 0}, license=1)
    source = lay_file(tmp_path / "labels.json", content)
    records, report = convert(source)
    assert records == WRITTEN
    assert "masks" not in report  # an empty segmentation is no mask
    assert "not carried over: licence fields of images: 1" in report
    assert "not carried over: licences: 1" in report
    for name in ("yolo", "xyxy-text", "xywh-text", "darkflow", "ultralytics-results"):
        assert run(source, tmp_path / name, "--to", name).exception is None
        assert "0.9" in next((tmp_path / name).glob("beetle-a.*")).read_text()
    assert run(source, tmp_path / "again.json", "--to", "coco").exception is None
    (note,) = json.loads((tmp_path / "again.json").read_text())["annotations"]
    assert (note["score"], note["iscrowd"]) == (0.9, 0)


def test_crowd_regions_of_scored_annotations_stay_in_coco(tmp_path):
    notes = ({"score": 0.9}, {"score": 0.1, "iscrowd": 1})
    source = lay_file(tmp_path / "c.json", coco(*notes))
    assert run(source, tmp_path / "out.json", "--to", "coco").exception is None
    written = json.loads((tmp_path / "out.json").read_text())["annotations"]
    assert [(n["score"], n["iscrowd"]) for n in written] == [(0.9, 0), (0.1, 1)]


def test_scores_of_some_annotations_only(convert, tmp_path):
    said = convert(lay_file(tmp_path / "c.json", coco({"score": 0.9}, {})))
    assert "annotation 2, confidence: found NaN; expected a confidence for all boxes" in said


def test_keypoints_and_masks_of_coco_are_counted(tmp_path):
    notes = ({"keypoints": [1, 2, 2], "segmentation": [[1, 1, 2, 1, 2, 2]]}, {"keypoints": []},
             {"segmentation": {"size": [1, 1], "counts": "0"}}, {"segmentation": [[]]})  # fmt: skip
    source = lay_file(tmp_path / "c.json", coco(*notes))
    result = run(source, tmp_path / "out.json", "--to", "coco")
    assert "not carried over: keypoints: 1\n" in result.output
    assert "not carried over: masks (segmentation): 2\n" in result.output


def test_masks_and_keypoints_of_torchvision_are_counted(convert, tmp_path):
    """The output of Mask R-CNN and Keypoint R-CNN by image id."""
    output = {"boxes": [[1, 1, 21, 21]] * 2, "labels": [3, 3], "scores": [0.9, 0.8]}
    more = {**output, "masks": [[[1]], [[1]]], "keypoints": [[[1, 1, 1]]] * 2}
    source = lay_file(tmp_path / "t.json", {"11": more, "12": output})
    records, report = convert(source, "--class-ids")
    assert [(r["image_id"], r["category_id"]) for r in records] == [(11, 3)] * 2 + [(12, 3)] * 2
    assert "not carried over: masks (segmentation): 2" in report
    assert "not carried over: keypoints: 2" in report


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--missing-is-empty",), "--missing-is-empty has no effect for coco-results to benchmark"),
        (("--pixels", "voc"), "--pixels has no effect for coco-results to benchmark"),
        (("--to-pixels", "voc"), "--to-pixels has no effect"),
        (("--scores",), "--scores has no effect"),
        (("--to-names", "NAMES"), "--to-names has no effect"),
        (("--pixels", "voc", "--scores"), "--scores has no effect"),
    ],
)
def test_an_option_without_effect_is_an_error(convert, tmp_path, args, said):
    source = lay_file(tmp_path / "r.json", [RECORD])
    assert said in convert(source, *args)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--names", "NAMES"), "--names has no effect for coco to benchmark"),
        (("--first-class", "1"), "--first-class has no effect"),
        (("--class-ids",), "--class-ids has no effect"),
        (("--class-positions",), "--class-positions has no effect"),
        (("--image-numbers", "ids"), "--image-numbers has no effect"),
        (("--images-only",), "images_only requires to_format='coco'"),
        (("--to-frame", "stored"), "requires images_dir"),
    ],
)
def test_an_option_without_effect_for_named_classes(convert, tmp_path, args, said):
    assert said in convert(lay_file(tmp_path / "c.json", coco({"score": 1})), *args)


# --- boxes outside ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "said", "unsaid"),
    [
        ([-3, 10, 60, 60], "a model that does not clip its boxes; --outside clip", "EXIF"),
        ([20, 60, 60, 120], "they fit with width and height swapped", "--outside"),
        ([180, 20, 300, 60], "boxes of another or a resized image", "--outside"),
    ],
)
def test_clipping_is_advised_only_where_it_is_the_likely_cure(convert, tmp_path, box, said, unsaid):
    """007.jpg is 200 x 100 px."""
    records = [{**RECORD, "image_id": 12, "bbox": box}]
    found = convert(lay_file(tmp_path / "r.json", records))
    assert said in found
    assert unsaid not in found


# --- images only ----------------------------------------------------------------------------------


def test_a_coco_file_without_annotations_to_predict_on(tmp_path):
    """The images of a split with the training categories, for frameworks that need a COCO file."""
    split = coco({}, {})
    split["categories"] = [{"id": 5, "name": "An unseen species"}]
    train = {"images": [], "annotations": [],
             "categories": [{"id": 9, "name": "B"}, {"id": 3, "name": "A"}]}  # fmt: skip
    source = lay_file(tmp_path / "semantic_ood.json", split)
    trained = lay_file(tmp_path / "train.json", train)
    args = (
        source,
        tmp_path / "images.json",
        "--to",
        "coco",
        "--images-only",
        "--to-names",
        trained,
    )
    result = run(*args)
    assert result.exception is None, result.exception
    written = json.loads((tmp_path / "images.json").read_text())
    assert written == {
        "images": [{"id": 1, "file_name": "beetle-a.jpg", "width": 1000, "height": 500}],
        "annotations": [],
        "categories": [{"id": 3, "name": "A"}, {"id": 9, "name": "B"}],
    }
    assert "not carried over: boxes (images only): 2" in result.output
    assert run(source, tmp_path / "own.json", *args[2:5]).exception is None
    own = json.loads((tmp_path / "own.json").read_text())
    assert (own["annotations"], own["categories"]) == ([], split["categories"])


def test_a_subfolder_of_the_source_is_no_target(tmp_path):
    """The next run would read it."""
    source = lay(tmp_path / "x", {"a.txt": "Ips typographus 0.9 1 1 2 2\n"})
    for target in (source / "again", source / "a" / "b"):
        result = run(source, target, "--to", "xyxy-text")
        assert isinstance(result.exception, UsageError)
        assert "input folder" in str(result.exception)
        assert not target.exists()
