"""Greedy matching against a simple loop, for any block size, and the search for pairs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask

from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.inputs.predictions import OutOfVocabulary, Predictions
from benchmark_eval.scoring import matching
from benchmark_eval.scoring import pairs as pairs_module
from benchmark_eval.scoring.coco import MATCH_THRESHOLDS, Suite, in_area_ranges, match_coco
from benchmark_eval.scoring.detections import _best_first, order_detections
from benchmark_eval.scoring.matching import greedy_match
from benchmark_eval.scoring.pairs import Pairs, find_matching_pairs, find_pairs

THRESHOLDS = np.array([0.5, 0.7, 0.9])


def slow_match(pairs, position, thresholds, ignored, last_on_ties):
    """Loop over detections, best first: gt_matches and crowd_matched as dicts by (t, a)."""
    rows = {}
    for d, g, overlap, crowd in zip(
        pairs.detection, pairs.truth, pairs.overlap, pairs.crowd, strict=True
    ):
        rows.setdefault(int(d), []).append((int(g), float(overlap), bool(crowd)))
    gt_matches, crowd_matched = {}, {}
    for t, threshold in enumerate(thresholds):
        for a, is_ignored in enumerate(ignored):
            for d in sorted(rows, key=lambda d: position[d]):
                best = None
                for g, overlap, crowd in rows[d]:
                    if overlap < threshold or ((t, a, g) in gt_matches and not crowd):
                        continue
                    key = (not is_ignored[g], overlap, g if last_on_ties else -g)
                    if best is None or key > best[0]:
                        best = (key, g, crowd)
                if best and best[2]:
                    crowd_matched.setdefault((t, a), set()).add(d)
                elif best:
                    gt_matches[t, a, best[1]] = d
    return gt_matches, crowd_matched


@st.composite
def matchings(draw):
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
    pairs = Pairs(
        detection, truth, values, values, crowd_truth[truth].astype(np.bool_), np.arange(n_truth)
    )
    position = np.array(draw(st.permutations(range(n_detections))), np.int64)
    ignored = np.array(
        [draw(st.lists(st.booleans(), min_size=n_truth, max_size=n_truth)) for _ in range(2)]
    )
    return pairs, position, n_truth, ignored | crowd_truth, crowd_truth


@pytest.mark.slow  # property test
@settings(max_examples=400, deadline=None)
@given(
    matching_input=matchings(),
    last_on_ties=st.booleans(),
    block=st.sampled_from([1, 3, 200_000]),
    rounds=st.sampled_from([1, 2, 64]),
)
def test_rounds_equal_a_loop_over_detections(matching_input, last_on_ties, block, rounds):
    pairs, position, n_truth, ignored, crowd = matching_input
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "PAIRS_IN_BLOCK", block)
        patch.setattr(matching, "ROUNDS_AT_ONCE", rounds)
        match = greedy_match(
            pairs,
            pairs.overlap,
            position,
            np.zeros(len(position), np.int64),
            np.zeros(len(position), np.int64),
            np.zeros(n_truth, np.int64),
            crowd,
            THRESHOLDS,
            ignored,
            last_on_ties=last_on_ties,
        )
    gt_matches, crowd_matched = slow_match(pairs, position, THRESHOLDS, ignored, last_on_ties)
    for t in range(len(THRESHOLDS)):
        for a in range(len(ignored)):
            expected = [gt_matches.get((t, a, g), -1) for g in range(n_truth)]
            assert match.gt_matches[t, a].tolist() == expected
            assert match.crowd_matched(t, a).tolist() == sorted(crowd_matched.get((t, a), ()))


def columns(truth, predicted, n_categories):
    """Ground truth and ordered detections from rows (category, [x, y, w, h], crowd or score)."""
    boxes = np.array([row[1] for row in truth], np.float64).reshape(-1, 4)
    area = [row[3] for row in truth]
    none = np.empty(0, np.int64)
    true = SplitTruth(
        name="semantic_ood",
        image_ids=np.array([1]),
        sizes=np.full((1, 2), np.nan),
        listed=np.arange(n_categories),
        image=np.zeros(len(truth), np.int64),
        category=np.array([row[0] for row in truth], np.int64),
        boxes=boxes,
        area=np.array(area, np.float64),
        crowd=np.array([row[2] for row in truth], np.bool_),
    )
    predictions = Predictions(
        image=np.zeros(len(predicted), np.int64),
        category=np.array([row[0] for row in predicted], np.int64),
        boxes=np.array([row[1] for row in predicted], np.float64).reshape(-1, 4),
        score=np.array([row[2] for row in predicted], np.float64),
        out_of_vocabulary=OutOfVocabulary(none, none, np.empty((0, 4)), np.empty(0), none),
        dropped={},
        file="",
        sha256="",
    )
    return true, order_detections(predictions, n_categories)


SHAPES = st.sampled_from([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 10.0, 10.0], [0.0, 1.0, 10.0, 8.0]])
"""Few boxes, so that many are the same; the last lies within the first."""
AREAS = st.sampled_from([100.0, 1024.0, 5000.0])


@pytest.mark.slow  # property test
@settings(max_examples=400, deadline=None)
@given(
    truth=st.lists(st.tuples(st.integers(0, 1), SHAPES, st.booleans(), AREAS), max_size=12),
    predicted=st.lists(
        st.tuples(st.integers(0, 1), SHAPES, st.sampled_from([0.2, 0.5, 0.9])), max_size=20
    ),
    kept=st.sampled_from([(0,), (1,), (0, 1)]),
    rounds=st.sampled_from([1, 64]),
)
def test_specimens_with_the_same_box_match_as_in_a_loop(truth, predicted, kept, rounds):
    """Pairs that stand for several, against all pairs; with crowd, categories and groups."""
    true, detections = columns(truth, predicted, 2)
    every = find_pairs(detections, true, 0.5)
    fewer = find_matching_pairs(detections, true, 0.5, true.category)
    assert len(fewer.truth) <= len(every.truth)
    keep = np.isin(true.category, kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "ROUNDS_AT_ONCE", rounds)
        everything = np.ones(len(detections), np.bool_)
        by_species = Suite.by_species(detections, true, 2)
        as_one = Suite.class_agnostic(detections, true)
        for suite in (s.restricted(everything, keep) for s in (by_species, as_one)):
            match = match_coco(suite, detections, true, fewer)
            same = suite.label[every.detection] == suite.truth_label[every.truth]
            ignored = true.crowd | ~in_area_ranges(true.area)
            gt_matches, crowd = slow_match(
                every.subset(same), detections.rank, MATCH_THRESHOLDS, ignored, True
            )
            for t, a in itertools.product(range(10), range(4)):
                expected = [gt_matches.get((t, a, g), -1) for g in range(len(truth))]
                assert match.gt_matches[t, a].tolist() == expected
                assert match.crowd_matched(t, a).tolist() == sorted(crowd.get((t, a), ()))
        local = matching.localise(detections, true, fewer, 0.5, keep)
    scored = every.subset(~every.crowd & keep[every.truth])
    gt_matches, _ = slow_match(
        scored, detections.rank, [0.5], np.zeros((1, len(truth)), bool), False
    )
    found = dict(zip(local.matched_truth.tolist(), local.true_positive.tolist(), strict=True))
    assert found == {g: d for (_, _, g), d in gt_matches.items()}
    ious = {(d, g): i for d, g, i in zip(every.detection, every.truth, every.iou, strict=True)}
    assert [ious[d, g] for g, d in found.items()] == local.matched_iou.tolist()
    on_crowd = set(every.detection[every.crowd & keep[every.truth]].tolist())
    false = set(range(len(predicted))) - set(found.values()) - on_crowd
    assert set(local.false_positive.tolist()) == false


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
    predicted=BOXES,
    min_iou=st.sampled_from([5e-324, 1e-310, 1e-9, 1e-6, 0.01, 0.3, 0.5, 0.8, 1.0]),
    at_once=st.sampled_from([1, 7, 1_000_000]),
)
def test_no_overlapping_pair_is_skipped(truth, predicted, min_iou, at_once):
    """The search windows are wide enough for every overlap, at any minimum."""
    truth = split(truth)
    predicted = sorted(predicted, key=lambda row: row[0])
    predictions = Predictions(
        image=np.array([row[0] for row in predicted], np.int64),
        category=np.zeros(len(predicted), np.int64),
        boxes=np.array([row[1:5] for row in predicted], np.float64).reshape(-1, 4),
        score=np.linspace(1, 0, len(predicted)),
        out_of_vocabulary=None,
        dropped={},
        file="",
        sha256="",
    )
    detections = order_detections(predictions, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "PAIRS_AT_ONCE", at_once)
        pairs = find_pairs(detections, truth, min_iou)
    expected = {}
    for d in range(len(predicted)):
        for g in range(len(truth.image)):
            if detections.image[d] != truth.image[g]:
                continue
            iou, part = iou_of(detections.boxes[d], truth.boxes[g])
            overlap = part if truth.crowd[g] else iou
            if iou >= min_iou or (truth.crowd[g] and part >= min_iou):
                expected[d, g] = (iou, overlap)
    got = {
        (int(d), int(g)): (float(i), float(o))
        for d, g, i, o in zip(pairs.detection, pairs.truth, pairs.iou, pairs.overlap, strict=True)
    }
    assert got == expected
    assert list(got) == sorted(got)


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, -0.0, 5e-324, 0.5, 1.0]), max_size=30))
def test_best_first_is_a_stable_descending_sort(scores):
    expected = sorted(range(len(scores)), key=lambda row: -scores[row])
    assert _best_first(np.array(scores, np.float64)).tolist() == expected


SIZES = st.floats(0.01, 1e4)
SHIFTS = st.floats(-1, 1)


@settings(max_examples=400, deadline=None)
@given(at=st.floats(-1e5, 1e5), w=SIZES, v=SIZES, shift=SHIFTS, min_iou=st.floats(0.001, 1))
def test_boxes_that_reach_the_minimum_are_within_the_bound(at, w, v, shift, min_iou):
    """Boxes of one height: IoU depends on one axis, on which the bound is sharp."""
    true = np.array([[at, 5.0, w, 10.0]])
    predicted = np.array([[at + shift * (w + v), 5.0, v, 10.0]])
    iou, _ = iou_of(predicted[0], true[0])
    search = pairs_module.CandidateSearch(
        predicted, true, pairs_module.centres(true), min_iou, crowd=False
    )
    low, high = search.windows(np.array([0]), np.array([0]), 1)
    if iou >= min_iou:
        assert (low.tolist(), high.tolist()) == ([0], [1])
        assert search.measure(0, low, high - low)[2].tolist() == [iou]
    else:
        assert not len(search.measure(0, low, high - low)[2])


def pairs_of_two(true, predicted, min_iou):
    """The measured IoU of one detection and one annotation, alone on an image."""
    true, predicted = np.array([true], np.float64), np.array([predicted], np.float64)
    search = pairs_module.CandidateSearch(
        predicted, true, pairs_module.centres(true), min_iou, crowd=False
    )
    low, high = search.windows(np.array([0]), np.array([0]), 1)
    return search.measure(0, low, high - low)[2].tolist()


def transposed(box):
    return [box[1], box[0], box[3], box[2]]


@pytest.mark.parametrize("at", [0.0, 4000.0, -37.5])
@pytest.mark.parametrize(
    ("true", "predicted", "iou"),
    [  # as far apart as boxes of this IoU can be: one is inside the other, at its end
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
def test_the_most_distant_boxes_of_an_iou_are_found(true, predicted, iou, at):
    true = [true[0] + at, true[1] + at, *true[2:]]
    predicted = [predicted[0] + at, predicted[1] + at, *predicted[2:]]
    assert pairs_of_two(true, predicted, iou) == [iou]
    assert pairs_of_two(transposed(true), transposed(predicted), iou) == [iou]
    assert pairs_of_two(true, predicted, iou + 1e-9) == []


@pytest.mark.parametrize("at", [1000.0, 1e6])
def test_sides_below_rounding_are_paired_as_in_pycocotools(at):
    unit = np.spacing(at)
    true, predicted = [0, at, 300, 0.6 * unit], [0, at, 100, 0.6 * unit]
    (expected,) = mask.iou(np.array([predicted]), np.array([true]), [0])
    assert expected > 0.7  # a third in exact arithmetic
    assert pairs_of_two(true, predicted, 0.5) == expected.tolist()


def test_one_distant_box_does_not_widen_the_windows_of_others():
    boxes = np.array([[i * 100.0, 0.0, 50.0, 50.0] for i in range(40)])
    predicted = np.concatenate([boxes, [[1e13, 0.0, 50.0, 50.0], [-1e300, 0.0, 1.0, 1.0]]])
    search = pairs_module.CandidateSearch(
        predicted, boxes, pairs_module.centres(boxes), 0.5, crowd=False
    )
    low, high = search.windows(np.zeros(42, np.int64), np.zeros(40, np.int64), 1)
    assert (high - low).tolist() == [1] * 40 + [40, 40]  # only these are measured with all


def test_an_iou_of_sides_below_rounding_is_finite():
    unit = np.spacing(1000.0)
    box = [0.0, 1000.0 + unit, 100.0, unit / 2]
    assert pairs_of_two(box, box, 0.5) == [np.inf]  # as in pycocotools
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
