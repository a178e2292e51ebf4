"""Invented ground truth: images, specimens and boxes, with the counts of the dataset card.

All data are columns. At scale 1 all counts are those of the card. A smaller scale keeps every
species, band and target and reduces images and boxes, to no less than one scored box per species.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmark_eval.synthetic.randomness import apportion, stream
from benchmark_eval.synthetic.taxonomy import BANDS, Species

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SPLITS = ("train", "iid_test", "inat_test", "semantic_ood")
MOST_ON_A_PLATE = 200

TRAIN_IMAGES, TRAIN_BOXES = 6096, 53040
IID_IMAGES, IID_CROWD = 620, 4367
INAT_IMAGES, INAT_CROWD = 74, 8
SCORED_PER_SPECIES = 10
OOD_IMAGES = {"near_genus": 4227, "mid_tribe": 2807, "far_tribe": 667}
OOD_BOXES = {"near_genus": 23791, "mid_tribe": 17099, "far_tribe": 6034}

FEWEST_TRAIN_IMAGES = 6
"""Training images of the rarest species at scale 1."""
TRAIN_TAIL = 1.4
"""Training images per species decrease with rank to this power (rank 1 has the most)."""
OOD_TAIL = {"near_genus": 1.064, "mid_tribe": 1.214}
"""The same for boxes of held-out species; gives 11.4 and 7.4 effective species (Kish)."""
FAR_FRACTIONS = (0.55, 0.29)
"""Fractions of the far_tribe boxes in its two most abundant species (84 % together)."""
MULTI_FRACTION = {"train": 0.3, "near_genus": 0.3, "mid_tribe": 0.3, "far_tribe": 0.3}
"""Fraction of images with more than one specimen; the others show one mounted beetle."""
MIXED_FRACTION = 0.12
"""Fraction of those images that show several species."""
SIDE = (0.5, 0.9)
SIDE_IN_FIELD = (0.15, 0.5)
"""Longer side of a specimen as a fraction of its grid cell; smaller in field photographs."""
NOT_LARGE = {"train": 6, "semantic_ood": 4}
"""Number of boxes below 96 x 96 px at scale 1 (the card: all but 10 are above)."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """A split as columns: images in the order of their ids (1..n), boxes grouped by image.

    ``image`` (0-based row of the image), ``species`` (0-based: category id - 1), ``box``
    (n x 4: x, y, w, h in px) and ``crowd`` have one row per specimen; ``width``, ``height`` in px.
    """

    split: str
    width: Ints
    height: Ints
    image: Ints
    species: Ints
    box: Floats
    crowd: npt.NDArray[np.bool_]

    @property
    def n_images(self) -> int:
        """Number of images."""
        return len(self.width)

    @property
    def specimens_per_image(self) -> Ints:
        """Number of specimens on each image, including crowd."""
        return np.bincount(self.image, minlength=self.n_images)


@dataclass(frozen=True, slots=True)
class SyntheticBenchmark:
    """The whole invented benchmark.

    ``train_images`` holds each species' number of training images at scale 1 (0 for held-out
    species): the simulated detectors learn from the full training set, even if train.json is
    smaller.
    """

    seed: int
    scale: float
    test_scale: float
    species: tuple[Species, ...]
    splits: dict[str, GroundTruth]
    train_images: Ints


def synthetic_benchmark(
    species: Sequence[Species], *, seed: int, scale: float, test_scale: float
) -> SyntheticBenchmark:
    """Draw all four splits; ``test_scale`` is the scale of iid_test and inat_test."""
    train_images = _train_image_counts(species, seed, TRAIN_IMAGES)
    builders = {"train": _train, "iid_test": _iid, "inat_test": _inat, "semantic_ood": _ood}
    scales = {"train": scale, "semantic_ood": scale, "iid_test": test_scale}
    splits = {
        split: build(species, seed, scales.get(split, test_scale), stream(seed, "boxes", split))
        for split, build in builders.items()
    }
    return SyntheticBenchmark(
        seed, scale, test_scale, tuple(species), splits, np.asarray(train_images)
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The content of images before boxes are placed: specimens per image, one row per specimen."""

    per_image: Ints
    species: Ints
    crowd: npt.NDArray[np.bool_]


def _scaled(count: int, scale: float, at_least: int) -> int:
    return max(at_least, round(count * scale))


def _train_image_counts(species: Sequence[Species], seed: int, total: int) -> Ints:
    """Training images of each species (0 if held out), long-tailed, ``total`` in all."""
    rng = stream(seed, "abundance", "train")
    trained = np.array([s.category_id - 1 for s in species if s.trainable])
    is_target = np.array([bool(s.target_band) for s in species if s.trainable])
    ranks = np.empty(len(trained))
    # targets need more images than the largest budget, so they get middle ranks
    middle = rng.permutation(np.arange(4, 26))[: is_target.sum()]
    others = rng.permutation(np.setdiff1d(np.arange(1, len(trained) + 1), middle))
    ranks[is_target], ranks[~is_target] = middle, others
    counts = np.zeros(len(species), dtype=np.int64)
    floor = max(1, min(FEWEST_TRAIN_IMAGES, total // (2 * len(trained))))
    counts[trained] = apportion(total, ranks**-TRAIN_TAIL, floor, total)
    return counts


def _densities(rng: np.random.Generator, images: int, boxes: int, multi_fraction: float) -> Ints:
    """Specimens on each image of a species, ``boxes`` in total: mostly one, on a few many."""
    style = rng.lognormal(0.0, 1.1, images)
    multi = rng.random(images) < multi_fraction
    return apportion(boxes, np.where(multi, style, 1e-6), 1, MOST_ON_A_PLATE)


def _by_species(
    rng: np.random.Generator, species: Ints, images: Ints, boxes: Ints, multi_fraction: float
) -> _Plan:
    """Images of one species each; then labels are shuffled among some images with many specimens.

    The shuffle puts several species on an image and keeps the number of boxes per species.
    """
    per_image = np.concatenate(
        [_densities(rng, n, b, multi_fraction) for n, b in zip(images, boxes, strict=True)]
    )
    labels = np.repeat(np.repeat(species, images), per_image)
    mixed = (per_image > 1) & (rng.random(len(per_image)) < MIXED_FRACTION)
    on_mixed = np.flatnonzero(np.repeat(mixed, per_image))
    labels[on_mixed] = labels[rng.permutation(on_mixed)]
    return _Plan(per_image, labels, np.zeros(len(labels), dtype=bool))


def _train(
    species: Sequence[Species], seed: int, scale: float, rng: np.random.Generator
) -> GroundTruth:
    trained = np.array([s.category_id - 1 for s in species if s.trainable])
    n_images = _scaled(TRAIN_IMAGES, scale, len(trained))
    images = _train_image_counts(species, seed, n_images)[trained]
    style = stream(seed, "density", "train").lognormal(0.0, 0.7, len(trained))
    n_boxes = _scaled(TRAIN_BOXES, scale, n_images)
    boxes = apportion(n_boxes, images * style, images, images * MOST_ON_A_PLATE)
    plan = _by_species(rng, trained, images, boxes, MULTI_FRACTION["train"])
    return _placed("train", plan, rng, _scaled(NOT_LARGE["train"], scale, 1))


def _ood(
    species: Sequence[Species], seed: int, scale: float, rng: np.random.Generator
) -> GroundTruth:
    """One plan per band, concatenated, so that no image shows two bands."""
    plans = []
    for band in BANDS:
        members = np.array(
            [s.category_id - 1 for s in species if not s.trainable and s.distance_band == band]
        )
        draw = stream(seed, "abundance", band)
        ranks = draw.permutation(len(members))
        if band == "far_tribe":
            rest = (1 - sum(FAR_FRACTIONS)) / (len(members) - len(FAR_FRACTIONS))
            fractions = np.array([*FAR_FRACTIONS, *[rest] * (len(members) - len(FAR_FRACTIONS))])[
                ranks
            ]
        else:
            fractions = (ranks + 1.0) ** -OOD_TAIL[band]
        n_boxes = _scaled(OOD_BOXES[band], scale, len(members))
        n_images = min(n_boxes, _scaled(OOD_IMAGES[band], scale, len(members)))
        boxes = apportion(n_boxes, fractions, 1, n_boxes)
        fewest = -(-boxes // MOST_ON_A_PLATE)
        style = draw.lognormal(0.0, 0.4, len(members))
        images = apportion(n_images, boxes**0.9 * style, fewest, boxes)
        plans.append(_by_species(rng, members, images, boxes, MULTI_FRACTION[band]))
    plan = _Plan(
        np.concatenate([p.per_image for p in plans]),
        np.concatenate([p.species for p in plans]),
        np.concatenate([p.crowd for p in plans]),
    )
    return _placed("semantic_ood", plan, rng, _scaled(NOT_LARGE["semantic_ood"], scale, 1))


def _iid(
    species: Sequence[Species], seed: int, scale: float, rng: np.random.Generator
) -> GroundTruth:
    del seed
    members = np.array([s.category_id - 1 for s in species if s.trainable])
    return _balanced("iid_test", members, IID_IMAGES, IID_CROWD, 0.05, scale, rng)


def _inat(
    species: Sequence[Species], seed: int, scale: float, rng: np.random.Generator
) -> GroundTruth:
    del seed
    members = np.array([s.category_id - 1 for s in species if s.in_field])
    return _balanced("inat_test", members, INAT_IMAGES, INAT_CROWD, 0.03, scale, rng)


def _balanced(
    split: str,
    members: Ints,
    n_images: int,
    n_crowd: int,
    crowd_fraction: float,
    scale: float,
    rng: np.random.Generator,
) -> GroundTruth:
    """The same number of scored boxes per species; all other specimens on the images are crowd."""
    scored = _scaled(SCORED_PER_SPECIES, scale, 1)
    total = min(_scaled(n_images, scale, len(members)), scored * len(members))
    images = apportion(total, rng.uniform(1.0, 1.2, len(members)), 1, scored)
    scored_on = np.concatenate(
        [apportion(scored, rng.lognormal(0.0, 1.0, n), 1, scored) for n in images]
    )
    plate = (scored_on > 1) | (rng.random(total) < crowd_fraction)
    style = np.where(plate, rng.lognormal(0.0, 1.0, total), 1e-6)
    crowd_on = apportion(_scaled(n_crowd, scale, 1), style, 0, MOST_ON_A_PLATE - scored_on)
    # scored specimens first, then crowd: _placed draws the order on each image
    owner = np.repeat(members, images)
    crowd_labels = np.repeat(owner, crowd_on)
    mixed = np.flatnonzero(np.repeat(rng.random(total) < MIXED_FRACTION, crowd_on))
    crowd_labels[mixed] = crowd_labels[rng.permutation(mixed)]
    image = np.concatenate(
        [np.repeat(np.arange(total), scored_on), np.repeat(np.arange(total), crowd_on)]
    )
    labels = np.concatenate([np.repeat(owner, scored_on), crowd_labels])
    crowd = np.arange(len(image)) >= scored_on.sum()
    by_image = np.argsort(image, kind="stable")
    return _placed(split, _Plan(scored_on + crowd_on, labels[by_image], crowd[by_image]), rng, 0)


_FEW = np.array([(1600, 1200), (1920, 1440), (2048, 1536), (2400, 1800), (1536, 2048)])
_MANY = np.array([(4000, 3000), (4608, 3456), (5184, 3456)])
_PLATES = np.array([(5184, 3456), (6000, 4000), (5472, 3648)])


def _placed(split: str, plan: _Plan, rng: np.random.Generator, n_not_large: int) -> GroundTruth:
    """Shuffle images and the specimens on them, and place a box for every specimen.

    Specimens are placed in the cells of a grid with jitter, so that neighbours may overlap a
    little. Coordinates are multiples of 0.01 px and end at least 0.01 px before the border.
    """
    n_images, n_boxes = len(plan.per_image), len(plan.species)
    place_of = rng.permutation(n_images)
    image = place_of[np.repeat(np.arange(n_images), plan.per_image)]
    order = np.lexsort((rng.random(n_boxes), image))
    image, species, crowd = image[order], plan.species[order], plan.crowd[order]
    per_image = np.bincount(image, minlength=n_images)

    pick = rng.random(n_images)
    sizes = np.where(
        (per_image <= 10)[:, None],
        _FEW[(pick * len(_FEW)).astype(np.int64)],
        np.where(
            (per_image <= 60)[:, None],
            _MANY[(pick * len(_MANY)).astype(np.int64)],
            _PLATES[(pick * len(_PLATES)).astype(np.int64)],
        ),
    )
    width, height = sizes[:, 0], sizes[:, 1]
    columns = np.ceil(np.sqrt(per_image * width / height)).astype(np.int64)
    rows = -(-per_image // columns)
    cell_w, cell_h = width / columns, height / rows

    rank = np.arange(n_boxes) - np.repeat(np.cumsum(per_image) - per_image, per_image)
    column, row = rank % columns[image], rank // columns[image]
    longest = rng.uniform(*SIDE_IN_FIELD if split == "inat_test" else SIDE, n_boxes)
    slimness = rng.uniform(0.55, 1.0, n_boxes)
    upright = rng.random(n_boxes) < 0.5
    w = cell_w[image] * np.where(upright, longest * slimness, longest)
    h = cell_h[image] * np.where(upright, longest, longest * slimness)
    w, h = np.maximum(w, 100.0), np.maximum(h, 100.0)
    small = rng.permutation(n_boxes)[:n_not_large]
    w[small], h[small] = rng.uniform(40.0, 90.0, len(small)), rng.uniform(40.0, 90.0, len(small))
    x = cell_w[image] * column + rng.random(n_boxes) * np.maximum(cell_w[image] - w, 0.0)
    y = cell_h[image] * row + rng.random(n_boxes) * np.maximum(cell_h[image] - h, 0.0)
    x += 0.05 * cell_w[image] * rng.standard_normal(n_boxes)
    y += 0.05 * cell_h[image] * rng.standard_normal(n_boxes)
    box = inside(np.stack([x, y, x + w, y + h], axis=1), width[image], height[image])
    return GroundTruth(split, width, height, image, species, box, crowd)


def inside(corners: Floats, width: Ints, height: Ints) -> Floats:
    """Corner boxes (n x 4: left, top, right, bottom in px) as [x, y, w, h] inside their images.

    Boxes are clipped at the border and have sides of at least 2 px. Values are multiples of 0.01;
    x + w and y + h stay 0.01 below the border, so that rounding cannot move them past it.
    """
    limit = np.stack([width, height], axis=1).astype(np.float64)
    start = np.clip(corners[:, :2], 0.0, limit - 3.0)
    stop = np.clip(corners[:, 2:], start + 2.0, limit - 0.05)
    start = np.round(start, 2)
    return np.concatenate([start, np.round(stop - start, 2)], axis=1)
