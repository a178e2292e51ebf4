"""Hand-computed metrics across splits."""

import numpy as np
import pytest
from support.scoring import Split, Taxon, evaluate

from benchmark_eval.scoring.metrics.summary import auroc

A, B = [0, 0, 100, 100], [200, 0, 100, 100]
FAR = [700, 700, 100, 100]
TAXA = {
    1: Taxon("A", "T", "S"),
    2: Taxon("B", "T", "S"),
    101: Taxon("A", "T", "S", "near_genus"),
    102: Taxon("C", "U", "S", "far_tribe"),
}


def detected(category, *scores):
    """One specimen per image, each detected with the given confidence."""
    truth = [[i, category, A] for i in range(len(scores))]
    return Split(truth, [[*row, score] for row, score in zip(truth, scores, strict=True)])


def summary(**splits):
    return evaluate(splits, taxa=TAXA)["summary"]


def test_photography_gaps():
    # indoors species 1 is detected, 2 missed; outdoors 1 is detected, 2 not listed
    indoors = Split([[1, 1, A], [2, 2, A]], [[1, 1, A, 0.9], [2, 2, FAR, 0.9]])
    got = summary(iid_test=indoors, inat_test=detected(1, 0.5))
    assert got["photography_robustness_gap_AP_50"] == pytest.approx(0.5 - 1.0)
    assert got["n_shared_species_iid_inat"] == 1
    assert got["photography_robustness_gap_AP_50_shared_species"] == pytest.approx(0.0)
    assert got["species_generalization_gap_AR_100"] is None  # semantic_ood was not evaluated


def test_generalization_gaps():
    ood = Split([[1, 101, A], [2, 102, A]], [[1, 1, A, 0.4], [2, 1, FAR, 0.2]])
    got = summary(iid_test=detected(1, 0.9, 0.7), semantic_ood=ood)
    assert got["species_generalization_gap_AR_100"] == pytest.approx(0.5)
    assert got["species_generalization_gap_AP_50"] == pytest.approx(1 - 51 / 101)
    assert got["confidence_drop_OOD"] == pytest.approx(0.8 - 0.3)
    assert got["ood_band_gap_AR_100"] == pytest.approx(1.0)
    assert got["ood_band_gap_AP_50"] == pytest.approx(1.0)
    # far_tribe has no true positive
    assert got["ood_band_gap_correct_genus"] is got["ood_band_gap_confidence"] is None


def test_band_gaps():
    ood = Split([[1, 101, A], [2, 102, A]], [[1, 1, A, 0.6], [2, 1, A, 0.4]])
    got = summary(semantic_ood=ood)
    assert got["ood_band_gap_correct_genus"] == 1.0
    assert got["ood_band_gap_correct_tribe"] == 1.0
    assert got["ood_band_gap_confidence"] == pytest.approx(0.2)


def test_hand_computed_novelty():
    ood = Split(
        [[1, 101, A], [2, 102, A], [3, 101, A]],
        [[1, 1, A, 0.25], [2, 1, A, 0.5], [3, 1, FAR, 0.1]],  # the last is a false positive
    )
    got = summary(iid_test=detected(1, 0.5, 0.75), semantic_ood=ood)
    # novel 0.75 and 0.5 against known 0.5 and 0.25: three pairs ordered correctly, one tie
    assert got["novelty_det_AUROC"] == 3.5 / 4
    # the threshold is the 5 % quantile of 0.5 and 0.75: 0.5125, above both known
    assert got["novelty_det_FPR@95TPR"] == 0.0
    assert got["novelty_known_mean_conf"] == 0.625
    assert got["novelty_novel_mean_conf"] == 0.375
    assert (got["n_known_tp"], got["n_novel_tp"]) == (2, 2)
    assert got["novelty_det_AUROC_near_genus"] == 1.0
    assert got["novelty_det_AUROC_far_tribe"] == 0.75
    assert got["novelty_det_AUROC_mid_tribe"] is None
    assert got["novelty_novel_mean_conf_far_tribe"] == 0.5


def test_false_positives_at_equal_scores_count():
    got = summary(iid_test=detected(1, 0.5, 0.75), semantic_ood=detected(101, 0.5, 0.5))
    # both novel scores are 0.5, and so is their quantile: it equals a known one
    assert got["novelty_det_FPR@95TPR"] == 0.5


def test_novelty_requires_true_positives_on_both_splits():
    nothing = Split([[1, 101, A]], [[1, 1, FAR, 0.9]])
    for splits in (
        {"iid_test": detected(1, 0.9)},
        {"iid_test": detected(1, 0.9), "semantic_ood": nothing},
    ):
        got = summary(**splits)
        keys = [
            key for key in got if key.startswith("novelty") or key in ("n_known_tp", "n_novel_tp")
        ]
        assert len(keys) == 12
        assert {got[key] for key in keys} == {None}


def test_headline():
    results = evaluate(
        {"iid_test": detected(1, 0.9), "semantic_ood": detected(101, 0.9)}, taxa=TAXA
    )
    assert results["headline"] == {
        "iid_test.coco.AP_50_95": pytest.approx(1.0),
        "inat_test.coco.AP_50_95": None,
        "semantic_ood.class_agnostic.AR_100": 1.0,
    }


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [([2], [1], 1.0), ([1], [2], 0.0), ([1], [1], 0.5), ([1, 3], [2], 0.5), ([2, 2], [2, 1], 0.75)],
)
def test_auroc_is_the_probability_that_a_positive_outranks_a_negative(positive, negative, area):
    assert auroc(np.array(positive, float), np.array(negative, float)) == area


def test_a_species_outside_every_area_range_is_not_shared():
    # COCO's ranges end at 1e10 px²: AP of a larger specimen is undefined
    huge = [0, 0, 2e5, 2e5]
    split = Split([[1, 1, huge], [1, 2, A]], [[1, 1, huge, 0.9], [1, 2, A, 0.9]])
    results = evaluate({"iid_test": split, "inat_test": split}, taxa=TAXA)
    species = results["per_split"]["iid_test"]["per_species"]["1"]
    assert (species["n_gt"], species["AP_50"]) == (1, None)
    assert results["summary"]["n_shared_species_iid_inat"] == 1
    assert results["summary"]["photography_robustness_gap_AP_50_shared_species"] == 0.0
