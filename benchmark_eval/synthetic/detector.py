"""A simulated detector: the predictions of a model of a given architecture, budget and seed.

No images are used. For every specimen the simulation draws whether it is detected, how well its
box fits, its label and its confidence. It then adds what a detector outputs down to confidence
0.001: duplicates, boxes on parts of missed specimens and other false positives. :class:`Quality`
holds all parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from benchmark_eval.synthetic.conditions import Model
from benchmark_eval.synthetic.ground_truth import (
    Floats,
    GroundTruth,
    Ints,
    SyntheticBenchmark,
    inside,
)
from benchmark_eval.synthetic.randomness import stream
from benchmark_eval.training.budgets import drawn_fraction

LOWEST_SCORE = 0.001
MOST_PER_IMAGE = 300

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Differences of one architecture from the average, in log-odds."""

    detection: float
    identification: float
    field_detection: float
    confidence: float


def _frozen(**values: float) -> Mapping[str, float]:
    return MappingProxyType(values)


@dataclass(frozen=True, slots=True)
class Quality:
    """The parameters of the simulated detector.

    "Images" are training images under the model's condition, at the real size of the training set.
    Probabilities are multiplied; architecture, seed and species shift their log-odds.
    """

    # Probability of detection: ceiling x budget x density x novelty (x field).
    detection_ceiling: float = 0.982
    """For an isolated specimen of a trained species with unlimited training data."""
    detection_half: float = 35.0
    """Training images of all species at which half of the ceiling is reached."""
    detection_slope: float = 0.9
    """Steepness at that point (Hill exponent)."""
    crowding_scale: float = 40.0
    crowding_power: float = 0.25
    """Factor on an image with n specimens: (1 + (n - 1) / scale) ** -power."""
    crowding_of_band: Mapping[str, float] = field(
        default_factory=lambda: _frozen(near_genus=0.65, mid_tribe=0.9, far_tribe=3.2)
    )
    """Held-out species: factor of the power above; dense images of distant species are hardest."""
    detection_of_band: Mapping[str, float] = field(
        default_factory=lambda: _frozen(near_genus=0.97, mid_tribe=0.94, far_tribe=0.92)
    )
    """Held-out species: factor of the probability."""
    detection_unlearned: float = 0.25
    """Fraction of the probability lost by a trained species without training images ..."""
    detection_unlearned_half: float = 3.0
    """... and the images (including those credited from relatives) that halve this loss."""
    field_detection: float = 0.28
    """Field photographs: factor of the probability."""

    # Identifying a detected specimen.
    identification_ceiling: float = 0.91
    """Probability of the correct label for an average species with unlimited images."""
    identification_half: float = 12.0
    identification_slope: float = 0.8
    """Images of the species at which half of it is reached, and the Hill exponent."""
    credit_from_genus: float = 0.04
    credit_from_tribe: float = 0.004
    most_credit: float = 0.8
    """An image of a congener (or of another genus of the tribe) counts as this fraction of an
    image, up to ``most_credit`` images from the genus and a quarter of that from the tribe. A
    species without images of its own is never predicted correctly."""
    species_spread: float = 0.9
    """Standard deviation of the species' difficulty, in log-odds; equal for all models."""
    field_identification: float = 0.65
    """Field photographs: factor of the probability."""

    # Misidentifications: weight of a label = relatedness x its training images to a power.
    congener: float = 10.0
    same_tribe: float = 1.6
    """Weights of labels of the same genus and of the same tribe; all others have 1."""
    popularity_power: float = 0.35
    """Power of the training images: abundant labels attract misidentifications."""
    unseen_label: float = 0.02
    """Images that an untrained label counts as."""

    # Confidence of the first detection of a specimen: normally distributed log-odds. "Discernment"
    # is the model's mean probability of a correct label as a fraction of its ceiling.
    confidence: float = 2.9
    """For a correctly identified, isolated specimen, with unlimited training data."""
    confidence_misidentified: float = -3.0
    """Shift for a misidentified trained species, times discernment."""
    confidence_of_band: Mapping[str, float] = field(
        default_factory=lambda: _frozen(near_genus=-1.7, mid_tribe=-2.0, far_tribe=-2.3)
    )
    """Shift for a held-out species, times discernment."""
    confidence_field: float = -3.2
    """Shift on field photographs."""
    confidence_crowding: float = -0.15
    """Shift per natural logarithm of the specimens on the image."""
    confidence_budget: float = -2.2
    """Shift of a model without discernment."""
    confidence_spread: float = 1.1

    # Localisation: standard deviation of each side, as a fraction of the specimen's size.
    box_error: float = 0.006
    box_error_spread: float = 0.9
    """Standard deviation of the logarithm of that error between specimens."""
    box_error_budget: float = 6.0
    """Factor of the error without training data; decreases to 1 with the budget."""
    box_error_field: float = 2.5
    duplicate_box_error: float = 0.06
    """The error of duplicates."""

    # Further detections.
    budget_spread: float = 0.35
    """Coefficient of variation of the detections per image, whose mean is proportional to the
    scored specimens."""
    duplicates: float = 0.7
    """Fraction of further detections at a detected specimen that are duplicates of it."""
    duplicate_same_label: float = 0.15
    duplicate_correct: float = 0.4
    """Fractions of duplicates that repeat the label of the first detection, and that have the
    correct label in a well-trained species; the others have a wrong label."""
    duplicate_best: float = 0.35
    duplicate_power: float = 0.7
    """Scores of duplicates range from the lowest score to this fraction of the first detection's
    score: log-uniform numbers to this power."""
    part: float = 0.5
    """Fraction of further detections at a missed specimen that cover a part of it; all others
    are placed at random."""
    part_of_side: tuple[float, float] = (0.25, 0.65)
    """Sides of parts and random boxes as fractions of a specimen's: too small to match it."""
    false_positive_power: float = 2.2
    false_positive_best: float = 0.5
    """The same for false positives, up to this score; the power makes most scores low."""

    # Correlation between models, and their differences.
    shared_luck: float = 0.8
    """Fraction of specimens that are equally hard for all models."""
    seed_spread: float = 0.03
    seed_spread_few: float = 0.25
    """Standard deviation of a seed's log-odds: the first, plus the second over
    sqrt(1 + images per species)."""
    species_seed_spread: float = 0.15
    """The same for each species of a model."""
    architectures: Mapping[str, Architecture] = field(
        default_factory=lambda: MappingProxyType(
            {
                "alder": Architecture(0.05, 0.08, 0.35, 0.1),
                "birch": Architecture(0.0, 0.0, 0.0, 0.0),
                "cedar": Architecture(-0.05, -0.08, -0.35, -0.25),
            }
        )
    )


@dataclass(frozen=True, slots=True)
class PredictionColumns:
    """Detections of one split as columns, sorted by image id, then by descending score.

    ``image_id``, ``category_id``; ``box`` n x 4 (x, y, w, h in px); ``score`` in [0.001, 1].
    """

    image_id: Ints
    category_id: Ints
    box: Floats
    score: Floats


def _rise(amount: Floats | float, half: float, slope: float) -> Floats:
    """Hill curve from 0 to 1, with value 0.5 at ``half``."""
    power = np.power(np.asarray(amount, dtype=np.float64), slope)
    return np.asarray(power / (power + half**slope))


def _cumulative(weights: Floats) -> Floats:
    """Cumulative distribution of ``weights`` along the last axis, for drawing by weight."""
    steps = np.cumsum(weights, axis=-1)
    return np.asarray(steps / steps[..., -1:])


def _logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def _logistic(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


class Detector:
    """One simulated model on one benchmark; splits are simulated independently."""

    def __init__(
        self, benchmark: SyntheticBenchmark, model: Model, quality: Quality | None = None
    ) -> None:
        self.benchmark, self.model = benchmark, model
        self.quality = q = quality or Quality()
        self.traits = q.architectures[model.architecture]
        species = benchmark.species
        self.band = np.array([s.distance_band for s in species])
        self.trained = np.flatnonzero([s.trainable for s in species])
        genus = np.array([s.genus for s in species])
        tribe = np.array([s.tribe for s in species])
        is_target = np.array([bool(s.target_band) for s in species], dtype=np.float64)
        available = benchmark.train_images.astype(np.float64)
        images = available * drawn_fraction(model.regime, model.k_or_p, available, is_target)

        same_genus = genus[:, None] == genus[None, self.trained]
        same_tribe = (tribe[:, None] == tribe[None, self.trained]) & ~same_genus
        itself = np.arange(len(species))[:, None] == self.trained[None, :]
        seen = images[self.trained]
        self._learn(images, seen, same_genus & ~itself, same_tribe)

        # rows: true species; columns: predicted labels of misidentified specimens
        popularity = np.maximum(seen, q.unseen_label) ** q.popularity_power
        relatedness = 1.0 + (q.congener - 1.0) * same_genus + (q.same_tribe - 1.0) * same_tribe
        self._wrong_label = _cumulative(np.where(itself, 0.0, relatedness * popularity))
        self._any_label = _cumulative(popularity)

    def _learn(self, images: Floats, seen: Floats, congeners: Bools, same_tribe: Bools) -> None:
        """Set the model's abilities, by species and overall, from its training images."""
        q, seed, n = self.quality, self.benchmark.seed, len(images)
        credit_from_genus = (congeners * seen).sum(axis=1) * q.credit_from_genus
        credit_from_tribe = (same_tribe * seen).sum(axis=1) * q.credit_from_tribe
        known = images + np.minimum(credit_from_genus, q.most_credit)
        known += np.minimum(credit_from_tribe, q.most_credit / 4)
        total = float(images.sum())

        luck = stream(seed, "model", self.model.name)
        spread = q.seed_spread + q.seed_spread_few / (1.0 + total / len(seen)) ** 0.5
        self.maturity = float(_rise(total, q.detection_half, q.detection_slope))
        self.detection_shift = self.traits.detection + spread * luck.standard_normal()
        self.learned = 1.0 - q.detection_unlearned * (
            1.0 - _rise(known, q.detection_unlearned_half, 1.0)
        )

        difficulty = q.species_spread * stream(seed, "difficulty").standard_normal(n)
        ceiling = _logistic(_logit(np.full(n, q.identification_ceiling)) + difficulty)
        shift = self.traits.identification + spread * luck.standard_normal()
        shift += q.species_seed_spread * luck.standard_normal(n)
        # a label without training images is never correct, whatever the credit from relatives
        has_images = images > 0
        self.familiarity = _rise(known, q.identification_half, q.identification_slope) * has_images
        probability = np.where(has_images, ceiling * self.familiarity, 0.5)
        self.identification = _logistic(_logit(probability) + shift) * has_images
        self.discernment = float(
            self.identification[self.trained].mean() / ceiling[self.trained].mean()
        )

    def _misidentified(self, species: Ints, rng: np.random.Generator) -> Ints:
        """A wrong label for each specimen (0-based species), drawn by relatedness and abundance."""
        rows = np.arange(len(self._wrong_label))[:, None]
        cumulative = (self._wrong_label + rows).ravel()
        draw = rng.random(len(species)) * (1 - 1e-12)
        position = np.searchsorted(cumulative, species + draw, side="right")
        column = np.minimum(position - species * len(self.trained), len(self.trained) - 1)
        return np.asarray(self.trained[column])

    def _by_band(self, values: Mapping[str, float], species: Ints) -> Floats:
        bands, inverse = np.unique(self.band[species], return_inverse=True)
        return np.array([values[str(band)] for band in bands])[inverse]

    def predict(self, split: str, detections_per_specimen: float) -> PredictionColumns:
        """Detections of ``split``, at most 300 per image.

        ``detections_per_specimen`` is the approximate mean number per scored specimen.
        """
        truth = self.benchmark.splits[split]
        rng = stream(self.benchmark.seed, "predictions", self.model.name, split)
        q, n = self.quality, len(truth.species)
        detected, label, score = self._first_detections(truth, rng)
        error = q.box_error * (1.0 + (q.box_error_budget - 1.0) * (1.0 - self.maturity))
        error *= q.box_error_field if split == "inat_test" else 1.0
        spread = error * np.exp(q.box_error_spread * rng.standard_normal(n))
        first = np.flatnonzero(detected)
        parts = [
            (
                truth.image[first],
                label[first],
                _jittered(truth.box[first], spread[first], rng),
                score[first],
            )
        ]
        parts += self._further_detections(
            truth, rng, detected, label, score, detections_per_specimen
        )
        image, label, corners, score = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        score = np.asarray(np.round(np.clip(score, LOWEST_SCORE, 1.0), 5), dtype=np.float64)
        order = np.lexsort((-score, image))
        image = image[order]
        box = inside(corners[order], truth.width[image], truth.height[image])
        return PredictionColumns(image + 1, label[order] + 1, box, score[order])

    def _first_detections(
        self, truth: GroundTruth, rng: np.random.Generator
    ) -> tuple[Bools, Ints, Floats]:
        """For each specimen: whether it is detected, its label (0-based) and its score."""
        q, species, n = self.quality, truth.species, len(truth.species)
        others = truth.specimens_per_image[truth.image] - 1.0
        in_field = truth.split == "inat_test"
        held_out = truth.split == "semantic_ood"

        probability = np.full(n, q.detection_ceiling * self.maturity)
        power = np.full(n, q.crowding_power)
        if held_out:
            probability *= self._by_band(q.detection_of_band, species)
            power *= self._by_band(q.crowding_of_band, species)
        else:
            probability *= self.learned[species]
        probability *= (1.0 + others / q.crowding_scale) ** -power
        shift = self.detection_shift
        if in_field:
            probability *= q.field_detection
            shift += self.traits.field_detection
        probability = _logistic(_logit(probability) + shift)

        shared = stream(self.benchmark.seed, "luck", truth.split).random((2, n))
        luck = np.where(rng.random((2, n)) < q.shared_luck, shared, rng.random((2, n)))
        detected = luck[0] < probability
        if held_out:
            correct = np.zeros(n, dtype=bool)
        else:
            correct = luck[1] < self.identification[species] * (
                q.field_identification if in_field else 1.0
            )
        label = np.where(correct, species, self._misidentified(species, rng))

        mean = np.full(n, q.confidence + self.traits.confidence)
        mean += q.confidence_budget * (1.0 - self.discernment)
        mean += q.confidence_crowding * np.log1p(others)
        mean += q.confidence_field if in_field else 0.0
        if held_out:
            mean += self.discernment * self._by_band(q.confidence_of_band, species)
        else:
            mean += self.discernment * np.where(correct, 0.0, q.confidence_misidentified)
        score = _logistic(mean + q.confidence_spread * rng.standard_normal(n))
        return detected, label, score

    def _further_detections(
        self,
        truth: GroundTruth,
        rng: np.random.Generator,
        detected: Bools,
        label: Ints,
        score: Floats,
        detections_per_specimen: float,
    ) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Duplicates, boxes on parts and random boxes, up to each image's number of detections."""
        q = self.quality
        on_image = truth.specimens_per_image
        scored = np.bincount(truth.image[~truth.crowd], minlength=truth.n_images)
        shape = q.budget_spread**-2
        target = scored * detections_per_specimen * rng.gamma(shape, 1 / shape, truth.n_images)
        firsts = np.bincount(truth.image[detected], minlength=truth.n_images)
        further = np.maximum(np.minimum(target, MOST_PER_IMAGE) - firsts, 0.0)
        # first detections of crowd count too, so that the split keeps its detections per specimen
        left = max(scored.sum() * detections_per_specimen - firsts.sum(), 0.0)
        further *= min(1.0, left / max(further.sum(), 1.0))
        image = np.repeat(np.arange(truth.n_images), np.rint(further).astype(np.int64))

        # each further detection belongs to a specimen of its image, which determines its kind
        start = np.cumsum(on_image) - on_image
        owner = start[image] + (rng.random(len(image)) * on_image[image]).astype(np.int64)
        kind = rng.random(len(image))
        duplicate = detected[owner] & (kind < q.duplicates)
        part = ~detected[owner] & (kind < q.part)
        elsewhere = ~duplicate & ~part

        parts = []
        of = owner[duplicate]
        choice = rng.random(len(of))
        labels = np.where(
            choice < q.duplicate_same_label, label[of], self._misidentified(truth.species[of], rng)
        )
        if truth.split != "semantic_ood":
            known = q.duplicate_correct * self.familiarity[truth.species[of]]
            labels = np.where(choice > 1.0 - known, truth.species[of], labels)
        scores = _low(score[of] * q.duplicate_best, q.duplicate_power, rng)
        size = q.duplicate_box_error * np.exp(0.5 * rng.standard_normal(len(of)))
        parts.append((image[duplicate], labels, _jittered(truth.box[of], size, rng), scores))

        of = owner[part]
        labels = self._misidentified(truth.species[of], rng)
        scores = _low(np.full(len(of), q.false_positive_best), q.false_positive_power, rng)
        parts.append((image[part], labels, _part(truth.box[of], q.part_of_side, rng), scores))

        of = owner[elsewhere]
        labels = self.trained[np.searchsorted(self._any_label, rng.random(len(of)) * (1 - 1e-12))]
        size = truth.box[of, 2:] * rng.uniform(*q.part_of_side, (len(of), 2))
        room = np.stack([truth.width[image[elsewhere]], truth.height[image[elsewhere]]], axis=1)
        corner = rng.random((len(of), 2)) * np.maximum(room - size, 0.0)
        corners = np.concatenate([corner, corner + size], axis=1)
        scores = _low(np.full(len(of), q.false_positive_best), q.false_positive_power, rng)
        parts.append((image[elsewhere], labels, corners, scores))
        return parts


def _low(best: Floats, power: float, rng: np.random.Generator) -> Floats:
    """Scores between the lowest one and ``best``: log-uniform numbers to ``power``."""
    reach = np.log(np.maximum(best / LOWEST_SCORE, 1.0))
    return np.asarray(LOWEST_SCORE * np.exp(reach * rng.random(len(best)) ** power))


def _jittered(box: Floats, spread: Floats, rng: np.random.Generator) -> Floats:
    """Corner boxes near ``box`` (x, y, w, h), each side moved by ``spread`` times the size."""
    corners = np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1)
    size = np.concatenate([box[:, 2:], box[:, 2:]], axis=1)
    step = np.clip(spread, 0.0, 0.12)[:, None] * np.clip(rng.standard_normal(box.shape), -2.5, 2.5)
    return np.asarray(corners + size * step)


def _part(box: Floats, sides: tuple[float, float], rng: np.random.Generator) -> Floats:
    """Corner boxes inside ``box``, their sides a fraction of its sides drawn from ``sides``."""
    size = box[:, 2:] * rng.uniform(*sides, (len(box), 2))
    start = box[:, :2] + rng.random((len(box), 2)) * (box[:, 2:] - size)
    return np.concatenate([start, start + size], axis=1)
