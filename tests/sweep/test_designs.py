"""One training set under several names."""

import numpy as np

from benchmark_eval.sweep.designs import distinct_runs, drawn_images, identical_designs
from benchmark_eval.training.regimes import GRID


def test_the_benchmarks_grid():
    # the rarest species has 2 images, the most frequent one 400; the target species 20 and 25
    n_images = np.array([2, 40, 400, 20, 25])
    is_target = np.array([False, False, False, True, True])
    groups = identical_designs(drawn_images(GRID, n_images, is_target))
    assert groups == [
        (
            ("global_uniform", "all"),
            ("incremental_natural", "1.00"),
            # no target species has more than 25 images
            ("incremental_uniform_targets", "25"),
        ),
    ]


def test_one_image_of_each_species_has_two_names():
    n_images, is_target = np.array([1, 40, 100]), np.zeros(3, bool)
    conditions = [("global_uniform", "1"), ("incremental_natural", "0.01")]
    assert identical_designs(drawn_images(conditions, n_images, is_target)) == [tuple(conditions)]
    # 1 % of 160 images are 2
    n_images = np.array([1, 40, 160])
    assert identical_designs(drawn_images(conditions, n_images, is_target)) == []


def test_runs_with_identical_predictions_count_once():
    digests = {("alder", 0): "aa", ("alder", 1): "bb", ("birch", 0): "aa"}
    assert distinct_runs(digests) == [("alder", 0), ("alder", 1)]
    assert distinct_runs({}) == []
