"""Text files of boxes: accepted variants, rejected lines, and messages."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.voc_files import of, score, write_folder

from benchmark_eval.core import safe_read
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.voc import read_boxes, text

BOX = "10 10 60 60"
TRUTH = {"a": [f"Ips typographus {BOX}"]}
FOUND = {"a": [f"Ips typographus 0.91 {BOX}"]}


def ground_truth(tmp_path, *lines):
    return read_boxes(write_folder(tmp_path / "gt", {"a": lines}), "ground truth")


def detections(tmp_path, *lines):
    return read_boxes(write_folder(tmp_path / "det", {"a": lines}), "detections")


def problems_of(tmp_path, truth=TRUTH, found=FOUND, **options):
    with pytest.raises(InputError) as caught:
        score(tmp_path, truth, found, **options)
    return caught.value.problems


# ------------------------------------------------------------------------- accepted


@pytest.mark.parametrize(
    "content",
    [
        f"Ips typographus 0.91 {BOX}\n",
        f"\ufeffIps typographus 0.91 {BOX}\n",
        f"Ips typographus 0.91 {BOX}\r\n\r\n",
        f"Ips typographus 0.91 {BOX}\r",
        f"Ips typographus 9.1e-01 {BOX}",
        f"Ips typographus .91 {BOX}",
        "Ips typographus 0.91 1e1 +10 60. 6.0E+1\n",
        f"\n   \n\tIps   typographus\t0.91   {BOX}   \n\n",
        f"Ips\u00a0typographus 0.91 {BOX}\n",
    ],
)
def test_accepted_variants_of_a_detection_line(tmp_path, content):  # field case FB41
    boxes, problems = read_boxes(write_folder(tmp_path / "det", {"a": content}), "detections")
    assert problems == []
    assert boxes.classes == ("Ips typographus",)
    assert boxes.confidence.tolist() == [0.91]
    assert boxes.corners.tolist() == [[10, 10, 60, 60]]
    assert score(tmp_path, TRUTH, {"a": content}).mAP == 1.0


def test_columns_of_ground_truth(tmp_path):
    folder = write_folder(
        tmp_path / "gt",
        {
            "b": ["x 1 2 3 4", "", "a b -1.5 0 3.25 4e0 difficult"],
            "a": "",
            "c": ["Boeing 737 1 2 3 4", "difficult 1 2 3 4", "7 1 2 3 4"],
        },
    )
    boxes, problems = read_boxes(folder, "ground truth")
    assert problems == []
    assert boxes.images == ("a", "b", "c")
    assert boxes.classes == ("7", "Boeing 737", "a b", "difficult", "x")
    assert boxes.image.tolist() == [1, 1, 2, 2, 2]
    assert [boxes.classes[label] for label in boxes.label] == [
        "x",
        "a b",
        "Boeing 737",
        "difficult",
        "7",
    ]
    assert boxes.line.tolist() == [1, 3, 1, 2, 3]
    assert boxes.corners.tolist()[1] == [-1.5, 0, 3.25, 4]
    assert boxes.difficult.tolist() == [False, True, False, False, False]


def test_class_names_are_compared_after_unicode_normalisation(tmp_path):
    truth = {"a": [f"scolyte \u00e9rod\u00e9 {BOX}"]}
    found = {"a": [f"scolyte e\u0301rode\u0301 0.9 {BOX}"]}
    assert score(tmp_path, truth, found).mAP == 1.0


def test_hidden_files_and_other_suffixes_are_ignored(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    (tmp_path / "gt" / "notes.md").write_text("no box")
    (tmp_path / "gt" / "._a.txt").write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "gt" / "more").mkdir()
    boxes, problems = read_boxes(tmp_path / "gt", "ground truth")
    assert (boxes.images, problems) == (("a",), [])


def test_the_suffix_is_case_insensitive(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    (tmp_path / "gt" / "a.txt").rename(tmp_path / "gt" / "b.TXT")
    assert read_boxes(tmp_path / "gt", "ground truth")[0].images == ("b",)


def test_an_empty_file_is_an_image_without_boxes(tmp_path):
    result = score(tmp_path, {**TRUTH, "b": ""}, {**FOUND, "b": ""})
    assert (result.mAP, result.n_images) == (1.0, 2)
    assert result.images_without_detections == ()


# ------------------------------------------------------------------------- rejected


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("Ips", "line-shape", "found 'Ips'; expected <class> <confidence> <left> <top>"),
        (f"0.9 {BOX}", "line-shape", "found '0.9 10 10 60 60'"),
        (f"Ips {BOX}", "line-shape", "missing confidence"),
        (f"Ips sp {BOX}", "line-shape", "missing confidence"),
        (f"Ips 0.9 {BOX} difficult", "line-shape", "ground truth among the detections"),
        ("Ips 0.9 10 10 60", "line-shape", "found 'Ips 0.9 10 10 60'"),
        ("Ips,0.9,10,10,60,60", "line-shape", "use spaces between numbers"),
        ("Ips 0,9 10 10 60 60", "line-shape", "use spaces between numbers"),
        ('{"class": "Ips"}', "line-shape", "JSON"),
        ("<annotation>", "line-shape", "XML"),
        ("Ips 0.9 1_0 10 60 60", "line-shape", "1_0"),
        ("Ips 0.9 ١٠ 10 60 60", "line-shape", "found"),
        ("Ips 0.9 0x1 10 60 60", "line-shape", "0x1"),
        ("Ips 0.9 ten 10 60 60", "line-shape", "ten"),
        ("1 2 0.9 10 10 60 60", "line-shape", "too many numbers"),
        ("Ips 0.8 0.9 10 10 60 60", "line-shape", "an extra confidence"),
        (f"Ips nan {BOX}", "not-finite", "confidence: found nan; expected a finite number"),
        (f"Ips -Inf {BOX}", "not-finite", "confidence: found -Inf"),
        ("Ips 0.9 10 infinity 60 60", "not-finite", "top: found infinity"),
        (f"Ips -0.1 {BOX}", "confidence", "found '-0.1'; expected a number in [0, 1]"),
        (f"Ips 91 {BOX}", "confidence", "a percentage, or a missing confidence"),
        (f"Ips 1e999 {BOX}", "confidence", "1e999"),
        ("Ips 0.9 10 10 1e10 60", "coordinate", "right: found '1e10'"),
        ("Ips 0.9 10 10 1e999 60", "coordinate", "right: found '1e999'"),
        ("Ips 0.9 60 10 10 60", "swapped-corners", "left, right: found left '60' and right '10'"),
        ("Ips 0.9 10 60 60 10", "swapped-corners", "top, bottom: found top '60' and bottom '10'"),
        (f"Ips\x00 0.9 {BOX}", "class-name", "class: found 'Ips\\x00' with a non-printable"),
        (f"Ips\u200b 0.9 {BOX}", "class-name", "'Ips\\u200b'"),
    ],
)
def test_invalid_detection_lines(tmp_path, line, kind, message):
    boxes, problems = detections(tmp_path, f"Ips 0.5 {BOX}", line)
    assert [problem.kind for problem in problems] == [kind]
    assert message in str(problems[0])
    assert str(problems[0]).startswith(f"{tmp_path / 'det' / 'a.txt'}, line 2")
    assert len(boxes) == 1


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (BOX, "line-shape", "expected <class> <left> <top> <right> <bottom> [difficult]"),
        ("difficult", "line-shape", "found 'difficult'"),
        (f"{BOX} difficult", "line-shape", "found"),
        (f"Ips {BOX} Difficult", "line-shape", "must be lowercase"),
        (f"Ips {BOX} hard", "line-shape", "hard"),
        (f"Ips 0.91 {BOX}", "line-shape", "detections among the ground truth"),
        (f"Ips 9.1e-1 {BOX} difficult", "line-shape", "detections among the ground truth"),
        (f"0 0.91 {BOX}", "line-shape", "too many numbers"),
        (f"Ips {BOX} 0", "swapped-corners", "a flag of 0 or 1 at the end of the line"),
        (f"Ips {BOX} 1", "swapped-corners", "use 'difficult' instead"),
        ("Ips 60 60 10 10", "swapped-corners", "width and height"),
        ("Ips nan 10 60 60", "not-finite", "left: found nan"),
    ],
)
def test_invalid_ground_truth_lines(tmp_path, line, kind, message):
    boxes, problems = ground_truth(tmp_path, f"Ips {BOX}", line)
    assert [problem.kind for problem in problems] == [kind]
    assert message in str(problems[0])
    assert "line 2" in str(problems[0])
    assert len(boxes) == 1


def test_long_lines_are_truncated_in_messages(tmp_path):
    _, problems = detections(tmp_path, "9" * 100_000, "x " * 100_000)
    assert [problem.kind for problem in problems] == ["line-shape"] * 2
    assert all(len(str(problem)) < 400 for problem in problems)


def test_all_problems_of_both_folders_are_reported(tmp_path):
    problems = problems_of(
        tmp_path,
        {"a": ["Ips 1 2 3"], "b": ["Ips 9 9 1 1", "Ips 1 1 9 9", "Ips 1 1 nan 9"]},
        {"a": ["Ips 2 1 1 9 9"], "z": [f"Ips 0.9 {BOX}"]},
    )
    assert [(p.kind, p.record) for p in problems] == [
        ("line-shape", "line 1"),
        ("swapped-corners", "line 1"),
        ("not-finite", "line 3"),
        ("confidence", "line 1"),
        ("no-ground-truth", "z.txt"),
    ]


def test_text_that_is_not_utf8(tmp_path):
    problems = problems_of(
        tmp_path,
        {"a": [f"x {BOX}"], "b": "one\ntwo\nscolyte \xe9rod\xe9".encode("latin-1")},
        {"a": f"Ips 0.9 {BOX}".encode("utf-16")},
    )
    assert [(p.kind, p.record) for p in problems] == [
        ("not-utf8", "line 3"),
        ("not-utf8", "line 1"),
    ]
    assert "byte 0xe9" in str(problems[0])
    assert "Latin-1" in str(problems[0])
    assert "UTF-16" in str(problems[1])


def test_invalid_utf8_after_a_byte_order_mark_is_located(tmp_path):
    problems = problems_of(tmp_path, {"a": b"\xef\xbb\xbfx 1 1 9 9\n\xe9rod\xe9 1 1 9 9"})
    assert [(p.kind, p.record) for p in problems] == [("not-utf8", "line 2")]
    assert problems[0].found == "the byte 0xe9, which is not UTF-8"


def test_unreadable_files(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    (tmp_path / "gt" / "b.txt").mkdir()
    (tmp_path / "gt" / "c.txt").symlink_to("nowhere")
    os.mkfifo(tmp_path / "gt" / "d.txt")
    problems = problems_of(tmp_path)
    assert [p.kind for p in problems] == ["unreadable"] * 3
    assert "b.txt: a folder" in str(problems[0])
    assert "c.txt: a link to nowhere, which does not exist" in str(problems[1])
    assert "d.txt: a named pipe" in str(problems[2])
    assert all(problem.expected == "a text file" for problem in problems)


def test_a_file_without_permission(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(safe_read, "open_input", refuse)  # root may read every file
    problems = problems_of(tmp_path)
    assert [p.kind for p in problems] == ["unreadable"] * 2
    assert "gt/a.txt: Permission denied; expected a text file" in str(problems[0])


def test_two_files_for_one_image(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    (tmp_path / "gt" / "a.TXT").write_text(f"Ips {BOX}")
    if len(list((tmp_path / "gt").iterdir())) == 1:
        pytest.skip("case-insensitive file system")
    problems = problems_of(tmp_path)
    assert [p.kind for p in problems] == ["duplicate-file"]
    assert "another file of the same image, a.TXT" in str(problems[0])


def test_a_file_name_with_non_printable_characters(tmp_path):
    write_folder(tmp_path / "gt", {**TRUTH, "new\nline": ""})
    assert "file-name" in [p.kind for p in problems_of(tmp_path)]


def test_empty_folders(tmp_path):
    (tmp_path / "det").mkdir()
    (tmp_path / "det" / "a.json").touch()
    problems = problems_of(tmp_path, {}, {})
    assert [p.kind for p in problems] == ["empty-folder", "empty-folder"]
    assert "gt: no .txt file; expected one text file per image" in str(problems[0])
    assert "folder with .json files" in str(problems[1])


def test_ground_truth_without_any_object(tmp_path):
    assert [p.kind for p in problems_of(tmp_path, {"a": "", "b": ""}, FOUND)] == ["no-object"]


def test_a_missing_folder(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    with pytest.raises(UsageError, match="No such file or directory; expected a folder"):
        read_boxes(tmp_path / "nothing", "detections")
    with pytest.raises(UsageError, match="Not a directory"):
        read_boxes(tmp_path / "gt" / "a.txt", "detections")


def test_all_detection_files_without_ground_truth_are_reported(tmp_path):
    problems = problems_of(tmp_path, TRUTH, {**FOUND, "b": "", "c": ""})
    assert [(p.kind, p.record) for p in problems] == [
        ("no-ground-truth", "b.txt"),
        ("no-ground-truth", "c.txt"),
    ]
    assert problems[0].cause == ""
    elsewhere = problems_of(tmp_path / "x", TRUTH, {"b": FOUND["a"]})
    assert "no file name in common" in str(elsewhere[0])


# ------------------------------------------------------------------------ coordinates


def test_normalised_coordinates_are_rejected_as_pixels(tmp_path):
    truth = {"a": ["x 0.1 0.1 0.5 0.5"]}
    found = {"a": ["x 0.9 0.1 0.1 0.5 0.4"]}
    problems = problems_of(tmp_path, truth, found)
    assert [p.kind for p in problems] == ["normalised-coordinates"] * 2
    assert "coordinates between 0.1 and 0.5 in all lines; expected pixel coordinates" in str(
        problems[0]
    )
    assert score(tmp_path, truth, found, coordinates="continuous").mAP == 1.0  # IoU 0.75


def test_integer_coordinates_from_0_to_1_are_pixels(tmp_path):
    assert score(tmp_path, {"a": ["x 0 0 1 1"]}, {"a": ["x 0.9 0 0 1 0"]}).mAP == 1.0


def test_non_integer_coordinates_under_the_pixel_rule_are_noted(tmp_path):
    truth = {"a": ["x 0 0 9.5 9", "x 50 0 59 9"]}
    found = {"a": ["x 0.9 0 0 9.5 9"]}
    notes = score(tmp_path, truth, found).notes
    assert len(notes) == 1
    assert "1 object and 1 detection with non-integer coordinates" in notes[0]
    assert score(tmp_path, truth, found, coordinates="continuous").notes == ()


def test_objects_without_area_are_invalid_in_continuous_coordinates(tmp_path):
    truth = {"a": ["x 0 0 9 9", "x 5 5 5 9"]}
    found = {"a": ["x 0.9 0 0 9 9", "x 0.8 3 3 3 3"]}
    (problem,) = problems_of(tmp_path, truth, found, coordinates="continuous")
    assert (problem.kind, problem.record) == ("no-area", "line 2")
    assert problem.file.endswith("a.txt")
    assert score(tmp_path, truth, found).mAP == 0.5
    truth = {"a": ["x 0 0 9 9"]}
    result = score(tmp_path, truth, found, coordinates="continuous")
    assert of(result, "x").n_false_positives == 1


# ---------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou": 0}, "iou must be in (0, 1], got 0"),
        ({"iou": 50}, "a percentage"),
        ({"iou": float("nan")}, "iou must be in (0, 1], got nan"),
        (
            {"class_iou": {"Ips typographus": 1.5}},
            "iou of 'Ips typographus' must be in (0, 1], got 1.5",
        ),
        ({"class_iou": {"Ips typografus": 0.5}}, "did you mean 'Ips typographus'?"),
        ({"class_iou": {"Ips typographus": 0.5}, "ignore": ["Ips  typographus"]}, "one of the two"),
        ({"ignore": ["x\udcff"]}, "class 'x\\udcff': found a non-printable character"),
        ({"class_iou": {"x\u200b": 0.5}}, "found a non-printable character"),
        ({"coordinates": "yolo"}, "coordinates must be 'pixel' or 'continuous', got 'yolo'"),
    ],
)
def test_invalid_options(tmp_path, options, message):
    with pytest.raises(UsageError) as caught:
        score(tmp_path, TRUTH, FOUND, **options)
    assert message in str(caught.value)


def test_iou_threshold_of_a_class_without_ground_truth(tmp_path):
    with pytest.raises(UsageError, match="no such class in the ground truth"):
        score(tmp_path, TRUTH, {"a": [f"x 0.9 {BOX}"]}, class_iou={"x": 0.5})


def test_class_names_that_differ_only_in_case_are_noted(tmp_path):
    result = score(tmp_path, TRUTH, {"a": [f"ips_typographus 0.9 {BOX}"]})
    assert result.mAP == 0.0
    assert any(
        "'ips_typographus' of the detections and class 'Ips typographus'" in note
        for note in result.notes
    )


WORDS = st.sampled_from(
    ["Ips", "0.9", "1", "20", "-3", "1e1", "nan", "1_0", "\u0661", "difficult", ",", "x\u200b", ""]
) | st.text(max_size=4)
GAPS = st.sampled_from([" ", "  ", "\t", "\u00a0", "\x1f", "\x85"])


@pytest.mark.slow  # property test
@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(GAPS, WORDS), max_size=9), st.sampled_from(["ground truth", "detections"])
)
def test_every_line_gives_a_box_or_a_problem(words, kind):
    line = "".join(gap + word for gap, word in words).replace("\r", "").replace("\n", "")
    reader = text._Reader(kind)
    taken = line.strip() != "" and reader._add(0, 1, line)
    if taken:
        boxes = reader.boxes(("a",))
        (name,) = boxes.classes
        assert name == text.class_name(name) != ""
        assert name.isprintable()
        assert np.isfinite(boxes.corners).all()
        assert 0 <= boxes.confidence[0] <= 1
    elif line.strip():
        problem = text._explain(line, kind, "a.txt", "line 1")
        assert problem.found
        assert problem.expected
        assert len(str(problem)) < 500


# ------------------------------------------------------------------------- other formats


KITTI = "Car 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 1.56"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (KITTI, "KITTI labels"),
        (f"{KITTI} 0.9", "KITTI labels"),
        ("1,1,794.2,247.5,71.2,174.8,-1,-1,-1,-1", "MOT tracks"),
        ("1 1 794.2 247.5 71.2 174.8 1 -1 -1 -1", "MOT tracks"),
        ("377,117,463,117,465,130,378,130,Genaxis Theatre", "ICDAR text"),
        ('38, 43, 920, 215, "Tiredness"', "ICDAR text"),
    ],
)
@pytest.mark.parametrize("read", [ground_truth, detections])
def test_lines_of_formats_that_are_not_read_are_named(tmp_path, read, line, name):
    """KITTI lines would be valid ground truth of a class "Car 0.00 0 -1.57 ..."."""
    boxes, problems = read(tmp_path, line)
    assert len(boxes) == 0
    assert [problem.kind for problem in problems] == ["line-shape"]
    assert f"{name}, not read: export COCO, YOLO or Pascal VOC instead" in str(problems[0])


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        ("a.json", '{"imagePath": "a.jpg", "shapes": []}', "LabelMe JSON"),
        ("a.xml", '<annotations><image id="0" name="a.jpg"/></annotations>', "CVAT XML"),
    ],
)
def test_folders_of_formats_that_are_not_read_are_named(tmp_path, file, content, name):
    (tmp_path / "det").mkdir()
    (tmp_path / "det" / file).write_text(content)
    (problem,) = problems_of(tmp_path, TRUTH, {})
    assert f"; {name} is not read: export COCO" in str(problem)


def test_text_files_in_subfolders_are_not_read_silently(tmp_path):
    write_folder(tmp_path / "det" / "part", {"b": "Ips typographus 0.9 1 1 2 2\n"})
    result = score(tmp_path, {**TRUTH, "b": "Ips typographus 1 1 2 2\n"}, FOUND)
    assert "1 text file in subfolders of the detections not read (part/b.txt)" in result.notes
    write_folder(tmp_path / "x" / "det" / "part", {"b": ""})
    (problem,) = problems_of(tmp_path / "x", TRUTH, {})
    assert "text files only in subfolders, such as part/b.txt" in str(problem)


def test_composed_and_decomposed_file_names_are_the_same_image(tmp_path):
    """macOS decomposes umlauts in file names."""
    result = score(tmp_path, {"K\u00e4fer": TRUTH["a"]}, {"Ka\u0308fer": FOUND["a"]})
    assert result.mAP == 1
