"""Simulates training and prediction for the tutorial, without a network or images, in seconds.

    python docs/stand_in_trainer.py PROJECT BENCHMARK

For every model of PROJECT/manifest.csv, it reads the training subset that the manifest names and
"detects" the benchmark's specimens: more training specimens give more detections, and more images
of a species give more correct identifications. Output files are those of real frameworks: models
whose name starts with yolo write label files like Ultralytics (save_txt, save_conf), all others
one JSON file per split like Detectron2. The numbers say nothing about real detectors.
"""

from __future__ import annotations

import csv
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SPLITS = ("iid_test", "inat_test", "semantic_ood")


class Model:
    """A "trained" model: its species and their numbers of training images."""

    def __init__(self, name: str, train_annotations: Path) -> None:
        coco = json.loads(train_annotations.read_text())
        trained = [a for a in coco["annotations"] if not a["iscrowd"]]
        self.name = name
        self.classes = {c["id"]: c["name"] for c in coco["categories"]}
        self.n_specimens = len(trained)
        pairs = {(a["image_id"], a["category_id"]) for a in trained}
        self.n_images = Counter(category for _, category in pairs)

    def detect(self, split: str, coco: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """Yield (image record, category id, x, y, w, h, confidence) of every detection."""
        rng = np.random.default_rng([zlib.crc32(f"{self.name} {split}".encode())])
        images = {image["id"]: image for image in coco["images"]}
        field = 0.4 if split == "inat_test" else 1.0
        known = sorted(self.n_images)
        for annotation in coco["annotations"]:
            image, species = images[annotation["image_id"]], annotation["category_id"]
            if rng.random() > field * self.n_specimens / (self.n_specimens + 60):
                continue
            n = self.n_images[species]
            correct = rng.random() < n / (n + 3)
            label = species if correct else int(rng.choice(known))
            box = annotation["bbox"]
            x, y, w, h = np.array(box) + rng.normal(0, 0.03, 4) * box[2]
            x, y = max(x, 0.0), max(y, 0.0)
            w, h = min(w, image["width"] - x), min(h, image["height"] - y)
            if w > 1 and h > 1:
                yield image, label, x, y, w, h, rng.beta(5 if correct else 2, 2)


def write_ultralytics(
    run: Path, split: str, model: Model, detections: list[tuple[Any, ...]]
) -> None:
    """Write one label file per image with detections, with classes from 0, and data.yaml."""
    number = {category: index for index, category in enumerate(sorted(model.classes))}
    names = [f"  {number[c]}: {model.classes[c]}\n" for c in number]
    (run / "data.yaml").write_text("names:\n" + "".join(names))
    labels = run / split / "labels"
    labels.mkdir(parents=True)
    for image, category, x, y, w, h, score in detections:
        width, height = image["width"], image["height"]
        values = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height, score)
        with (labels / f"{Path(image['file_name']).stem}.txt").open("a") as file:
            file.write(" ".join([str(number[category]), *(f"{v:g}" for v in values)]) + "\n")


def write_detectron2(
    run: Path, split: str, _model: Model, detections: list[tuple[Any, ...]]
) -> None:
    """Write coco_instances_results.json with the ids of the training data set."""
    (run / split).mkdir(parents=True)
    records = [
        {"image_id": i["id"], "category_id": c, "bbox": [x, y, w, h], "score": score}
        for i, c, x, y, w, h, score in detections
    ]
    (run / split / "coco_instances_results.json").write_text(json.dumps(records))


def main(project: Path, benchmark: Path) -> None:
    """Simulate training and prediction of every model of the project."""
    annotations = benchmark / "detection" / "annotations_coco"
    truth = {split: json.loads((annotations / f"{split}.json").read_text()) for split in SPLITS}
    with (project / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        model = Model(row["model_name"], project / row["train_annotations"])
        run = project / "runs" / model.name
        run.mkdir(parents=True)
        write = write_ultralytics if model.name.startswith("yolo") else write_detectron2
        for split in SPLITS:
            write(run, split, model, list(model.detect(split, truth[split])))
    print(f"{len(rows)} models trained, predictions in {project / 'runs'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
