"""Warnings about category ids and names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted, percent
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.predictions import CheckedPredictions, Predictions
from benchmark_eval.scoring.diagnostics.evidence import Evidence, explains
from benchmark_eval.scoring.diagnostics.scores import ENOUGH_SCORES

HELD_OUT_SHARE = 0.005
"""Share of detections named as a species without a training image; a detector with an output for
every category of the benchmark leaves a few by chance."""
ALMOST_ALL = 0.99
"""Share of ids that must be of trained species under another reading ..."""
MOST_BY_CHANCE = 0.9
"""... and at most may be as they stand, or under any third reading."""


def shifted_ids(evidence: Evidence) -> Iterator[str]:
    """Names that are wrong where boxes fit, and right once the ids are read otherwise."""
    if evidence.truth.name == "semantic_ood":
        return  # a right name is not possible there
    categories = evidence.benchmark.categories
    row, at = evidence.best_pairs
    ids, true = categories.ids[evidence.best.category], evidence.sampled_truth.category[at]

    def right(meant: Ints) -> Bools:
        named = np.zeros(len(ids), np.bool_)
        named[row[meant[row] == categories.ids[true]]] = True
        return named

    as_is = right(ids)
    readings = _readings_of_ids(ids, evidence.benchmark)
    rights = [right(meant) for meant, _ in readings]
    best = max(range(len(readings)), key=lambda i: int(rights[i].sum()))
    if explains(rights[best], as_is):
        yield (
            f"of {counted(int(evidence.fits.sum()), 'best box', 'best boxes')} that fit a "
            f"specimen, {int(as_is.sum()):,} have its name, but {int(rights[best].sum()):,} "
            f"{readings[best][1]}"
        )


def _readings_of_ids(ids: Ints, benchmark: Benchmark) -> list[tuple[Ints, str]]:
    """What ``ids`` may stand for instead, and in words; -1 where they stand for nothing."""
    categories = benchmark.categories
    trained = categories.ids[categories.n_train_images > 0]
    readings = [
        (ids + 1, "when 1 is added to every category_id: likely ids counted from 0"),
        (ids - 1, "when 1 is taken from every category_id: likely ids shifted by one"),
    ]
    if 0 < len(trained) < len(categories.ids):
        padded = np.r_[trained, np.full(int(categories.ids.max()) + 2, -1)]
        readings += [
            (
                padded[np.clip(ids - first, -1, len(padded) - 1)],
                f"when category_id counts the {len(trained)} trained species from {first}: likely "
                "class numbers of the model instead of the benchmark's ids",
            )
            for first in (0, 1)
        ]
    return readings


def shift_of_unknown_ids(
    predictions: Predictions, ids: Ints, benchmark: Benchmark, split: str
) -> str:
    """Why a file has unknown category ids, where all its ids are moved; blank if nothing tells.

    ``predictions`` are its valid records, ``ids`` the category ids of all. Names that are right
    under another reading tell it, or else that almost all ids are trained species under one
    reading alone, as those of a detector are.
    """
    evidence = Evidence(predictions, benchmark.split(split), benchmark)
    cause = next(shifted_ids(evidence), "")
    trained = benchmark.categories.ids[benchmark.categories.n_train_images > 0]
    if not cause and len(ids) >= ENOUGH_SCORES:
        as_is = int(np.isin(ids, trained).sum())
        tried = [
            (int(np.isin(meant, trained).sum()), words)
            for meant, words in _readings_of_ids(ids, benchmark)
        ]
        (most, words), (second, _) = sorted(tried, reverse=True)[:2]
        if most >= ALMOST_ALL * len(ids) and max(as_is, second) <= MOST_BY_CHANCE * len(ids):
            cause = (
                f"of {len(ids):,} detections {as_is:,} name a species that is trained on, but "
                f"{most:,} {words}"
            )
    return f"{cause}; every record is affected, not only those told here" if cause else ""


def with_likely_causes(
    checked: CheckedPredictions, benchmark: Benchmark, split: str
) -> tuple[Problem, ...]:
    """The problems of a file, those of unknown category ids with the cause its records show."""
    problems = checked.problems
    if not any(problem.kind == "category-id-unknown" for problem in problems):
        return problems
    cause = shift_of_unknown_ids(checked.predictions, checked.category_ids, benchmark, split)
    if not cause:
        return problems
    return tuple(
        replace(problem, cause=cause)
        if problem.kind == "category-id-unknown" and problem.times == 1
        else problem
        for problem in problems
    )


def held_out_detections(evidence: Evidence) -> tuple[int, list[int]]:
    """How many detections name a species without a training image, and which ids they give."""
    categories = evidence.benchmark.categories
    untrained = categories.n_train_images <= 0
    if untrained.all():
        return 0, []  # nothing is known about training
    times = np.bincount(evidence.predictions.out_of_vocabulary.category, minlength=len(untrained))
    times += np.bincount(evidence.predictions.category, minlength=len(untrained))
    return int(times[untrained].sum()), categories.ids[untrained & (times > 0)].tolist()


def held_out_ids(evidence: Evidence) -> Iterator[str]:
    """Many detections named as a species that no training image holds."""
    count, ids = held_out_detections(evidence)
    n = len(evidence.predictions) + len(evidence.predictions.out_of_vocabulary)
    if count and count >= HELD_OUT_SHARE * n:
        shown = ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")
        yield (
            f"{percent(count, n)} of detections name a species that no training image holds "
            f"(category_id {shown}): likely shifted ids, class numbers of the model, or a model "
            "trained on more than train"
        )


def taxonomy(evidence: Evidence) -> Iterator[str]:
    """Species that the taxonomy does not place: their names are counted as in no genus at all."""
    truth, categories = evidence.truth, evidence.benchmark.categories
    scored = np.unique(truth.category[~truth.crowd])
    placeless = scored[categories.genus_code[scored] < 0]
    if len(placeless):
        first = categories.names[int(placeless[0])]
        yield (
            f"{len(placeless)} of {counted(len(scored), 'scored species', 'scored species')} "
            f"({first}, ...) without a genus in the taxonomy: no name is in the right genus for "
            "them; likely names that differ between the taxonomy and the annotation files"
            if len(placeless) > 1
            else f"1 scored species ({first}) without a genus in the taxonomy: no name is in the "
            "right genus for it"
        )
    bands = {categories.distance_band[row] for row in scored.tolist()}
    if truth.name == "semantic_ood" and bands == {""}:
        yield (
            "no unseen species has a distance band in the taxonomy: nothing is told by band; "
            "the column distance_band_vs_trainable is missing or blank"
        )


def stray_files(evidence: Evidence) -> Iterator[str]:
    """Categories that only a file of no split lists: predictions of them are taken as valid."""
    benchmark = evidence.benchmark
    files = benchmark.stray_files
    listed = np.zeros(len(benchmark.categories.ids), np.bool_)
    for split in benchmark.splits.values():
        listed[split.listed] = True
    extra = np.flatnonzero(~listed)
    if files and len(extra):
        yield (
            f"{counted(len(extra), 'category', 'categories')} "
            f"({benchmark.categories.names[extra[0]]}{', ...' if len(extra) > 1 else ''}) of no "
            f"split, from {', '.join(files)}: the benchmark's evaluator counts every .json file "
            "there; likely a copy or another file that belongs elsewhere"
        )


def shared_names(evidence: Evidence) -> Iterator[str]:
    """Two categories of the split with one species name: each has an AP of its own."""
    names = evidence.benchmark.categories.names
    ids = evidence.benchmark.categories.ids
    first: dict[str, int] = {}
    for row in evidence.truth.listed.tolist():
        other = first.setdefault(names[row], row)
        if other != row:
            yield (
                f"categories {ids[other]} and {ids[row]} of {evidence.truth.name} have one name, "
                f"{names[row]}: each has an AP of its own, but a name is right for both"
            )
