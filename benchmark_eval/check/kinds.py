"""All kinds of findings, with their level and meaning.

A *problem* stops an evaluation or makes its numbers wrong; a *warning* is a likely mistake that
does not stop an evaluation; a *note* is a fact. A kind that is missing here counts as a problem,
and a test fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Kind:
    """Level and meaning of a kind of finding."""

    level: Level
    meaning: str


def _all(level: Level, meanings: dict[str, str]) -> dict[str, Kind]:
    return {kind: Kind(level, meaning) for kind, meaning in meanings.items()}


RECORD_KINDS = _all(
    "problem",
    {
        "record-shape": "a record that is not a JSON object",
        "duplicate-key": "a key that occurs twice in a record",
        "id-type": "an id that is not a 64-bit integer",
        "bbox-type": "a box that is not four numbers",
        "score-type": "a score that is not a number",
        "bbox-not-finite": "a box with NaN, infinite or overflowing values",
        "bbox-negative": "a box with negative width or height",
        "score-range": "a score outside [0, 1]",
        "image-id-unknown": "an image id that is not in the split",
        "category-id-unknown": "a category id that is not in the benchmark",
    },
)
"""Problems of single predictions, which ``on_invalid: drop`` drops and counts."""

ABSENCE_KINDS = _all(
    "problem",
    {
        "missing-predictions": "no prediction file for a model and split",
        "empty-predictions": "a prediction file of zero bytes",
        "no-predictions": "no model with a complete set of prediction files",
    },
)
"""Missing files, which are only warnings with ``allow_missing``."""

KINDS: dict[str, Kind] = {
    **RECORD_KINDS,
    **ABSENCE_KINDS,
    **_all(
        "problem",
        {
            # any file
            "missing-file": "a required file that does not exist",
            "missing-folder": "a folder named in the config that does not exist",
            "unreadable": "a file that cannot be read",
            "not-json": "a file that is not valid JSON",
            "not-utf8": "a text file that is not UTF-8",
            "missing-column": "a table without a required column",
            "row-length": "a row whose number of cells differs from the header",
            # benchmark
            "not-coco": "an annotation file without images, annotations or categories",
            "size-type": "a width, height or area that is not a number",
            "name-type": "a category name that is not text, or blank",
            "not-unicode": "text that is not valid Unicode",
            "iscrowd-missing": "an annotation without iscrowd",
            "iscrowd-value": "an iscrowd value other than 0 and 1",
            "duplicate-annotation-id": "an annotation id used twice",
            "duplicate-image-id": "an image id used twice",
            "duplicate-category-id": "a category id used twice",
            "annotation-image-unknown": "an annotation of an image that is not in the file",
            "annotation-category-unknown": "an annotation of a category that is in no file",
            "annotation-box": "an annotated box that is not finite or has a negative size",
            "annotation-area": "an annotated area that is negative or not finite",
            "split-file-name": "an annotation file named like a split except for case",
            "category-name": "a category id with two names",
            "duplicate-species": "a species listed twice in the taxonomy",
            "target-band": "a target band other than the three bands",
            "distance-band": "a distance band other than the three bands",
            "missing-split": "no annotation file for a split to be scored",
            "image-in-two-splits": "an image that is in two splits",
            "record-in-two-splits": "an annotation record that is in two splits",
            "digest": "a file whose SHA-256 differs from MANIFEST.csv",
            # manifest
            "empty": "an empty manifest",
            "not-csv": "a table that is not valid CSV",
            "no-rows": "a manifest without models",
            "unknown-column": "an unknown column of the manifest",
            "duplicate-column": "a column that occurs twice",
            "blank-row": "a row of blank cells",
            "blank-cell": "a blank cell where a value is required",
            "unprintable": "a cell with an invisible character",
            "surrounding-whitespace": "a cell with whitespace around its value",
            "url": "a URL where the path of a file or folder is required",
            "model-name": "a model name that is not a valid file name",
            "architecture": "an architecture spelled in two ways or starting like a formula",
            "regime": "an unknown regime",
            "k_or_p": "a budget that is not valid for the regime",
            "seed": "a seed that is not an integer >= 0",
            "duplicate-model": "a model that occurs in two rows",
            "duplicate-seed": "a seed of a condition that occurs in two rows",
            "not-a-subset": "training annotations that are not a subset of train.json",
            # config
            "config-shape": "a config that is not a mapping",
            "config-key": "an unknown config key",
            "config-value": "an invalid config value",
            "wildcard-character": "a path or name that Snakemake would parse as a wildcard",
            # predictions
            "ambiguous-predictions": "both a .json and a .json.gz prediction file",
            "not-a-list": "a prediction file that is not a JSON list",
        },
    ),
    **_all(
        "warning",
        {
            "image-size": "an image whose width or height is not positive",
            "annotation-empty-box": "an annotated box of zero width or height",
            "species-not-in-taxonomy": "a species that is not in the taxonomy",
            "genus-in-two-tribes": "a genus assigned to two tribes",
            "tribe-in-two-subfamilies": "a tribe assigned to two subfamilies",
            "species-two-ids": "two categories of a split with the same species name",
            "file-name-in-two-splits": "images with equal names and sizes in two splits",
            "stray-annotations": "an annotation file that belongs to none of the four splits",
            "species-role": "a species whose benchmark_role does not match its split",
            "species-seen": "a species of semantic_ood that is also in train",
            "species-untrained": "a species of iid_test or inat_test that is not in train",
            "no-crowd": "no crowd regions in iid_test, as in version 1",
            "listed-file-missing": "a file listed in MANIFEST.csv that does not exist",
            "image-without-licence": "an image without a row in image_licences.csv",
            "licence-differs": "an image whose licence differs from image_licences.csv",
            "likely-mistake": "a prediction file that shows signs of a common mistake",
            "same-predictions": "two models with identical prediction files",
            "shared-predictions-dir": "two models with the same folder of predictions",
        },
    ),
    **_all(
        "note",
        {
            "counts": "size of a split, compared with the published size",
            "listed-not-scored": "species listed in a split without a scored specimen",
            "species-without-band": "a species of semantic_ood without a distance band",
            "unlisted-predictions": "a folder of predictions that is not in the manifest",
            "not-compared": "data that could not be checked",
            "sweep": "size of the sweep, and conditions with missing seeds",
        },
    ),
}


def markdown_table() -> str:
    """All kinds as a Markdown table, for docs/trust.md."""
    lines = ["| kind | level | meaning |", "|---|---|---|"]
    lines += [f"| `{kind}` | {k.level} | {k.meaning} |" for kind, k in KINDS.items()]
    return "\n".join(lines) + "\n"
