"""Metrics are read from summaries by path; a path that no summary has is an error."""

import subprocess
import sys

import pytest
from support.factories import evaluation

from benchmark_eval.sweep.summaries import reader


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("per_split",),
        ("per_split", "iid_test", "coco"),
        ("per_split", "other_split", "coco", "AP_50"),
        ("per_split", "iid_test", "coco", "AP_51"),
        ("per_split", "iid_test", "coco", "AP_50", "more"),
        ("per_split", "semantic_ood", "ood_by_band", "by_band", "nearest", "correct_genus"),
        ("summary", "novelty_det_FPR_95TPR"),  # the attribute's name, not the key
        ("model",),
    ],
    ids=".".join,
)
def test_a_path_that_no_summary_has_is_an_error(path):
    with pytest.raises(ValueError, match="summary"):
        reader(path)


def test_a_value_missing_from_a_summary_is_none():
    one = evaluation("m", 0.25, splits=("iid_test",))
    assert reader(("per_split", "inat_test", "coco", "AP_50"))(one) is None
    assert reader(("per_split", "iid_test", "coco", "AP_50"))(one) == 0.25
    assert reader(("summary", "novelty_det_FPR@95TPR"))(evaluation("m", 0.25)) == 0.25


def test_an_unknown_path_in_the_registry_fails_when_the_tables_are_imported():
    code = (
        "from benchmark_eval.results import registry\n"
        "import dataclasses\n"
        "first, *others = registry.CURVE_METRICS\n"
        "path = (*first.path[:-1], 'AP_51')\n"
        "first = dataclasses.replace(first, path=path)\n"
        "registry.CURVE_METRICS = (first, *others)\n"
        "import benchmark_eval.sweep\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ValueError: no summary has 'AP_51'" in done.stderr
