"""Problems of a source: file, record, field and likely cause are reported; nothing is written."""

import os

import pytest
from support.format_files import lay, lay_file, run, write_benchmark

from benchmark_eval.core.errors import InputError, UsageError

NAMES = "Hylastes ater\nHylastes opacus\nIps typographus\n"
OK = "Ips typographus 0.9 100 50 400 250\n"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture
def convert(benchmark, tmp_path):
    """Convert to prediction files and return all problems as text; nothing may be written."""

    def call(source, *args, error=InputError, to=("--to", "benchmark")):
        result = run(
            source,
            tmp_path / "out",
            *to,
            "--benchmark-dir",
            benchmark,
            "--splits",
            "iid_test",
            *args,
        )
        assert isinstance(result.exception, error), result.output
        assert not (tmp_path / "out").exists()
        return str(result.exception)

    return call


@pytest.fixture
def names(tmp_path):
    return lay_file(tmp_path / "names.txt", NAMES)


def results(*records):
    keys = ("image_id", "category_id", "bbox", "score")
    return [dict(zip(keys, record, strict=True)) for record in records]


# --- classes ----------------------------------------------------------------------------------


def test_unknown_class_names_are_reported_with_similar_names_and_box_counts(convert, tmp_path):
    text = "ips_typographus 0.9 1 1 2 2\n" * 3 + "Hylastes atter 0.5 1 1 2 2\nbeetle 1 1 1 2 2\n"
    said = convert(lay(tmp_path / "x", {"007.txt": text}), "--missing-is-empty")
    assert "3 problems" in said
    assert "class 'ips_typographus' (3 boxes, first in 007.txt line 1)" in said
    assert "did you mean 'Ips typographus'? (--rename 'ips_typographus' 'Ips typographus')" in said
    assert "did you mean 'Hylastes ater'" in said
    assert "class 'beetle' (1 box, first in 007.txt line 5); expected a species of the" in said
    assert "(no similar name in the benchmark; read as xyxy-text, guessed from 1 of 1 file" in said


def test_rename_maps_unknown_class_names(benchmark, tmp_path):
    source = lay(tmp_path / "x", {"007.txt": "ips 0.9 1 1 2 2\nIPS 0.9 1 1 2 2\n"})
    args = ("--to", "benchmark", "--benchmark-dir", benchmark, "--splits", "iid_test",
            "--missing-is-empty", "--rename", "ips", "Ips typographus")  # fmt: skip
    result = run(source, tmp_path / "out", *args, "--rename", "IPS", "Ips typographus")
    assert result.exception is None
    text = (tmp_path / "out" / "iid_test_predictions.json").read_text()
    assert text.count('"category_id":3') == 2
    wrong = run(source, tmp_path / "out", *args, "--rename", "Ipps", "Ips typographus")
    assert "no class 'Ipps'; expected one of" in str(wrong.exception)


@pytest.mark.parametrize(
    ("numbers", "args", "said"),
    [
        ((1, 2), (), "3 names, which may start at 0 or at 1"),
        (
            (0, 2),
            (),
            "the first class is number 0 ('Hylastes ater'); expected confirmation: --first-class 0",
        ),
        (
            (1, 3),
            (),
            "the first class is number 1 ('Hylastes ater'); expected confirmation: --first-class 1",
        ),
        ((0, 3), (), "class numbers 0 to 3"),
        ((0, 2), ("--first-class", "1"), "1 to 3 (numbers that start at 0; use --first-class 0)"),
        ((1, 3), ("--first-class", "0"), "0 to 2 (numbers that start at 1; use --first-class 1)"),
        ((5, 64), ("--first-class", "0"), "only 3 names, perhaps those of another model"),
    ],
)
def test_the_first_class_number_is_never_guessed(convert, tmp_path, names, numbers, args, said):
    records = results(*((11, n, [1, 1, 2, 2], 0.5) for n in numbers))
    source = lay_file(tmp_path / "r.json", records)
    assert said in convert(source, "--from", "detectron2", "--names", names, *args)


def test_an_inferred_first_class_is_used_if_confirmed(benchmark, tmp_path, names):
    source = lay_file(
        tmp_path / "r.json", results((11, 0, [1, 1, 2, 2], 0.5), (11, 2, [1, 1, 2, 2], 0.5))
    )
    args = (source, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", benchmark, "--splits",
            "iid_test", "--from", "detectron2", "--names", names)  # fmt: skip
    assert run(*args, "--yes").exception is None
    assert '"category_id":7' in (tmp_path / "out" / "iid_test_predictions.json").read_text()
    # --yes does not resolve ambiguous numbers
    source.write_text(source.read_text().replace('"category_id": 0', '"category_id": 1'))
    assert "may start at 0 or at 1" in str(run(*args, "--yes").exception)


def test_yolo_class_numbers_beyond_the_names_are_reported(convert, tmp_path, names):
    source = lay(tmp_path / "y", {"007.txt": "3 0.5 0.5 0.1 0.1 0.9\n1 0.5 0.5 0.1 0.1 0.9\n"})
    said = convert(source, "--names", names, "--missing-is-empty")
    assert "class numbers 1 to 3" in said
    assert "0 to 2 (numbers that start at 1; use --first-class 1; read as yolo, guessed" in said


def test_class_numbers_without_names(convert, tmp_path):
    source = lay(tmp_path / "y", {"007.txt": "2 0.5 0.5 0.1 0.1 0.9\n"})
    said = convert(source, "--missing-is-empty")
    assert "class numbers (2) without names" in said
    assert "--names" in said
    source = lay_file(tmp_path / "r.json", results((11, 99, [1, 1, 2, 2], 0.5)))
    said = convert(source, "--from", "detectron2", "--class-ids")
    assert "category id 99; expected a category id of the benchmark (3 to 12)" in said
    assert "class numbers of the model" in said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("n.txt", "", "names.txt|n.txt"),
        ("n.txt", "a\n\nb\n", 'class 2 of 3: found ""'),
        ("n.txt", "a\nb\na\n", "'a', a duplicate of class 1"),
        ("n.yaml", "names: {a: b}\n", "expected class names: a text file with one name per line"),
        ("n.yaml", "names: [a, 1]\n", "class 2 of 2: found 1"),
        ("n.yaml", "names: [", "n.yaml"),
        ("n.json", "{", "n.json"),
        ("n.json", "[]", "expected class names: a text file with one name per line"),
    ],
)
def test_invalid_lists_of_class_names(convert, tmp_path, name, content, said):
    source = lay_file(tmp_path / "r.json", results((11, 1, [1, 1, 2, 2], 0.5)))
    found = convert(source, "--names", lay_file(tmp_path / name, content))
    assert any(part in found for part in said.split("|"))


# --- images -----------------------------------------------------------------------------------


def test_missing_and_unknown_images(convert, tmp_path):
    source = lay(tmp_path / "x", {"007.txt": OK, "alien.txt": OK, "42.txt": OK})
    said = convert(source)
    assert "image 'alien': no matching image" in said
    assert "files of another split or another benchmark" in said
    assert "image '42': no matching image" in said
    assert "an image id, not a file name" in said
    assert "image 'beetle-a.jpg': no file" in said
    assert "image 'c.v2.png': no file" in said
    assert "--missing-is-empty" in said
    assert "007" not in said


def test_images_with_the_same_name(tmp_path):
    images = {1: ("a/x.jpg", 9, 9), 2: ("b/x.jpg", 9, 9), 3: ("y.png", 9, 9)}
    folder = write_benchmark(tmp_path / "b", images=images)
    source = lay(tmp_path / "x", {"x.txt": "Ips typographus 0.9 1 1 2 2\n", "y.txt": ""})
    args = ("--benchmark-dir", folder, "--splits", "iid_test")
    result = run(source, tmp_path / "out", "--to", "benchmark", *args)
    assert "image 'x': found 2 matching images: a/x.jpg, b/x.jpg" in str(result.exception)
    # the other direction: two output files with the same name
    gt = folder / "detection" / "annotations_coco" / "iid_test.json"
    result = run(gt, tmp_path / "y", "--to", "yolo")
    assert "2 images whose output file would be named 'x'" in str(result.exception)
    assert not (tmp_path / "y").exists()


def test_duplicate_entries_for_one_image(convert, tmp_path):
    box = {"scores": [0.5], "labels": ["Ips typographus"], "boxes": [[1, 1, 2, 2]]}
    source = lay_file(tmp_path / "h.json", {"007.jpg": box, "some/where/007.jpg": box})
    assert "'007.jpg' and 'some/where/007.jpg' for '007.jpg'" in convert(source)


def test_image_ids_and_numeric_file_names_are_distinguished(convert, tmp_path, names):
    """42 in Ultralytics JSON is the file 42.jpg; 7 in COCO results is the image with id 7."""
    ultralytics = lay_file(tmp_path / "u.json", results((42, 1, [1, 1, 2, 2], 0.5)))
    said = convert(
        ultralytics, "--from", "ultralytics-json", "--names", names, "--first-class", "1"
    )
    assert "image 42: no matching image" in said
    assert "an image id; Ultralytics writes file names" in said
    coco = lay_file(tmp_path / "c.json", results((7, 3, [1, 1, 2, 2], 0.5)))
    assert "a file name without leading zeros, as written by Ultralytics" in convert(coco)


TWICE = '{"scores": [0.5], "labels": ["Ips typographus"], "boxes": [[1, 1, 2, 2]]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{{"007.jpg": {TWICE}, "007.jpg": {TWICE}}}', "'007.jpg': found 2 entries of"),
        (
            f'[{{"file_name": "007.jpg", {TWICE[1:]}, {{"file_name": "c.v2.png", {TWICE[1:]}, '
            f'{{"file_name": "007.jpg", {TWICE[1:]}]',
            "record 2: found image '007.jpg' again, after record 0; expected one entry per image",
        ),
        (
            f'[{{"image_id": 12, {TWICE[1:]}, {{"image_id": 12, {TWICE[1:]}]',
            "record 1: found image 12",
        ),
    ],
)
def test_an_image_twice_in_huggingface_json_loses_no_box(convert, tmp_path, text, said):
    found = convert(lay_file(tmp_path / "h.json", text))
    assert "1 problem found" in found
    assert said in found


def test_an_image_named_by_a_number_and_by_the_same_text(tmp_path):
    text = f'[{{"image_id": 5, {TWICE[1:]}, {{"image_id": "5", {TWICE[1:]}]'
    result = run(lay_file(tmp_path / "h.json", text), tmp_path / "out", "--to", "huggingface")
    assert "found 2 images named '5'" in str(result.exception)
    assert not (tmp_path / "out").exists()


JSON_FORMATS = ("coco-results", "detectron2", "ultralytics-json", "huggingface", "coco", "darkflow")


@pytest.mark.parametrize("format_name", JSON_FORMATS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("null", "found the JSON text null"),
        ("true", "found the JSON text true"),
        ("0", "found the number 0"),
        ("5.5", "found the number 5.5"),
        ('""', 'found the JSON string ""'),
        ('"x"', 'found the JSON string "x"'),
        ("{}", "found {}"),
    ],
)
def test_json_that_is_not_a_list_is_never_an_empty_list(convert, tmp_path, format_name, text, said):
    """Otherwise the model would be scored as one that predicts nothing."""
    names = ["007.json", "beetle-a.json", "c.v2.json"]
    source = lay_file(tmp_path / "r.json", text)
    if format_name == "darkflow":
        source = lay(tmp_path / "d", dict.fromkeys(names, "[]") | {"007.json": text})
    if (format_name, text) == ("huggingface", "{}"):
        return  # no image, as written by a model without detections
    if (format_name, text) == ("coco", "{}"):
        said = "no list of images"
    assert said in convert(source, "--from", format_name)


RECORD = {
    "coco-results": '{"image_id": 12, "category_id": 3, "bbox": [1, 1, 2, 2], "score": 0.5}',
    "ultralytics-json": '{"image_id": 7, "file_name": "007.jpg", "category_id": 1, '
    '"bbox": [1, 1, 2, 2], "score": 0.5}',
    "huggingface": '{"image_id": 12, "scores": [0.5], "labels": ["Ips typographus"], '
    '"boxes": [[1, 1, 2, 2]]}',
    "darkflow": '{"label": "Ips typographus", "confidence": 0.5, "topleft": {"x": 1, "y": 1}, '
    '"bottomright": {"x": 2, "y": 2}}',
}


@pytest.mark.parametrize(
    ("format_name", "once", "twice", "said"),
    [
        ("coco-results", '"score": 0.5', '"score": 0.9, "score": 0.5',
         "score: found score more than once: 0.9 and 0.5; expected unique keys within a record"),
        ("coco-results", '"image_id": 12', '"image_id": 11, "image_id": 12', "11 and 12"),
        ("coco-results", '"score": 0.5', r'"scor\u0065": 0.9, "score": 0.5', "0.9 and 0.5"),
        ("ultralytics-json", '"file_name": "007.jpg"',
         '"file_name": "x.jpg", "file_name": "007.jpg"', '"x.jpg" and "007.jpg"'),
        ("huggingface", '"scores": [0.5]', '"scores": [0.9], "scores": [0.5]', "[0.9] and [0.5]"),
        ("huggingface", '"image_id": 12', '"image_id": 11, "image_id": 12', "11 and 12"),
        ("darkflow", '"confidence": 0.5', '"confidence": 0.9, "confidence": 0.5', "0.9 and 0.5"),
        ("darkflow", '"x": 2', '"x": 9, "x": 2', "x: found x more than once: 9 and 2"),
    ],
)  # fmt: skip
def test_a_duplicate_key_is_an_error(convert, tmp_path, names, format_name, once, twice, said):
    record = RECORD[format_name]
    assert once in record
    args = ["--from", format_name]
    if format_name == "ultralytics-json":
        args += ["--names", names, "--first-class", "1"]
    text = f"[{record.replace(once, twice)}]"
    source = lay_file(tmp_path / "r.json", text)
    if format_name == "darkflow":
        source = lay(tmp_path / "d", {"007.json": text})
        args += ["--missing-is-empty"]
    found = convert(source, *args)
    assert "1 problem found" in found
    assert said in found


@pytest.mark.parametrize(
    ("once", "twice", "said"),
    [
        ('"file_name": "a.jpg"', '"file_name": "b.jpg", "file_name": "a.jpg"',
         'images record 0, file_name: found file_name more than once: "b.jpg" and "a.jpg"'),
        ('"bbox": [1, 1, 2, 2]', '"bbox": [0, 0, 1, 1], "bbox": [1, 1, 2, 2]',
         "annotations record 0, bbox"),
        ('"categories": [', '"categories": [], "categories": [', "2 lists of categories"),
    ],
)  # fmt: skip
def test_a_duplicate_key_in_coco_annotations_is_an_error(tmp_path, once, twice, said):
    text = (
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"id": 1, "image_id": 1, '
        '"category_id": 1, "bbox": [1, 1, 2, 2]}], "categories": [{"id": 1, "name": "x"}]}'
    )
    assert once in text
    good = run(lay_file(tmp_path / "good.json", text), tmp_path / "good", "--to", "voc-xml")
    assert good.exception is None
    source = lay_file(tmp_path / "c.json", text.replace(once, twice))
    result = run(source, tmp_path / "out", "--to", "voc-xml")
    assert "1 problem found" in str(result.exception)
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["voc-xml", "yolo", "darkflow", "xyxy-text"])
@pytest.mark.parametrize("character", ["\x01", "\n", "\x1b", "\x9b", "\x00"])
def test_control_characters_in_image_names(tmp_path, target, character):
    """An XML file with them is not well-formed; a file name with NUL cannot exist."""
    content = {
        "images": [{"id": 1, "file_name": f"a{character}b.jpg", "width": 9, "height": 9}],
        "annotations": [],
        "categories": [{"id": 1, "name": "x"}],
    }
    source = lay_file(tmp_path / "c.json", content)
    result = run(source, tmp_path / "out", "--to", target)
    assert isinstance(result.exception, InputError)
    assert f"image {f'a{character}b.jpg'!r}; expected a name without control" in str(
        result.exception
    )
    assert not (tmp_path / "out").exists()


# --- boxes ------------------------------------------------------------------------------------


def test_invalid_boxes_are_reported_with_their_location(convert, tmp_path):
    def darkflow(label, left, top, right, bottom, confidence):
        return {"label": label, "confidence": confidence, "topleft": {"x": left, "y": top},
                "bottomright": {"x": right, "y": bottom}}  # fmt: skip

    source = lay(
        tmp_path / "d",
        {
            "007.json": [
                darkflow("Ips typographus", 50, 1, 20, 30, 0.5),
                darkflow("Ips typographus", 1, 1, 20, 30, 87),
                darkflow("Ips typographus", 1, 1, 20, 30, 0.5) | {"confidence": None},
            ],
            "beetle-a.json": [{"label": "Ips typographus", "topleft": {"x": 1}}],
            "c.v2.json": '[{"label": "Ips typographus"',
        },
    )
    said = convert(source, "--from", "darkflow")
    assert "beetle-a.json record 0" in said
    assert "missing required field `y`" in said
    assert "c.v2.json" in said
    assert "truncated or damaged file" in said
    source = lay(tmp_path / "d", {"beetle-a.json": [], "c.v2.json": []})
    said = convert(source, "--from", "darkflow")
    assert "007.json record 0, box: found [50.0, 1.0, 20.0, 30.0]; expected left <= right" in said
    assert "swapped corners, or width and height instead of right and bottom" in said
    assert "007.json record 1, confidence: found 87.0; expected a number in [0, 1]" in said
    assert "percentages" in said
    assert "007.json record 2, confidence: found NaN; expected a confidence for all boxes" in said


def test_all_kinds_of_problems_are_reported_together(convert, tmp_path):
    files = {
        "007.xml": voc(voc_object(name="Ips typografus")),
        "beetle-a.xml": "<annotation>",
        "c.v2.xml": voc(voc_object(box="xmin 9 ymin 2 xmax 3 ymax 4"), size=""),
        "alien.xml": voc("<object><name>x</name></object>", size=""),
    }
    said = convert(lay(tmp_path / "v", files), to=("--to", "coco"))
    for part in (
        "beetle-a.xml: found invalid XML: no element found",
        "alien.xml object 1: missing xmin",
        "image 'alien': no matching image",
        "did you mean 'Ips typographus'",
        "c.v2.xml object 1, box: found [9.0, 2.0, 3.0, 4.0]",
        "5 problems found",
    ):
        assert part in said


def test_boxes_outside_the_image(benchmark, convert, tmp_path):
    """007 is 200 x 100 px; boxes may extend at most one pixel beyond it."""
    text = (
        "Ips typographus 0.9 0 0 201 101\n"
        "Ips typographus 0.8 -2 0 50 50\n"
        "Ips typographus 0.7 150 50 260 90\n"
        "Ips typographus 0.6 300 10 310 20\n"
    )
    source = lay(tmp_path / "x", {"007.txt": text})
    said = convert(source, "--missing-is-empty")
    assert "3 problems" in said
    assert "007.txt line 2, box: found [-2.0, 0.0, 50.0, 50.0]; expected a box inside" in said
    assert "--outside" not in said  # most of the third box is far outside
    args = (source, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", benchmark, "--splits",
            "iid_test", "--missing-is-empty", "--outside")  # fmt: skip
    result = run(*args, "clip")
    written = (tmp_path / "out" / "iid_test_predictions.json").read_text()
    assert '"bbox":[0.0,0.0,200.0,100.0],"score":0.9' in written
    assert '"bbox":[0.0,0.0,50.0,50.0],"score":0.8' in written
    assert '"bbox":[150.0,50.0,50.0,40.0],"score":0.7' in written
    assert '"score":0.6' not in written
    assert "not carried over: boxes entirely outside their image: 1" in result.output
    assert "not carried over: parts of boxes outside their image (clipped): 2" in result.output
    run(*args, "keep")
    written = (tmp_path / "out" / "iid_test_predictions.json").read_text()
    assert '"bbox":[-2.0,0.0,52.0,50.0],"score":0.8' in written


def test_pixel_and_normalised_coordinates_are_not_confused(convert, tmp_path, names):
    yolo = lay(tmp_path / "y", {"007.txt": "1 100 50 20 10 0.9\n"})
    said = convert(yolo, "--from", "yolo", "--names", names, "--missing-is-empty")
    assert "007.txt line 1, box: found [100.0, 50.0, 20.0, 10.0]; expected normalised" in said
    assert "pixels instead of normalised coordinates" in said
    normalised = lay_file(
        tmp_path / "r.json", results(*((11, 3, [0.1, 0.2, 0.5, 0.5], 0.5) for _ in range(10)))
    )
    assert "10 boxes with coordinates up to 0.7; expected pixel coordinates" in convert(normalised)


@pytest.mark.parametrize("n", [1000, 2500])
def test_problems_beyond_the_limit_are_counted(convert, tmp_path, n):
    source = lay_file(tmp_path / "r.json", results((11, 3, [1, 1, -2, 2], 0.5)) * n)
    said = convert(source)
    assert f"{n:,} problems found" in said
    assert "record 2, box: found [1.0, 1.0, -2.0, 2.0]" in said
    assert f"{n - 3:,} more" in said
    assert len(said) < 1000


def test_every_kind_of_problem_is_reported_beyond_the_limit(convert, tmp_path):
    source = lay_file(tmp_path / "r.json", results((11, 3, [1, 1, -2, 2], 7)) * 1500)
    said = convert(source)
    assert "3,000 problems found" in said
    assert "1,497 more" in said
    assert "expected width and height >= 0" in said
    assert "expected a number in [0, 1]" in said


def test_invalid_numbers_in_records(convert, tmp_path, names):
    bad = '[{"image_id": 11, "category_id": 3, "bbox": [1, 1, NaN, 2], "score": 0.5}, ' \
        '{"image_id": 11, "category_id": 3.5, "bbox": [1, 1, 2, 2], "score": 0.5}]'  # fmt: skip
    said = convert(lay_file(tmp_path / "r.json", bad))
    assert "record 1, category_id: found 3.5; expected an integer" in said
    bad = bad.replace("3.5", "3").replace('"image_id": 11, "category_id": 3,', '"image_id": 11,', 1)
    said = convert(lay_file(tmp_path / "s.json", bad), "--from", "coco-results")
    assert "record 0" in said
    assert "missing required field `category_id`" in said
    nan = '[{"image_id": 11, "category_id": 3, "bbox": [1, 1, NaN, -2], "score": 0.5}]'
    said = convert(lay_file(tmp_path / "t.json", nan))
    assert "record 0, box: found [1.0, 1.0, NaN, -2.0]; expected four finite numbers" in said
    negative = results((11, 3, [5, 5, -2, 2], 0.5))
    assert "expected width and height >= 0" in convert(lay_file(tmp_path / "u.json", negative))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Ips 0.1 0.1 0.1 0.1 0.9", "'Ips'; expected an integer class number >= 0"),
        ("-1 0.1 0.1 0.1 0.1 0.9", "'-1'; expected an integer class number >= 0"),
        ("1.0 0.1 0.1 0.1 0.1 0.9", "'1.0'; expected an integer class number >= 0"),
        ("1 0.1 0.1 0.1", "4 values; expected <class>"),
        ("1 0.1 0.1 0.2 0.1 0.3 0.3", "7 values"),
        ("1 0,1 0.1 0.1 0.1 0.9", "'0,1', which is not a number"),
        ("1 0.1 0.1 0.1 0.1 1_0", "'1_0', which is not a number"),
        ("1 nan 0.1 0.1 0.1 0.9", "expected four finite numbers"),
    ],
)
def test_invalid_lines_of_yolo_text(convert, tmp_path, names, line, said):
    source = lay(tmp_path / "y", {"007.txt": f"1 0.5 0.5 0.1 0.1 0.9\n\n{line}\n"})
    found = convert(source, "--from", "yolo", "--names", names, "--missing-is-empty")
    assert "1 problem found" in found
    assert "007.txt line 3" in found
    assert said in found


def test_missing_confidences(convert, tmp_path, names):
    source = lay(tmp_path / "y", {"007.txt": "1 0.5 0.5 0.1 0.1 0.9\n1 0.5 0.5 0.1 0.1\n"})
    said = convert(source, "--names", names, "--missing-is-empty")
    assert "007.txt line 2, confidence: found NaN; expected a confidence for all boxes" in said
    source = lay(tmp_path / "z", {"007.txt": "1 0.5 0.5 0.1 0.1\n"})
    said = convert(source, "--names", names, "--missing-is-empty")
    assert "1 box without a confidence" in said
    assert "Ultralytics without save_conf" in said


def test_ambiguous_text_is_an_error(benchmark, convert, tmp_path):
    source = lay(tmp_path / "x", {"007.txt": "Ips typographus 1 10 10 20 20\n"})
    said = convert(source, "--missing-is-empty")
    assert "ground truth with class names that end in a number" in said
    assert "--scores or --no-scores" in said
    args = ("--benchmark-dir", benchmark, "--splits", "iid_test", "--missing-is-empty", "--scores")
    assert run(source, tmp_path / "out", "--to", "benchmark", *args).exception is None


# --- XML --------------------------------------------------------------------------------------

BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<annotation><filename>&b;</filename></annotation>
"""
FILE = """<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><annotation>&x;</annotation>"""


def voc(inner, size="<size><width>200</width><height>100</height></size>"):
    return f"<annotation><filename>007.jpg</filename>{size}{inner}</annotation>"


def voc_object(name="Ips typographus", box="xmin 1 ymin 2 xmax 3 ymax 4", more=""):
    words = box.split()
    tags = "".join(f"<{t}>{v}</{t}>" for t, v in zip(words[::2], words[1::2], strict=True))
    return f"<object><name>{name}</name>{more}<bndbox>{tags}</bndbox></object>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "DTDForbidden; expected XML without DTD and entities"),
        (FILE, "DTDForbidden"),
        ("<annotation>", "not|no element found"),
        ("", "no element found"),
        ("<html/>", "an HTML page"),
        ("<object/>", "<object>; expected <annotation>"),
        (voc(voc_object(name="")), "007.xml object 1: missing <name>"),
        (voc("<object><name>x</name></object>"), "object 1: missing xmin, ymin, xmax, ymax"),
        (voc(voc_object(box="xmin 1 ymin 2 xmax 3")), "object 1: missing ymax"),
        (
            voc(voc_object(box="xmin 1 ymin 2 xmax x ymax 4")),
            "bndbox/xmax: found 'x', which is not a number",
        ),
        (voc(voc_object(box="xmin 9 ymin 2 xmax 3 ymax 4")), "expected left <= right"),
        (voc(voc_object(more="<difficult>maybe</difficult>")), "'maybe'; expected 0 or 1"),
        (
            voc(voc_object(), "<size><width>400</width><height>100</height></size>"),
            "400 x 100 px; expected 200 x 100 px, the size in the benchmark (boxes of a resized "
            "image",
        ),
        (
            voc(voc_object(), "<size><width>100</width><height>200</height></size>"),
            "EXIF orientation; use --images-dir and --frame",
        ),
        (voc(voc_object(name="Ips typografus")), "did you mean 'Ips typographus'"),
    ],
)
def test_invalid_xml(convert, tmp_path, text, said):
    source = lay(tmp_path / "v", {"007.xml": text})
    found = convert(source, "--missing-is-empty", to=("--to", "coco"))
    assert "007" in found
    assert any(part in found for part in said.split("|"))


def test_the_name_of_the_xml_file_replaces_a_stale_filename(benchmark, tmp_path):
    text = voc(voc_object()).replace("007.jpg", "old.jpg")
    result = run(
        lay(tmp_path / "v", {"007.xml": text}), tmp_path / "out.json", "--to", "coco",
        "--benchmark-dir", benchmark, "--splits", "iid_test", "--missing-is-empty",
    )  # fmt: skip
    assert result.exception is None
    assert "<filename> different from the name of the file: 1" in result.output


# --- usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--to", "benchmark"), "require benchmark_dir and splits"),
        (("--to", "yolo", "--splits", "iid_test"), "splits requires benchmark_dir"),
        (("--to", "yolo", "--frame", "upright"), "frame requires images_dir"),
    ],
)
def test_options_that_require_other_options(tmp_path, args, said):
    source = lay_file(tmp_path / "r.json", results((11, 3, [1, 1, 2, 2], 0.5)))
    result = run(source, tmp_path / "out", *args)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)


def test_pipes_are_rejected(tmp_path):
    os.mkfifo(tmp_path / "r.json")
    folder = lay(tmp_path / "d", {"a.json": []})
    os.mkfifo(folder / "b.json")
    for source, name in ((tmp_path / "r.json", "coco-results"), (folder, "darkflow")):
        result = run(source, tmp_path / "out.json", "--from", name, "--to", "coco")
        assert isinstance(result.exception, InputError)
        assert ": a named pipe, not a regular file" in str(result.exception)


def test_missing_sources_and_sources_of_the_wrong_type(convert, tmp_path):
    assert "no such file" in convert(tmp_path / "none.json", error=UsageError)
    file = lay_file(tmp_path / "x.json", "[]")
    assert "expected a folder of YOLO" in convert(file, "--from", "yolo", error=UsageError)
    folder = lay(tmp_path / "f", {})
    said = convert(folder, "--from", "coco-results", error=UsageError)
    assert "expected a file of COCO results" in said
    for name in ("yolo", "voc-xml", "darkflow", "xyxy-text"):
        assert "no ." in convert(folder, "--from", name).replace("label file", ".txt")


def test_a_folder_that_is_not_empty_is_never_written_to(benchmark, tmp_path):
    source = lay_file(tmp_path / "r.json", results((11, 3, [1, 1, 2, 2], 0.5)))
    target = lay(tmp_path / "labels", {"old.txt": "0 0.5 0.5 1 1\n"})
    result = run(
        source, target, "--to", "yolo", "--benchmark-dir", benchmark, "--splits", "iid_test"
    )
    assert isinstance(result.exception, UsageError)
    assert "expected a new or empty folder" in str(result.exception)
    assert [p.name for p in target.iterdir()] == ["old.txt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels", "r.json"]


def test_unknown_ids(tmp_path):
    source = lay(tmp_path / "x", {"a.txt": "Ips typographus 0.9 1 1 2 2\n"})
    result = run(source, tmp_path / "r.json", "--to", "coco-results")
    said = str(result.exception)
    assert "images without ids; expected the benchmark and split" in said
    assert "classes without ids; expected the benchmark" in said
    result = run(source, tmp_path / "y", "--to", "yolo")
    assert "image 'a': no width and height" in str(result.exception)


def test_image_sizes_missing_from_the_annotations(tmp_path):
    images = {1: ("a.jpg", None, None), 2: ("b.jpg", 0, 0)}
    folder = write_benchmark(tmp_path / "b", images=images)
    source = lay(tmp_path / "y", {"a.txt": "0 0.5 0.5 1 1 0.9\n", "b.txt": ""})
    names_file = lay_file(tmp_path / "n.txt", "Ips typographus\n")
    result = run(
        source, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", folder, "--splits",
        "iid_test", "--names", names_file,
    )  # fmt: skip
    said = str(result.exception)
    assert "1 problem" in said  # b has no boxes, so its size is not required
    assert "image 'a.jpg': no width and height" in said
    assert "use --images-dir" in said


@pytest.mark.parametrize(
    "change", ["image", "class", "repeat_image", "repeat_class", "box", "none"]
)
def test_inconsistent_coco_annotations(tmp_path, change):
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "A"}],
        "annotations": [{"id": 5, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}],
    }
    note = coco["annotations"][0]
    if change == "image":
        note["image_id"] = 2
    elif change == "class":
        note["category_id"] = 2
    elif change == "repeat_image":
        coco["images"] *= 2
    elif change == "repeat_class":
        coco["categories"].append({"id": 2, "name": "A"})
    elif change == "box":
        note["bbox"] = [0, 0, 1]
    else:
        del coco["categories"]
    source = lay_file(tmp_path / "c.json", coco)
    result = run(source, tmp_path / "y", "--to", "yolo", "--from", "coco")
    said = {
        "image": "annotation 5, image_id: found image 2",
        "class": "annotation 5, category_id: found category 2",
        "repeat_image": "a duplicate of image 1, 'a.jpg'",
        "repeat_class": "a duplicate of category 2, 'A'",
        "box": "annotations record 0",
        "none": "no list of categories",
    }
    assert isinstance(result.exception, InputError)
    assert said[change] in str(result.exception)
