"""Every kind of finding: how serious it is and what it means.

A *problem* stops an evaluation or makes its numbers wrong; a *warning* is a likely mistake that
an evaluation would let through; a *note* is a fact. A kind that is found and does not stand here
counts as a problem, and a test fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How serious a kind of finding is, and its meaning in a few words."""

    level: Level
    meaning: str


def _all(level: Level, meanings: dict[str, str]) -> dict[str, Kind]:
    return {kind: Kind(level, meaning) for kind, meaning in meanings.items()}


RECORD_KINDS = _all(
    "problem",
    {
        "record-shape": "a record that is no JSON object",
        "duplicate-key": "a key that stands twice in one record",
        "id-type": "an id that is no integer of 64 bits",
        "bbox-type": "a box that is not four numbers",
        "score-type": "a score that is no number",
        "bbox-not-finite": "a box with NaN or infinity",
        "bbox-negative": "a box of negative size",
        "score-range": "a score outside [0, 1]",
        "image-id-unknown": "an image that the split does not have",
        "category-id-unknown": "a category that no file of the benchmark has",
    },
)
"""Faults of single predictions, which ``on_invalid: drop`` leaves out and counts."""

ABSENCE_KINDS = _all(
    "problem",
    {
        "missing-predictions": "a model without the predictions of a split",
        "empty-predictions": "a prediction file of no bytes",
        "no-predictions": "not one model with all its prediction files",
    },
)
"""Files that are not there, which ``allow_missing`` lets pass."""

KINDS: dict[str, Kind] = {
    **RECORD_KINDS,
    **ABSENCE_KINDS,
    **_all(
        "problem",
        {
            # any file
            "missing-file": "a file that must be there",
            "missing-folder": "a folder that the config names and that is not there",
            "unreadable": "a file that cannot be read",
            "not-json": "a file that is no JSON",
            "not-utf8": "a text file that is not UTF-8",
            "missing-column": "a table without a column that it must have",
            "row-length": "a row with another number of cells than the header",
            # benchmark
            "not-coco": "an annotation file without images, annotations or categories",
            "size-type": "a width, height or area that is no number",
            "name-type": "a category whose name is no text",
            "iscrowd-missing": "an annotation without iscrowd",
            "iscrowd-value": "an iscrowd that is neither 0 nor 1",
            "duplicate-annotation-id": "an annotation id used twice",
            "duplicate-image-id": "an image id used twice",
            "duplicate-category-id": "a category id used twice",
            "annotation-image-unknown": "an annotation on an image that the file does not have",
            "annotation-category-unknown": "an annotation of a category that no file has",
            "annotation-box": "an annotated box that is not finite or has a negative size",
            "annotation-area": "an annotated area that is not finite or negative",
            "split-file-name": "an annotation file named as a split's but for case",
            "category-name": "two names for one category id",
            "duplicate-species": "a species twice in the taxonomy",
            "target-band": "a target band that is none of the three",
            "distance-band": "a distance band that is none of the three",
            "missing-split": "no annotation file of a split that is to be scored",
            "image-in-two-splits": "an image that two splits share",
            "record-in-two-splits": "an annotation record that two splits share",
            "digest": "a file that is not the one listed in MANIFEST.csv",
            # manifest
            "empty": "a manifest without text",
            "not-csv": "a manifest that is no CSV",
            "no-rows": "a manifest without a model",
            "unknown-column": "a column that a manifest does not have",
            "duplicate-column": "a column twice",
            "blank-row": "a row of blank cells",
            "blank-cell": "a blank cell where a value must stand",
            "unprintable": "a cell with a character that cannot be seen",
            "surrounding-whitespace": "a cell with blanks around its value",
            "model-name": "a model name that cannot name files",
            "architecture": "an architecture that is spelled in two ways or reads as a formula",
            "regime": "an unknown regime",
            "k_or_p": "a budget that the regime does not have",
            "seed": "a seed that is no whole number",
            "duplicate-model": "a model in two rows",
            "duplicate-seed": "a seed of a condition in two rows",
            "not-a-subset": "training annotations that are no subset of train.json",
            # config
            "config-shape": "a config that is no mapping",
            "config-key": "an unknown key of the config",
            "config-value": "a value that the config does not allow",
            "wildcard-character": "a path or name that Snakemake reads as a pattern",
            # predictions
            "ambiguous-predictions": "a prediction file and the same with .gz",
            "not-a-list": "a prediction file that is no list",
        },
    ),
    **_all(
        "warning",
        {
            "annotation-empty-box": "an annotated box without width or height",
            "species-not-in-taxonomy": "a species that the taxonomy does not have",
            "genus-in-two-tribes": "a genus that stands in two tribes",
            "tribe-in-two-subfamilies": "a tribe that stands in two subfamilies",
            "species-two-ids": "two categories of a split with one species name",
            "stray-annotations": "an annotation file that is none of the four splits",
            "species-role": "a species in a split that its benchmark_role does not fit",
            "species-seen": "a species of semantic_ood that is trained on",
            "species-untrained": "a species of a test split that is not trained on",
            "no-crowd": "an iid_test without crowd regions, as in version 1",
            "listed-file-missing": "a file of MANIFEST.csv that is not there",
            "image-without-licence": "an image without a row in image_licences.csv",
            "licence-differs": "an image whose licence is another in image_licences.csv",
            "likely-mistake": "a prediction file that reads as if something went wrong",
            "same-predictions": "two models with the very same prediction file",
        },
    ),
    **_all(
        "note",
        {
            "counts": "what a split holds, beside what is published",
            "listed-not-scored": "species that a split lists without a scored specimen",
            "species-without-band": "a species of semantic_ood without a distance band",
            "unlisted-predictions": "a folder of predictions without a row of the manifest",
            "not-compared": "what could not be looked at",
            "sweep": "what the manifest holds and what its grid lacks",
        },
    ),
}


def markdown_table() -> str:
    """All kinds as they stand in docs/trust.md."""
    lines = ["| kind | level | meaning |", "|---|---|---|"]
    lines += [f"| `{kind}` | {k.level} | {k.meaning} |" for kind, k in KINDS.items()]
    return "\n".join(lines) + "\n"
