"""Warnings about category ids and species names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted, percent
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.predictions import CheckedPredictions, Predictions
from benchmark_eval.scoring.diagnostics.boxes import image_positions
from benchmark_eval.scoring.diagnostics.evidence import Evidence, explains, numbered
from benchmark_eval.scoring.diagnostics.scores import MIN_SCORES

HELD_OUT_FRACTION = 0.005
"""Smallest fraction of detections of species without training images at which a warning fires. A
detector with an output for every category of the benchmark predicts a few by chance."""
MIN_TRAINED = 0.99
"""Fraction of ids that must be trained species under one other reading ..."""
MAX_TRAINED = 0.9
"""... and the largest fraction allowed as written or under any third reading."""


def shifted_ids(evidence: Evidence) -> Iterator[str]:
    """Misidentified detections that are correct if all ids are shifted or mapped."""
    if evidence.truth.name == "semantic_ood":
        return  # no detection can be correctly identified there
    categories = evidence.benchmark.categories
    row, at = evidence.best_pairs
    species, true = evidence.best.category, evidence.sampled_truth.category[at]

    def correct(read: Ints) -> Bools:
        """Whether each best detection is correctly identified if its species is ``read``."""
        out = np.zeros(len(species), np.bool_)
        out[row[read[row] == true]] = True
        return out

    as_is = correct(species)
    readings = _readings_of_ids(categories.ids[species], evidence.benchmark)
    corrects = [correct(read) for read, _ in readings]
    best = max(range(len(readings)), key=lambda i: int(corrects[i].sum()))
    if explains(corrects[best], as_is):
        yield (
            f"of {counted(int(evidence.fits.sum()), 'best detection')} that fit a specimen, "
            f"{int(as_is.sum()):,} are correctly identified, but {int(corrects[best].sum()):,} "
            f"{readings[best][1]}"
        )


def _readings_of_ids(ids: Ints, benchmark: Benchmark) -> list[tuple[Ints, str]]:
    """Other readings of ``ids`` as rows of ``Categories`` (-1: no category), with a description."""
    categories = benchmark.categories
    trained = np.flatnonzero(categories.n_train_images > 0)
    readings = [
        (
            categories.rows_of(ids + 1),
            "if 1 is added to every category_id: likely 0-based ids",
        ),
        (
            categories.rows_of(ids - 1),
            "if 1 is subtracted from every category_id: likely ids shifted by one",
        ),
    ]
    if 0 < len(trained) < len(categories.ids):
        readings += [
            (
                numbered(ids, trained, first),
                f"if category_id numbers the {len(trained)} trained species from {first}: likely "
                "class indices of the model instead of the benchmark's ids",
            )
            for first in (0, 1)
        ]
    return readings


def shift_of_unknown_ids(
    predictions: Predictions, ids: Ints, benchmark: Benchmark, split: str
) -> str:
    """The likely cause of unknown category ids if all ids of a file are shifted, else "".

    ``predictions`` are the valid records, ``ids`` the category ids of all records. Evidence is
    that detections are correctly identified under another reading, or that almost all ids are
    trained species under exactly one reading.
    """
    evidence = Evidence(predictions, benchmark.split(split), benchmark)
    cause = next(shifted_ids(evidence), "")
    # row -1, of ids without a category, is the last one
    trained = np.r_[benchmark.categories.n_train_images > 0, False]
    if not cause and len(ids) >= MIN_SCORES:
        as_is = int(np.count_nonzero(trained[benchmark.categories.rows_of(ids)]))
        tried = [
            (int(np.count_nonzero(trained[read])), words)
            for read, words in _readings_of_ids(ids, benchmark)
        ]
        (most, words), (second, _) = sorted(tried, reverse=True)[:2]
        if most >= MIN_TRAINED * len(ids) and max(as_is, second) <= MAX_TRAINED * len(ids):
            cause = (
                f"of {len(ids):,} detections, {as_is:,} have the id of a trained species, but "
                f"{most:,} {words}"
            )
    return f"{cause}; every record is affected, not only those listed" if cause else ""


def with_likely_causes(
    checked: CheckedPredictions, benchmark: Benchmark, split: str
) -> tuple[Problem, ...]:
    """The problems of a file, with the likely cause of unknown image and category ids."""
    problems = checked.problems
    kinds = {problem.kind for problem in problems}
    causes: dict[str, str] = {}
    if "category-id-unknown" in kinds:
        causes["category-id-unknown"] = shift_of_unknown_ids(
            checked.predictions, checked.category_ids, benchmark, split
        )
    if "image-id-unknown" in kinds:
        evidence = Evidence(checked.predictions, benchmark.split(split), benchmark)
        cause = next(image_positions(evidence), "")
        causes["image-id-unknown"] = f"{cause}; every record is affected" if cause else ""
    return tuple(
        replace(problem, cause=causes[problem.kind])
        if causes.get(problem.kind) and problem.times == 1
        else problem
        for problem in problems
    )


def detections_without_training(evidence: Evidence, *, listed: bool) -> tuple[int, list[int]]:
    """Number of detections of species without training images, and their category ids.

    With ``listed``, of the species that train.json lists nevertheless, else of all others.
    """
    categories = evidence.benchmark.categories
    without = categories.n_train_images <= 0
    if without.all():
        return 0, []  # no training annotations
    train = evidence.benchmark.splits.get("train")
    if train is not None:
        in_train = np.isin(np.arange(len(without)), train.listed)
        without &= in_train if listed else ~in_train
    elif listed:
        return 0, []
    count = np.bincount(evidence.everything.category, minlength=len(without))
    return int(count[without].sum()), categories.ids[without & (count > 0)].tolist()


def _many_without_training(evidence: Evidence, *, listed: bool) -> tuple[str, str]:
    """Their percentage and ids as text; ("", "") if they are few."""
    count, ids = detections_without_training(evidence, listed=listed)
    n = len(evidence.everything)
    if not count or count < HELD_OUT_FRACTION * n:
        return "", ""
    return percent(count, n), ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")


def held_out_ids(evidence: Evidence) -> Iterator[str]:
    """Many detections of species that train.json does not list."""
    share, ids = _many_without_training(evidence, listed=False)
    if share:
        yield (
            f"{share} of detections are of species without training images "
            f"(category_id {ids}): likely shifted ids, class indices of the model, or a model "
            "trained on more than the train split"
        )


def untrained_species(evidence: Evidence) -> Iterator[str]:
    """Many detections of species that train.json lists, but has no annotation of.

    Their ids are those of the file. Training on train.json teaches a detector never to predict
    them, so it learned them from other annotations.
    """
    share, ids = _many_without_training(evidence, listed=True)
    if share:
        yield (
            f"{share} of detections are of species that train.json lists, but has no annotation "
            f"of (category_id {ids}): likely a model trained on other annotations than train.json"
        )


def taxonomy(evidence: Evidence) -> Iterator[str]:
    """Scored species without a genus, or unseen species without a distance band."""
    truth, categories = evidence.truth, evidence.benchmark.categories
    scored = np.unique(truth.category[~truth.crowd])
    without_genus = scored[categories.genus_code[scored] < 0]
    if len(without_genus):
        first = categories.names[int(without_genus[0])]
        yield (
            f"{len(without_genus)} of {counted(len(scored), 'scored species', 'scored species')} "
            f"({first}, ...) without a genus in the taxonomy: no detection of them can have the "
            "correct genus; likely names that differ between taxonomy and annotation files"
            if len(without_genus) > 1
            else f"1 scored species ({first}) without a genus in the taxonomy: no detection of it "
            "can have the correct genus"
        )
    bands = {categories.distance_band[row] for row in scored.tolist()}
    if truth.name == "semantic_ood" and bands == {""}:
        yield (
            "no unseen species has a distance band in the taxonomy: no metrics by band; "
            "column distance_band_vs_trainable is missing or blank"
        )


def stray_files(evidence: Evidence) -> Iterator[str]:
    """Categories listed only by annotation files of no split, which makes their ids valid."""
    benchmark = evidence.benchmark
    files = benchmark.stray_files
    listed = np.zeros(len(benchmark.categories.ids), np.bool_)
    for split in benchmark.splits.values():
        listed[split.listed] = True
    extra = np.flatnonzero(~listed)
    if files and len(extra):
        yield (
            f"{counted(len(extra), 'category', 'categories')} "
            f"({benchmark.categories.names[extra[0]]}{', ...' if len(extra) > 1 else ''}) listed "
            f"by no split, only by {', '.join(files)}: the benchmark's evaluator reads every .json "
            "file in the folder; likely a copy or an unrelated file"
        )


def shared_names(evidence: Evidence) -> Iterator[str]:
    """Two categories of the split with the same species name."""
    names = evidence.benchmark.categories.names
    ids = evidence.benchmark.categories.ids
    first: dict[str, int] = {}
    for row in evidence.truth.listed.tolist():
        other = first.setdefault(names[row], row)
        if other != row:
            yield (
                f"categories {ids[other]} and {ids[row]} of {evidence.truth.name} share the name "
                f"{names[row]}: each has its own AP, but either id is a correct identification"
            )
