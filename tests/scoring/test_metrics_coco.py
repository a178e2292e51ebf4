"""Hand-computed AP and AR, and edge cases of COCO's rules."""

import numpy as np
import pytest
from support.scoring import score

from benchmark_eval.scoring.coco import RECALL_POINTS, _true_positives_needed

A, B, C = [0, 0, 100, 100], [200, 0, 100, 100], [400, 0, 100, 100]
FAR = [700, 700, 100, 100]


def close(value):
    # like pycocotools, precision divides by (detections + 2e-16)
    return pytest.approx(value, abs=1e-12)


def test_perfect_detections():
    coco = score([[1, 1, A]], [[1, 1, A, 0.9]])["coco"]
    for key in ("AP_50_95", "AP_50", "AP_75", "AP_large", "AR_1", "AR_10", "AR_100", "AR_large"):
        assert coco[key] == close(1.0)
    for key in ("AP_small", "AP_medium", "AR_small", "AR_medium"):
        assert coco[key] is None


def test_precision_is_interpolated():
    # false, true, true: precision 1/2 at recall 1/2 and 2/3 at recall 1; 2/3 is best everywhere
    rows = [[1, 1, FAR, 0.9], [1, 1, A, 0.8], [1, 1, B, 0.7]]
    coco = score([[1, 1, A], [1, 1, B]], rows)["coco"]
    assert coco["AP_50"] == close(2 / 3)
    assert coco["AR_1"] == 0.0
    assert coco["AR_10"] == 1.0


def test_precision_is_zero_at_recall_points_that_are_not_reached():
    # one of two detected: recall points 0.00 to 0.50, 51 of 101
    coco = score([[1, 1, A], [1, 1, B]], [[1, 1, A, 0.9]])["coco"]
    assert coco["AP_50"] == close(51 / 101)


def test_iou_equal_to_the_threshold_matches():
    # 100 x 75 of 100 x 100: IoU 0.75, a match at 0.50, 0.55, 0.60, 0.65, 0.70, 0.75
    coco = score([[1, 1, A]], [[1, 1, [0, 0, 100, 75], 0.9]])["coco"]
    assert coco["AP_75"] == close(1.0)
    assert coco["AP_50_95"] == close(0.6)
    assert coco["AR_100"] == close(0.6)


def test_a_duplicate_is_a_false_positive():
    rows = [[1, 1, A, 0.9], [1, 1, A, 0.8]]
    # the duplicate comes after the last true positive
    assert score([[1, 1, A]], rows)["coco"]["AP_50"] == close(1.0)
    # with a second specimen after it: 1/1, then 2/3; recall 0.5 covers 51 of 101 points
    both = score([[1, 1, A], [1, 1, B]], [*rows, [1, 1, B, 0.7]])["coco"]
    assert both["AP_50"] == close((51 + 50 * 2 / 3) / 101)


def test_equal_scores_keep_file_order():
    truth = [[1, 1, A]]
    rows = [[1, 1, FAR, 0.5], [1, 1, A, 0.5]]
    assert score(truth, rows)["coco"]["AP_50"] == close(0.5)
    assert score(truth, rows[::-1])["coco"]["AP_50"] == close(1.0)


def test_equal_scores_across_images_are_ordered_by_image_id():
    truth = [[1, 1, A], [2, 1, A]]
    rows = [[2, 1, FAR, 0.5], [1, 1, A, 0.5]]
    # image 1 first, whatever the file order: its true positive precedes the false positive
    assert score(truth, rows)["coco"]["AP_50"] == close(51 / 101)


def test_the_last_specimen_matches_on_equal_iou():
    # the first detection overlaps both equally, the second fits the left one with IoU 0.9
    left, right = [0, 0, 100, 100], [20, 0, 100, 100]
    rows = [[1, 1, [10, 0, 100, 100], 0.9], [1, 1, [0, 0, 100, 90], 0.8]]
    found = score([[1, 1, left], [1, 1, right]], rows)["coco"]
    swapped = score([[1, 1, right], [1, 1, left]], rows)["coco"]
    # IoU of the first with either 90/110 = 0.818: thresholds 0.50 to 0.80, 7 of 10.
    # Matching the right one leaves the left to the second, with IoU 0.9: 9 of 10
    assert found["AR_100"] == close((7 * 2 + 2 * 1) / 20)
    # matching the left one leaves the right one, with IoU 80 x 90 / 11800 = 0.61: 3 of 10
    assert swapped["AR_100"] == close((3 * 2 + 4 * 1 + 2 * 1) / 20)


def test_area_limits_belong_to_both_ranges():
    # 32 x 32 = 1024 is small and medium, 96 x 96 = 9216 medium and large
    truth = [[1, 1, [0, 0, 32, 32]], [1, 1, [200, 0, 96, 96]]]
    coco = score(truth, [[*row, 0.9] for row in truth])["coco"]
    assert [coco[f"AR_{size}"] for size in ("small", "medium", "large")] == [1.0, 1.0, 1.0]
    only = score(truth, [[1, 1, [0, 0, 32, 32], 0.9]])["coco"]
    assert [only[f"AR_{size}"] for size in ("small", "medium", "large")] == [1.0, 0.5, 0.0]


def test_a_false_positive_outside_the_area_range_is_ignored():
    truth = [[1, 1, [0, 0, 20, 20]]]
    rows = [[1, 1, FAR, 0.9], [1, 1, [0, 0, 20, 20], 0.8]]
    coco = score(truth, rows)["coco"]
    assert coco["AP_50"] == close(0.5)
    assert coco["AP_small"] == close(1.0)


def test_detections_on_crowd_are_ignored():
    truth = [[1, 1, A], [1, 1, B, 1]]
    # three detections in the crowd region, one of them small: intersection over its area is 1
    rows = [[1, 1, B, 0.95], [1, 1, B, 0.94], [1, 1, [210, 10, 10, 10], 0.93], [1, 1, A, 0.5]]
    coco = score(truth, rows)["coco"]
    assert coco["AP_50"] == close(1.0)
    assert coco["AR_1"] == 0.0  # but they count towards the cap
    assert coco["AR_10"] == 1.0


def test_a_scored_specimen_matches_before_crowd():
    # the crowd region has the higher IoU, the specimen matches nevertheless
    truth = [[1, 1, A], [1, 1, [0, 0, 100, 60], 1]]
    coco = score(truth, [[1, 1, [0, 0, 100, 60], 0.9]])["coco"]
    assert coco["AP_50"] == close(1.0)


def test_crowd_of_another_species_does_not_match():
    truth = [[1, 1, A], [1, 2, B, 1]]
    rows = [[1, 1, B, 0.9], [1, 1, A, 0.8]]
    found = score(truth, rows)
    assert found["coco"]["AP_50"] == close(0.5)
    assert found["class_agnostic"]["AP_50"] == close(1.0)


@pytest.mark.parametrize(("n_before", "recall"), [(99, 1.0), (100, 0.0)])
def test_the_cap_is_100_detections_per_image_and_category(n_before, recall):
    rows = [[1, 1, FAR, 0.9]] * n_before + [[1, 1, A, 0.5]]
    assert score([[1, 1, A]], rows)["coco"]["AR_100"] == recall
    # detections of another species count towards the class-agnostic cap only
    rows = [[1, 2, FAR, 0.9]] * n_before + [[1, 1, A, 0.5]]
    found = score([[1, 1, A]], rows)
    assert found["coco"]["AR_100"] == 1.0
    assert found["class_agnostic"]["AR_100"] == recall


def test_means_are_over_species_with_scored_specimens():
    # species 1 detected, 2 missed, 3 crowd only, 4 absent
    truth = [[1, 1, A], [1, 2, B], [1, 3, C, 1]]
    found = score(truth, [[1, 1, A, 0.9]], listed=[1, 2, 3, 4])
    assert found["coco"]["AP_50"] == close(0.5)
    ap = {number: s["AP_50"] for number, s in found["per_species"].items()}
    assert ap == {"1": close(1.0), "2": 0.0, "3": None, "4": None}
    assert [s["n_gt"] for s in found["per_species"].values()] == [1, 1, 0, 0]


def test_class_agnostic_matches_every_species():
    # on semantic_ood a model can only predict species that the split does not list
    found = score(
        [[1, 1, A], [1, 1, B]],
        [[1, 7, A, 0.9], [1, 8, B, 0.8]],
        "semantic_ood",
        listed=[1],
        train=[[1, 7, A], [1, 8, A]],
    )
    assert found["coco"]["AP_50"] == 0.0
    assert found["class_agnostic"]["AP_50"] == close(1.0)
    assert found["class_agnostic"]["class_agnostic_AR_100"] == 1.0


@pytest.mark.parametrize("n", [*range(1, 130), 650, 4367])
def test_true_positives_needed_equal_a_left_searchsorted(n):
    # 7/25 reaches 0.28 although 0.28 * 25 is 7.000000000000001
    needed = _true_positives_needed(np.array([n]))[:, 0]
    recall = np.arange(1, n + 1) / n
    assert needed.tolist() == (np.searchsorted(recall, RECALL_POINTS, side="left") + 1).tolist()
