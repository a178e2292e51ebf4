"""Class and image numbers are read as a file states them, or refused with both readings."""

import json

import pytest
from support.format_files import lay, lay_file, run, write_benchmark

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.formats import read_class_names

# id2label, COCO ids and data.yaml with gaps; the species by its stated number
SPECIES = ("Hylastes ater", "Hylastes opacus", "Ips typographus", "Xylosandrus x")
CATEGORY = dict(zip(SPECIES, (7, 8, 3, 12), strict=True))
BOX = [1, 1, 20, 20]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture
def convert(benchmark, tmp_path):
    """Convert to prediction files; returns the category ids, or the message of the error."""

    def call(source, *args, folder=benchmark):
        out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        result = run(source, out, "--to", "benchmark", "--benchmark-dir", folder,
                     "--splits", "iid_test", *args)  # fmt: skip
        if result.exception is not None:
            assert isinstance(result.exception, (InputError, UsageError)), result.exception
            assert not out.exists()
            return str(result.exception)
        records = json.loads((out / "iid_test_predictions.json").read_text())
        return [r["category_id"] for r in records], [r["image_id"] for r in records], result.output

    return call


def id2label(numbers):
    return {"id2label": {str(n): name for n, name in zip(numbers, SPECIES, strict=True)}}


def own_coco(numbers):
    return {"images": [], "annotations": [],
            "categories": [{"id": n, "name": name}
                           for n, name in zip(numbers, SPECIES, strict=True)]}  # fmt: skip


def results(*numbers, image=11):
    return [{"image_id": image, "category_id": n, "bbox": BOX, "score": 0.5} for n in numbers]


def labelled(*labels):
    return {"beetle-a.jpg": {"scores": [0.5] * len(labels), "labels": list(labels),
                             "boxes": [[1, 1, 21, 21]] * len(labels)}}  # fmt: skip


# --- class numbers ------------------------------------------------------------------------------


def test_id2label_with_gaps_is_read_by_its_numbers(convert, tmp_path):
    """id2label {0, 2, 3, 4}: label 2 is the second species, not the third."""
    names = lay_file(tmp_path / "config.json", id2label((0, 2, 3, 4)))
    source = lay_file(tmp_path / "h.json", labelled(2, 4, 0))
    categories, _, report = convert(source, "--names", names)
    assert categories == [CATEGORY[SPECIES[1]], CATEGORY[SPECIES[3]], CATEGORY[SPECIES[0]]]
    assert f"class numbers are the numbers in {names}" in report


def test_id2label_without_gaps_needs_no_option(convert, tmp_path):
    names = lay_file(tmp_path / "config.json", id2label((0, 1, 2, 3)))
    source = lay_file(tmp_path / "h.json", labelled(1, 2))
    assert convert(source, "--names", names)[0] == [8, 3]


def test_labels_of_torchvision_are_not_read_by_the_numbers_of_data_yaml(convert, tmp_path):
    """The same shape as Hugging Face, but label 0 is the background."""
    yaml = "names:\n" + "".join(f"  {n}: {name}\n" for n, name in enumerate(SPECIES))
    names = lay_file(tmp_path / "data.yaml", yaml)
    source = lay_file(tmp_path / "t.json", {"11": labelled(1, 2)["beetle-a.jpg"]})
    said = convert(source, "--names", names)
    assert "which may start at 0 or at 1 (2 is 'Ips typographus' or 'Hylastes opacus')" in said
    assert convert(source, "--names", names, "--first-class", "1")[0] == [7, 8]


@pytest.mark.parametrize("numbers", [(1, 3, 4, 5), (10, 20, 30, 40)])
@pytest.mark.parametrize("format_name", ["coco-results", "detectron2", "mmdetection"])
def test_results_with_a_coco_file_of_the_model_are_read_by_its_ids(
    convert, tmp_path, numbers, format_name
):
    """Ids 1, 3, 4, 5: category 3 is the species of id 3, not the one at position 3 (id 4)."""
    names = lay_file(tmp_path / "own.json", own_coco(numbers))
    source = lay_file(tmp_path / "r.json", results(numbers[1], numbers[3]))
    categories, _, _ = convert(source, "--from", format_name, "--names", names)
    assert categories == [CATEGORY[SPECIES[1]], CATEGORY[SPECIES[3]]]


def test_a_first_class_and_ids_with_gaps_are_two_readings(convert, tmp_path):
    names = lay_file(tmp_path / "own.json", own_coco((1, 3, 4, 5)))
    source = lay_file(tmp_path / "r.json", results(3))
    args = (source, "--from", "coco-results", "--names", names, "--first-class", "1")
    said = convert(*args)
    assert f"the numbers in {names} (3 is 'Hylastes opacus')" in said
    assert f"positions in {names}, from 1 (3 is 'Ips typographus')" in said
    assert "expected one reading: --class-ids or --class-positions --first-class 1" in said
    assert convert(*args, "--class-positions")[0] == [3]


def test_class_ids_are_those_of_the_names_file(convert, tmp_path):
    names = lay_file(tmp_path / "own.json", own_coco((1, 3, 4, 5)))
    source = lay_file(tmp_path / "r.json", results(3))
    assert convert(source, "--from", "detectron2", "--names", names, "--class-ids")[0] == [8]
    source = lay_file(tmp_path / "r2.json", results(2))
    said = convert(source, "--from", "detectron2", "--names", names, "--class-ids")
    assert f"found class 2; expected the class numbers in {names} (1 to 5)" in said
    plain = lay_file(tmp_path / "names.txt", "\n".join(SPECIES))
    said = convert(source, "--from", "detectron2", "--names", plain, "--class-ids")
    assert "which states no numbers" in said


def test_labels_that_may_be_ids_or_positions_are_refused(convert, tmp_path):
    """A format that does not define which numbers it has, with a COCO file with gaps."""
    names = lay_file(tmp_path / "own.json", own_coco((1, 3, 4, 5)))
    source = lay_file(tmp_path / "h.json", labelled(3))
    said = convert(source, "--names", names)
    assert "(3 is 'Hylastes opacus')" in said
    assert "(3 is 'Xylosandrus x')" in said  # from 0
    assert "(3 is 'Ips typographus')" in said  # from 1
    assert "--class-ids or --class-positions --first-class 0 or --class-positions" in said
    assert convert(source, "--names", names, "--class-ids")[0] == [8]


def test_only_one_reading_fits(convert, tmp_path):
    """Ids 10 to 40 are no positions, and positions are no ids from 10."""
    names = lay_file(tmp_path / "own.json", own_coco((10, 20, 30, 40)))
    assert convert(lay_file(tmp_path / "h.json", labelled(20)), "--names", names)[0] == [8]
    said = convert(lay_file(tmp_path / "g.json", labelled(0, 1)), "--names", names)
    assert "the first class is number 0 ('Hylastes ater'); expected confirmation" in said


@pytest.mark.parametrize("kind", ["mapping", "coco"])
def test_keys_from_1_are_1_based_without_asking(convert, tmp_path, kind):
    content = id2label((1, 2, 3, 4)) if kind == "mapping" else own_coco((1, 2, 3, 4))
    names = lay_file(tmp_path / "n.json", content)
    source = lay_file(tmp_path / "r.json", results(1, 2))
    assert convert(source, "--from", "ultralytics-json", "--names", names, "--image-numbers",
                   "ids")[0] == [7, 8]  # fmt: skip
    assert convert(lay_file(tmp_path / "h.json", labelled(2)), "--names", names)[0] == [8]


def test_numbers_of_data_yaml_are_those_of_yolo_text(convert, tmp_path):
    yaml = "names:\n" + "".join(
        f"  {n}: {name}\n" for n, name in zip((0, 2, 3, 4), SPECIES, strict=True)
    )
    names = lay_file(tmp_path / "data.yaml", yaml)
    source = lay(tmp_path / "y", {"beetle-a.txt": "2 0.5 0.5 0.1 0.1 0.9\n"})
    assert convert(source, "--names", names, "--missing-is-empty")[0] == [8]


def test_yolo_text_with_a_coco_file_has_two_readings(convert, tmp_path):
    names = lay_file(tmp_path / "own.json", own_coco((1, 2, 3, 4)))
    source = lay(tmp_path / "y", {"beetle-a.txt": "1 0.5 0.5 0.1 0.1 0.9\n"})
    said = convert(source, "--names", names, "--missing-is-empty")
    assert "(1 is 'Hylastes ater')" in said
    assert "(1 is 'Hylastes opacus')" in said
    args = (source, "--names", names, "--missing-is-empty")
    assert convert(*args, "--first-class", "0")[0] == [8]
    source = lay(tmp_path / "z", {"beetle-a.txt": "0 0.5 0.5 0.1 0.1 0.9\n"})
    assert convert(source, "--names", names, "--missing-is-empty", "--class-positions")[0] == [7]


def test_the_parent_category_of_roboflow_is_no_class(tmp_path):
    """Roboflow lists the parent of all classes as category 0."""
    children = [{"id": n, "name": name, "supercategory": "beetles"}
                for n, name in enumerate(SPECIES, start=1)]  # fmt: skip
    tree = {"categories": [{"id": 0, "name": "beetles", "supercategory": "none"}, *children]}
    found = read_class_names(lay_file(tmp_path / "_annotations.coco.json", tree))
    assert found.names == SPECIES
    assert found.numbers == (1, 2, 3, 4)


def test_labels_without_names_go_with_a_names_file(convert, tmp_path):
    source = lay_file(tmp_path / "h.json", labelled("LABEL_1", "LABEL_2"))
    said = convert(source)
    assert "class 'LABEL_1'" in said
    assert "use --names with the names of its training data" in said
    names = lay_file(tmp_path / "names.txt", "\n".join(SPECIES))
    assert convert(source, "--names", names)[0] == [8, 3]


def test_names_go_with_text_whose_classes_are_numbers(convert, tmp_path):
    """--names works for xyxy-text, VOC XML and any other format with classes as text."""
    source = lay(tmp_path / "x", {"beetle-a.txt": "1 0.9 100 50 400 250\n3 0.9 1 1 90 90\n"})
    names = lay_file(tmp_path / "names.txt", "\n".join(SPECIES))
    args = (source, "--from", "xyxy-text", "--missing-is-empty")
    assert "a class number; use --names" in convert(*args)
    assert "may start at 0 or at 1" in convert(*args, "--names", names)
    assert convert(*args, "--names", names, "--first-class", "1")[0] == [7, 3]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.json", '{"id2label": {"0": "A", "1": "B", "0": "C"}}', "the key '0' 2 times"),
        ("c.json", '{"id2label": {"0": "A", "00": "B"}}', "class 0 2 times"),
        ("c.json", '{"names": ["A"], "names": ["B"]}', "the key 'names' 2 times"),
        ("c.json", '{"categories": [{"id": 1, "id": 2, "name": "A"}]}', "record 0: found the key"),
        ("c.json", '{"categories": [{"id": 1, "name": "A"}, {"id": 1, "name": "B"}]}',
         "class 1 2 times"),
        ("d.yaml", "names:\n  0: A\n  0: B\n", "2 times, in lines 2 and 3"),
        ("d.yaml", "nc: 3\nnames: [A, B]\n", "nc: 3 and 2 names"),
    ],
)  # fmt: skip
def test_a_key_twice_and_a_wrong_count_are_errors(tmp_path, name, text, said):
    with pytest.raises(InputError) as caught:
        read_class_names(lay_file(tmp_path / name, text))
    assert said in str(caught.value)


# --- image numbers ------------------------------------------------------------------------------

NUMBERED = {1: ("0003.jpg", 100, 100), 2: ("000001.jpg", 100, 100), 3: ("2.jpg", 100, 100)}


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("numbered"), images=NUMBERED)


def test_image_numbers_that_are_ids_and_file_names_are_refused(convert, tmp_path, numbered):
    """Images 0003.jpg, 000001.jpg, ...: 1 is the image with id 1, or the file 000001.jpg."""
    records = [r for i in (1, 2, 3) for r in results(3, image=i)]
    source = lay_file(tmp_path / "r.json", records)
    said = convert(source, folder=numbered)
    assert (
        "3 image numbers, which may be ids (1 is '0003.jpg') or numbers in file names "
        "(1 is '000001.jpg'); expected one reading: --image-numbers ids or --image-numbers names"
    ) in said
    assert "read as coco-results, guessed from 3 of 3 records: --from sets the format" in said
    assert convert(source, "--image-numbers", "ids", folder=numbered)[1] == [1, 2, 3]


def test_the_meaning_of_image_numbers_is_an_option_or_part_of_the_format(
    convert, tmp_path, numbered
):
    source = lay_file(tmp_path / "r.json", [r for i in (1, 2, 3) for r in results(3, image=i)])
    _, images, report = convert(source, "--image-numbers", "names", folder=numbered)
    assert images == [2, 3, 1]
    assert "image numbers are those of file names" in report
    _, images, report = convert(source, "--from", "coco-results", folder=numbered)[:3]
    assert images == [1, 2, 3]
    assert "image numbers also fit the other reading (1 is '000001.jpg')" in report


def test_all_records_are_looked_at(convert, tmp_path, numbered):
    """The first record has no file name, a later one has."""
    records = [*results(3, image=1), {**results(3, image=1)[0], "file_name": "2.jpg"}]
    source = lay_file(tmp_path / "r.json", records)
    names = lay_file(tmp_path / "names.txt", "\n".join(SPECIES))
    args = ("--names", names, "--first-class", "1")
    said = convert(source, *args, folder=numbered)
    assert "1 image number, which may be ids (1 is '0003.jpg')" in said
    assert "guessed from file names in 1 of 2 records" in said
    found = convert(source, *args, "--from", "ultralytics-json", folder=numbered)
    assert found[1] == [2, 3]


def test_detections_by_image_id_as_detr_and_torchvision_give_them(convert, tmp_path):
    """{image id: {scores, labels, boxes}}: keys of JSON are text."""
    box = labelled(1)["beetle-a.jpg"]
    names = lay_file(tmp_path / "config.json", id2label((0, 1, 2, 3)))
    source = lay_file(tmp_path / "d.json", {"12": box, "42": box})
    _, images, report = convert(source, "--names", names)
    assert images == [12, 42]
    assert "image numbers are ids of the annotation file" in report
    # 007.jpg is image 12; there is no image with id 7
    assert convert(lay_file(tmp_path / "e.json", {"007": box}), "--names", names)[1] == [12]
    assert convert(lay_file(tmp_path / "f.json", {"7": box}), "--names", names)[1] == [12]


@pytest.mark.parametrize("args", [(), ("--from", "huggingface")])
def test_keys_that_are_ids_and_file_names_are_refused(convert, tmp_path, numbered, args):
    box = labelled(1)["beetle-a.jpg"]
    names = lay_file(tmp_path / "config.json", id2label((0, 1, 2, 3)))
    source = lay_file(tmp_path / "d.json", {"1": box, "2": box})
    said = convert(source, "--names", names, *args, folder=numbered)
    assert "--image-numbers ids or --image-numbers names" in said
    assert convert(source, "--names", names, "--image-numbers", "ids", folder=numbered)[1] == [1, 2]


def test_composed_and_decomposed_names_match(convert, tmp_path):
    """macOS decomposes umlauts in file names."""
    folder = write_benchmark(tmp_path / "b", images={5: ("K\u00e4fer.jpg", 100, 100)})
    box = "Ips typographus 0.9 1 1 20 20\n"
    source = lay(tmp_path / "x", {"Ka\u0308fer.txt": box})
    assert convert(source, folder=folder)[1] == [5]


@pytest.mark.parametrize(
    "name", ["beetle-a_jpg.rf.0123456789abcdef0123456789abcdef", "beetle-a_jpg.rf.aBc123.jpg"]
)
def test_image_names_of_a_roboflow_export(convert, tmp_path, name):
    names = lay_file(tmp_path / "data.yaml", f"nc: 4\nnames: {list(SPECIES)}\n")
    source = lay(tmp_path / "labels", {f"{name}.txt": "2 0.5 0.5 0.1 0.1 0.9\n"})
    categories, images, report = convert(source, "--names", names, "--missing-is-empty")
    assert (categories, images) == ([3], [11])
    assert "1 image name of a Roboflow export, matched by the original names" in report


def test_the_coco_export_of_roboflow(benchmark, tmp_path):
    """Renamed images, and the parent of all classes as category 0, of which no box is."""
    tree = {
        "info": {"year": "2026"},
        "licenses": [{"id": 1, "name": "CC BY 4.0"}],
        "categories": [
            {"id": 0, "name": "beetles", "supercategory": "none"},
            {"id": 1, "name": "Hylastes ater", "supercategory": "beetles"},
        ],
        "images": [
            {"id": 0, "license": 1, "file_name": "007_jpg.rf.0a1b2c.jpg", "height": 100,
             "width": 200, "extra": {"name": "007.jpg"}}
        ],
        "annotations": [
            {"id": 0, "image_id": 0, "category_id": 1, "bbox": [1, 2, 30, 40], "area": 1200,
             "segmentation": [], "iscrowd": 0}
        ],
    }  # fmt: skip
    source = lay_file(tmp_path / "_annotations.coco.json", tree)
    out = tmp_path / "gt.json"
    result = run(source, out, "--to", "coco", "--benchmark-dir", benchmark, "--splits", "iid_test")
    assert result.exception is None, result.exception
    (note,) = json.loads(out.read_text())["annotations"]
    assert (note["image_id"], note["category_id"], note["bbox"]) == (12, 7, [1, 2, 30, 40])
    assert "classes without boxes that the benchmark does not have: 1" in result.output
    assert "numbered from 1" not in result.output
    tree["images"][0] |= {"width": 640, "height": 640}  # stretched by Roboflow
    source = lay_file(tmp_path / "resized.json", tree)
    result = run(source, out, "--to", "coco", "--benchmark-dir", benchmark, "--splits", "iid_test")
    assert "found 640 x 640 px; expected 200 x 100 px" in str(result.exception)
