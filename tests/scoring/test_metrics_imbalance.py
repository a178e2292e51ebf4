"""Hand-computed class imbalance."""

import pytest
from support.scoring import Split, evaluate

A = [0, 0, 100, 100]
FAR = [700, 700, 100, 100]


def imbalance(n_images, detected, scored=None, split="iid_test"):
    """The family, for species by number of training images, of which ``detected`` are detected."""
    scored = n_images if scored is None else scored
    train = [[1000 * n + i, n, A] for n, count in n_images.items() for i in range(count)]
    truth = [[n, n, A] for n in scored]
    rows = [[n, n, A if n in detected else FAR, 0.9] for n in scored]
    splits = {split: Split(truth, rows, listed=sorted(n_images))}
    return evaluate(splits, train=train)["per_split"][split]["class_imbalance"]


def test_quarters_of_eight_species():
    # ranks 1 and 2 are tail (<= 8/4), 7 and 8 head (> 6)
    n_images = {1: 80, 2: 1, 3: 30, 4: 40, 5: 50, 6: 2, 7: 70, 8: 60}
    got = imbalance(n_images, detected={1, 2, 3, 4})
    expected = {
        "n_species_evaluated": 8,
        "tail_n_species": 2,
        "tail_AP_50": 0.5,  # 2 detected, 6 missed
        "tail_min_train_imgs": 1,
        "tail_max_train_imgs": 2,
        "medium_n_species": 4,
        "medium_AP_50": 0.5,  # 3 and 4 detected, 5 and 8 missed
        "medium_min_train_imgs": 30,
        "medium_max_train_imgs": 60,
        "head_n_species": 2,
        "head_AP_50": 0.5,  # 1 detected, 7 missed
        "head_min_train_imgs": 70,
        "head_max_train_imgs": 80,
        "head_minus_tail_AP_50": 0.0,
    }
    assert {key: got[key] for key in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "sizes"), [(4, (1, 2, 1)), (5, (1, 2, 2)), (6, (1, 3, 2)), (7, (1, 4, 2)), (9, (2, 4, 3))]
)
def test_sizes_of_the_tiers(n, sizes):
    got = imbalance({i: i for i in range(1, n + 1)}, detected=())
    assert tuple(got[f"{tier}_n_species"] for tier in ("tail", "medium", "head")) == sizes


def test_three_species_have_no_tiers():
    assert imbalance({1: 1, 2: 2, 3: 3}, detected={1}) == {"n_species_evaluated": 3}


def test_species_without_training_images_or_specimens_are_excluded():
    got = imbalance({1: 1, 2: 2, 3: 3, 4: 4, 5: 0, 6: 6}, detected=(), scored=[1, 2, 3, 4, 5])
    assert got["n_species_evaluated"] == 4


def test_images_with_several_specimens_count_once():
    truth = [[n, n, A] for n in range(1, 5)]
    train = [[1, 1, A]] * 5 + [[2, 2, A], [3, 2, A], [2, 3, A], [3, 3, A], [4, 3, A], [4, 4, A]]
    got = evaluate({"iid_test": Split(truth, [])}, train=train)["per_split"]["iid_test"]
    assert got["class_imbalance"]["tail_max_train_imgs"] == 1
    assert got["class_imbalance"]["head_max_train_imgs"] == 3


def test_hand_computed_correlation():
    # x = 1, 2, 3, 4 and AP 0, 0, 1, 1: r = 2 / sqrt(5)
    got = imbalance({1: 1, 2: 2, 3: 3, 4: 4}, detected={3, 4})
    assert got["AP_50_train_count_correlation"] == pytest.approx(2 / 5**0.5)
    assert got["AP_50_95_train_count_correlation"] == pytest.approx(2 / 5**0.5)
    assert got["head_minus_tail_AP_50"] == pytest.approx(1.0)


def test_no_correlation_with_a_constant():
    for n_images, detected in (
        ({i: i for i in range(1, 5)}, ()),
        (dict.fromkeys(range(1, 5), 2), {1}),
    ):
        assert imbalance(n_images, detected)["AP_50_train_count_correlation"] is None


def test_empty_without_training_annotations():
    split = {"iid_test": Split([[1, 1, A]], [])}
    got = evaluate(split)["per_split"]["iid_test"]
    assert got["class_imbalance"] == {}
