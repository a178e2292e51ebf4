"""Compares a golden sweep of the names before the renaming with one of the names after it.

    python tests/sweep/golden/compare_renamed.py OLD NEW

Both folders are made by tests/sweep/golden/sweep.py, each with its own commit. Every JSON and CSV
value of OLD must stand in NEW under its new name. Texts for readers, digests, and versions are
left aside.
"""

import csv
import json
import sys
from pathlib import Path

RENAMES = {
    "image_mean_species_accuracy_given_det": "image_mean_classification_given_detection_acc",
    "species_accuracy_given_det": "classification_given_detection_acc",
    "detection_recall_any_name": "detection_recall_open_vocabulary",
    "false_alarms_per_image": "false_positives_per_image",
    "n_images_with_hit": "n_images_with_tp",
    "n_boxes_over_100": "n_detections_over_100",
    "n_found": "n_matched_tp",
    "n_wrong": "n_misidentified",
    "named_species": "pred_species",
    "true_species": "gt_species",
    "naming_minus_finding_loss": "classification_minus_localisation_loss",
    "ood_recall_alone_minus_crowded": "ood_image_mean_recall_1_minus_over_10",
    "own_metrics": "custom_metrics",
    "2-10": "2 to 10",
}
WHOLE = {"ignored": "unlisted_summaries"}
ASIDE = {"schema_version", "provenance", "inputs", "warnings", "notes"}


def renamed(text):
    """A key, column or cell under its new name."""
    if text in WHOLE:
        return WHOLE[text]
    for old, new in RENAMES.items():
        text = text.replace(old, new)
    return text


def values(tree, place=()):
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key not in ASIDE:
                yield from values(value, (*place, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from values(value, (*place, index))
    else:
        yield place, tree


def content(path, change):
    """(place, value) of everything in a file, names as ``change`` gives them."""
    if path.suffix == ".json":
        for place, value in values(json.loads(path.read_text())):
            renamed_place = tuple(change(p) if isinstance(p, str) else p for p in place)
            yield renamed_place, change(value) if isinstance(value, str) else value
    else:
        with path.open(newline="") as stream:
            for number, row in enumerate(csv.reader(stream)):
                yield number, [change(cell) for cell in row]


def main(old, new):
    count = 0
    names = sorted(p.relative_to(old) for p in old.rglob("*") if p.suffix in {".json", ".csv"})
    assert names == sorted(
        p.relative_to(new) for p in new.rglob("*") if p.suffix in {".json", ".csv"}
    )
    for name in names:
        before = list(content(old / name, renamed))
        after = list(content(new / name, str))
        if name.suffix == ".json":
            after = list(content(new / name, lambda text: text))
        assert len(before) == len(after), name
        for left, right in zip(before, after, strict=True):
            assert left == right, (name, left, right)
        count += len(before)
    print(f"{len(names)} files, {count:,} values and rows are equal under their new names")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
