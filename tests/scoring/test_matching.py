"""The greedy matching against a slow one that reads like the rule, at any block size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask

from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.inputs.predictions import Predictions
from benchmark_eval.scoring import matching
from benchmark_eval.scoring import pairs as pairs_module
from benchmark_eval.scoring.detections import _best_first, order_detections
from benchmark_eval.scoring.matching import greedy_match
from benchmark_eval.scoring.pairs import Pairs, find_pairs

THRESHOLDS = np.array([0.5, 0.7, 0.9])


def slow_match(pairs, position, thresholds, ignored, last_on_ties):
    """Detection after detection, best first: taker and absorbed as dicts by (t, a)."""
    rows = {}
    for d, g, overlap, crowd in zip(
        pairs.detection, pairs.truth, pairs.overlap, pairs.crowd, strict=True
    ):
        rows.setdefault(int(d), []).append((int(g), float(overlap), bool(crowd)))
    taker, absorbed = {}, {}
    for t, threshold in enumerate(thresholds):
        for a, second in enumerate(ignored):
            for d in sorted(rows, key=lambda d: position[d]):
                best = None
                for g, overlap, crowd in rows[d]:
                    if overlap < threshold or ((t, a, g) in taker and not crowd):
                        continue
                    key = (not second[g], overlap, g if last_on_ties else -g)
                    if best is None or key > best[0]:
                        best = (key, g, crowd)
                if best and best[2]:
                    absorbed.setdefault((t, a), set()).add(d)
                elif best:
                    taker[t, a, best[1]] = d
    return taker, absorbed


@st.composite
def contests(draw):
    n_detections, n_truth = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    cells = draw(
        st.lists(
            st.tuples(st.integers(0, n_detections - 1), st.integers(0, n_truth - 1)),
            unique=True,
            max_size=40,
        )
    )
    cells.sort()
    overlap = draw(
        st.lists(
            st.sampled_from([0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
            min_size=len(cells),
            max_size=len(cells),
        )
    )
    crowd_truth = np.array(draw(st.lists(st.booleans(), min_size=n_truth, max_size=n_truth)))
    crowd_truth &= draw(st.booleans())
    detection = np.array([c[0] for c in cells], np.int64)
    truth = np.array([c[1] for c in cells], np.int64)
    values = np.array(overlap, np.float64)
    pairs = Pairs(detection, truth, values, values, crowd_truth[truth].astype(np.bool_))
    position = np.array(draw(st.permutations(range(n_detections))), np.int64)
    ignored = np.array(
        [draw(st.lists(st.booleans(), min_size=n_truth, max_size=n_truth)) for _ in range(2)]
    )
    return pairs, position, n_truth, ignored | crowd_truth


@pytest.mark.slow  # property test
@settings(max_examples=400, deadline=None)
@given(
    contest=contests(),
    last_on_ties=st.booleans(),
    block=st.sampled_from([1, 3, 200_000]),
    rounds=st.sampled_from([1, 2, 64]),
)
def test_rounds_give_what_the_rule_says(contest, last_on_ties, block, rounds):
    pairs, position, n_truth, ignored = contest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "PAIRS_IN_BLOCK", block)
        patch.setattr(matching, "ROUNDS_AT_ONCE", rounds)
        match = greedy_match(
            pairs,
            pairs.overlap,
            position,
            np.zeros(len(position), np.int64),
            n_truth,
            THRESHOLDS,
            ignored,
            last_on_ties=last_on_ties,
        )
    taker, absorbed = slow_match(pairs, position, THRESHOLDS, ignored, last_on_ties)
    for t in range(len(THRESHOLDS)):
        for a in range(len(ignored)):
            assert match.taker[t, a].tolist() == [taker.get((t, a, g), -1) for g in range(n_truth)]
            assert sorted(match.absorbed[t][a].tolist()) == sorted(absorbed.get((t, a), ()))


NUMBERS = st.one_of(
    st.integers(0, 40).map(float),
    st.floats(-50, 50, width=32),
    st.sampled_from([0.1, 1e-3, 1e7, 123456.789]),
)
SIZES = st.one_of(st.integers(0, 30).map(float), st.floats(0, 40, width=32))
BOXES = st.lists(
    st.tuples(st.integers(0, 2), NUMBERS, NUMBERS, SIZES, SIZES, st.booleans()), max_size=15
)


def split(rows):
    rows = sorted(rows, key=lambda row: row[0])
    boxes = np.array([row[1:5] for row in rows], np.float64).reshape(-1, 4)
    return SplitTruth(
        name="iid_test",
        image_ids=np.array([10, 20, 30]),
        sizes=np.full((3, 2), np.nan),
        listed=np.array([0]),
        image=np.array([row[0] for row in rows], np.int64),
        category=np.zeros(len(rows), np.int64),
        boxes=boxes,
        area=boxes[:, 2] * boxes[:, 3],
        crowd=np.array([row[5] for row in rows], np.bool_),
    )


def iou_of(a, b):
    width = min(a[2] + a[0], b[2] + b[0]) - max(a[0], b[0])
    height = min(a[3] + a[1], b[3] + b[1]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0, 0.0
    inter, area = width * height, a[2] * a[3]
    union = area + b[2] * b[3] - inter
    return (inter / union if union else 0.0), (inter / area if area else 0.0)


@pytest.mark.slow  # property test
@pytest.mark.filterwarnings("error")
@settings(max_examples=400, deadline=None)
@given(
    truth=BOXES,
    found=BOXES,
    floor=st.sampled_from([5e-324, 1e-310, 1e-9, 1e-6, 0.01, 0.3, 0.5, 0.8, 1.0]),
    at_once=st.sampled_from([1, 7, 1_000_000]),
)
def test_no_pair_that_matters_is_passed_over(truth, found, floor, at_once):
    """The search windows must be wide enough for every overlap, at any floor."""
    truth = split(truth)
    found = sorted(found, key=lambda row: row[0])
    predictions = Predictions(
        image=np.array([row[0] for row in found], np.int64),
        category=np.zeros(len(found), np.int64),
        boxes=np.array([row[1:5] for row in found], np.float64).reshape(-1, 4),
        score=np.linspace(1, 0, len(found)),
        out_of_vocabulary=None,
        dropped={},
        file="",
        sha256="",
    )
    detections = order_detections(predictions, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "PAIRS_AT_ONCE", at_once)
        pairs = find_pairs(detections, truth, floor)
    wanted = {}
    for d in range(len(found)):
        for g in range(len(truth.image)):
            if detections.image[d] != truth.image[g]:
                continue
            iou, part = iou_of(detections.boxes[d], truth.boxes[g])
            overlap = part if truth.crowd[g] else iou
            if iou >= floor or (truth.crowd[g] and part >= floor):
                wanted[d, g] = (iou, overlap)
    got = {
        (int(d), int(g)): (float(i), float(o))
        for d, g, i, o in zip(pairs.detection, pairs.truth, pairs.iou, pairs.overlap, strict=True)
    }
    assert got == wanted
    assert list(got) == sorted(got)


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, -0.0, 5e-324, 0.5, 1.0]), max_size=30))
def test_best_first_is_a_stable_descending_sort(scores):
    expected = sorted(range(len(scores)), key=lambda row: -scores[row])
    assert _best_first(np.array(scores, np.float64)).tolist() == expected


SIZES = st.floats(0.01, 1e4)
SHIFTS = st.floats(-1, 1)


@settings(max_examples=400, deadline=None)
@given(at=st.floats(-1e5, 1e5), w=SIZES, v=SIZES, shift=SHIFTS, floor=st.floats(0.001, 1))
def test_the_centres_of_boxes_that_reach_the_floor_lie_near(at, w, v, shift, floor):
    """A row of boxes of one height: IoU is a matter of one axis, on which the bound is sharp."""
    true = np.array([[at, 5.0, w, 10.0]])
    found = np.array([[at + shift * (w + v), 5.0, v, 10.0]])
    iou, _ = iou_of(found[0], true[0])
    near = pairs_module._Near(found, true, pairs_module._centres(true), floor, crowd=False)
    low, high = near.windows(np.array([0]), np.array([0]), 1)
    if iou >= floor:
        assert (low.tolist(), high.tolist()) == ([0], [1])
        assert near.measure(0, low, high - low)[2].tolist() == [iou]
    else:
        assert not len(near.measure(0, low, high - low)[2])


def pairs_of_two(true, found, floor):
    """The IoU that is found of one detection and one ground truth, alone on an image."""
    true, found = np.array([true], np.float64), np.array([found], np.float64)
    near = pairs_module._Near(found, true, pairs_module._centres(true), floor, crowd=False)
    low, high = near.windows(np.array([0]), np.array([0]), 1)
    return near.measure(0, low, high - low)[2].tolist()


def turned(box):
    return [box[1], box[0], box[3], box[2]]


@pytest.mark.parametrize("at", [0.0, 4000.0, -37.5])
@pytest.mark.parametrize(
    ("true", "found", "iou"),
    [  # as far apart as boxes of this IoU can be: one lies within the other, at an end of it
        ([0, 0, 100, 10], [0, 0, 50, 10], 0.5),
        ([0, 0, 100, 10], [50, 0, 50, 10], 0.5),
        ([0, 0, 50, 10], [0, 0, 100, 10], 0.5),
        ([50, 0, 50, 10], [0, 0, 100, 10], 0.5),
        ([0, 0, 100, 10], [75, 0, 25, 10], 0.25),
        ([0, 0, 25, 10], [0, 0, 100, 10], 0.25),
        ([0, 0, 100, 10], [0, 0, 80, 10], 0.8),
        ([20, 0, 80, 10], [0, 0, 100, 10], 0.8),
    ],
)
def test_the_farthest_boxes_that_reach_the_floor_are_found(true, found, iou, at):
    true = [true[0] + at, true[1] + at, *true[2:]]
    found = [found[0] + at, found[1] + at, *found[2:]]
    assert pairs_of_two(true, found, iou) == [iou]
    assert pairs_of_two(turned(true), turned(found), iou) == [iou]
    assert pairs_of_two(true, found, iou + 1e-9) == []


@pytest.mark.parametrize("at", [1000.0, 1e6])
def test_sides_that_are_lost_in_rounding_are_paired_as_pycocotools_does(at):
    unit = np.spacing(at)
    true, found = [0, at, 300, 0.6 * unit], [0, at, 100, 0.6 * unit]
    (expected,) = mask.iou(np.array([found]), np.array([true]), [0])
    assert expected > 0.7  # where exact arithmetic says a third
    assert pairs_of_two(true, found, 0.5) == expected.tolist()


def test_one_box_far_out_leaves_the_windows_of_the_others_narrow():
    boxes = np.array([[i * 100.0, 0.0, 50.0, 50.0] for i in range(40)])
    found = np.concatenate([boxes, [[1e13, 0.0, 50.0, 50.0], [-1e300, 0.0, 1.0, 1.0]]])
    near = pairs_module._Near(found, boxes, pairs_module._centres(boxes), 0.5, crowd=False)
    low, high = near.windows(np.zeros(42, np.int64), np.zeros(40, np.int64), 1)
    assert (high - low).tolist() == [1] * 40 + [40, 40]  # they alone are measured with all


def test_an_iou_lost_in_rounding_is_no_infinity():
    unit = np.spacing(1000.0)
    box = [0.0, 1000.0 + unit, 100.0, unit / 2]
    assert pairs_of_two(box, box, 0.5) == [np.inf]  # as pycocotools has it
    truth = split([[0, *box, False]])
    predictions = Predictions(
        image=np.array([0]),
        category=np.array([0]),
        boxes=np.array([box]),
        score=np.array([1.0]),
        out_of_vocabulary=None,
        dropped={},
        file="",
        sha256="",
    )
    detections = order_detections(predictions, 1)
    local = matching.localise(detections, truth, find_pairs(detections, truth, 0.5), 0.5)
    assert local.matched_iou.tolist() == [1.0]
