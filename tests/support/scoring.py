"""Scores small splits through files, as a user would."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval import run_evaluation
from support.layout import species, write_predictions, write_split

COLUMNS = "scientificName,subfamily,tribe,genus,benchmark_role,distance_band_vs_trainable"


@dataclass(frozen=True)
class Taxon:
    """The taxonomy of a species; an empty text is a blank cell."""

    genus: str = ""
    tribe: str = ""
    subfamily: str = ""
    band: str = ""


@dataclass(frozen=True)
class Split:
    """A split: specimens [image, category, box(, crowd)], detections [..., box, score]."""

    truth: list
    rows: list
    listed: list | None = None
    images: list | None = None


def evaluate(splits, taxa=None, train=(), iou=0.5):
    """The result of ``run_evaluation`` for the splits (a dict by name).

    ``taxa`` maps categories to ``Taxon``; train.json lists all of them. ``train`` holds the
    specimens of the training split.
    """
    taxa = taxa or {}
    with tempfile.TemporaryDirectory() as folder:
        benchmark, predictions = Path(folder, "benchmark"), Path(folder, "predictions")
        if train or taxa:
            listed = sorted({row[1] for row in train} | set(taxa))
            write_split(benchmark, "train", list(train), listed=listed)
        for name, split in splits.items():
            options = {"listed": split.listed, "images": split.images}
            write_split(benchmark, name, split.truth, **options)
            write_predictions(predictions, name, split.rows)
        rows = [
            f"{species(n)},{t.subfamily},{t.tribe},{t.genus},trainable,{t.band}"
            for n, t in taxa.items()
        ]
        (benchmark / "species_taxonomy.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
        return run_evaluation(benchmark, predictions, list(splits), iou, quiet=True)


def score(truth, rows, split="iid_test", *, listed=None, images=None, **options):
    """The blocks of one split, including images that only a detection refers to."""
    if images is None:
        images = sorted({row[0] for row in [*truth, *rows]})
    if listed is None:
        listed = sorted({row[1] for row in [*truth, *rows]})
    content = Split(truth, rows, listed, images)
    return evaluate({split: content}, **options)["per_split"][split]
