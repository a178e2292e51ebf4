"""Reliability in bins of equal size: by hand, and with values that scikit-learn computed."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.scoring import Split, evaluate

from benchmark_eval.scoring.metrics.reliability import equal_mass_bins
from benchmark_eval.scoring.metrics.summary import auroc

STORED = json.loads((Path(__file__).parent / "cases/sklearn_calibration.json").read_text())
BOX = [0, 0, 100, 100]


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda case: case["name"])
def test_equals_scikit_learn(case):
    scores, happened = np.array(case["scores"]), np.array(case["happened"], np.bool_)
    bins = equal_mass_bins(np.sort(scores), np.sort(scores[happened]))
    assert bins.mean_confidence == pytest.approx(case["mean_confidence"], abs=1e-12)
    assert bins.observed == pytest.approx(case["observed"], abs=1e-12)
    assert bins.edges == np.quantile(scores, np.linspace(0, 1, 11)).tolist()
    assert sum(bins.n_in_bin) == len(scores)
    if case["roc_auc_of_novelty"] is not None:
        found = auroc(1 - scores[~happened], 1 - scores[happened])
        assert found == pytest.approx(case["roc_auc_of_novelty"], abs=1e-12)


def test_two_bins_by_hand():
    scores = np.array([0.1, 0.2, 0.6, 0.8])
    bins = equal_mass_bins(scores, np.array([0.6]), n_bins=2)
    assert bins.n_in_bin == [2, 2]
    assert bins.mean_confidence == pytest.approx([0.15, 0.7])
    assert bins.observed == [0.0, 0.5]
    assert bins.ECE_equal_mass == pytest.approx((0.15 + 0.2) / 2)


def test_tied_scores_share_a_bin_and_none_give_none():
    tied = equal_mass_bins(np.full(7, 0.5), np.full(3, 0.5))
    assert (tied.n_in_bin, tied.observed, tied.mean_confidence) == ([7], [3 / 7], [0.5])
    nothing = equal_mass_bins(np.empty(0), np.empty(0))
    assert (nothing.n_detections, nothing.ECE_equal_mass, nothing.n_in_bin) == (0, None, [])


def test_three_events_over_their_detections():
    rows = [[1, 1, BOX, 0.9], [2, 2, BOX, 0.8], [2, 1, [500, 0, 9, 9], 0.2]]
    truth = [[1, 1, BOX], [2, 1, BOX], [3, 1, BOX, 1]]
    rows.append([3, 1, BOX, 0.7])  # ignored on a crowd region
    splits = {"iid_test": Split(truth, rows, [1, 2]), "semantic_ood": Split(truth, rows, [1, 2])}
    result = evaluate(splits)
    found = result["per_split"]["iid_test"]["reliability"]
    assert {event: found[event]["all"]["n_detections"] for event in found} == {
        "detected": 3,
        "identified": 2,
        "detected_and_identified": 3,
    }
    assert result["operating_threshold"]["confidence"] == 0.8
    assert found["detected"]["operating"]["observed"] == [1.0, 1.0]
    assert found["identified"]["operating"]["observed"] == [0.0, 1.0]
    assert found["detected_and_identified"]["operating"]["n_detections"] == 2
    assert list(result["per_split"]["semantic_ood"]["reliability"]) == ["detected"]
