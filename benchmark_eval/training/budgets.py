"""The annotation budget of a training condition: distinct images and annotated specimens.

Exact if the condition's training annotations are given, else the expected value over the random
draw of each species' images from ``train.json``. Crowd regions are not trained on: they count in
neither, and an image with crowd only is never drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmark_eval.core.arrays import Floats, first_of_run
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.json_values import syntax_cause
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.training.regimes import n_drawn


@dataclass(frozen=True, slots=True)
class Budget:
    """Distinct training images, and trained specimens on them."""

    n_images: float
    n_specimens: float


def drawn_fraction(regime: str, k_or_p: str, n_images: Floats, is_target: Floats) -> Floats:
    """Fraction of each species' training images that a condition draws, one value per species.

    ``n_images`` counts each species' distinct training images (fraction 0 if it has none);
    ``is_target`` is 1 for target species. ``regimes.n_drawn`` gives the number drawn.
    """
    drawn = n_drawn(regime, k_or_p, n_images.astype(np.int64), is_target > 0)
    return np.divide(drawn, n_images, out=np.zeros(len(n_images)), where=n_images > 0)


class ExpectedBudgets:
    """Expected budgets of conditions on one benchmark; each is computed once."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._known: dict[tuple[str, str], Budget] = {}
        n_categories = len(benchmark.categories.ids)
        self._is_target = np.array([bool(b) for b in benchmark.categories.target_band], np.float64)
        self._train = train = benchmark.splits.get("train")
        if train is not None:
            self._n_objects = train.scored_per_category(n_categories)
            # one per (image, species), ascending by image
            trained = ~train.crowd
            pairs = np.unique(train.image[trained] * n_categories + train.category[trained])
            image, self._species = np.divmod(pairs, max(n_categories, 1))
            self._starts = np.flatnonzero(first_of_run(image))
            n_images = np.bincount(self._species, minlength=n_categories)
            self._n_images = n_images.astype(np.float64)

    def budget(self, regime: str, k_or_p: str) -> Budget | None:
        """The expected budget of a condition; None without training annotations.

        An image is included if any of its species draws it, with probability
        1 - product of (1 - fraction) over its species. Specimens of a species that did not draw
        the image are not trained on.
        """
        if self._train is None:
            return None
        if not len(self._starts):
            return Budget(0.0, 0.0)
        key = (regime, k_or_p)
        if key not in self._known:
            fraction = drawn_fraction(regime, k_or_p, self._n_images, self._is_target)
            not_drawn = np.multiply.reduceat(1.0 - fraction[self._species], self._starts)
            self._known[key] = Budget(
                math.fsum((1.0 - not_drawn).tolist()),
                math.fsum((fraction * self._n_objects).tolist()),
            )
        return self._known[key]


class _Annotation(msgspec.Struct):
    image_id: int
    iscrowd: int | bool = 0


class _Subset(msgspec.Struct):
    train_json_sha256: str = ""


class _Info(msgspec.Struct):
    training_subset: _Subset | None = None


class _Coco(msgspec.Struct):
    annotations: list[_Annotation]
    info: _Info | None = None


@dataclass(frozen=True, slots=True)
class ExactBudget:
    """The budget of one file of training annotations, and the file's SHA-256."""

    budget: Budget
    digest: str


def exact_budget(path: Path, benchmark: Benchmark) -> ExactBudget:
    """Count the images and trained specimens in a condition's training annotations (COCO).

    Crowd regions are specimens that the condition does not train on. Raises InputError if the file
    is unreadable, not a COCO file, or not a subset of the benchmark's ``train.json``.
    """
    try:
        data = read_input(path)
    except OSError as error:
        raise InputError([unreadable(path, error, "training annotations (COCO JSON)")]) from error
    try:
        coco = msgspec.json.decode(data, type=_Coco)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        cause = syntax_cause(data)
        expected = "training annotations (COCO JSON)"
        problem = Problem("not-coco", str(path), str(error), expected, cause=cause)
        raise InputError([problem]) from error
    mismatch = _mismatch(path, coco, benchmark)
    if mismatch is not None:
        raise InputError([mismatch])
    trained = [a.image_id for a in coco.annotations if not a.iscrowd]
    return ExactBudget(
        Budget(float(len(set(trained))), float(len(trained))), hashlib.sha256(data).hexdigest()
    )


def _mismatch(path: Path, coco: _Coco, benchmark: Benchmark) -> Problem | None:
    """Why the annotations cannot be a subset of the benchmark's training annotations."""
    train = benchmark.splits.get("train")
    if train is None:
        return None
    expected = "a subset of the benchmark's train.json"
    cause = "training annotations of another benchmark or another version of it"
    subset = coco.info.training_subset if coco.info else None
    digest = next((d for f, d in benchmark.digests.items() if f.endswith("/train.json")), "")
    if subset is not None and digest and subset.train_json_sha256 != digest:
        found = f"a subset of the train.json with SHA-256 {subset.train_json_sha256[:12]}..."
        field = "info.training_subset"
        return Problem("not-a-subset", str(path), found, expected, "", field, cause)
    in_train = dict(zip(train.image_ids.tolist(), np.bincount(
        train.image, minlength=len(train.image_ids)).tolist(), strict=True))  # fmt: skip
    for image, count in Counter(a.image_id for a in coco.annotations).items():
        if image not in in_train:
            found = f"image {image}, which is not in train.json"
        elif count > in_train[image]:
            found = f"{count} boxes on image {image}, which has {in_train[image]} in train.json"
        else:
            continue
        return Problem("not-a-subset", str(path), found, expected, "", "image_id", cause)
    return None
