"""AP and AR by hand, and at the borders of COCO's rules."""

import numpy as np
import pytest
from support.scoring import score

from benchmark_eval.scoring.coco import RECALL_POINTS, _true_positives_needed

A, B, C = [0, 0, 100, 100], [200, 0, 100, 100], [400, 0, 100, 100]
FAR = [700, 700, 100, 100]


def close(value):
    # pycocotools divides by (boxes + 2e-16), and so do we
    return pytest.approx(value, abs=1e-12)


def test_all_found_and_nothing_else():
    coco = score([[1, 1, A]], [[1, 1, A, 0.9]])["coco"]
    for key in ("AP_50_95", "AP_50", "AP_75", "AP_large", "AR_1", "AR_10", "AR_100", "AR_large"):
        assert coco[key] == close(1.0)
    for key in ("AP_small", "AP_medium", "AR_small", "AR_medium"):
        assert coco[key] is None


def test_precision_is_the_best_at_this_recall_or_beyond():
    # false, true, true: precision 1/2 at recall 1/2 and 2/3 at recall 1; 2/3 is best everywhere
    rows = [[1, 1, FAR, 0.9], [1, 1, A, 0.8], [1, 1, B, 0.7]]
    coco = score([[1, 1, A], [1, 1, B]], rows)["coco"]
    assert coco["AP_50"] == close(2 / 3)
    assert coco["AR_1"] == 0.0
    assert coco["AR_10"] == 1.0


def test_recall_that_is_not_reached_has_precision_zero():
    # one of two found: recall points 0.00 to 0.50, 51 of 101
    coco = score([[1, 1, A], [1, 1, B]], [[1, 1, A, 0.9]])["coco"]
    assert coco["AP_50"] == close(51 / 101)


def test_thresholds_are_reached_by_equality():
    # 100 x 75 of 100 x 100: IoU 0.75, reached at 0.50, 0.55, 0.60, 0.65, 0.70, 0.75
    coco = score([[1, 1, A]], [[1, 1, [0, 0, 100, 75], 0.9]])["coco"]
    assert coco["AP_75"] == close(1.0)
    assert coco["AP_50_95"] == close(0.6)
    assert coco["AR_100"] == close(0.6)


def test_one_specimen_is_found_once():
    rows = [[1, 1, A, 0.9], [1, 1, A, 0.8]]
    # the second is a false alarm, but none before the last hit
    assert score([[1, 1, A]], rows)["coco"]["AP_50"] == close(1.0)
    # with a second specimen behind it: 1/1, then 2/3; recall 0.5 holds 51 of 101 points
    both = score([[1, 1, A], [1, 1, B]], [*rows, [1, 1, B, 0.7]])["coco"]
    assert both["AP_50"] == close((51 + 50 * 2 / 3) / 101)


def test_equal_scores_keep_the_order_of_the_file():
    truth = [[1, 1, A]]
    rows = [[1, 1, FAR, 0.5], [1, 1, A, 0.5]]
    assert score(truth, rows)["coco"]["AP_50"] == close(0.5)
    assert score(truth, rows[::-1])["coco"]["AP_50"] == close(1.0)


def test_equal_scores_across_images_go_by_image_id():
    truth = [[1, 1, A], [2, 1, A]]
    rows = [[2, 1, FAR, 0.5], [1, 1, A, 0.5]]
    # image 1 first whatever the file says: its hit stands before the false alarm
    assert score(truth, rows)["coco"]["AP_50"] == close(51 / 101)


def test_of_equal_overlaps_the_last_specimen_is_taken():
    # the first detection overlaps both alike, the second the right one alone (0.9 > 0.818)
    left, right = [0, 0, 100, 100], [20, 0, 100, 100]
    rows = [[1, 1, [10, 0, 100, 100], 0.9], [1, 1, [0, 0, 100, 90], 0.8]]
    found = score([[1, 1, left], [1, 1, right]], rows)["coco"]
    swapped = score([[1, 1, right], [1, 1, left]], rows)["coco"]
    # IoU of the first with either 90/110 = 0.818: thresholds 0.50 to 0.80, 7 of 10.
    # Taking the right one leaves the left to the second, with IoU 0.9: 9 of 10
    assert found["AR_100"] == close((7 * 2 + 2 * 1) / 20)
    # taking the left one leaves the right one, with IoU 80 x 90 / 11800 = 0.61: 3 of 10
    assert swapped["AR_100"] == close((3 * 2 + 4 * 1 + 2 * 1) / 20)


def test_area_borders_belong_to_both_ranges():
    # 32 x 32 = 1024 is small and medium, 96 x 96 = 9216 medium and large
    truth = [[1, 1, [0, 0, 32, 32]], [1, 1, [200, 0, 96, 96]]]
    coco = score(truth, [[*row, 0.9] for row in truth])["coco"]
    assert [coco[f"AR_{size}"] for size in ("small", "medium", "large")] == [1.0, 1.0, 1.0]
    only = score(truth, [[1, 1, [0, 0, 32, 32], 0.9]])["coco"]
    assert [only[f"AR_{size}"] for size in ("small", "medium", "large")] == [1.0, 0.5, 0.0]


def test_a_false_alarm_of_another_size_does_not_count():
    truth = [[1, 1, [0, 0, 20, 20]]]
    rows = [[1, 1, FAR, 0.9], [1, 1, [0, 0, 20, 20], 0.8]]
    coco = score(truth, rows)["coco"]
    assert coco["AP_50"] == close(0.5)
    assert coco["AP_small"] == close(1.0)


def test_boxes_on_crowd_neither_help_nor_hurt():
    truth = [[1, 1, A], [1, 1, B, 1]]
    # three boxes inside the crowd region, one of them small: intersection over its own area is 1
    rows = [[1, 1, B, 0.95], [1, 1, B, 0.94], [1, 1, [210, 10, 10, 10], 0.93], [1, 1, A, 0.5]]
    coco = score(truth, rows)["coco"]
    assert coco["AP_50"] == close(1.0)
    assert coco["AR_1"] == 0.0  # but they use up the cap
    assert coco["AR_10"] == 1.0


def test_a_scored_specimen_comes_before_crowd():
    # the crowd region fits better, the specimen is taken all the same
    truth = [[1, 1, A], [1, 1, [0, 0, 100, 60], 1]]
    coco = score(truth, [[1, 1, [0, 0, 100, 60], 0.9]])["coco"]
    assert coco["AP_50"] == close(1.0)


def test_crowd_of_another_species_does_not_absorb():
    truth = [[1, 1, A], [1, 2, B, 1]]
    rows = [[1, 1, B, 0.9], [1, 1, A, 0.8]]
    found = score(truth, rows)
    assert found["coco"]["AP_50"] == close(0.5)
    assert found["class_agnostic"]["AP_50"] == close(1.0)


@pytest.mark.parametrize(("n_before", "recall"), [(99, 1.0), (100, 0.0)])
def test_the_cap_is_a_hundred_boxes_of_a_species_on_an_image(n_before, recall):
    rows = [[1, 1, FAR, 0.9]] * n_before + [[1, 1, A, 0.5]]
    assert score([[1, 1, A]], rows)["coco"]["AR_100"] == recall
    # boxes of another species count towards the class-agnostic cap alone
    rows = [[1, 2, FAR, 0.9]] * n_before + [[1, 1, A, 0.5]]
    found = score([[1, 1, A]], rows)
    assert found["coco"]["AR_100"] == 1.0
    assert found["class_agnostic"]["AR_100"] == recall


def test_means_are_over_species_with_scored_specimens():
    # species 1 found, 2 not, 3 crowd only, 4 not there
    truth = [[1, 1, A], [1, 2, B], [1, 3, C, 1]]
    found = score(truth, [[1, 1, A, 0.9]], listed=[1, 2, 3, 4])
    assert found["coco"]["AP_50"] == close(0.5)
    ap = {number: s["AP_50"] for number, s in found["per_species"].items()}
    assert ap == {"1": close(1.0), "2": 0.0, "3": None, "4": None}
    assert [s["n_gt"] for s in found["per_species"].values()] == [1, 1, 0, 0]


def test_class_agnostic_takes_every_name():
    # on semantic_ood a model can only name species that the split does not list
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
def test_recall_points_are_those_of_a_left_search(n):
    # 7/25 is reached by 0.28 though 0.28 * 25 is 7.000000000000001
    needed = _true_positives_needed(np.array([n]))[:, 0]
    recall = np.arange(1, n + 1) / n
    assert needed.tolist() == (np.searchsorted(recall, RECALL_POINTS, side="left") + 1).tolist()
