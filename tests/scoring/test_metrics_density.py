"""Hand-computed density strata."""

import pytest
from support.scoring import Taxon, score

FAR = [900, 900, 50, 50]


def place(i):
    return [60 * i, 0, 50, 50]


def plate(image, category, n, n_crowd=0):
    """``n`` scored specimens in a row, followed by crowd."""
    return [[image, category, place(i), int(i >= n)] for i in range(n + n_crowd)]


def detected(image, *species):
    """Detections on the first specimens of a plate, with these predicted species."""
    return [[image, name, place(i), 0.9] for i, name in enumerate(species)]


def test_strata_count_crowd():
    truth = [
        *plate(1, 1, 1),  # one specimen
        *plate(2, 1, 1, n_crowd=1),  # two, one scored
        *plate(3, 1, 4),
        *plate(4, 1, 2, n_crowd=9),  # eleven: dense, two scored
        *plate(5, 1, 0, n_crowd=3),  # none scored: in no stratum
    ]
    rows = [*detected(1, 1), *detected(3, 1, 2, 2), *detected(4, 2), [5, 1, FAR, 0.9]]
    strata = score(truth, rows)["density"]["strata"]
    counts = {
        name: tuple(s[k] for k in ("n_images", "n_images_with_tp", "n_gt", "n_matched_tp"))
        for name, s in strata.items()
    }
    assert counts == {
        "1": (1, 1, 1, 1),
        "2 to 10": (2, 1, 5, 3),
        ">10": (1, 1, 2, 1),
        ">1": (3, 2, 7, 4),
    }
    few = strata["2 to 10"]
    assert few["recall"] == pytest.approx(3 / 5)
    assert few["classification_given_detection_acc"] == pytest.approx(1 / 3)
    assert few["species_recall"] == pytest.approx(1 / 5)
    # images 2 and 3: recall 0 and 3/4; the accuracy of image 3 alone; species recall 0 and 1/4
    assert few["image_mean_recall"] == pytest.approx(3 / 8)
    assert few["image_mean_classification_given_detection_acc"] == pytest.approx(1 / 3)
    assert few["image_mean_species_recall"] == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("n", "strata"),
    [(1, {"1"}), (2, {"2 to 10", ">1"}), (10, {"2 to 10", ">1"}), (11, {">10", ">1"})],
)
def test_limits_of_the_strata(n, strata):
    got = score(plate(1, 1, n), [])["density"]["strata"]
    assert {name for name, s in got.items() if s["n_images"]} == strata


def test_strata_by_band_on_unseen_species():
    taxa = {1: Taxon("A", "T", "S", "near_genus"), 2: Taxon("B", "U", "S", "far_tribe")}
    # both bands on one image of two specimens; the near one is detected
    truth = [[1, 1, place(0)], [1, 2, place(1)]]
    density = score(truth, detected(1, 1), "semantic_ood", taxa=taxa)["density"]
    bands = {name: s["2 to 10"] for name, s in density["by_band"].items()}
    assert set(bands) == {"near_genus", "far_tribe"}
    assert (bands["near_genus"]["n_gt"], bands["near_genus"]["recall"]) == (1, 1.0)
    assert (bands["far_tribe"]["n_gt"], bands["far_tribe"]["recall"]) == (1, 0.0)
    # the image counts as one with two specimens for both bands
    assert density["by_band"]["near_genus"]["1"]["n_images"] == 0
    assert score(truth, [], taxa=taxa)["density"]["by_band"] == {}
