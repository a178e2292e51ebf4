"""Families that the benchmark's evaluator lacks, against ``support/slow_metrics.py``.

Benchmarks of a few boxes on a coarse grid, so equal IoUs, equal scores, IoUs at the threshold
and crowd on specimens are common. Evaluated from files, as usual.
"""

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.comparison import Comparison
from support.scoring import Taxon, score
from support.slow_metrics import Slow

pytestmark = pytest.mark.slow  # property tests

TRAINED = {
    1: Taxon("A", "T1", band="near_genus"),
    2: Taxon("A", "T1", band="mid_tribe"),
    3: Taxon("B", "T1"),
    4: Taxon("C", "T2", band="far_tribe"),
    5: Taxon("D"),
    6: Taxon(),
}
UNSEEN = {
    101: Taxon("A", "T1", band="near_genus"),
    102: Taxon("E", "T1", band="mid_tribe"),
    103: Taxon("F", "T3", band="far_tribe"),
    104: Taxon(),
}
TAXA = TRAINED | UNSEEN
PREDICTED = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6)
"""Predicted species: mostly of one genus and tribe."""
IMAGES = (3, 1, 2)

boxes = st.builds(
    lambda x, y, w, h: [x, y, w, h],
    *(st.sampled_from((0, 10, 20)), st.sampled_from((0, 10))),
    *(st.sampled_from((10, 20)), st.sampled_from((10, 20, 40))),
)
scores = st.sampled_from((0.0, 0.2, 0.25, 0.29, 0.5, 0.57, 0.9, 1.0))
crowd = st.sampled_from((0, 0, 0, 1))
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def splits(draw, names=("iid_test", "semantic_ood")):
    """(split, specimens, detections)."""
    split = draw(st.sampled_from(names))
    present = PREDICTED if split == "iid_test" else sorted(UNSEEN)
    # sometimes a dense plate
    dense = st.lists(st.tuples(st.just(1), st.sampled_from(present), boxes, crowd), min_size=10)
    sparse = st.lists(st.tuples(st.sampled_from(IMAGES), st.sampled_from(present), boxes, crowd))
    truth = draw(sparse | dense)[:14]
    anywhere = st.tuples(st.sampled_from(IMAGES), boxes)
    if truth:
        # mostly on a specimen, or on half of it
        spots = [(image, box) for image, _, box, _ in truth]
        spots += [(image, [x, y, w, h // 2]) for image, (x, y, w, h) in spots]
        anywhere = st.sampled_from(spots) | st.sampled_from(spots) | anywhere
    detection = st.tuples(anywhere, st.sampled_from(PREDICTED), scores)
    rows = draw(st.lists(detection, max_size=12) | st.lists(detection, min_size=8, max_size=14))
    return split, truth, [(image, species, box, score) for (image, box), species, score in rows]


def ours(split, truth, rows, iou=0.5):
    """The blocks of the split in summary.json."""
    listed = sorted(TRAINED if split == "iid_test" else UNSEEN)
    return score(truth, rows, split, listed=listed, images=IMAGES, taxa=TAXA, iou=iou)


def agree(expected, found):
    comparison = Comparison()
    comparison.tree(expected, found)
    assert not comparison.differences, comparison.differences
    assert comparison.n_values


def slow(truth, rows, **options):
    return Slow(truth, rows, IMAGES, TAXA, **options)


@few
@given(splits())
def test_decomposition_and_counts_per_species(drawn):
    split, truth, rows = drawn
    found = ours(split, truth, rows)
    expected = slow(truth, rows)
    agree(expected.decomposition(), found["decomposition"])
    listed = sorted(TRAINED if split == "iid_test" else UNSEEN)
    agree(expected.per_species(listed), found["per_species"])


@few
@given(splits(), st.sampled_from((0.25, 0.75, 1.0)))
def test_decomposition_at_other_iou_thresholds(drawn, iou):
    split, truth, rows = drawn
    found = ours(split, truth, rows, iou)["decomposition"]
    agree(slow(truth, rows, threshold=Fraction(iou)).decomposition(), found)


@few
@given(splits())
def test_density_strata(drawn):
    split, truth, rows = drawn
    found = ours(split, truth, rows)["density"]
    expected = slow(truth, rows).density(by_band=split == "semantic_ood")
    agree(expected, found)
    assert expected["by_band"].keys() == found["by_band"].keys()


@few
@given(splits())
def test_misidentifications_against_chance(drawn):
    split, truth, rows = drawn
    agree(slow(truth, rows).chance(), ours(split, truth, rows)["chance"])


@few
@given(splits())
def test_operating_point_equals_a_matching_of_the_kept_detections(drawn):
    split, truth, rows = drawn
    found = ours(split, truth, rows)["operating_point"]
    expected = slow(truth, rows)
    agree(expected.at(0.25), found["at_0.25"])
    agree(expected.at(0.5), found["at_0.50"])
    curve = found["curve"]
    # every tenth threshold, and those at and next to a score that occurs
    for threshold in (*range(0, 101, 10), 19, 21, 25, 26, 28, 29, 57, 58, 99):
        at = expected.at(threshold / 100)
        agree({key: at[key] for key in curve}, {key: curve[key][threshold] for key in curve})
    best = expected.best()
    if best is None:
        assert found["best_F1"]["confidence"] is found["best_F1"]["F1"] is None
    else:
        agree(best, found["best_F1"])


@few
@given(
    *(splits(), st.sampled_from((0, 99, 100, 101, 299, 300, 301))),
    *(st.sampled_from((0, 200, 201)), st.sampled_from(IMAGES)),
)
def test_detection_cap(drawn, n_first, n_then, image):
    split, truth, rows = drawn
    # distant false positives with the highest scores, and some with intermediate ones
    far = [900, 900, 10, 10]
    rows = [(image, 1, far, 1.0)] * n_first + rows + [(image, 2, far, 0.55)] * n_then
    agree(slow(truth, rows).detection_cap(), ours(split, truth, rows)["detection_cap"])


@pytest.mark.parametrize("split", ["iid_test", "semantic_ood"])
def test_decomposition_without_specimens_and_detections(split):
    agree(slow([], []).decomposition(), ours(split, [], [])["decomposition"])
