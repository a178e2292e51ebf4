"""Splits on which a simple evaluator needs memory that grows with a product.

Each function returns specimens [image, category, box(, crowd)] and detections [..., box, score];
coordinates are whole pixels. ``benchmarks/speed.py`` measures the same splits at full size.
"""

import numpy as np

SIDE = 100
"""Side of a specimen in px."""


def many_categories(n_categories, n_largest, *, per_image=40):
    """One category has ``n_largest`` specimens, every other one; each has a detection."""
    rng = np.random.default_rng(0)
    category = np.r_[np.ones(n_largest, np.int64), np.arange(2, n_categories + 1)]
    rng.shuffle(category)
    n = len(category)
    image, place = np.arange(n) // per_image + 1, np.arange(n) % per_image
    corner = np.stack([place % 8, place // 8], axis=1) * (SIDE + 20)
    shifted = corner + rng.integers(0, 40, (n, 2))
    score = np.round(rng.random(n), 3)
    truth = _rows(image, category, corner, SIDE)
    rows = _rows(image, category, shifted, SIDE, score)
    return truth, rows


def crowd_contest(n_detections, n_crowd, n_scored=50):
    """One image: every detection overlaps many crowd regions, some also a specimen."""
    rng = np.random.default_rng(0)
    one = np.ones(n_crowd, np.int64)
    truth = [[*row, 1] for row in _rows(one, one, rng.integers(0, 3000, (n_crowd, 2)), 1000)]
    spots = rng.integers(0, 3900, (n_scored, 2))
    one = np.ones(n_scored, np.int64)
    truth += _rows(one, one, spots, 60)
    corner = rng.integers(0, 3900, (n_detections, 2))
    near = rng.random(n_detections) < 0.5
    corner[near] = spots[rng.integers(n_scored, size=int(near.sum()))]
    corner[near] += rng.integers(-9, 10, (int(near.sum()), 2))
    one = np.ones(n_detections, np.int64)
    return truth, _rows(one, one, corner, 60, np.round(rng.random(n_detections), 3))


def stacks(n_detections, n_stacks, n_in_stack):
    """One image: stacks of specimens with the same box, and detections around each."""
    rng = np.random.default_rng(0)
    number = np.arange(n_stacks)
    corner = np.stack([number % 5, number // 5], axis=1) * 2 * SIDE
    one = np.ones(n_stacks * n_in_stack, np.int64)
    truth = _rows(one, one, np.repeat(corner, n_in_stack, axis=0), SIDE)
    of = rng.integers(n_stacks, size=n_detections)
    near = corner[of] + rng.integers(-20, 21, (n_detections, 2))
    one = np.ones(n_detections, np.int64)
    return truth, _rows(one, one, near, SIDE, np.round(rng.random(n_detections), 3))


def _rows(image, category, corner, side, score=None):
    box = np.concatenate([corner, np.full_like(corner, side)], axis=1).tolist()
    columns = [image.tolist(), category.tolist(), box]
    if score is not None:
        columns.append(score.tolist())
    return [list(row) for row in zip(*columns, strict=True)]
