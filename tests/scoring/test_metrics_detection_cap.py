"""Hand-computed AR at different caps."""

from support.scoring import score

A = [0, 0, 100, 100]
FAR = [700, 700, 100, 100]


def test_specimens_detected_beyond_the_caps_of_100_and_300():
    truth = [[1, 1, A], [2, 1, A], [3, 1, A], [4, 1, A]]
    rows = [
        [1, 1, A, 0.1],
        *[[2, 1, FAR, 0.9]] * 100,
        [2, 1, A, 0.1],
        *[[3, 1, FAR, 0.9]] * 300,
        [3, 1, A, 0.1],
    ]
    found = score(truth, rows)["detection_cap"]
    assert found == {
        "n_images_over_100": 2,
        "n_detections_over_100": 1 + 201,
        "AR_100": 0.25,
        "AR_300": 0.5,
        "AR_uncapped": 0.75,
    }


def test_100_detections_are_not_over_the_cap():
    found = score([[1, 1, A]], [[1, 1, FAR, 0.9]] * 99 + [[1, 1, A, 0.1]])["detection_cap"]
    assert (found["n_images_over_100"], found["n_detections_over_100"]) == (0, 0)
    assert found["AR_100"] == found["AR_uncapped"] == 1.0
