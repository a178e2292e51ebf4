"""A small sweep with known truths, from boxes to tables: a benchmark, models and their results."""

import json
import random

from benchmark_eval import aggregate, evaluate_to_files
from benchmark_eval.protocol import REGIMES
from support.factories import manifest_text

GU, IN, TA = REGIMES
N_KNOWN, N_BAND, N_TEST, N_TRAIN = 12, 12, 12, 12
NEVER_NAMED, TAKEN_FOR = 5, 6
"""The category id of a species that every model calls by the other's name."""
KNOWN = range(1, N_KNOWN + 1)
BANDS = {"near_genus": range(101, 101 + N_BAND), "far_tribe": range(201, 201 + N_BAND)}
SIZE, STEP = 40, 60


def name_of(number):
    """The scientific name of a category id."""
    if number < 100:
        return f"Genus{number} speciosus"
    return f"Genus{number - 100} novus" if number < 200 else f"Farus{number} novus"


def write_benchmark(folder, bands=("near_genus", "far_tribe")):
    """Known species with one specimen per image; unseen ones alone and on dense plates.

    The far band has the same species and specimens as near, but mostly on dense plates.
    """
    coco = folder / "detection" / "annotations_coco"
    coco.mkdir(parents=True)
    header = "scientificName,subfamily,tribe,genus,benchmark_role,target_band"
    rows = [f"{header},distance_band_vs_trainable"]
    rows += [f"{name_of(number)},Sub,Tribe,Genus{number},trainable,,near_genus" for number in KNOWN]
    for band, numbers in BANDS.items():
        for number in numbers:
            genus = name_of(number).split()[0]
            tribe = "Tribe" if band == "near_genus" else f"Tribe{number}"
            rows.append(f"{name_of(number)},Sub,{tribe},{genus},semantic_ood,,{band}")
    (folder / "species_taxonomy.csv").write_text("\n".join(rows) + "\n")
    plates = {
        "train": [(n, 1) for n in KNOWN for _ in range(N_TRAIN)],
        "iid_test": [(n, 1) for n in KNOWN for _ in range(N_TEST)],
        "inat_test": [(n, 1) for n in (1, 2, 3, 4) for _ in range(6)],
        "semantic_ood": [
            (number, size)
            for band in bands
            for number in BANDS[band]
            for size in ((1, 1, 1, 1, 12) if band == "near_genus" else (1, 12, 12, 12, 12))
        ],
    }
    truth = {}
    for split, images in plates.items():
        boxes = [
            (image, number, [STEP * at, 10, SIZE, SIZE])
            for image, (number, size) in enumerate(images, start=1)
            for at in range(size)
        ]
        truth[split] = boxes
        listed = sorted({number for _, number, _ in boxes})
        content = {
            "images": [
                {"id": image, "width": 1000, "height": 100, "file_name": f"{split}{image}.jpg"}
                for image in range(1, len(images) + 1)
            ],
            "annotations": [
                {"id": at, "image_id": image, "category_id": number, "bbox": box,
                 "area": SIZE * SIZE, "iscrowd": 0}
                for at, (image, number, box) in enumerate(boxes, start=1)
            ],
            "categories": [{"id": number, "name": name_of(number)} for number in listed],
        }  # fmt: skip
        (coco / f"{split}.json").write_text(json.dumps(content))
    return truth


def predict(truth, split, named, rng):
    """Detections of a split: specimens are found by density, and named right with ``named``."""
    alone = {}
    for image, _, _ in truth[split]:
        alone[image] = alone.get(image, 0) + 1
    found = []
    for image, number, (x, y, w, h) in truth[split]:
        recall = {"inat_test": 0.5}.get(split, 0.95 if alone[image] == 1 else 0.6)
        if rng.random() > recall:
            continue
        label = number if number in KNOWN and rng.random() < named else rng.choice([*KNOWN])
        if number == NEVER_NAMED:
            label = TAKEN_FOR
        box = [x + rng.uniform(-1, 1), y + rng.uniform(-1, 1), w, h]
        score = rng.uniform(0.5, 0.9)
        found.append({"image_id": image, "category_id": label, "bbox": box, "score": score})
    return found


def run(folder, quality, seeds=(0, 1, 2), splits=("iid_test", "inat_test", "semantic_ood")):
    """Simulate, evaluate and aggregate models; ``quality`` is the naming accuracy by condition.

    Conditions are (architecture, regime, budget). Returns the tables; the files are in
    ``folder/out``.
    """
    truth = write_benchmark(folder / "benchmark")
    rows = []
    for condition, named in quality.items():
        for seed in seeds:
            model = "_".join((*condition, str(seed)))
            rng = random.Random(model)
            accuracy = named + rng.uniform(-0.02, 0.02)
            place = folder / "predictions" / model
            place.mkdir(parents=True)
            for split in splits:
                text = json.dumps(predict(truth, split, accuracy, rng))
                (place / f"{split}_predictions.json").write_text(text)
            evaluate_to_files(
                benchmark=folder / "benchmark",
                predictions_dir=place,
                output_dir=folder / "models" / model,
                model_name=model,
                splits=list(splits),
            )
            rows.append((model, *condition, seed))
    (folder / "manifest.csv").write_text(manifest_text(rows))
    return aggregate(
        eval_dir=folder / "models",
        manifest=folder / "manifest.csv",
        benchmark=folder / "benchmark",
        output_dir=folder / "out",
    )
