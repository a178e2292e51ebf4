"""Reads the evidence of the models, one file at a time, and keeps the counts that tables need."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints
from benchmark_eval.core.chance import correct_by_chance
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.inputs.benchmark import Benchmark, Categories
from benchmark_eval.results.evidence import (
    DENSITY,
    Evidence,
    SomeColumns,
    content_problems,
    decode_columns,
    decode_evidence,
    evidence_problems,
)
from benchmark_eval.results.schema import Evaluation, load_summary
from benchmark_eval.sweep.summaries import SUFFIX as SUMMARY
from benchmark_eval.sweep.summaries import ModelResult

_COLUMNS = (
    *("n_scored", "n_found", "n_right", "n_genus", "n_found_open", "n_right_open", "n_given"),
    *("confusion_true", "confusion_predicted", "confusion_n"),
    *("hit_true", "hit_predicted", "hit_stratum"),
)
"""The arrays that every model's counts are made from."""


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """Specimens of each species on a split, at any confidence. Species are rows of the categories.

    Attributes
    ----------
    scored, found, right, genus, found_open, right_open : (species,)
        As the arrays ``n_...`` of the evidence.
    found_in, right_in : (strata, species)
        Detected, and correctly identified, specimens by density stratum.
    misidentified : (species,)
        Detected specimens with a wrong species.
    same : (taxa, species)
        Those of them with the correct genus, tribe.
    by_chance : (taxa, species)
        Their expected numbers.
    given_to_targets : (species,)
        How often each species is given to a specimen of a target species.
    """

    scored: Codes
    found: Codes
    right: Codes
    genus: Codes
    found_open: Codes
    right_open: Codes
    found_in: Codes
    right_in: Codes
    misidentified: Codes
    same: Codes
    by_chance: Floats
    given_to_targets: Codes


ModelCounts = Mapping[str, SplitCounts]
"""The counts of a model by split."""


def read_counts(model: ModelResult, benchmark: Benchmark) -> ModelCounts | None:
    """The counts of a model; None without evidence.

    Raises InputError if the file is damaged, or belongs to another evaluation or benchmark.
    """
    categories = benchmark.categories
    data = _bytes(model)
    if data is None:
        return None
    columns = decode_columns(data, str(model.evidence), _COLUMNS)
    _check_header(model, columns, categories)
    is_target = np.array([bool(band) for band in categories.target_band], np.bool_)
    return {
        split: _counts(arrays, categories, is_target) for split, arrays in columns.splits.items()
    }


def full_evidence(model: ModelResult) -> Evidence:
    """All evidence of a model that ``read_counts`` has read; InputError if it changed since."""
    data = _bytes(model)
    if data is None:
        problem = Problem(
            "unreadable", str(model.evidence), "no such file", "the evidence of a model"
        )
        raise InputError([problem])
    return decode_evidence(data, str(model.evidence))


def _bytes(model: ModelResult) -> bytes | None:
    """The evidence file of a model, None without one; InputError if it is not the summary's."""
    path = model.evidence
    if path is None:
        return None
    try:
        data = read_input(path, text=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError([unreadable(path, error, "the evidence of a model")]) from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != model.provenance.evidence:
        raise InputError(content_problems(path, digest, _evaluation(path, model)))
    return data


def _evaluation(path: Path, model: ModelResult) -> Evaluation:
    return load_summary(path.with_name(f"{model.entry.model_name}{SUMMARY}"))


def _check_header(model: ModelResult, found: SomeColumns, categories: Categories) -> None:
    """Raise InputError for evidence of other inputs, other code or other categories."""
    path, made = model.evidence, model.provenance
    if (found.header.inputs, found.header.scoring_code) != (made.inputs, made.scoring_code):
        assert path is not None
        raise InputError(evidence_problems(path, _evaluation(path, model)))
    if not np.array_equal(found.category_ids, categories.ids):
        raise InputError(
            [
                Problem(
                    "other-benchmark",
                    str(path),
                    "other categories",
                    "those of this benchmark",
                    field="category_ids",
                    cause="evaluated on another version of the benchmark: evaluate the model again",
                )
            ]
        )


def _counts(
    arrays: Mapping[str, NDArray[Any]], categories: Categories, is_target: Bools
) -> SplitCounts:
    n = len(categories.ids)
    true, predicted = arrays["confusion_true"], arrays["confusion_predicted"]
    number = arrays["confusion_n"][0]
    wrong = categories.name_code[true] != categories.name_code[predicted]

    def of_species(rows: Bools, by: Codes = true) -> Codes:
        return np.bincount(by[rows], weights=number[rows], minlength=n).astype(np.int32)

    codes = (categories.genus_code, categories.tribe_code)
    same = [(code[true] >= 0) & (code[true] == code[predicted]) & wrong for code in codes]
    of_name = np.bincount(
        categories.name_code, weights=arrays["n_given"][0], minlength=int(n > 0)
    ).astype(np.int64)
    misidentified = of_species(wrong)
    return SplitCounts(
        scored=arrays["n_scored"],
        found=arrays["n_found"][0].copy(),
        right=arrays["n_right"][0].copy(),
        genus=arrays["n_genus"][0].copy(),
        found_open=arrays["n_found_open"][0].copy(),
        right_open=arrays["n_right_open"][0].copy(),
        found_in=_by_stratum(arrays, np.ones(len(arrays["hit_true"]), bool), n),
        right_in=_by_stratum(
            arrays,
            categories.name_code[arrays["hit_true"]]
            == categories.name_code[arrays["hit_predicted"]],
            n,
        ),
        misidentified=misidentified,
        same=np.array([of_species(rows) for rows in same]),
        by_chance=np.array(
            [misidentified * correct_by_chance(of_name, categories.name_code, c) for c in codes]
        ),
        given_to_targets=of_species(is_target[true], predicted),
    )


def _by_stratum(arrays: Mapping[str, NDArray[Any]], rows: Bools, n: int) -> Codes:
    """The true positives ``rows`` by stratum and species, (strata, species)."""
    key = arrays["hit_stratum"][rows].astype(np.int64) * n + arrays["hit_true"][rows]
    return np.bincount(key, minlength=len(DENSITY) * n).reshape(len(DENSITY), n).astype(np.int32)


def annotated_in(benchmark: Benchmark, split: str) -> tuple[Ints, Ints, Bools]:
    """The scored specimens and images of a split by density stratum.

    Returns
    -------
    specimens : (strata, species)
        Scored specimens of each species.
    stratum : (images,)
        The stratum of each image, an index into ``results.evidence.DENSITY``.
    on_image : (images, species)
        Whether the image has a scored specimen of the species.
    """
    truth, n = benchmark.splits[split], len(benchmark.categories.ids)
    per_image = np.bincount(truth.image, minlength=len(truth.image_ids))
    few = int(DENSITY[1].rpartition(" ")[2])
    stratum = (per_image > 1).astype(np.int64) + (per_image > few)
    image, category = truth.image[~truth.crowd], truth.category[~truth.crowd]
    specimens = np.bincount(stratum[image] * n + category, minlength=len(DENSITY) * n)
    on_image = np.zeros((len(truth.image_ids), n), np.bool_)
    on_image[image, category] = True
    return specimens.reshape(len(DENSITY), n), stratum, on_image
