"""A simulated detector: what a model of a given architecture, budget and seed would predict.

No image is looked at. For every specimen the simulation decides whether it is found, how well its
box fits, how it is named and how confident the model is; then it fills the rest of what a detector
leaves at confidence 0.001: duplicates of found specimens, boxes on parts of missed ones and false
alarms. :class:`Quality` holds every number that these decisions use.
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
    """How one architecture differs from the average one, in log-odds."""

    finding: float
    naming: float
    field_finding: float
    confidence: float


def _frozen(**values: float) -> Mapping[str, float]:
    return MappingProxyType(values)


@dataclass(frozen=True, slots=True)
class Quality:
    """Everything the simulated detector is made of.

    "Images" are training images under the model's condition, at the real size of the training set.
    Chances are combined as products; architecture, seed and species shift their log-odds.
    """

    # Finding a specimen: ceiling x budget x density x novelty (x field).
    finding_ceiling: float = 0.982
    """Chance to find an isolated specimen of a trained species with endless training data."""
    finding_half: float = 35.0
    """Training images of all species together with which half of the ceiling is reached."""
    finding_slope: float = 0.9
    """How steeply finding rises around that half (Hill's exponent)."""
    crowding_scale: float = 40.0
    crowding_power: float = 0.25
    """On an image with n specimens the chance is times (1 + (n - 1) / scale) ** -power."""
    crowding_of_band: Mapping[str, float] = field(
        default_factory=lambda: _frozen(near_genus=0.65, mid_tribe=0.9, far_tribe=3.2)
    )
    """Held-out species: the power above is times this, plates of strange beetles are hardest."""
    finding_of_band: Mapping[str, float] = field(
        default_factory=lambda: _frozen(near_genus=0.97, mid_tribe=0.94, far_tribe=0.92)
    )
    """Held-out species: the chance is times this."""
    finding_unlearned: float = 0.25
    """Share of the chance lost by a trained species of which the model has seen no image ..."""
    finding_unlearned_half: float = 3.0
    """... and the images (relatives' lent ones counted) with which half of that is made up for."""
    field_finding: float = 0.28
    """Field photographs: the chance is times this."""

    # Naming a found specimen.
    naming_ceiling: float = 0.91
    """Chance of the right name for an average species with endless images."""
    naming_half: float = 12.0
    naming_slope: float = 0.8
    """Images of the species with which half of it is reached, and how steeply (Hill)."""
    lent_by_genus: float = 0.04
    lent_by_tribe: float = 0.004
    most_lent: float = 0.8
    """An image of a congener (of another genus of the tribe) counts as this part of an image,
    up to ``most_lent`` images from the genus and a quarter of that from the tribe; but a species
    without an image of its own is never named."""
    species_spread: float = 0.9
    """Standard deviation of a species' own difficulty, in log-odds, the same for every model."""
    field_naming: float = 0.65
    """Field photographs: the chance is times this."""

    # The wrong name: weight of a label = relatedness x its training images to a power.
    congener: float = 10.0
    same_tribe: float = 1.6
    """Weights of a label of the same genus and of the same tribe; any other label has 1."""
    popularity_power: float = 0.35
    """Abundant labels absorb misnamed specimens: images to this power."""
    unseen_label: float = 0.02
    """What a label that was never trained counts, in images."""

    # Confidence of the first box on a specimen: log-odds, then a normal spread. "Discernment" is
    # the model's mean chance of a right name as a share of its ceiling.
    confidence: float = 2.9
    """Of a rightly named, isolated specimen, by a model with endless training data."""
    confidence_wrong: float = -3.0
    """Shift for a wrong name of a trained species, times discernment."""
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

    # Where the box lies: standard deviation of each side, as a share of the specimen's size.
    box_error: float = 0.006
    box_error_spread: float = 0.9
    """Spread of the logarithm of that error from specimen to specimen."""
    box_error_budget: float = 6.0
    """A model without any data errs so many times more; it fades with the budget."""
    box_error_field: float = 2.5
    duplicate_box_error: float = 0.06
    """The error of further boxes on a specimen."""

    # The rest of the boxes.
    budget_spread: float = 0.35
    """Boxes an image vary with this coefficient of variation about boxes per specimen x scored."""
    duplicates: float = 0.7
    """Share of the boxes left after the first ones that lie on a found specimen."""
    duplicate_own_name: float = 0.15
    duplicate_right_name: float = 0.4
    """Shares of duplicates that repeat the first box's name, and that give a specimen of a well
    trained species its right name whatever the first one said; the others try a wrong name."""
    duplicate_best: float = 0.35
    duplicate_power: float = 0.7
    """Duplicates' scores run from the lowest score to this share of the first box's: log-uniform
    numbers to this power."""
    part: float = 0.5
    """Share of the boxes on a missed specimen that show a part of it; the rest are false alarms."""
    part_of_side: tuple[float, float] = (0.25, 0.65)
    """Sides of such boxes and of false alarms, as shares of a specimen's: too small to match it."""
    false_alarm_power: float = 2.2
    false_alarm_best: float = 0.5
    """The same for false alarms and parts, up to this score; the power makes most of them low."""

    # What models share and where they differ.
    shared_luck: float = 0.8
    """Share of specimens that are hard or easy for all models alike."""
    seed_spread: float = 0.03
    seed_spread_few: float = 0.25
    """Spread of a seed's log-odds, and what is added over the root of 1 + images a species."""
    species_seed_spread: float = 0.15
    """The same for each species of a model on its own."""
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
    """Detections of one split in file order (image id, then falling score): columns of one length.

    ``image_id``, ``category_id``; ``box`` n x 4 (x, y, w, h in px); ``score`` in [0.001, 1].
    """

    image_id: Ints
    category_id: Ints
    box: Floats
    score: Floats


def _rise(amount: Floats | float, half: float, slope: float) -> Floats:
    """Hill's curve from 0 to 1: half of the way at ``half``."""
    power = np.power(np.asarray(amount, dtype=np.float64), slope)
    return np.asarray(power / (power + half**slope))


def _ladder(weights: Floats) -> Floats:
    """Running shares of ``weights`` along the last axis, up to 1: for drawing by weight."""
    steps = np.cumsum(weights, axis=-1)
    return np.asarray(steps / steps[..., -1:])


def _logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def _logistic(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


class Detector:
    """One simulated model on one benchmark; its splits are independent of each other."""

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

        # rows: the true species; columns: the labels it is taken for when it is misnamed
        popularity = np.maximum(seen, q.unseen_label) ** q.popularity_power
        relatedness = 1.0 + (q.congener - 1.0) * same_genus + (q.same_tribe - 1.0) * same_tribe
        self._wrong_name = _ladder(np.where(itself, 0.0, relatedness * popularity))
        self._any_name = _ladder(popularity)

    def _learn(self, images: Floats, seen: Floats, congeners: Bools, same_tribe: Bools) -> None:
        """Set what the model is able to, by species and as a whole, from its training images."""
        q, seed, n = self.quality, self.benchmark.seed, len(images)
        lent_by_genus = (congeners * seen).sum(axis=1) * q.lent_by_genus
        lent_by_tribe = (same_tribe * seen).sum(axis=1) * q.lent_by_tribe
        known = images + np.minimum(lent_by_genus, q.most_lent)
        known += np.minimum(lent_by_tribe, q.most_lent / 4)
        total = float(images.sum())

        luck = stream(seed, "model", self.model.name)
        spread = q.seed_spread + q.seed_spread_few / (1.0 + total / len(seen)) ** 0.5
        self.maturity = float(_rise(total, q.finding_half, q.finding_slope))
        self.finding_shift = self.traits.finding + spread * luck.standard_normal()
        self.learned = 1.0 - q.finding_unlearned * (
            1.0 - _rise(known, q.finding_unlearned_half, 1.0)
        )

        difficulty = q.species_spread * stream(seed, "difficulty").standard_normal(n)
        ceiling = _logistic(_logit(np.full(n, q.naming_ceiling)) + difficulty)
        shift = self.traits.naming + spread * luck.standard_normal()
        shift += q.species_seed_spread * luck.standard_normal(n)
        # whatever relatives teach, a name that stood on no training image is never given rightly
        shown = images > 0
        self.acquainted = _rise(known, q.naming_half, q.naming_slope) * shown
        chance = np.where(shown, ceiling * self.acquainted, 0.5)
        self.naming = _logistic(_logit(chance) + shift) * shown
        self.discernment = float(self.naming[self.trained].mean() / ceiling[self.trained].mean())

    def _misnamed(self, species: Ints, rng: np.random.Generator) -> Ints:
        """A wrong label for each specimen (0-based species), by relatedness and abundance."""
        rows = np.arange(len(self._wrong_name))[:, None]
        ladder = (self._wrong_name + rows).ravel()
        draw = rng.random(len(species)) * (1 - 1e-12)
        place = np.searchsorted(ladder, species + draw, side="right")
        column = np.minimum(place - species * len(self.trained), len(self.trained) - 1)
        return np.asarray(self.trained[column])

    def _by_band(self, values: Mapping[str, float], species: Ints) -> Floats:
        bands, place = np.unique(self.band[species], return_inverse=True)
        return np.array([values[str(band)] for band in bands])[place]

    def predict(self, split: str, detections_per_specimen: float) -> PredictionColumns:
        """Detections of ``split``: so many per scored specimen, at most 300 per image."""
        truth = self.benchmark.splits[split]
        rng = stream(self.benchmark.seed, "predictions", self.model.name, split)
        q, n = self.quality, len(truth.species)
        found, label, score = self._first_boxes(truth, rng)
        error = q.box_error * (1.0 + (q.box_error_budget - 1.0) * (1.0 - self.maturity))
        error *= q.box_error_field if split == "inat_test" else 1.0
        spread = error * np.exp(q.box_error_spread * rng.standard_normal(n))
        first = np.flatnonzero(found)
        parts = [
            (
                truth.image[first],
                label[first],
                _jittered(truth.box[first], spread[first], rng),
                score[first],
            )
        ]
        parts += self._further_boxes(truth, rng, found, label, score, detections_per_specimen)
        image, label, corners, score = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        score = np.asarray(np.round(np.clip(score, LOWEST_SCORE, 1.0), 5), dtype=np.float64)
        order = np.lexsort((-score, image))
        image = image[order]
        box = inside(corners[order], truth.width[image], truth.height[image])
        return PredictionColumns(image + 1, label[order] + 1, box, score[order])

    def _first_boxes(
        self, truth: GroundTruth, rng: np.random.Generator
    ) -> tuple[Bools, Ints, Floats]:
        """Of each specimen: is it found, its label (0-based), the score of its first box."""
        q, species, n = self.quality, truth.species, len(truth.species)
        beside = truth.specimens_per_image[truth.image] - 1.0
        in_field = truth.split == "inat_test"
        held_out = truth.split == "semantic_ood"

        chance = np.full(n, q.finding_ceiling * self.maturity)
        power = np.full(n, q.crowding_power)
        if held_out:
            chance *= self._by_band(q.finding_of_band, species)
            power *= self._by_band(q.crowding_of_band, species)
        else:
            chance *= self.learned[species]
        chance *= (1.0 + beside / q.crowding_scale) ** -power
        shift = self.finding_shift
        if in_field:
            chance *= q.field_finding
            shift += self.traits.field_finding
        chance = _logistic(_logit(chance) + shift)

        shared = stream(self.benchmark.seed, "luck", truth.split).random((2, n))
        luck = np.where(rng.random((2, n)) < q.shared_luck, shared, rng.random((2, n)))
        found = luck[0] < chance
        if held_out:
            right = np.zeros(n, dtype=bool)
        else:
            right = luck[1] < self.naming[species] * (q.field_naming if in_field else 1.0)
        label = np.where(right, species, self._misnamed(species, rng))

        mean = np.full(n, q.confidence + self.traits.confidence)
        mean += q.confidence_budget * (1.0 - self.discernment)
        mean += q.confidence_crowding * np.log1p(beside)
        mean += q.confidence_field if in_field else 0.0
        if held_out:
            mean += self.discernment * self._by_band(q.confidence_of_band, species)
        else:
            mean += self.discernment * np.where(right, 0.0, q.confidence_wrong)
        score = _logistic(mean + q.confidence_spread * rng.standard_normal(n))
        return found, label, score

    def _further_boxes(
        self,
        truth: GroundTruth,
        rng: np.random.Generator,
        found: Bools,
        label: Ints,
        score: Floats,
        detections_per_specimen: float,
    ) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Duplicates, boxes on parts and false alarms that fill each image's number of boxes."""
        q = self.quality
        on_image = truth.specimens_per_image
        scored = np.bincount(truth.image[~truth.crowd], minlength=truth.n_images)
        shape = q.budget_spread**-2
        wanted = scored * detections_per_specimen * rng.gamma(shape, 1 / shape, truth.n_images)
        firsts = np.bincount(truth.image[found], minlength=truth.n_images)
        further = np.maximum(np.minimum(wanted, MOST_PER_IMAGE) - firsts, 0.0)
        # first boxes on crowd count too: the split as a whole keeps its boxes per scored specimen
        left = max(scored.sum() * detections_per_specimen - firsts.sum(), 0.0)
        further *= min(1.0, left / max(further.sum(), 1.0))
        image = np.repeat(np.arange(truth.n_images), np.rint(further).astype(np.int64))

        # each further box belongs to a specimen of its image; which kind it is depends on that one
        start = np.cumsum(on_image) - on_image
        owner = start[image] + (rng.random(len(image)) * on_image[image]).astype(np.int64)
        kind = rng.random(len(image))
        duplicate = found[owner] & (kind < q.duplicates)
        part = ~found[owner] & (kind < q.part)
        alarm = ~duplicate & ~part

        parts = []
        of = owner[duplicate]
        choice = rng.random(len(of))
        names = np.where(
            choice < q.duplicate_own_name, label[of], self._misnamed(truth.species[of], rng)
        )
        if truth.split != "semantic_ood":
            knows = q.duplicate_right_name * self.acquainted[truth.species[of]]
            names = np.where(choice > 1.0 - knows, truth.species[of], names)
        scores = _low(score[of] * q.duplicate_best, q.duplicate_power, rng)
        size = q.duplicate_box_error * np.exp(0.5 * rng.standard_normal(len(of)))
        parts.append((image[duplicate], names, _jittered(truth.box[of], size, rng), scores))

        of = owner[part]
        names = self._misnamed(truth.species[of], rng)
        scores = _low(np.full(len(of), q.false_alarm_best), q.false_alarm_power, rng)
        parts.append((image[part], names, _part(truth.box[of], q.part_of_side, rng), scores))

        of = owner[alarm]
        names = self.trained[np.searchsorted(self._any_name, rng.random(len(of)) * (1 - 1e-12))]
        size = truth.box[of, 2:] * rng.uniform(*q.part_of_side, (len(of), 2))
        room = np.stack([truth.width[image[alarm]], truth.height[image[alarm]]], axis=1)
        corner = rng.random((len(of), 2)) * np.maximum(room - size, 0.0)
        corners = np.concatenate([corner, corner + size], axis=1)
        scores = _low(np.full(len(of), q.false_alarm_best), q.false_alarm_power, rng)
        parts.append((image[alarm], names, corners, scores))
        return parts


def _low(best: Floats, power: float, rng: np.random.Generator) -> Floats:
    """Scores between the lowest one and ``best``, even in the logarithm but for ``power``."""
    reach = np.log(np.maximum(best / LOWEST_SCORE, 1.0))
    return np.asarray(LOWEST_SCORE * np.exp(reach * rng.random(len(best)) ** power))


def _jittered(box: Floats, spread: Floats, rng: np.random.Generator) -> Floats:
    """Corner boxes about ``box`` (x, y, w, h), each side moved by ``spread`` of the size."""
    corners = np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1)
    size = np.concatenate([box[:, 2:], box[:, 2:]], axis=1)
    step = np.clip(spread, 0.0, 0.12)[:, None] * np.clip(rng.standard_normal(box.shape), -2.5, 2.5)
    return np.asarray(corners + size * step)


def _part(box: Floats, sides: tuple[float, float], rng: np.random.Generator) -> Floats:
    """Corner boxes inside ``box``, with sides of a share of its sides drawn from ``sides``."""
    size = box[:, 2:] * rng.uniform(*sides, (len(box), 2))
    start = box[:, :2] + rng.random((len(box), 2)) * (box[:, 2:] - size)
    return np.concatenate([start, start + size], axis=1)
