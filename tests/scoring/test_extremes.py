"""Many categories, crowd contests and stacks of specimens: exact, in little memory."""

import tracemalloc
from fractions import Fraction

import pytest
from support.extremes import crowd_contest, many_categories, stacks
from support.layout import write_predictions, write_split, write_taxonomy
from support.slow_metrics import localise

from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.predictions import read_predictions
from benchmark_eval.scoring.evaluate import Options, evaluate_split
from benchmark_eval.scoring.metrics.operating_point import given_threshold

SMALL = {
    "categories": many_categories(30, 60),
    "crowd": crowd_contest(120, 20, 10),
    "stacks": stacks(200, 3, 12),
}
LARGE = {
    # split, limit in MB; it takes 289, 117 and 1,058 MB with a table of categories x specimens or
    # of all overlapping pairs, and 92, 17 and 4 MB without
    "categories": (many_categories(2_000, 16_000), 150),
    "crowd": (crowd_contest(10_000, 1_000), 50),
    "stacks": (stacks(10_000, 5, 1_000), 50),
}


def split_of(folder, truth, rows):
    """The benchmark and the predictions of semantic_ood."""
    write_split(folder, "semantic_ood", truth, size=(4000, 4000))
    write_taxonomy(folder, {row[1] for row in truth})
    write_predictions(folder, "semantic_ood", rows)
    benchmark = load_benchmark(folder)
    path = folder / "semantic_ood_predictions.json"
    return benchmark, read_predictions(path, benchmark, "semantic_ood")


@pytest.mark.parametrize("name", SMALL)
def test_numbers_equal_those_of_pycocotools_and_of_a_loop(tmp_path, name):
    truth, rows = SMALL[name]
    benchmark, predictions = split_of(tmp_path, truth, rows)
    undefined = given_threshold(None)
    ours, theirs = (
        evaluate_split(
            benchmark, "semantic_ood", predictions, Options(engine=engine), undefined
        ).evaluation
        for engine in ("fast", "pycocotools")
    )
    for block in ("coco", "class_agnostic", "per_species", "ood_by_band"):
        assert getattr(ours, block) == getattr(theirs, block)
    specimens = [[*row, 0][:4] for row in truth]
    true, false = localise(specimens, rows, Fraction(1, 2))
    assert ours.decomposition.n_matched_tp == len(true) > 0
    assert ours.calibration.n_predictions == len(true) + len(false)
    assert 0 < ours.coco.AP_50_95 < 1


@pytest.mark.parametrize("name", LARGE)
def test_peak_memory_grows_with_the_detections_only(tmp_path, name):
    (truth, rows), limit = LARGE[name]
    benchmark, predictions = split_of(tmp_path, truth, rows)
    tracemalloc.start()
    try:
        evaluate_split(benchmark, "semantic_ood", predictions, Options(), given_threshold(None))
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert peak < limit
