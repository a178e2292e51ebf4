"""A small sweep that is really evaluated, with planted truths, and its data as plain lists.

Nine known and twelve unseen species. "Genus0 species1" is labelled as species 4 by every model,
and far species are only denser: a specimen is detected with a chance that depends on the number of
specimens on its image, not on its band.
"""

import csv
import json
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmark_eval import aggregate, evaluate_to_files, load_benchmark
from support.factories import BUDGETS, manifest_text
from support.layout import species, write_predictions, write_split

GU, IN, TA = BUDGETS
KNOWN, UNSEEN = range(1, 10), range(101, 113)
BANDS = ("near_genus", "mid_tribe", "far_tribe")
TARGETS = {2: "near_genus", 3: "near_genus", 5: "near_genus", 6: "mid_tribe", 7: "mid_tribe"}
CONDITIONS = ((GU, "1"), (GU, "all"), (IN, "1"), (TA, "0"), (TA, "2"))
SEEDS = (0, 1, 2)
SPLITS = ("iid_test", "inat_test", "semantic_ood")
CONFUSED = (1, 4)
"""Species 1 is labelled as species 4."""


@dataclass(eq=False)
class Place:
    """A sweep in a folder: its models as (name, architecture, regime, budget, seed)."""

    folder: Path
    models: list = field(default_factory=list)

    def of(self, architecture, regime, budget):
        """The names of the models of a condition."""
        return [m[0] for m in self.models if m[1:4] == (architecture, regime, budget)]

    @cache  # noqa: B019  (one sweep per module)
    def summary(self, model):
        """The summary of a model as a dict."""
        return json.loads((self.folder / f"eval/{model}/{model}_summary.json").read_text())

    @cache  # noqa: B019  (one sweep per module)
    def rows(self, model, table):
        """The rows of a CSV file of a model."""
        with (self.folder / f"eval/{model}/{model}_{table}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    def table(self, name):
        """The rows of a CSV file of the sweep."""
        with (self.folder / f"out/{name}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    def truth(self, split):
        """The annotations of a split."""
        name = f"benchmark/detection/annotations_coco/{split}.json"
        return json.loads((self.folder / name).read_text())["annotations"]

    def aggregate(self, **options):
        """Aggregate the sweep into ``out``."""
        return aggregate(
            eval_dir=self.folder / "eval",
            manifest=self.folder / "manifest.csv",
            benchmark=self.folder / "benchmark",
            output_dir=self.folder / "out",
            **options,
        )


def band_of(number):
    """The band of an unseen species, or the band of a known one (any)."""
    return BANDS[(number - 101) // 4] if number > 100 else "near_genus"


def _truth(rng, split, listed, n_images):
    rows = []
    for image in range(1, n_images + 1):
        band = BANDS[image % 3]
        numbers = [n for n in listed if n < 101 or band_of(n) == band]
        # every band has images of each density, far ones more of the dense ones
        dense = (1, 1, 6) if band != "far_tribe" or split != "semantic_ood" else (1, 6, 6)
        n = rng.choice((*dense, 12) if image % 8 == 0 else dense)
        for place in range(n):
            box = [70 * (place % 10), 70 * (place // 10) + 1, 40 + rng.randrange(20), 50]
            rows.append([image, rng.choice(numbers), box, int(n > 6 and place == 11)])
    return rows


def _detections(rng, rows, quality, names, never=()):
    per_image = {}
    for image, *_ in rows:
        per_image[image] = per_image.get(image, 0) + 1
    found = []
    for image, number, (x, y, w, h), _ in rows:
        chance = 0.95 if per_image[image] == 1 else 0.6
        if rng.random() < chance:
            name = number if number < 101 and rng.random() < quality else rng.choice(names)
            name = CONFUSED[1] if number == CONFUSED[0] else name
            if number in never:
                name = next(n for n in names if n not in never)
            score = rng.randrange(3000, 10000) / 10000 if name == number else rng.random() * 0.8
            found.append([image, name, [x + rng.randrange(5), y, w, h], round(score, 4)])
        if rng.random() < 0.3:
            found.append([image, rng.choice(names), [x + 30, y + 20, w, h], round(rng.random(), 4)])
    return found


def build(folder, architectures=("a", "b"), conditions=CONDITIONS, seeds=SEEDS, splits=SPLITS):
    """Write, evaluate and aggregate the sweep; returns its ``Place``."""
    rng = random.Random(7)
    header = (
        "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable"
    )
    lines = [header]
    for n in (*KNOWN, *UNSEEN):
        genus = f"Genus{(n - 1) // 3}" if n < 104 else f"Other{n // 4}"
        tribe = f"Tribe{(n - 1) // 6}" if n < 109 else f"Away{n}"
        role = "semantic_ood" if n > 100 else "trainable"
        lines.append(
            f"{species(n)},Scolytinae,{tribe},{genus},{role},{TARGETS.get(n, '')},{band_of(n)}"
        )
    (folder / "benchmark").mkdir(parents=True)
    (folder / "benchmark/species_taxonomy.csv").write_text("\n".join(lines) + "\n")
    truth = {
        "train": _truth(rng, "train", KNOWN, 30),
        "iid_test": _truth(rng, "iid_test", KNOWN, 50),
        "inat_test": _truth(rng, "inat_test", list(KNOWN)[:5], 30),
        "semantic_ood": _truth(rng, "semantic_ood", UNSEEN, 130),
    }
    for split, rows in truth.items():
        listed = {"inat_test": list(KNOWN)[:5], "semantic_ood": list(UNSEEN)}.get(
            split, list(KNOWN)
        )
        write_split(folder / "benchmark", split, rows, listed=listed)
    place = Place(folder)
    benchmark = load_benchmark(folder / "benchmark")
    quality = {"1": 0.5, "all": 0.8, "0": 0.6, "2": 0.7}
    for architecture in architectures:
        for regime, budget in conditions:
            for seed in seeds:
                name = f"{architecture}_{regime}_{budget}_s{seed}"
                place.models.append((name, architecture, regime, budget, seed))
                level = quality["all" if regime == IN else budget] + (architecture == "b") * 0.1
                for split in splits:
                    never = TARGETS if (regime, budget) == (TA, "0") else ()
                    rows = _detections(rng, truth[split], level + 0.02 * seed, KNOWN, never)
                    write_predictions(folder / "predictions" / name, split, rows)
                evaluate_to_files(
                    benchmark=benchmark,
                    predictions_dir=folder / "predictions" / name,
                    output_dir=folder / "eval" / name,
                    model_name=name,
                    splits=splits,
                    detections="all",
                )
    columns = "model_name,architecture,regime,k_or_p,seed"
    (folder / "manifest.csv").write_text(manifest_text(place.models, columns))
    place.aggregate()
    return place
