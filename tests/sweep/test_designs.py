"""One training set under several names."""

from types import SimpleNamespace

import numpy as np

from benchmark_eval.inputs.manifest import condition_of
from benchmark_eval.sweep.designs import first_names
from benchmark_eval.training.regimes import GRID


def names(conditions, n_images, bands, splits=("train",)):
    """The first name of each condition of species with these images and target bands."""
    categories = SimpleNamespace(n_train_images=np.array(n_images), target_band=bands)
    benchmark = SimpleNamespace(splits=splits, categories=categories)
    return first_names([condition_of("a", *pair) for pair in conditions], benchmark)


def test_the_benchmarks_grid():
    # the rarest species has 2 images, the most frequent one 400; the target species 20 and 25
    found = names(GRID, [2, 40, 400, 20, 25], ["", "", "", "near_genus", "far_tribe"])
    changed = {key: first for key, first in found.items() if key != first}
    full = ("global_uniform", "all")
    # no target species has more than 25 images
    assert changed == {
        ("incremental_natural", "1"): full,
        ("incremental_uniform_targets", "25"): full,
    }


def test_one_image_of_each_species_has_two_names():
    conditions = [("incremental_natural", "0.01"), ("global_uniform", "1")]
    first = ("global_uniform", "1")  # in the order of the regimes
    assert set(names(conditions, [1, 40, 100], [""] * 3).values()) == {first}
    # 1 % of 160 images are 2
    assert len(set(names(conditions, [1, 40, 160], [""] * 3).values())) == 2


def test_without_training_images_every_name_is_its_own():
    conditions = [("incremental_natural", "1"), ("global_uniform", "all")]
    found = names(conditions, [-1, -1], ["", ""], splits=())
    assert all(key == first for key, first in found.items())
