"""Hand-computed operating points."""

import pytest
from support.scoring import score

A, B, C = [0, 0, 100, 100], [200, 0, 100, 100], [400, 0, 100, 100]
FAR = [700, 700, 100, 100]
TRUTH = [[1, 1, A], [2, 1, A], [2, 1, B], [2, 1, C, 1]]
ROWS = [
    [1, 1, A, 0.9],  # true positive, correct species
    [2, 2, A, 0.6],  # true positive, wrong species
    [2, 1, FAR, 0.5],  # false positive
    [2, 1, C, 0.95],  # on crowd: ignored
    [1, 1, FAR, 0.3],  # false positive
]


def test_fixed_thresholds():
    found = score(TRUTH, ROWS)["operating_point"]
    assert found["at_0.50"] == {
        "confidence": 0.5,
        "n_detections": 3,  # including the score at the threshold
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "F1": pytest.approx(2 / 3),
        "species_recall": pytest.approx(1 / 3),
        "false_positives_per_image": 0.5,
    }
    assert found["at_0.25"]["n_detections"] == 4
    assert found["at_0.25"]["precision"] == 0.5
    assert found["at_0.25"]["F1"] == pytest.approx(4 / 7)


def test_threshold_of_the_best_f1():
    # 0.9: 2/4; 0.6: 4/5; 0.5: 4/6; 0.3: 4/7
    best = score(TRUTH, ROWS)["operating_point"]["best_F1"]
    assert (best["confidence"], best["F1"]) == (0.6, pytest.approx(0.8))
    assert (best["precision"], best["recall"]) == (1.0, pytest.approx(2 / 3))


def test_the_highest_threshold_wins_on_equal_f1():
    # 0.9: 2 * 1/(1 + 2); 0.5: 2 * 2/(4 + 2), equal
    rows = [[1, 1, A, 0.9], [1, 1, FAR, 0.7], [1, 1, FAR, 0.6], [1, 1, B, 0.5]]
    best = score([[1, 1, A], [1, 1, B]], rows)["operating_point"]["best_F1"]
    assert (best["confidence"], best["F1"]) == (0.9, pytest.approx(2 / 3))


def test_the_curve_has_101_thresholds():
    curve = score(TRUTH, ROWS)["operating_point"]["curve"]
    assert curve["confidence"] == [i / 100 for i in range(101)]
    assert {len(column) for column in curve.values()} == {101}
    assert curve["recall"][60] == pytest.approx(2 / 3)
    assert curve["recall"][61] == pytest.approx(1 / 3)
    assert curve["recall"][90] == pytest.approx(1 / 3)
    # no detections above the best score: precision undefined, recall and F1 zero
    assert (curve["precision"][91], curve["recall"][91], curve["F1"][91]) == (None, 0.0, 0.0)
    assert curve["false_positives_per_image"][91] == 0.0
