"""``<model>_report.txt``."""

import re

import pytest
from msgspec.structs import replace
from support.factories import evaluation

from benchmark_eval.results.model_report import render_text


def with_recall(result, split, n_gt, n_tp, open_vocabulary):
    """The result with these counts and open-vocabulary recall on a split."""
    block = replace(
        result.per_split[split].decomposition,
        n_gt=n_gt,
        n_matched_tp=n_tp,
        detection_recall=n_tp / n_gt,
        detection_recall_open_vocabulary=open_vocabulary / n_gt,
    )
    splits = {**result.per_split, split: replace(result.per_split[split], decomposition=block)}
    return replace(result, per_split=splits)


@pytest.mark.parametrize(
    ("n_gt", "n_tp", "open_vocabulary", "text"),
    [(4, 0, 1, "25 %"), (8, 0, 8, "100 %"), (5000, 0, 1, "0.02 %"), (1000, 0, 999, "99.9 %")],
)
def test_open_vocabulary_recall_is_printed_as_other_percentages(n_gt, n_tp, open_vocabulary, text):
    report = render_text(
        with_recall(evaluation("m", 0.25), "inat_test", n_gt, n_tp, open_vocabulary)
    )
    assert f"    {text} of specimens detected if out-of-vocabulary detections" in report
    assert "0 % of specimens detected; 100 % missed" in report


def test_percentages_have_one_format():
    report = render_text(with_recall(evaluation("m", 0.25), "inat_test", 3, 1, 2))
    assert len(re.findall(r"\d %", report)) > 10
    assert re.findall(r"\d%", report) == []
