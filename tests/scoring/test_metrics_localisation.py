"""Hand-computed families of the localisation matching: calibration, agreement, decomposition.

Species ignored, no cap; detections on a crowd region are ignored.
"""

import pytest
from support.scoring import Taxon, score

A, B, C = [0, 0, 100, 100], [200, 0, 100, 100], [400, 0, 100, 100]
HALF = [0, 0, 100, 50]
FAR = [700, 700, 100, 100]


def test_detections_per_specimen_and_per_image():
    # two scored, one crowd, two images, three detections
    truth = [[1, 1, A], [1, 1, B], [2, 1, A, 1]]
    density = score(truth, [[1, 1, A, 0.9], [1, 1, FAR, 0.9], [2, 1, A, 0.9]])
    assert density["prediction_density"] == {
        "n_predictions": 3,
        "n_gt": 2,
        "n_images": 2,
        "boxes_per_gt": 1.5,
        "boxes_per_image": 1.5,
    }


def test_hand_computed_calibration():
    truth = [[1, 1, A], [1, 1, B], [1, 1, C, 1]]
    rows = [
        [1, 1, A, 0.9],  # true positive
        [1, 2, B, 0.8],  # true positive, whatever its species
        [1, 1, FAR, 0.85],  # false positive
        [1, 1, C, 0.95],  # on crowd: ignored
        [1, 1, FAR, 0.0],  # false positive
    ]
    found = score(truth, rows)["calibration"]
    assert found["n_predictions"] == 4
    assert found["mean_confidence"] == pytest.approx((0.9 + 0.8 + 0.85 + 0.0) / 4)
    assert found["confidence_histogram"] == [1, 0, 0, 0, 0, 0, 0, 0, 2, 1]
    assert found["accuracy_per_bin"] == [0.0, *[None] * 7, 0.5, 1.0]
    # 1/4 |0 - 0| + 2/4 |0.825 - 0.5| + 1/4 |0.9 - 1|
    assert found["ECE"] == pytest.approx(0.5 * 0.325 + 0.25 * 0.1)


@pytest.mark.parametrize(
    ("confidence", "which"),
    # the third inner edge of linspace is 0.30000000000000004: 0.3 is below it; so are 0.6 and 0.7
    [
        *((0.0, 0), (0.1, 1), (0.2, 2), (0.3, 2), (0.30000000000000004, 3), (0.4, 4), (0.5, 5)),
        *((0.6, 5), (0.6000000000000001, 6), (0.7, 6), (0.7000000000000001, 7), (0.8, 8)),
        *((0.9, 9), (1.0, 9)),
    ],
)
def test_a_bin_includes_its_lower_edge(confidence, which):
    found = score([[1, 1, A]], [[1, 1, A, confidence]])["calibration"]
    assert found["confidence_histogram"].index(1) == which


def test_iou_equal_to_the_threshold_matches():
    for iou, n_tp in ((0.5, 1), (0.51, 0)):
        found = score([[1, 1, A]], [[1, 1, HALF, 0.9]], iou=iou)["decomposition"]
        assert found["n_matched_tp"] == n_tp
    found = score([[1, 1, A]], [[1, 1, A, 0.9]], iou=1.0)["decomposition"]
    assert found["n_matched_tp"] == 1


def test_the_first_specimen_matches_on_equal_iou():
    # the first detection overlaps both equally (90/110); the second reaches the right one (0.6),
    # but not the left one: 80 x 60 / (10000 + 6000 - 4800) = 0.43
    left, right = [0, 0, 100, 100], [20, 0, 100, 100]
    rows = [[1, 1, [10, 0, 100, 100], 0.9], [1, 1, [20, 0, 100, 60], 0.8]]
    for truth, n_tp in (([left, right], 2), ([right, left], 1)):
        found = score([[1, 1, box] for box in truth], rows)["decomposition"]
        assert found["n_matched_tp"] == n_tp


def test_crowd_matches_by_plain_iou():
    # a small detection inside a crowd region: intersection over its area is 1, IoU 0.01
    truth = [[1, 1, A], [1, 1, B, 1]]
    found = score(truth, [[1, 1, [210, 10, 10, 10], 0.9], [1, 1, B, 0.8], [1, 1, HALF, 0.7]])
    assert found["calibration"]["n_predictions"] == 2
    assert found["decomposition"]["n_matched_tp"] == 1


TAXA = {
    1: Taxon("A", "T", "S", "near_genus"),
    2: Taxon("A", "T", "S", "near_genus"),
    3: Taxon("B", "T", "S", "mid_tribe"),
    4: Taxon("C", "U", "S", ""),
    5: Taxon("", "", "", "far_tribe"),
    6: Taxon("", "", "", "far_tribe"),
}


def identified(true, *species):
    """One specimen per image, each detected with one of these predicted species."""
    truth = [[i, true, A] for i in range(len(species))]
    return truth, [[i, predicted, A, 0.9] for i, predicted in enumerate(species)]


def test_agreement_is_cumulative():
    truth, rows = identified(1, 1, 2, 3, 4)
    found = score(truth, rows, taxa=TAXA)["hierarchical"]
    assert found["n_matched"] == 4
    fractions = [found[f"correct_{rank}"] for rank in ("species", "genus", "tribe", "subfamily")]
    assert fractions == [0.25, 0.5, 0.75, 1.0]
    assert found["per_band"] == {
        "near_genus": {
            "n": 4,
            "correct_species": 0.25,
            "correct_genus": 0.5,
            "correct_tribe": 0.75,
            "correct_subfamily": 1.0,
        }
    }


def test_blank_ranks_agree_with_nothing():
    truth, rows = identified(5, 6, 5)
    found = score(truth, rows, taxa=TAXA)["hierarchical"]
    # not even for the correct species
    assert found["correct_species"] == 0.5
    assert found["correct_genus"] == found["correct_tribe"] == found["correct_subfamily"] == 0.0


def test_bands_are_those_of_the_true_species():
    truth = [[1, 1, A], [2, 3, A], [3, 4, A], [4, 3, A]]
    rows = [[1, 3, A, 0.9], [2, 3, A, 0.9], [3, 1, A, 0.9], [4, 1, FAR, 0.9]]
    bands = score(truth, rows, taxa=TAXA)["hierarchical"]["per_band"]
    # species 4 has no band; one of species 3 was detected
    assert {name: band["n"] for name, band in bands.items()} == {"near_genus": 1, "mid_tribe": 1}
    assert bands["mid_tribe"]["correct_species"] == 1.0
    assert bands["near_genus"]["correct_genus"] == 0.0
    assert bands["near_genus"]["correct_tribe"] == 1.0


def test_hand_computed_decomposition():
    # four specimens and a crowd region; three detected, one correctly identified, two congeners
    truth = [[1, 1, A], [2, 1, A], [3, 1, A], [4, 1, A], [4, 1, B, 1]]
    rows = [[1, 1, A, 0.9], [2, 2, HALF, 0.6], [3, 4, A, 0.3], [4, 1, FAR, 0.9]]
    found = score(truth, rows, taxa=TAXA)["decomposition"]
    expected = {
        "n_gt": 4,
        "n_matched_tp": 3,
        "detection_recall": 0.75,
        "classification_given_detection_acc": 1 / 3,
        "acc_species_given_det": 1 / 3,
        "acc_genus_given_det": 2 / 3,
        "acc_tribe_given_det": 2 / 3,
        "species_recall": 0.25,
        "genus_recall": 0.5,
        "tribe_recall": 0.5,
        "localisation_loss": 0.25,
        "classification_loss": 0.5,
        "mean_confidence_matched": pytest.approx(0.6),
        "median_iou_matched": 1.0,
        "is_species_meaningful": True,
    }
    assert {key: found[key] for key in expected} == expected


def test_the_ratio_of_two_aps_is_not_clamped():
    # both correctly identified, and two false positives of another species with higher scores:
    # they lower class-agnostic AP@.5, but not joint AP@.5 of species 1
    truth = [[1, 1, A], [1, 1, B]]
    rows = [[1, 2, FAR, 0.95], [1, 2, FAR, 0.94], [1, 1, A, 0.9], [1, 1, B, 0.8]]
    found = score(truth, rows)["decomposition"]
    assert found["joint_AP_50"] == pytest.approx(1.0)
    assert found["detection_only_AP_50"] == pytest.approx(0.5)  # 1/3 and 2/4
    assert found["classification_loss_ratio"] == pytest.approx(-1.0)
    assert "no upper bound" in found["classification_loss_ratio_note"]


def test_species_are_not_meaningful_on_unseen_species():
    truth, rows = identified(1, 2)
    found = score(truth, rows, "semantic_ood", taxa=TAXA)["decomposition"]
    assert found["is_species_meaningful"] is False
    assert found["classification_loss_ratio"] == pytest.approx(1.0)


def test_no_loss_ratio_if_ap_is_zero():
    found = score([[1, 1, A]], [[1, 1, FAR, 0.9]])["decomposition"]
    assert (found["joint_AP_50"], found["detection_only_AP_50"]) == (0.0, 0.0)
    assert found["classification_loss_ratio"] is None


def test_counts_per_species():
    truth = [[1, 1, A], [2, 1, A], [3, 1, A], [4, 3, A], [4, 3, B, 1]]
    rows = [[1, 1, A, 0.9], [2, 2, A, 0.9], [3, 1, FAR, 0.9], [4, 1, A, 0.9], [4, 3, B, 0.9]]
    found = score(truth, rows, taxa=TAXA, listed=[1, 2, 3])["per_species"]
    keys = ("n_gt", "n_matched_tp", "n_correct_species", "n_correct_genus")
    counts = {number: tuple(s[key] for key in keys) for number, s in found.items()}
    assert counts == {"1": (3, 2, 1, 2), "2": (0, 0, 0, 0), "3": (1, 1, 0, 0)}


def test_open_vocabulary_recall_keeps_the_file_order_of_equal_scores():
    tall, low = [0, 0, 10, 10], [0, 0, 10, 6]
    unlisted = [1, 2, [0, 0, 10, 12.5], 0.5]  # IoU 100/125 = 0.8 with tall, 60/125 = 0.48 with low
    listed = [1, 1, [0, 0, 10, 8.01], 0.5]  # IoU 80.1/100 = 0.801 and 60/80.1 = 0.749

    def recall(*rows):
        taxa = {1: Taxon("A"), 2: Taxon("A")}
        truth = [[1, 1, tall], [1, 1, low]]
        found = score(truth, list(rows), "inat_test", listed=[1], taxa=taxa)
        return found["decomposition"]["detection_recall_open_vocabulary"]

    # the first detection matches tall; only the listed one reaches 0.5 with low
    assert recall(unlisted, listed) == 1.0
    assert recall(listed, unlisted) == 0.5
    # a higher score goes first, wherever it stands in the file
    assert recall(listed, [*unlisted[:3], 0.6]) == 1.0
    far = [1, 1, [500, 500, 9, 9], 0.5]
    assert recall(far, unlisted, far, listed, far) == 1.0
    assert recall(far, listed, far, unlisted, unlisted) == 0.5
