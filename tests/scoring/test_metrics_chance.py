"""Misidentifications against chance, hand-computed."""

import pytest
from support.scoring import Taxon, score

A = [0, 0, 100, 100]
TAXA = {
    1: Taxon("A", "T"),
    2: Taxon("A", "T"),
    3: Taxon("B", "T"),
    4: Taxon("C", "U"),
    5: Taxon("", ""),
}


def chance(*pairs):
    """The family for true positives of (true, predicted) species."""
    truth = [[i, true, A] for i, (true, _) in enumerate(pairs)]
    rows = [[i, predicted, A, 0.9] for i, (_, predicted) in enumerate(pairs)]
    return score(truth, rows, taxa=TAXA)["chance"]


def test_hand_computed_fractions():
    # predicted: 1 once, 2 twice, 4 once; f = 1/4, 1/2, 1/4
    found = chance((1, 1), (1, 2), (3, 2), (1, 4))
    assert found["n_misidentified"] == 3
    # misidentified (1 as 2, 3 as 2, 1 as 4): one within the correct genus, two within the tribe
    assert found["observed_genus"] == pytest.approx(1 / 3)
    assert found["observed_tribe"] == pytest.approx(2 / 3)
    # true 1: others of genus A have f = 1/2, over 1 - 1/4; true 3: none in genus B
    assert found["expected_genus"] == pytest.approx((2 / 3 + 0 + 2 / 3) / 3)
    # tribe: true 1 as before; true 3, which is never predicted: (1/4 + 1/2) / 1
    assert found["expected_tribe"] == pytest.approx((2 / 3 + 3 / 4 + 2 / 3) / 3)
    assert found["enrichment_genus"] == pytest.approx((1 / 3) / (4 / 9))
    assert found["enrichment_tribe"] == pytest.approx((2 / 3) / (25 / 36))


def test_no_fractions_without_misidentifications():
    found = chance((1, 1), (2, 2))
    assert found.pop("n_misidentified") == 0
    assert set(found.values()) == {None}


def test_no_enrichment_if_the_expected_fraction_is_zero():
    found = chance((1, 4))
    assert (found["observed_genus"], found["expected_genus"]) == (0.0, 0.0)
    assert found["enrichment_genus"] is None


def test_a_species_without_a_genus_never_has_the_correct_genus():
    found = chance((5, 1), (1, 5))
    assert (found["observed_genus"], found["observed_tribe"]) == (0.0, 0.0)
    assert (found["expected_genus"], found["expected_tribe"]) == (0.0, 0.0)
