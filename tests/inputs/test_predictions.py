"""Reading prediction files: pieces, borders, strictness, dropping."""

import gzip
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layout import write_split, write_taxonomy

from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs import prediction_decoder as module
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.prediction_files import predictions_file
from benchmark_eval.inputs.predictions import read_predictions


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    write_split(folder, "iid_test", [[3, 1, [0, 0, 9, 9]], [5, 2, [0, 0, 9, 9]]], images=[5, 3, 9])
    write_split(folder, "semantic_ood", [[1, 101, [0, 0, 9, 9]]])
    write_split(folder, "train", [[1, 7, [0, 0, 9, 9]]])
    write_taxonomy(folder, [1, 2, 7, 101])
    return load_benchmark(folder)


def read(benchmark, tmp_path, text, split="iid_test", **options):
    path = tmp_path / f"{split}_predictions.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_predictions(path, benchmark, split, **options)


def record(**changes):
    return {"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5} | changes


def test_columns_are_in_file_order_and_point_at_rows(benchmark, tmp_path):
    rows = [record(image_id=9, score=1), record(category_id=2, bbox=[0.5, 0, 1, 1], score=0)]
    found = read(benchmark, tmp_path, json.dumps(rows))
    assert found.image.tolist() == [2, 0]  # image ids 3, 5, 9
    assert found.category.tolist() == [0, 1]
    assert found.boxes.tolist() == [[1, 2, 3, 4], [0.5, 0, 1, 1]]
    assert found.score.tolist() == [1, 0]


def test_digest_is_that_of_the_bytes_on_disk(benchmark, tmp_path):
    text = json.dumps([record()]).encode()
    found = read(benchmark, tmp_path, text)
    assert found.sha256 == hashlib.sha256(text).hexdigest()
    packed = tmp_path / "packed" / "iid_test_predictions.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(text))
    again = read_predictions(packed, benchmark, "iid_test")
    assert again.boxes.tolist() == found.boxes.tolist()
    assert again.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


EXTRA = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('},{ []"\\x', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('a},{"', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
BOX = st.tuples(*[st.floats(0, 1e6, width=32)] * 4).map(list)
RECORD = st.builds(
    lambda image, category, box, score, extra: {
        "x": extra,
        "image_id": image,
        "category_id": category,
        "bbox": box,
        "score": score,
        "y": extra,
    },
    st.sampled_from([3, 5, 9]),
    st.sampled_from([1, 2]),
    BOX,
    st.floats(0, 1),
    EXTRA,
)


@pytest.mark.slow  # property test
@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(RECORD, max_size=12),
    piece=st.integers(1, 300),
    indent=st.sampled_from([None, 0, 3]),
)
def test_any_piece_size_gives_the_same_columns(benchmark, tmp_path_factory, rows, piece, indent):
    """Cuts inside nested lists and texts must be noticed, never give other records."""
    folder = tmp_path_factory.mktemp("pieces")
    before = module.PIECE
    module.PIECE = piece
    try:
        found = read(benchmark, folder, json.dumps(rows, indent=indent))
    finally:
        module.PIECE = before
    assert found.score.tolist() == [row["score"] for row in rows]
    assert found.boxes.tolist() == [row["bbox"] for row in rows]
    assert benchmark.split("iid_test").image_ids[found.image].tolist() == [
        row["image_id"] for row in rows
    ]


def test_integral_floats_are_ids_and_a_byte_order_mark_is_skipped(benchmark, tmp_path):
    text = "\ufeff" + json.dumps([record(image_id=3.0, category_id=2.0)])
    found = read(benchmark, tmp_path, text)
    assert (found.image.tolist(), found.category.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_id": "3"}, "image_id must be an integer of this split"),
        ({"image_id": 3.5}, "image_id must be an integer"),
        ({"image_id": True}, "image_id must be an integer"),
        ({"image_id": 4}, "image_id 4"),
        ({"image_id": 2**70}, "image_id must be an integer"),
        ({"category_id": None}, "category_id must be an integer"),
        ({"category_id": 0}, "0-based"),
        ({"category_id": 999}, "category_id 999 not in benchmark"),
        ({"bbox": [1, 2, 3]}, "four numbers"),
        ({"bbox": {"x": 1}}, "four numbers"),
        ({"bbox": [1, 2, "3", 4]}, "four numbers"),
        ({"bbox": [1, float("nan"), 3, 4]}, "bbox not finite"),
        ({"bbox": [1, 2, float("inf"), 4]}, "bbox not finite"),
        ({"bbox": [1, 2, -3, 4]}, "w >= 0"),
        ({"score": "0.5"}, "score must be a number"),
        ({"score": None}, "score must be a number"),
        ({"score": 1.0000001}, "outside [0,1]"),
        ({"score": -1e-9}, "outside [0,1]"),
        ({"score": 55}, "percent"),
        ({"score": float("nan")}, "number in [0, 1]"),
        ({"score": 10**400}, "number in [0, 1]"),
        ({"bbox": [1, 2, 10**400, 4]}, "bbox not finite"),
        ({"image_id": -(10**400)}, "image_id must be an integer of this split"),
        ({"category_id": 10**400}, "category_id must be an integer"),
        ({"image_id": float(2**53)}, "image_id must be an integer of this split"),
        ({"image_id": -float(2**53)}, "image_id must be an integer of this split"),
        ({"image_id": 2**53}, "image_id 9007199254740992"),
        ({"image_id": float(2**53 - 1)}, "image_id 9007199254740991"),
    ],
)
def test_every_kind_of_invalid_record_is_told_with_its_place(benchmark, tmp_path, change, words):
    text = json.dumps([record(), record(**change), record()])
    with pytest.raises(InputError) as fault:
        read(benchmark, tmp_path, text)
    assert len(fault.value.problems) == 1
    assert fault.value.problems[0].record == "record 1"
    assert words in str(fault.value)
    dropped = read(benchmark, tmp_path, text, on_invalid="drop")
    assert len(dropped) == 2
    assert sum(dropped.dropped.values()) == 1


@pytest.mark.parametrize("name", ["image_id", "category_id", "score", "bbox"])
def test_an_integer_of_5000_digits_is_a_fault_of_its_record(benchmark, tmp_path, name):
    long = "-" + "1" * 5000
    text = json.dumps([record(), record(**{name: "LONG"}), record()])
    text = text.replace('"LONG"', f"[1, {long}, 3, 4]" if name == "bbox" else long)
    with pytest.raises(InputError) as fault:
        read(benchmark, tmp_path, text)
    (problem,) = fault.value.problems
    assert (problem.record, problem.field) == ("record 1", name)
    assert "an integer of 5,000 digits" in problem.found
    assert len(read(benchmark, tmp_path, text, on_invalid="drop")) == 2


def test_all_faults_of_a_file_come_together_in_file_order(benchmark, tmp_path):
    rows = [record(score=2), "x", record(bbox=[0, 0, -1, 1], image_id=77), record(category_id=1.5)]
    with pytest.raises(InputError) as fault:
        read(benchmark, tmp_path, json.dumps(rows))
    told = [(p.record, p.field) for p in fault.value.problems]
    assert told == [
        ("record 0", "score"),
        ("record 1", ""),
        ("record 2", "image_id"),
        ("record 2", "bbox"),
        ("record 3", "category_id"),
    ]
    dropped = read(benchmark, tmp_path, json.dumps([*rows, record()]), on_invalid="drop")
    assert len(dropped) == 1
    assert sum(dropped.dropped.values()) == 4  # a record counts once, under its first fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON list"),
        ("[", "half-written"),
        ('[{"image_id": 3,', "half-written"),
        ("[]]", "JSON"),
        ('{"annotations": [], "images": []}', "whole COCO file"),
        ("3", "JSON int"),
        (b"\xff\xfe[]", "JSON list"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["error", "drop"])
def test_a_file_that_is_no_list_is_an_error_in_either_mode(
    benchmark, tmp_path, text, words, on_invalid
):
    with pytest.raises(InputError, match="iid_test_predictions") as fault:
        read(benchmark, tmp_path, text, on_invalid=on_invalid)
    assert words in str(fault.value)


def test_an_empty_list_is_a_model_that_found_nothing(benchmark, tmp_path):
    assert len(read(benchmark, tmp_path, " [ ] \n")) == 0


def test_categories_that_the_split_does_not_list_are_left_out_on_named_splits_only(
    benchmark, tmp_path
):
    rows = json.dumps([record(category_id=7), record()])
    found = read(benchmark, tmp_path, rows)
    assert (len(found), found.n_out_of_vocabulary) == (1, 1)
    rows = json.dumps([record(image_id=1, category_id=7)])
    found = read(benchmark, tmp_path, rows, split="semantic_ood")
    assert (len(found), found.n_out_of_vocabulary) == (1, 0)


def test_one_file_must_be_there_and_only_one(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        predictions_file(tmp_path / "absent", "iid_test")
    with pytest.raises(InputError, match="no such file"):
        predictions_file(tmp_path, "iid_test")
    (tmp_path / "iid_test_predictions.json").write_text("[]")
    assert predictions_file(tmp_path, "iid_test").suffix == ".json"
    (tmp_path / "iid_test_predictions.json.gz").write_bytes(gzip.compress(b"[]"))
    with pytest.raises(InputError, match="only one of the two"):
        predictions_file(tmp_path, "iid_test")


def test_a_damaged_gzip_file_is_told(benchmark, tmp_path):
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(gzip.compress(json.dumps([record()] * 50).encode())[:-9])
    with pytest.raises(InputError, match="truncated or damaged gzip"):
        read_predictions(path, benchmark, "iid_test")


def test_a_split_without_images_knows_no_image_id(tmp_path):
    write_split(tmp_path, "iid_test", [], images=[], listed=[1])
    write_taxonomy(tmp_path, [1])
    empty = load_benchmark(tmp_path)
    assert len(read(empty, tmp_path, "[]")) == 0
    with pytest.raises(InputError, match="its ids: none"):
        read(empty, tmp_path, json.dumps([record()]))
    assert np.array_equal(empty.split("iid_test").image_ids, [])


def test_a_file_full_of_one_fault_is_counted_and_not_listed_to_the_end(benchmark, tmp_path):
    rows = [record(score=50)] * 5000 + [record(image_id=4)]
    with pytest.raises(InputError) as fault:
        read(benchmark, tmp_path, json.dumps(rows))
    assert sum(problem.times for problem in fault.value.problems) == 5001
    assert len(fault.value.problems) == module.MAX_LISTED + 2
    text = str(fault.value)
    assert text.startswith("5,001 problems found")
    assert "5,000 problems of kind 'score-range' in all" in text
    assert "record 5000, image_id" in text
    assert len(text.splitlines()) == 1 + 3 + 1 + 1


def test_ids_from_a_table_of_floats_are_read_by_the_quick_way(benchmark, tmp_path, monkeypatch):
    rows = [record(image_id=9.0, category_id=2.0), record(image_id=3, category_id=1.0)]
    monkeypatch.setattr(module, "_tolerant_columns", None)  # not called
    found = read(benchmark, tmp_path, json.dumps(rows))
    assert (found.image.tolist(), found.category.tolist()) == ([2, 0], [1, 0])
    assert found.sha256 == hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@pytest.mark.parametrize("value", [3.5, 2.0**53, -0.5, 1e300])
def test_a_float_that_is_no_id_is_told(benchmark, tmp_path, value):
    with pytest.raises(InputError, match="record 1, image_id"):
        read(benchmark, tmp_path, json.dumps([record(image_id=3.0), record(image_id=value)]))


@pytest.mark.parametrize("box", [[1e308, 0, 1e308, 1], [0, 0, 1e200, 1e200]])
@pytest.mark.filterwarnings("error")
def test_a_box_whose_corner_or_area_overflows_is_invalid(benchmark, tmp_path, box):
    with pytest.raises(InputError, match="record 0, bbox"):
        read(benchmark, tmp_path, json.dumps([record(bbox=box)]))


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_the_smallest_and_the_largest_id_are_ids_on_either_way_of_reading(
    benchmark, tmp_path, number
):
    for other in (record(), record(bbox=None)):  # the second is read fault by fault
        with pytest.raises(InputError) as fault:
            read(benchmark, tmp_path, json.dumps([record(category_id=number), other]))
        assert fault.value.problems[0].kind == "category-id-unknown"


@pytest.mark.parametrize("blank", ["\f", "\v", "\x1c", "\u00a0"])
def test_only_blanks_of_json_stand_between_records(benchmark, tmp_path, blank):
    text = json.dumps([record(), record()]).replace("}, {", f"}},{blank}{{")
    with pytest.raises(InputError, match="a JSON list of detections"):
        read(benchmark, tmp_path, text)


def test_a_packed_file_is_digested_as_it_is_unpacked(benchmark, tmp_path):
    """Two members and what stands behind them: the digest is that of all bytes stored."""
    text = json.dumps([record()] * 3).encode()
    packed = gzip.compress(text[:20]) + gzip.compress(text[20:]) + bytes(700)
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(packed)
    found = read_predictions(path, benchmark, "iid_test")
    assert len(found) == 3
    assert found.sha256 == hashlib.sha256(packed).hexdigest()
    dropped = read_predictions(path, benchmark, "iid_test", "drop")
    assert dropped.sha256 == found.sha256
