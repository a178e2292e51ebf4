"""Stands in for training and predicting in the tutorial: no network, no images, a few seconds.

    python docs/stand_in_trainer.py PROJECT BENCHMARK

For every model of PROJECT/manifest.csv it looks at the training subset that the manifest names,
and then "detects" the benchmark's specimens: the more specimens were trained on the more are found,
and the more images of a species the oftener it is named right. What it leaves is what frameworks
leave: models whose name starts with yolo write label files as Ultralytics does (save_txt,
save_conf), all others one JSON file as Detectron2 does. Nothing here says anything about a real
detector.
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
    """A "trained" model: which species it knows, and how well."""

    def __init__(self, name: str, train_annotations: Path) -> None:
        coco = json.loads(train_annotations.read_text())
        trained = [a for a in coco["annotations"] if not a["iscrowd"]]  # crowd is not learned
        self.name = name
        self.classes = {c["id"]: c["name"] for c in coco["categories"]}
        self.n_specimens = len(trained)
        pairs = {(a["image_id"], a["category_id"]) for a in trained}
        self.n_images = Counter(category for _, category in pairs)

    def detect(self, split: str, coco: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """(image record, category id, x, y, w, h, confidence) of every detection."""
        rng = np.random.default_rng([zlib.crc32(f"{self.name} {split}".encode())])
        images = {image["id"]: image for image in coco["images"]}
        field = 0.4 if split == "inat_test" else 1.0
        known = sorted(self.n_images)
        for note in coco["annotations"]:
            image, species = images[note["image_id"]], note["category_id"]
            if rng.random() > field * self.n_specimens / (self.n_specimens + 60):
                continue
            n = self.n_images[species]
            right = rng.random() < n / (n + 3)
            named = species if right else int(rng.choice(known))
            x, y, w, h = np.array(note["bbox"]) + rng.normal(0, 0.03, 4) * note["bbox"][2]
            x, y = max(x, 0.0), max(y, 0.0)
            w, h = min(w, image["width"] - x), min(h, image["height"] - y)
            if w > 1 and h > 1:
                yield image, named, x, y, w, h, rng.beta(5 if right else 2, 2)


def write_ultralytics(run: Path, split: str, model: Model, found: list[tuple[Any, ...]]) -> None:
    """A label file for each image with detections, classes counted from 0, and data.yaml."""
    number = {category: at for at, category in enumerate(sorted(model.classes))}
    names = [f"  {number[c]}: {model.classes[c]}\n" for c in number]
    (run / "data.yaml").write_text("names:\n" + "".join(names))
    labels = run / split / "labels"
    labels.mkdir(parents=True)
    for image, category, x, y, w, h, score in found:
        width, height = image["width"], image["height"]
        shares = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height, score)
        with (labels / f"{Path(image['file_name']).stem}.txt").open("a") as file:
            file.write(" ".join([str(number[category]), *(f"{v:g}" for v in shares)]) + "\n")


def write_detectron2(run: Path, split: str, _model: Model, found: list[tuple[Any, ...]]) -> None:
    """coco_instances_results.json with the ids of the dataset that the model was trained on."""
    (run / split).mkdir(parents=True)
    records = [
        {"image_id": i["id"], "category_id": c, "bbox": [x, y, w, h], "score": score}
        for i, c, x, y, w, h, score in found
    ]
    (run / split / "coco_instances_results.json").write_text(json.dumps(records))


def main(project: Path, benchmark: Path) -> None:
    """Train and run every model of the project."""
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
    print(f"{len(rows)} models trained and run: {project / 'runs'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
