"""Reading prediction files: decoding in pieces, validation, dropping invalid records."""

import gzip
import hashlib
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layout import write_split, write_taxonomy

from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs import prediction_decoder as module
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.config import normalise_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.prediction_files import find_prediction_files, predictions_file
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


def test_columns_are_in_file_order_with_rows_of_images_and_categories(benchmark, tmp_path):
    rows = [record(image_id=9, score=1), record(category_id=2, bbox=[0.5, 0, 1, 1], score=0)]
    found = read(benchmark, tmp_path, json.dumps(rows))
    assert found.image.tolist() == [2, 0]  # image ids 3, 5, 9
    assert found.category.tolist() == [0, 1]
    assert found.boxes.tolist() == [[1, 2, 3, 4], [0.5, 0, 1, 1]]
    assert found.score.tolist() == [1, 0]


def test_digest_covers_the_bytes_on_disk(benchmark, tmp_path):
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
def test_every_piece_size_gives_the_same_columns(benchmark, tmp_path_factory, rows, piece, indent):
    """Splits inside nested lists and strings are detected and never give other records."""
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


def test_integral_floats_are_valid_ids_and_a_byte_order_mark_is_skipped(benchmark, tmp_path):
    text = "\ufeff" + json.dumps([record(image_id=3.0, category_id=2.0)])
    found = read(benchmark, tmp_path, text)
    assert (found.image.tolist(), found.category.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_id": "3"}, "image_id: found"),
        ({"image_id": 3.5}, "expected an integer"),
        ({"image_id": True}, "expected an integer"),
        ({"image_id": 4}, "image_id 4"),
        ({"image_id": 2**70}, "expected an integer"),
        ({"category_id": None}, "found null; expected an integer"),
        ({"category_id": 0}, "0-based"),
        ({"category_id": 999}, "category_id 999 not in benchmark"),
        ({"bbox": [1, 2, 3]}, "four numbers"),
        ({"bbox": {"x": 1}}, "four numbers"),
        ({"bbox": [1, 2, "3", 4]}, "four numbers"),
        ({"bbox": [1, float("nan"), 3, 4]}, "bbox not finite"),
        ({"bbox": [1, 2, float("inf"), 4]}, "bbox not finite"),
        ({"bbox": [1, 2, -3, 4]}, "w >= 0"),
        ({"score": "0.5"}, "expected a number in [0, 1]"),
        ({"score": None}, "found null; expected a number in [0, 1]"),
        ({"score": 1.0000001}, "expected a number in [0, 1]"),
        ({"score": -1e-9}, "found -1e-09; expected a number in [0, 1]"),
        ({"score": 55}, "percent"),
        ({"score": float("nan")}, "number in [0, 1]"),
        ({"score": 10**400}, "number in [0, 1]"),
        ({"bbox": [1, 2, 10**400, 4]}, "bbox not finite"),
        ({"image_id": -(10**400)}, "image_id: found"),
        ({"category_id": 10**400}, "category_id: found"),
        ({"image_id": float(2**53)}, "image_id: found"),
        ({"image_id": -float(2**53)}, "image_id: found"),
        ({"image_id": 2**53}, "image_id 9007199254740992"),
        ({"image_id": float(2**53 - 1)}, "image_id 9007199254740991"),
    ],
)
def test_each_kind_of_invalid_record_is_reported_with_its_position(
    benchmark, tmp_path, change, words
):
    text = json.dumps([record(), record(**change), record()])
    with pytest.raises(InputError) as error:
        read(benchmark, tmp_path, text)
    assert len(error.value.problems) == 1
    assert error.value.problems[0].record == "record 1"
    assert words in str(error.value)
    dropped = read(benchmark, tmp_path, text, on_invalid="drop")
    assert len(dropped) == 2
    assert sum(dropped.dropped.values()) == 1


@pytest.mark.parametrize("name", ["image_id", "category_id", "score", "bbox"])
def test_an_integer_of_5000_digits_is_a_problem_of_its_record(benchmark, tmp_path, name):
    long = "-" + "1" * 5000
    text = json.dumps([record(), record(**{name: "LONG"}), record()])
    text = text.replace('"LONG"', f"[1, {long}, 3, 4]" if name == "bbox" else long)
    with pytest.raises(InputError) as error:
        read(benchmark, tmp_path, text)
    (problem,) = error.value.problems
    assert (problem.record, problem.field) == ("record 1", name)
    assert "an integer of 5,000 digits" in problem.found
    assert len(read(benchmark, tmp_path, text, on_invalid="drop")) == 2


def test_all_problems_of_a_file_are_reported_in_file_order(benchmark, tmp_path):
    rows = [record(score=2), "x", record(bbox=[0, 0, -1, 1], image_id=77), record(category_id=1.5)]
    with pytest.raises(InputError) as error:
        read(benchmark, tmp_path, json.dumps(rows))
    reported = [(p.record, p.field) for p in error.value.problems]
    assert reported == [
        ("record 0", "score"),
        ("record 1", ""),
        ("record 2", "image_id"),
        ("record 2", "bbox"),
        ("record 3", "category_id"),
    ]
    dropped = read(benchmark, tmp_path, json.dumps([*rows, record()]), on_invalid="drop")
    assert len(dropped) == 1
    assert sum(dropped.dropped.values()) == 4  # a record counts once, under its first problem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON list"),
        ("[", "truncated or damaged"),
        ('[{"image_id": 3,', "truncated or damaged"),
        ("[]]", "JSON"),
        ('{"annotations": [], "images": []}', "COCO annotation file"),
        ("3", "found the number 3"),
        ("null", "found the JSON text null"),
        ("true", "found the JSON text true"),
        ('"x"', 'found the JSON string "x"'),
        ("{}", "found {}"),
        (b"\xff\xfe[]", "JSON list"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["error", "drop"])
def test_a_file_that_is_not_a_list_is_an_error_in_both_modes(
    benchmark, tmp_path, text, words, on_invalid
):
    with pytest.raises(InputError, match="iid_test_predictions") as error:
        read(benchmark, tmp_path, text, on_invalid=on_invalid)
    assert words in str(error.value)


def test_an_empty_list_is_valid(benchmark, tmp_path):
    assert len(read(benchmark, tmp_path, " [ ] \n")) == 0


def test_unlisted_categories_are_out_of_vocabulary_on_species_splits_only(benchmark, tmp_path):
    rows = json.dumps([record(category_id=7), record()])
    found = read(benchmark, tmp_path, rows)
    assert (len(found), found.n_out_of_vocabulary) == (1, 1)
    rows = json.dumps([record(image_id=1, category_id=7)])
    found = read(benchmark, tmp_path, rows, split="semantic_ood")
    assert (len(found), found.n_out_of_vocabulary) == (1, 0)


def test_exactly_one_prediction_file_is_required(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        predictions_file(tmp_path / "absent", "iid_test")
    with pytest.raises(InputError, match="no such file"):
        predictions_file(tmp_path, "iid_test")
    (tmp_path / "iid_test_predictions.json").write_text("[]")
    assert predictions_file(tmp_path, "iid_test").suffix == ".json"
    (tmp_path / "iid_test_predictions.json.gz").write_bytes(gzip.compress(b"[]"))
    with pytest.raises(InputError, match="only one of the two"):
        predictions_file(tmp_path, "iid_test")


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({}, "missing-predictions"),
        ({".json": b"[]", ".json.gz": b""}, "ambiguous-predictions"),
        ({".json": b""}, "empty-predictions"),
        ({".json.gz": b""}, "empty-predictions"),
    ],
)
def test_evaluation_and_sweep_report_the_same_problem_with_a_prediction_file(tmp_path, files, kind):
    for suffix, content in files.items():
        (tmp_path / f"iid_test_predictions{suffix}").write_bytes(content)
    with pytest.raises(InputError) as error:
        predictions_file(tmp_path, "iid_test")
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("model_name,regime,k_or_p,seed,predictions_dir\nm,global_uniform,1,0,.\n")
    (entry,) = read_manifest(manifest).models
    config = normalise_config({"splits": ["iid_test"]})
    paths, (problem,) = find_prediction_files(config, entry)
    assert paths == []
    (other,) = error.value.problems
    assert problem.kind == other.kind == kind
    assert (problem.file, problem.expected) == (other.file, other.expected)


def test_a_pipe_is_not_an_empty_prediction_file(benchmark, tmp_path):
    os.mkfifo(tmp_path / "iid_test_predictions.json")
    path = predictions_file(tmp_path, "iid_test")
    with pytest.raises(InputError, match="a named pipe"):
        read_predictions(path, benchmark, "iid_test")


def test_a_file_that_is_compressed_twice_is_reported(benchmark, tmp_path):
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"[]")))
    with pytest.raises(InputError) as error:
        read_predictions(path, benchmark, "iid_test")
    (problem,) = error.value.problems
    assert problem.found == "gzip data in a gzip file"
    assert problem.cause == "compressed twice: unpack it once"


def test_a_damaged_gzip_file_is_reported(benchmark, tmp_path):
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(gzip.compress(json.dumps([record()] * 50).encode())[:-9])
    with pytest.raises(InputError, match="truncated or damaged gzip"):
        read_predictions(path, benchmark, "iid_test")


def test_every_image_id_is_unknown_in_a_split_without_images(tmp_path):
    write_split(tmp_path, "iid_test", [], images=[], listed=[1])
    write_taxonomy(tmp_path, [1])
    empty = load_benchmark(tmp_path)
    assert len(read(empty, tmp_path, "[]")) == 0
    with pytest.raises(InputError, match=r"an image id of iid_test \(none\)"):
        read(empty, tmp_path, json.dumps([record()]))
    assert np.array_equal(empty.split("iid_test").image_ids, [])


def test_problems_beyond_the_limit_are_counted(benchmark, tmp_path):
    rows = [record(score=50)] * 5000 + [record(image_id=4)]
    with pytest.raises(InputError) as error:
        read(benchmark, tmp_path, json.dumps(rows))
    assert sum(problem.times for problem in error.value.problems) == 5001
    assert len(error.value.problems) == module.MAX_LISTED + 2
    text = str(error.value)
    assert text.startswith("5,001 problems found")
    assert "5,000 problems of kind 'score-range' in all" in text
    assert "record 5000, image_id" in text
    assert len(text.splitlines()) == 1 + 3 + 1 + 1


def test_ids_written_as_floats_are_read_by_the_typed_decoder(benchmark, tmp_path, monkeypatch):
    rows = [record(image_id=9.0, category_id=2.0), record(image_id=3, category_id=1.0)]
    monkeypatch.setattr(module, "_tolerant_columns", None)  # not called
    found = read(benchmark, tmp_path, json.dumps(rows))
    assert (found.image.tolist(), found.category.tolist()) == ([2, 0], [1, 0])
    assert found.sha256 == hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@pytest.mark.parametrize("value", [3.5, 2.0**53, -0.5, 1e300])
def test_a_float_that_is_not_an_id_is_reported(benchmark, tmp_path, value):
    with pytest.raises(InputError, match="record 1, image_id"):
        read(benchmark, tmp_path, json.dumps([record(image_id=3.0), record(image_id=value)]))


@pytest.mark.parametrize("box", [[1e308, 0, 1e308, 1], [0, 0, 1e200, 1e200]])
@pytest.mark.filterwarnings("error")
def test_a_box_whose_corner_or_area_overflows_is_invalid(benchmark, tmp_path, box):
    """The numbers are finite, so the message names what is not."""
    with pytest.raises(InputError, match="record 0, bbox") as error:
        read(benchmark, tmp_path, json.dumps([record(bbox=box)]))
    (problem,) = error.value.problems
    assert problem.expected.startswith("numbers whose right and bottom edges")
    assert problem.cause == "coordinates far beyond any image"


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_the_smallest_and_largest_64_bit_ids_are_accepted_by_both_decoders(
    benchmark, tmp_path, number
):
    for other in (record(), record(bbox=None)):  # the second forces the tolerant pass
        with pytest.raises(InputError) as error:
            read(benchmark, tmp_path, json.dumps([record(category_id=number), other]))
        assert error.value.problems[0].kind == "category-id-unknown"


@pytest.mark.parametrize("blank", ["\f", "\v", "\x1c", "\u00a0"])
def test_only_json_whitespace_is_allowed_between_records(benchmark, tmp_path, blank):
    text = json.dumps([record(), record()]).replace("}, {", f"}},{blank}{{")
    with pytest.raises(InputError, match="a JSON list of detections"):
        read(benchmark, tmp_path, text)


def test_digest_of_a_gzip_file_covers_all_stored_bytes(benchmark, tmp_path):
    """Two members and trailing zeros."""
    text = json.dumps([record()] * 3).encode()
    packed = gzip.compress(text[:20]) + gzip.compress(text[20:]) + bytes(700)
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(packed)
    found = read_predictions(path, benchmark, "iid_test")
    assert len(found) == 3
    assert found.sha256 == hashlib.sha256(packed).hexdigest()
    dropped = read_predictions(path, benchmark, "iid_test", "drop")
    assert dropped.sha256 == found.sha256
