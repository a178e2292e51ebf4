"""Looking ids up: in a table where they lie close, by bisection where they do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_eval import columns
from benchmark_eval.columns import finite_boxes, rows_of_ids

IDS = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-30, 30)


@given(
    st.lists(st.one_of(NEAR, IDS), max_size=20, unique=True),
    st.lists(st.one_of(NEAR, IDS), max_size=20),
)
def test_each_id_finds_its_row_or_none(ids, wanted):
    ids = sorted(ids)
    rows = rows_of_ids(np.array(ids, np.int64), np.array(wanted, np.int64))
    assert rows.tolist() == [ids.index(w) if w in ids else -1 for w in wanted]


@pytest.mark.parametrize("widest", [0, 10_000_000])
def test_table_and_bisection_agree_at_the_ends(monkeypatch, widest):
    monkeypatch.setattr(columns, "WIDEST_TABLE", widest)
    ids = np.array([-3, 4, 9], np.int64)
    wanted = np.array([-4, -3, -2, 9, 10, 2**63 - 1, -(2**63)], np.int64)
    assert rows_of_ids(ids, wanted).tolist() == [-1, 0, -1, 2, -1, -1, -1]


huge = st.floats() | st.sampled_from([1e308, -1e308, 1.7e308, 1e154, 1e200, -1e200])


@given(st.lists(st.tuples(huge, huge, huge, huge), max_size=8))
def test_boxes_are_finite_with_their_far_corner_and_area(boxes):
    array = np.array(boxes, np.float64).reshape(-1, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [[*b, b[0] + b[2], b[1] + b[3], b[2] * b[3]] for b in array]
    assert finite_boxes(array).tolist() == [bool(np.isfinite(row).all()) for row in parts]
