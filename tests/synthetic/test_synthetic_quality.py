"""The simulated detectors behave like real ones in every respect that the report shows."""

from functools import cache

import numpy as np
import pytest

from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.predictions import Predictions
from benchmark_eval.scoring.coco import Suite, match_coco, score_suite
from benchmark_eval.scoring.detections import order_detections
from benchmark_eval.scoring.matching import localise
from benchmark_eval.scoring.pairs import find_pairs
from benchmark_eval.synthetic import Detector, Quality, invented_species, synthetic_benchmark
from benchmark_eval.synthetic.conditions import Model
from benchmark_eval.synthetic.files import write_benchmark

pytestmark = pytest.mark.slow  # simulates whole sweeps

BANDS = ("near_genus", "mid_tribe", "far_tribe")
N_SPECIES = 175


class Scored:
    """One split of one model: its matching and derived arrays."""

    def __init__(self, truth, columns):
        predictions = Predictions(
            columns.image_id - 1, columns.category_id - 1, columns.box, columns.score, 0, {}, "", ""
        )
        self.truth = truth
        self.detections = order_detections(predictions, N_SPECIES)
        self.pairs = find_pairs(self.detections, truth, 0.5)
        match = localise(self.detections, truth, self.pairs, 0.5)
        self.match = match
        self.found = np.zeros(len(truth.image), bool)
        self.found[match.matched_truth] = True
        self.scored = ~truth.crowd
        self.on_image = np.bincount(truth.image)[truth.image]
        self.predicted = self.detections.category[match.true_positive]
        self.true = truth.category[match.matched_truth]
        self.score = self.detections.score[match.true_positive]

    def recall(self, where=True):
        return self.found[self.scored & where].mean()

    @property
    def accuracy(self):
        return (self.predicted == self.true).mean()

    def ap_50(self):
        """AP at IoU 0.50 of each listed species, by row."""
        suite = Suite.by_species(self.detections, self.truth, N_SPECIES)
        match = match_coco(suite, self.detections, self.truth, self.pairs)
        scores = score_suite(suite, self.detections, self.truth, match)
        return {row: scores.ap_of(label)[0] for label, row in enumerate(self.truth.listed)}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A benchmark with iid_test and inat_test at full size, in memory and read from files."""
    synthetic = synthetic_benchmark(invented_species(), seed=0, scale=0.1, test_scale=1.0)
    folder = tmp_path_factory.mktemp("benchmark")
    write_benchmark(folder, synthetic)
    read = load_benchmark(folder)

    @cache
    def score(split, regime, budget, seed=0, architecture="birch"):
        detector = Detector(synthetic, Model(architecture, regime, budget, seed))
        return Scored(read.splits[split], detector.predict(split, 8))

    return synthetic, read, score


def mean_ap(bench, regime, budget, rows=None, split="iid_test"):
    """Mean AP at IoU 0.50 over ``rows`` (all species if None) and three seeds."""
    _, _, score = bench
    found = [score(split, regime, budget, seed).ap_50() for seed in range(3)]
    return np.mean([ap[row] for ap in found for row in (ap if rows is None else rows)])


def rows_of(benchmark, test):
    return [s.category_id - 1 for s in benchmark.species if test(s)]


def test_curves_rise_and_flatten(bench):
    curve = [mean_ap(bench, "global_uniform", k) for k in ("1", "10", "50", "all")]
    assert curve == sorted(curve)
    assert curve[0] < 0.1
    assert 0.45 < curve[-1] < 0.6
    assert curve[1] - curve[0] > 2 * (curve[3] - curve[2])
    natural = [mean_ap(bench, "incremental_natural", p) for p in ("0.01", "0.10", "0.50", "1.00")]
    assert natural == sorted(natural)


def test_target_bands_recover_with_k(bench):
    synthetic, _, _ = bench
    regime = "incremental_uniform_targets"
    few = {}
    for band in BANDS:
        rows = rows_of(synthetic, lambda s, band=band: s.target_band == band)
        curve = [mean_ap(bench, regime, k, rows) for k in ("0", "5", "25")]
        assert curve == sorted(curve), band
        assert curve[0] == 0.0  # a label without training images is never predicted
        assert curve[-1] > 0.3
        few[band] = mean_ap(bench, regime, "1", rows)
    assert few["near_genus"] > few["far_tribe"]  # training images of relatives help
    others = rows_of(synthetic, lambda s: s.trainable and not s.target_band)
    assert mean_ap(bench, regime, "0", others) > 0.75 * mean_ap(bench, regime, "25", others)


def test_full_data_is_close_to_the_reference_results_of_the_dataset_card(bench):
    _, _, score = bench
    full = ("global_uniform", "all")
    iid = [score("iid_test", *full, seed) for seed in range(3)]
    assert 0.90 < np.mean([s.recall() for s in iid]) < 0.96
    assert 0.55 < np.mean([s.accuracy for s in iid]) < 0.66
    assert np.mean([np.median(s.match.matched_iou) for s in iid]) == pytest.approx(0.98, abs=0.01)
    ood = [score("semantic_ood", *full, seed) for seed in range(3)]
    assert 0.75 < np.mean([s.recall() for s in ood]) < 0.87
    assert np.mean([s.score.mean() for s in ood]) < np.mean([s.score.mean() for s in iid]) - 0.05


def test_detection_is_harder_in_field_photographs(bench):
    _, _, score = bench
    iid = mean_ap(bench, "global_uniform", "all")
    field = mean_ap(bench, "global_uniform", "all", split="inat_test")
    assert 0.1 < field / iid < 0.45
    found = score("inat_test", "global_uniform", "all")
    assert 0.15 < found.recall() < 0.5
    assert np.median(found.match.matched_iou) > 0.85
    assert found.score.mean() < 0.4


def test_recall_falls_with_density_and_with_distance(bench):
    _, read, score = bench
    ood = score("semantic_ood", "global_uniform", "all")
    band_of = np.array(read.categories.distance_band)[ood.truth.category]
    recalls = [ood.recall(band_of == band) for band in BANDS]
    assert recalls == sorted(recalls, reverse=True)
    far = band_of == "far_tribe"
    assert ood.recall(far & (ood.on_image == 1)) > 0.8
    assert ood.recall(far & (ood.on_image > 10)) < 0.6
    assert ood.recall(ood.on_image == 1) > ood.recall(ood.on_image > 10) + 0.05


def test_congeners_are_confused_more_often_than_distant_species(bench):
    synthetic, _, score = bench
    genus = np.array([s.genus for s in synthetic.species])
    wrong_in_genus, by_chance = [], []
    for seed in range(3):
        iid = score("iid_test", "global_uniform", "all", seed)
        wrong = iid.predicted != iid.true
        wrong_in_genus += list(genus[iid.predicted[wrong]] == genus[iid.true[wrong]])
        for species in iid.true[wrong]:
            others = iid.predicted[iid.predicted != species]
            by_chance.append((genus[others] == genus[species]).mean())
    assert np.mean(wrong_in_genus) > 3 * np.mean(by_chance)


def test_rare_species_have_lower_ap_than_abundant_ones(bench):
    synthetic, _, _ = bench
    trained = np.flatnonzero(synthetic.train_images)
    by_images = trained[np.argsort(synthetic.train_images[trained], kind="stable")]
    tail, head = by_images[:16], by_images[-16:]
    gap = mean_ap(bench, "global_uniform", "all", head) - mean_ap(
        bench, "global_uniform", "all", tail
    )
    assert 0.05 < gap < 0.5


def test_seeds_and_architectures_differ_slightly(bench):
    _, _, score = bench
    aps = [
        np.mean(list(score("iid_test", "global_uniform", "all", seed).ap_50().values()))
        for seed in range(3)
    ]
    assert len(set(aps)) == 3
    assert np.std(aps) < 0.06
    field = {
        name: score("inat_test", "global_uniform", "all", 0, name).recall()
        for name in ("alder", "cedar")
    }
    assert field["alder"] > field["cedar"]


def test_detections_include_duplicates_crowd_and_false_positives(bench):
    _, _, score = bench
    iid = score("iid_test", "global_uniform", "all")
    near = set(iid.pairs.detection[iid.pairs.iou >= 0.5].tolist())
    on_crowd = set(iid.pairs.detection[(iid.pairs.iou >= 0.5) & iid.pairs.crowd].tolist())
    duplicates = near - set(iid.match.true_positive.tolist()) - on_crowd
    false_positives = len(iid.detections) - len(near)
    assert len(on_crowd) > 1000
    assert len(duplicates) > 500
    assert false_positives > 500
    assert (iid.detections.score == 0.001).mean() < 0.03


def test_number_of_detections_at_full_size():
    benchmark = synthetic_benchmark(invented_species(), seed=0, scale=1.0, test_scale=1.0)
    detector = Detector(benchmark, Model("alder", "global_uniform", "all", 0))
    counts = {}
    for split in ("iid_test", "inat_test", "semantic_ood"):
        columns = detector.predict(split, 21)
        counts[split] = len(columns.score)
        assert np.bincount(columns.image_id).max() <= 300
    assert counts["iid_test"] == pytest.approx(21 * 650, rel=0.01)
    assert counts["inat_test"] == pytest.approx(21 * 80, rel=0.15)
    assert 500_000 < counts["semantic_ood"] < 1_000_000


def test_quality_can_be_changed(bench):
    synthetic, read, _ = bench
    model = Model("alder", "global_uniform", "all", 0)
    blind = Detector(synthetic, model, Quality(detection_ceiling=0.01))
    scored = Scored(read.splits["iid_test"], blind.predict("iid_test", 8))
    assert scored.recall() < 0.05
