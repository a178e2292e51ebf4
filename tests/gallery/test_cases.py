"""Which cases are shown: those of the error types of the evaluation, the most telling first."""

import collections

import pytest
from support.gallery import FOUND, SPECIMEN, TRUTH, scored
from support.layout import species

from benchmark_eval import load_benchmark, make_synthetic
from benchmark_eval.gallery.cases import (
    SHOWN_TYPES,
    Scored,
    density_stratum,
    errors_of,
    found_by_one,
)
from benchmark_eval.inputs.predictions import check_predictions
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.scoring.evaluate import Options, evaluate_split
from benchmark_eval.scoring.metrics.operating_point import given_threshold

EVERYTHING = 10**6


def cases(of, most=EVERYTHING):
    found = collections.defaultdict(list)
    for case in errors_of(of, most):
        found[case.kind].append(case)
    return found


def test_every_error_type_once(tmp_path):
    found = cases(scored(tmp_path, FOUND, threshold=0.45))
    assert [*found] == [ERROR_TYPES[kind] for kind in SHOWN_TYPES]
    only = {kind: one for kind, (one,) in found.items()}
    seen = {kind: (c.image_id, c.true, c.views[0].predicted) for kind, c in only.items()}
    assert seen == {
        "background": (1, "", species(1)),
        "missed": (5, species(1), ""),
        "wrong_name_congener": (2, species(1), species(2)),
        "wrong_name_same_tribe": (3, species(1), species(4)),
        "wrong_name_other": (4, species(1), species(7)),
        "both": (1, species(1), species(4)),
        "poor_box": (1, species(1), species(1)),
        "duplicate": (1, species(1), species(1)),
    }
    scores = {kind: (c.views[0].score, c.views[0].at_threshold) for kind, c in only.items()}
    assert scores["missed"] == (None, None)
    assert scores["duplicate"] == (0.5, True)
    assert scores["poor_box"] == (0.4, False)
    iou = {kind: c.views[0].iou for kind, c in only.items()}
    assert iou["background"] is None
    assert iou["duplicate"] == pytest.approx(0.9)
    assert iou["poor_box"] == pytest.approx(0.25)
    assert iou["wrong_name_other"] == 1.0
    assert only["background"].band == ""
    assert only["missed"].band == "near_genus"
    assert {c.n_specimens for c in only.values()} == {1}


def test_the_boxes_of_a_case(tmp_path):
    truth = [*TRUTH, [1, 2, [700, 0, 50, 50]], [1, 3, [800, 0, 50, 50], 1]]
    found = cases(scored(tmp_path, FOUND, truth))
    boxes = {
        kind: [(box.role, list(box.xywh)) for box in of[0].views[0].boxes]
        for kind, of in found.items()
    }
    others = [("other", [700, 0, 50, 50]), ("other", [800, 0, 50, 50])]  # also the crowd region
    assert boxes["duplicate"] == [
        ("detection", [0, 0, 100, 90]),
        ("specimen", SPECIMEN),
        ("matched", SPECIMEN),
        *others,
    ]
    assert boxes["poor_box"][:2] == [("detection", [60, 0, 100, 100]), ("specimen", SPECIMEN)]
    assert boxes["background"] == [
        ("detection", [500, 500, 50, 50]),
        ("other", SPECIMEN),
        *others,
    ]
    # of two missed specimens, the larger one comes first
    assert [list(c.views[0].boxes[0].xywh) for c in found["missed"]] == [
        SPECIMEN,
        [700, 0, 50, 50],
    ]
    assert {kind: of[0].views[0].focus for kind, of in found.items()} == {
        "background": 1, "missed": 1, "wrong_name_congener": 2, "wrong_name_same_tribe": 2,
        "wrong_name_other": 2, "both": 2, "poor_box": 2, "duplicate": 3,
    }  # fmt: skip


def test_confident_errors_come_first_and_other_images_before_a_second_of_the_same(tmp_path):
    found = [[1, 1, [500, 20 * i, 10, 10], 0.9 - i / 100] for i in range(4)]
    found += [[2, 1, [500, 0, 10, 10], 0.3], [3, 1, [500, 0, 10, 10], 0.5]]
    shown = cases(scored(tmp_path, found))["background"]
    assert [(c.image_id, c.views[0].score) for c in shown] == [
        (1, 0.9), (3, 0.5), (2, 0.3), (1, 0.89), (1, 0.88), (1, 0.87),
    ]  # fmt: skip
    first = cases(scored(tmp_path, found), most=2)["background"]
    assert [c.image_id for c in first] == [1, 3]


def test_of_confusions_each_pair_has_a_case_and_the_most_frequent_comes_first(tmp_path):
    found = [[1, 2, SPECIMEN, 0.9], [2, 3, SPECIMEN, 0.8], [3, 3, SPECIMEN, 0.7]]
    shown = cases(scored(tmp_path, found))["wrong_name_congener"]
    assert [(c.views[0].predicted, c.views[0].score) for c in shown] == [
        (species(3), 0.8), (species(2), 0.9), (species(3), 0.7),
    ]  # fmt: skip


def test_the_missed_specimen_with_the_largest_share_of_its_image_comes_first(tmp_path):
    truth = [[1, 1, [0, 0, 50, 50]], [2, 1, [0, 0, 90, 90]], [3, 1, [0, 0, 70, 70]]]
    assert [c.image_id for c in cases(scored(tmp_path, [], truth))["missed"]] == [2, 3, 1]


def test_missed_specimens_of_images_of_unknown_size(tmp_path):
    truth = [[1, 1, [0, 0, 50, 50]], [2, 1, [0, 0, 90, 90]]]
    of = scored(tmp_path, [], truth, size=(0, 0))
    assert [c.image_id for c in cases(of)["missed"]] == [2, 1]


def test_crowd_regions_are_never_missed_and_their_detections_no_error(tmp_path):
    truth = [[1, 1, SPECIMEN, 1]]
    assert cases(scored(tmp_path, [[1, 1, SPECIMEN, 0.9]], truth)) == {}


def test_no_detections_and_no_errors(tmp_path):
    assert [len(of) for of in cases(scored(tmp_path, [])).values()] == [5]  # all missed
    perfect = [[image, 1, SPECIMEN, 0.9] for image in range(1, 6)]
    assert cases(scored(tmp_path, perfect)) == {}


def test_unseen_species_are_never_misidentified(tmp_path):
    found = cases(scored(tmp_path, FOUND, split="semantic_ood"))
    assert {kind: len(of) for kind, of in found.items()} == {
        "background": 1, "missed": 1, "poor_box": 2, "duplicate": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("n", "stratum"), [(0, 0), (1, 0), (2, 1), (10, 1), (11, 2), (200, 2)])
def test_density_strata(n, stratum):
    assert density_stratum(n) == stratum


# ------------------------------------------------------------------ two models


def both(tmp_path, one, other, *, thresholds=(0.5, 0.5), truth=TRUTH):
    return [
        scored(tmp_path, found, truth, model=at, threshold=threshold)
        for at, (found, threshold) in enumerate(zip((one, other), thresholds, strict=True))
    ]


def seen(first, second, most=EVERYTHING):
    return [
        (case.image_id, [(v.model, v.score, v.at_threshold) for v in case.views])
        for case in found_by_one(first, second, most)
    ]


def test_what_one_model_detects_and_the_other_misses(tmp_path):
    one = [[image, 1, SPECIMEN, 0.9 - image / 10] for image in (1, 2, 3, 5)]  # 0.4 on image 5
    other = [[1, 1, SPECIMEN, 0.6], [2, 1, SPECIMEN, 0.2], [4, 1, SPECIMEN, 0.9]]
    first, second = both(tmp_path, one, other)
    assert seen(first, second) == [
        (3, [(0, pytest.approx(0.6), True), (1, None, None)]),
        (2, [(0, pytest.approx(0.7), True), (1, 0.2, False)]),
    ]
    assert seen(second, first) == [(4, [(1, 0.9, True), (0, None, None)])]
    assert seen(first, second, most=1) == seen(first, second)[:1]


def test_without_a_threshold_every_detection_counts(tmp_path):
    first, second = both(
        tmp_path, [[1, 1, SPECIMEN, 0.01]], [[2, 1, SPECIMEN, 0.9]], thresholds=(None, None)
    )
    first = Scored(**{n: getattr(first, n) for n in first.__slots__} | {"threshold": None})
    second = Scored(**{n: getattr(second, n) for n in second.__slots__} | {"threshold": None})
    assert seen(first, second) == [(1, [(0, 0.01, None), (1, None, None)])]


def test_the_same_predictions_and_no_predictions(tmp_path):
    first, second = both(tmp_path, FOUND, FOUND)
    assert seen(first, second) == []
    first, second = both(tmp_path, [], [])
    assert seen(first, second) == []


def test_crowd_regions_are_not_compared(tmp_path):
    truth = [[1, 1, SPECIMEN, 1], [2, 1, SPECIMEN]]
    first, second = both(tmp_path, [[1, 1, SPECIMEN, 0.9]], [], truth=truth)
    assert seen(first, second) == []


# ------------------------------------------------------------------ agreement with the results


def test_all_cases_together_are_the_errors_of_the_evaluation(tmp_path):
    made = make_synthetic(tmp_path, scale=0.005, detections_per_specimen=8, jobs=1)
    benchmark = load_benchmark(made.benchmark_dir)
    threshold = given_threshold(None)
    for split in TEST_SPLITS:
        path = made.predictions_dir / f"alder_gu_kall_s0/{split}_predictions.json"
        predictions = check_predictions(path, benchmark, split).predictions
        result = evaluate_split(benchmark, split, predictions, Options(), threshold)
        threshold = result.threshold
        shown = cases(Scored.of(0, result))
        table = result.table("all")
        names = [*table.categories.names, ""]
        for kind in SHOWN_TYPES:
            of_type = shown[ERROR_TYPES[kind]]
            rows = (table.error_type == kind).nonzero()[0].tolist()
            assert sorted(
                (c.image_id, c.true, c.views[0].predicted, c.views[0].score or 0.0) for c in of_type
            ) == sorted(
                (
                    int(table.image_id[r]),
                    names[table.true[r]],
                    names[table.predicted[r]],
                    0.0 if table.score[r] != table.score[r] else float(table.score[r]),
                )
                for r in rows
            )
