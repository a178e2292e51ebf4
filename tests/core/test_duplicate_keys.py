"""Duplicate keys in a record are found, without false positives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.layout import record, write_split, write_taxonomy

from benchmark_eval.check.benchmark import benchmark_findings
from benchmark_eval.core.duplicate_keys import (
    cleared_by_colons,
    cleared_by_keys,
    has_duplicate_keys,
)
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.json_values import plain_json
from benchmark_eval.inputs import prediction_decoder as module
from benchmark_eval.inputs.benchmark_reader import load_benchmark, survey_benchmark
from benchmark_eval.inputs.prediction_decoder import KEYS
from benchmark_eval.inputs.predictions import read_predictions

ESCAPED = {"score": '"\\u0073core"', "bbox": '"bbo\\u0078"'}
VALUES = {"image_id": "1", "category_id": "2", "bbox": "[1,2,3,4]", "score": "0.5"}
EXTRAS = ['"note":"a:b"', '"note":"score"', '"more":{"score":1,"score":2}', '"\\u00e4":1', '"n":[]']


@st.composite
def records(draw):
    """A record as text, and whether it has a duplicate key."""
    keys = list(KEYS) + draw(st.lists(st.sampled_from(KEYS), max_size=2))
    fields = []
    for key in draw(st.permutations(keys)):
        name = draw(st.sampled_from([f'"{key}"', ESCAPED.get(key, f'"{key}"')]))
        fields.append(f"{name}:{VALUES[key]}")
    for extra in draw(st.lists(st.sampled_from(EXTRAS), max_size=2)):
        fields.insert(draw(st.integers(0, len(fields))), extra)
    return "{" + ",".join(fields) + "}", len(keys) > 4


@pytest.mark.slow  # property test
@given(st.lists(records()))
def test_duplicates_are_found_exactly(found):
    text = ("[" + ",".join(text for text, _ in found) + "]").encode()
    twice = any(duplicate for _, duplicate in found)
    assert has_duplicate_keys(text, len(found), KEYS, plain_json) == twice
    if twice:
        assert not cleared_by_colons(text, 4 * len(found))
        assert not cleared_by_keys(text, dict.fromkeys(KEYS, len(found)))


def test_plain_records_are_not_decoded_again():
    text = json.dumps([record(1, 2, [1, 2, 3, 4], 0.5) for _ in range(5)]).encode()
    assert not has_duplicate_keys(text, 5, KEYS, None)
    text = json.dumps([{**record(1, 2, [1, 2, 3, 4], 0.5), "area": 3.0} for _ in range(5)]).encode()
    assert not has_duplicate_keys(text, 5, KEYS, None)


@pytest.fixture
def benchmark(tmp_path):
    write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]], [2, 2, [0, 0, 9, 9], 1]])
    write_taxonomy(tmp_path, [1, 2])
    return tmp_path


TWICE = '{"image_id":1,"image_id":2,"category_id":1,"bbox":[0,0,9,9],"score":0.5}'
PLAIN = '{"image_id":1,"category_id":1,"bbox":[0,0,9,9],"score":0.5}'


@pytest.mark.parametrize("piece", [module.PIECE, 64])
def test_a_prediction_with_two_image_ids_is_rejected_or_dropped(
    benchmark, tmp_path, monkeypatch, piece
):
    monkeypatch.setattr(module, "PIECE", piece)
    path = tmp_path / "iid_test_predictions.json"
    path.write_text(f"[{PLAIN},{TWICE},{PLAIN}]")
    loaded = load_benchmark(benchmark)
    with pytest.raises(InputError) as error:
        read_predictions(path, loaded, "iid_test")
    (problem,) = error.value.problems
    assert (problem.kind, problem.record, problem.field) == (
        "duplicate-key",
        "record 1",
        "image_id",
    )
    assert problem.found == "image_id more than once: 1 and 2"
    dropped = read_predictions(path, loaded, "iid_test", "drop")
    assert (len(dropped), dropped.dropped) == (2, {"malformed": 1})


def change(folder, old, new):
    path = folder / "detection/annotations_coco/iid_test.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "record", "found"),
    [
        ('"iscrowd": 1', '"iscrowd": 0, "iscrowd": 1', "annotation record 1", "0 and 1"),
        ('"iscrowd": 1', '"\\u0069scrowd": 0, "iscrowd": 1', "annotation record 1", "0 and 1"),
        ('"width"', '"width": 5, "width"', "image record 0", "5 and 1000"),
        ('"name"', '"name": "x", "name"', "category record 0", '"x" and "'),
        ('"images"', '"images": [], "images"', "", '"0 records" and "2 records"'),
        # accepted only by the tolerant reader
        ('"iscrowd": 1', '"x": NaN, "iscrowd": 0, "iscrowd": 1', "annotation record 1", "0 and 1"),
    ],
)
def test_check_reports_duplicate_keys_of_annotation_files(benchmark, old, new, record, found):
    change(benchmark, old, new)
    findings = benchmark_findings(benchmark, survey_benchmark(benchmark))
    (problem,) = [p for p in findings if p.kind == "duplicate-key"]
    assert problem.record == record
    assert found in problem.found


def test_check_reports_a_duplicate_key_that_another_record_lacks(benchmark):
    """The key occurs as often as there are records."""
    change(benchmark, '"area"', '"extent"')
    change(benchmark, '"area"', '"area": 5, "area"')
    findings = benchmark_findings(benchmark, survey_benchmark(benchmark))
    (problem,) = [p for p in findings if p.kind == "duplicate-key"]
    assert (problem.record, problem.found) == ("annotation record 1", "area twice: 5 and 81")


def test_check_reports_a_duplicate_key_after_a_byte_order_mark(benchmark):
    change(benchmark, '"iscrowd": 1', '"iscrowd": 0, "iscrowd": 1')
    path = benchmark / "detection/annotations_coco/iid_test.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    findings = benchmark_findings(benchmark, survey_benchmark(benchmark))
    assert "duplicate-key" in {problem.kind for problem in findings}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"iscrowd": 1', '"iscrowd": 1, "note": {"iscrowd": 1, "id": 4}'),
        ('"iscrowd": 1', '"iscrowd": 1, "note": "\\u0069scrowd"'),
        ('"images"', '"info": {"images": 5}, "images"'),
    ],
)
def test_check_has_no_false_positives(benchmark, old, new):
    change(benchmark, old, new)
    findings = benchmark_findings(benchmark, survey_benchmark(benchmark))
    assert "duplicate-key" not in {problem.kind for problem in findings}
