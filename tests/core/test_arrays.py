"""Columns of decoded records; lookup of ids by table and by bisection."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_eval.core import arrays as columns
from benchmark_eval.core.arrays import Box, NumberColumns, finite_boxes, integer_column, rows_of_ids
from benchmark_eval.results.detections_csv import _floats

IDS = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-30, 30)


@given(
    st.lists(st.one_of(NEAR, IDS), max_size=20, unique=True),
    st.lists(st.one_of(NEAR, IDS), max_size=20),
)
def test_each_id_gives_its_row_or_minus_one(ids, queries):
    ids = sorted(ids)
    rows = rows_of_ids(np.array(ids, np.int64), np.array(queries, np.int64))
    assert rows.tolist() == [ids.index(q) if q in ids else -1 for q in queries]


@pytest.mark.parametrize("per_id", [0, 8])
def test_table_and_bisection_agree_at_the_limits(monkeypatch, per_id):
    monkeypatch.setattr(columns, "TABLE_PER_ID", per_id)
    ids = np.array([-3, 4, 9], np.int64)
    queries = np.array([-4, -3, -2, 9, 10, 2**63 - 1, -(2**63)], np.int64)
    assert rows_of_ids(ids, queries).tolist() == [-1, 0, -1, 2, -1, -1, -1]


huge = st.floats() | st.sampled_from([1e308, -1e308, 1.7e308, 1e154, 1e200, -1e200])


@given(st.lists(st.tuples(huge, huge, huge, huge), max_size=8))
def test_finite_boxes_have_a_finite_far_corner_and_area(boxes):
    array = np.array(boxes, np.float64).reshape(-1, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [[*b, b[0] + b[2], b[1] + b[3], b[2] * b[3]] for b in array]
    assert finite_boxes(array).tolist() == [bool(np.isfinite(row).all()) for row in parts]


class Record(msgspec.Struct):
    image_id: float
    bbox: Box
    score: float = np.nan


NUMBER = st.floats(allow_nan=False)


@given(st.lists(st.tuples(NUMBER, st.tuples(*4 * [NUMBER]), NUMBER), max_size=20))
def test_numbers_of_records_become_columns_exactly(rows):
    table = NumberColumns(Record).of([Record(i, Box(*box), score) for i, box, score in rows])
    assert list(table) == ["image_id", "bbox", "score"]
    assert table["bbox"].shape == (len(rows), 4)
    flat = np.column_stack([table["image_id"], table["bbox"], table["score"]]).tolist()
    assert repr(flat) == repr([[i, *box, score] for i, box, score in rows])


@pytest.mark.parametrize("n", [0, 1, 15, 16, 65_535, 65_536])
def test_lists_of_any_length_become_columns(n):
    columns = NumberColumns(Record)
    columns.of(
        [Record(-1.0, Box(1.0, 2.0, 3.0, 4.0), 0.5)] * 3
    )  # the next call overwrites the buffer
    found = columns.of([Record(float(i), Box(0.0, 0.0, 0.0, -float(i))) for i in range(n)])
    assert found["image_id"].tolist() == list(range(n))
    assert found["bbox"][:, 3].tolist() == [-i for i in range(n)]
    assert np.isnan(found["score"]).all()


def test_records_of_unequal_length_are_rejected():
    with pytest.raises(AssertionError, match="unequal length"):
        NumberColumns(Record).of([Record(1, Box(0, 0, 1, 1))])  # an int takes one byte, not nine


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1)))
def test_integers_are_ids(ids):
    assert integer_column(np.array(ids, np.float64)).tolist() == ids


@pytest.mark.parametrize("odd", [0.5, 2.0**53, -(2.0**53), 1e300, np.inf, np.nan])
def test_inexact_floats_are_not_ids(odd):
    with pytest.raises(msgspec.DecodeError):
        integer_column(np.array([1.0, odd]))


SPELLED = st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1)


@given(st.lists(SPELLED | st.sampled_from([1e-4, 9.999e-5, 1e15, 1e16, 0.0, -0.0, 1.0])))
def test_floats_are_written_as_repr_does(values):
    assert _floats(np.array(values, np.float64)) == [repr(value) for value in values]
