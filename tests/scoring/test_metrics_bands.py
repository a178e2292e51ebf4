"""Metrics by distance band, also with two bands on one image."""

import pytest
from support.scoring import Taxon, score

A, B = [0, 0, 100, 100], [200, 0, 100, 100]
HALF = [0, 0, 100, 60]
FAR = [700, 700, 100, 100]
TAXA = {
    1: Taxon("A", "T", "S", "near_genus"),
    2: Taxon("B", "U", "S", "far_tribe"),
    3: Taxon("C", "U", "S", "far_tribe"),
    4: Taxon("D", "V", "S", ""),
    7: Taxon("A", "T", "S"),
    8: Taxon("E", "U", "R"),
}


def by_band(truth, rows, **options):
    blocks = score(truth, rows, "semantic_ood", taxa=TAXA, **options)
    return blocks["ood_by_band"]["by_band"]


def test_hand_computed_bands():
    truth = [[1, 1, A], [1, 1, B, 1], [2, 2, A], [2, 3, B], [3, 4, A]]
    rows = [
        [1, 7, A, 0.9],  # near, correct genus
        [1, 8, B, 0.2],  # on near's crowd
        [2, 8, A, 0.6],  # far, correct tribe, wrong subfamily
        [2, 7, FAR, 0.1],
        [3, 7, A, 0.5],  # no band
    ]
    bands = by_band(truth, rows)
    assert list(bands) == ["near_genus", "far_tribe"]
    assert bands["near_genus"] == pytest.approx(
        {
            "n_species": 1,
            "n_annotations": 2,  # crowd included
            "n_images": 1,
            "class_agnostic_AP_50": 1.0,
            "class_agnostic_AP_50_95": 1.0,
            "class_agnostic_AR_100": 1.0,
            "n_matched_tp": 1,
            "correct_genus": 1.0,
            "correct_tribe": 1.0,
            "correct_subfamily": 1.0,
            "mean_confidence_matched": 0.9,
            "mean_confidence_all_preds": 0.55,
        }
    )
    assert bands["far_tribe"] == pytest.approx(
        {
            "n_species": 2,
            "n_annotations": 2,
            "n_images": 1,
            "class_agnostic_AP_50": 51 / 101,
            "class_agnostic_AP_50_95": 51 / 101,
            "class_agnostic_AR_100": 0.5,
            "n_matched_tp": 1,
            "correct_genus": 0.0,
            "correct_tribe": 1.0,
            "correct_subfamily": 0.0,
            "mean_confidence_matched": 0.6,
            "mean_confidence_all_preds": 0.35,
        }
    )


def test_two_bands_on_an_image_are_matched_separately():
    # near and far overlap; the only detection fits near better
    truth = [[1, 1, A], [1, 2, HALF]]
    rows = [[1, 7, A, 0.9]]
    blocks = score(truth, rows, "semantic_ood", taxa=TAXA)
    assert blocks["decomposition"]["n_matched_tp"] == 1
    bands = blocks["ood_by_band"]["by_band"]
    # on its own, far is detected as well, with IoU 0.6
    assert bands["near_genus"]["n_matched_tp"] == bands["far_tribe"]["n_matched_tp"] == 1
    assert bands["far_tribe"]["class_agnostic_AR_100"] == pytest.approx(0.3)
    # taxonomic agreement uses the matching of the split
    assert list(blocks["hierarchical"]["per_band"]) == ["near_genus"]


def test_a_true_positive_of_one_band_is_a_false_positive_of_the_other():
    truth = [[1, 1, A], [1, 2, B]]
    bands = by_band(truth, [[1, 7, A, 0.9], [1, 7, B, 0.8]])
    assert bands["near_genus"]["class_agnostic_AP_50"] == pytest.approx(1.0)
    assert bands["far_tribe"]["class_agnostic_AP_50"] == pytest.approx(0.5)
    assert bands["far_tribe"]["mean_confidence_matched"] == 0.8
    assert bands["far_tribe"]["mean_confidence_all_preds"] == pytest.approx(0.85)


def test_unlisted_species_are_in_no_band():
    assert by_band([[1, 1, A]], [], listed=[4]) == {}
