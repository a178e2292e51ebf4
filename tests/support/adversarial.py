"""Random small benchmarks and predictions that combine many edge cases.

``draw(seed, folder)`` writes one and records its edge cases (twists) in ``Case.twists``. Everything
is valid input, except for records that ``on_invalid="drop"`` drops. ``Case.reference`` is the same
benchmark in a form that the benchmark's evaluator accepts: annotation ids from 1, all areas given
(docs/deviations.md), without records that it would wrongly keep.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BANDS = ("near_genus", "mid_tribe", "far_tribe")
UNKNOWN_BAND = "sister_species"
DEFAULT = ("iid_test", "inat_test", "semantic_ood")
NAMED = ("iid_test", "inat_test")
SIZES = ((20, 20), (20, 40), (40, 40), (32, 32), (100, 60), (96, 96), (200, 120))
BESIDE = 10
"""Distance in px of two specimens that one detection overlaps equally."""
TIED_SCORES = (0.0, 0.1, 0.25, 0.3, 0.30000000000000004, 0.5, 0.6, 0.7, 0.9, 1.0)
COLUMNS = (
    "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable"
)


@dataclass(frozen=True)
class Case:
    """One drawn benchmark: its files and how to score it."""

    seed: int
    folder: Path
    splits: tuple
    iou: float
    on_invalid: str
    twists: frozenset

    @property
    def benchmark(self):
        return self.folder / "benchmark"

    @property
    def predictions(self):
        return self.folder / "predictions"

    @property
    def reference(self):
        """The benchmark as given to the benchmark's evaluator."""
        return self.folder / "reference"

    @property
    def reference_predictions(self):
        return self.folder / "reference_predictions"


class Dice:
    """Draws from one generator and records the edge cases (twists) that occur."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.twists = set()
        self.origin = 0
        self.scale = 1
        if self.twist("boxes far from the origin", 0.05):
            self.origin = self.pick((1e6, 1e9, 1e12))
        elif self.twist("boxes of another scale", 0.07):
            self.scale = self.pick((1e-4, 0.1, 100))

    def scaled(self, box):
        """A box at the origin and scale of this draw."""
        x, y, width, height = (v * self.scale for v in box)
        return [x + self.origin, y + self.origin, width, height]

    def twist(self, name, chance):
        """Whether the edge case ``name`` occurs in this draw."""
        happens = self.chance(chance)
        if happens:
            self.twists.add(name)
        return happens

    def chance(self, p):
        return bool(self.rng.random() < p)

    def between(self, low, high):
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def some(self, items, p):
        return [item for item in items if self.chance(p)]

    def shuffled(self, items):
        return [items[i] for i in self.rng.permutation(len(items))]

    def weighted(self, **weights):
        names = list(weights)
        p = np.array(list(weights.values()), float)
        return names[int(self.rng.choice(len(names), p=p / p.sum()))]


@dataclass
class Species:
    number: int
    name: str
    ranks: tuple
    trainable: bool
    band: str


def draw(seed, folder):
    """Write the benchmark and the predictions of ``seed`` into ``folder``."""
    dice = Dice(seed)
    species = _species(dice)
    splits, present = _splits(dice)
    listed = {split: _listed(dice, split, species) for split in present}
    known = [s for s in species if any(s in listed[split] for split in present)]
    truths = {split: _truth(dice, split, listed[split], known) for split in present}
    if "train" in truths and dice.twist("train without annotations", 0.06):
        truths["train"]["annotations"] = []
    on_invalid = "drop" if dice.twist("invalid records dropped", 0.1) else "error"
    ious = (0.1, 0.3, 0.75, 1.0)
    iou = dice.pick(ious) if dice.twist("another iou", 0.5) else 0.5
    case = Case(seed, folder, splits, iou, on_invalid, frozenset())
    for place in (case.benchmark, case.reference):
        coco = place / "detection/annotations_coco"
        coco.mkdir(parents=True)
    _write_taxonomy(dice, species, (case.benchmark, case.reference))
    for split, truth in truths.items():
        file = Path("detection/annotations_coco") / f"{split}.json"
        (case.benchmark / file).write_text(json.dumps(truth))
        (case.reference / file).write_text(json.dumps(_for_reference(truth)))
    for place in (case.predictions, case.reference_predictions):
        place.mkdir()
    for split in splits:
        records, for_reference = _predictions(dice, split, truths[split], known, on_invalid)
        name = f"{split}_predictions.json"
        (case.predictions / name).write_text(json.dumps(records))
        (case.reference_predictions / name).write_text(json.dumps(for_reference))
    _note_twists(dice, truths, splits, iou)
    if "semantic_ood" in splits:
        _note_bands(dice, truths["semantic_ood"], {s.number: s.band for s in species})
    return Case(seed, folder, splits, iou, on_invalid, frozenset(dice.twists))


def _species(dice):
    n_genera = dice.between(3, 5)
    n_trainable, n_unseen = dice.between(2, 9), dice.between(1, 5)
    numbers = dice.rng.choice(np.arange(1, 176), n_trainable + n_unseen + 1, replace=False)
    species = []
    for at in range(n_trainable + n_unseen):
        genus = dice.between(0, n_genera - 1)
        ranks = (f"Subfamily{genus // 4}", f"Tribe{genus // 2}", f"Genus{genus}")
        ranks = tuple("" if dice.twist("blank rank", 0.12) else rank for rank in ranks)
        trainable = at < n_trainable
        band = dice.pick(BANDS)
        if dice.twist("blank band", 0.15):
            band = ""
        elif trainable and dice.twist("unknown band on a trainable species", 0.08):
            band = UNKNOWN_BAND
        name = f"Genus{genus} species{at}"
        species.append(Species(int(numbers[at]), name, ranks, trainable, band))
    if dice.twist("two ids of one name", 0.1):
        twin = dice.pick(species)
        species.append(Species(int(numbers[-1]), twin.name, twin.ranks, twin.trainable, twin.band))
    return species


def _splits(dice):
    """The splits to score, in order, and the splits with files."""
    without_train = dice.twist("no train.json", 0.12)
    possible = DEFAULT if without_train else (*DEFAULT, "train")
    splits = DEFAULT
    if dice.twist("a subset of splits", 0.25):
        splits = tuple(dice.shuffled(dice.some(possible, 0.5))) or ("semantic_ood",)
    elif not without_train and dice.twist("all splits", 0.12):
        splits = possible
    present = possible
    if dice.twist("files of the scored splits only", 0.1):
        present = splits
    return splits, present


def _listed(dice, split, species):
    """The species that a split lists, in random order."""
    if split == "semantic_ood":
        listed = dice.some([s for s in species if not s.trainable], 0.9)
        seen = [s for s in species if s.trainable and s.band != UNKNOWN_BAND]
        if seen and dice.twist("semantic_ood lists a trained species", 0.1):
            listed.append(dice.pick(seen))
    else:
        fraction = {"iid_test": 0.9, "inat_test": 0.6, "train": 0.95}[split]
        listed = dice.some([s for s in species if s.trainable], fraction)
    return dice.shuffled(listed)


def _write_taxonomy(dice, species, folders):
    rows, seen = [], set()
    for s in species:
        if s.name in seen or dice.twist("species not in the taxonomy", 0.04):
            continue
        seen.add(s.name)
        role = "trainable" if s.trainable else "semantic_ood"
        rows.append(",".join([s.name, *s.ranks, role, "", s.band]))
    for folder in folders:
        (folder / "species_taxonomy.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")


# --------------------------------------------------------------------------------------------
# Ground truth
# --------------------------------------------------------------------------------------------


def _image_ids(dice, count):
    ids = dice.rng.choice(40, count, replace=False)
    if count and dice.chance(0.1):
        ids = ids + 10**9
    return [int(i) for i in ids]


def _truth(dice, split, listed, known):
    n_images = dice.between(4, 8) if split == "train" else dice.between(1, 6)
    if split != "train" and dice.twist("empty split", 0.04):
        n_images = 0
    images = _image_ids(dice, n_images)
    boxes = []
    if not (split != "train" and dice.twist("split without specimens", 0.04)):
        for image in images:
            boxes += _boxes_of_image(dice, split, image, listed, known)
    numbers = dice.rng.permutation(len(boxes)) + (0 if dice.twist("annotation id 0", 0.4) else 7)
    annotations = [{"id": int(n), **box} for n, box in zip(numbers, boxes, strict=True)]
    return {
        "images": [{"id": i, "width": 1000, "height": 1000} for i in images],
        "annotations": dice.shuffled(annotations),
        "categories": [{"id": s.number, "name": s.name} for s in listed],
    }


def _boxes_of_image(dice, split, image, listed, known):
    possible = known
    if split == "semantic_ood":
        # an unknown band is an error if semantic_ood lists the species
        possible = [s for s in known if s.band != UNKNOWN_BAND]
    count = 0 if dice.twist("image without specimens", 0.12) else dice.between(1, 4)
    boxes = []
    for _ in range(count):
        if listed and not (possible and dice.twist("specimen of an unlisted species", 0.04)):
            number = dice.pick(listed).number
        elif possible:
            number = dice.pick(possible).number
        else:
            break
        box = _box(dice)
        boxes.append(_annotation(dice, image, number, box, crowd=dice.twist("crowd", 0.25)))
        other = dice.pick(listed).number if listed and dice.chance(0.5) else number
        if dice.twist("two specimens in one place", 0.15):
            boxes.append(_annotation(dice, image, other, box, crowd=False))
        if dice.twist("two specimens at one distance", 0.12):
            boxes.append(_annotation(dice, image, other, _beside(dice, box), crowd=False))
        if dice.twist("crowd over a specimen", 0.15):
            near = box if dice.chance(0.5) else _moved(dice, box)
            boxes.append(_annotation(dice, image, other, near, crowd=True))
    return boxes


def _box(dice):
    size = dice.pick(SIZES)
    box = [10 * dice.between(-1, 20), 10 * dice.between(-1, 20), *size]
    if dice.twist("box of size 0", 0.03):
        box[dice.between(2, 3)] = 0
    elif dice.twist("noise in the coordinates", 0.15):
        noise = dice.pick((1e-9, 1e-4, 1.0))
        box = [v + noise * float(dice.rng.random()) for v in box]
    return dice.scaled(box)


def _moved(dice, box):
    step = dice.pick((5, 10, 20)) * dice.scale
    return [box[0] + dice.pick((-step, 0, step)), box[1] + dice.pick((-step, 0, step)), *box[2:]]


def _beside(dice, box):
    return [box[0] + BESIDE * dice.scale, *box[1:]]


def _annotation(dice, image, category, box, *, crowd):
    annotation = {"image_id": image, "category_id": category, "bbox": box, "iscrowd": int(crowd)}
    area = box[2] * box[3]
    kind = dice.weighted(box=5, absent=1, border=2, mask=1)
    dice.twists.add(f"area: {kind}")
    if kind == "border":
        area = dice.pick((1024, 9216, 1024.0000001, 9216.0000001))
    elif kind == "mask":
        area = area * float(dice.rng.uniform(0.2, 1.0))
    if kind != "absent":
        annotation["area"] = area
    return annotation


def _for_reference(truth):
    """The same split without what pycocotools rejects: id 0 and missing areas."""
    lowest = min((a["id"] for a in truth["annotations"]), default=1)
    shift = 1 - lowest if lowest < 1 else 0
    return {
        **truth,
        "annotations": [
            {"area": a["bbox"][2] * a["bbox"][3], **a, "id": a["id"] + shift}
            for a in truth["annotations"]
        ],
    }


# --------------------------------------------------------------------------------------------
# Predictions
# --------------------------------------------------------------------------------------------


def _predictions(dice, split, truth, known, on_invalid):
    """The split's records, and those given to the benchmark's evaluator."""
    numbers = [s.number for s in known]
    records = []
    if numbers and not dice.twist("empty predictions", 0.06):
        crowded_image = None
        images = [image["id"] for image in truth["images"]]
        if images and dice.twist("more than 100 boxes on an image", 0.08):
            crowded_image = dice.pick(images)
        for image in images:
            specimens = [a for a in truth["annotations"] if a["image_id"] == image]
            if image == crowded_image:
                records += _crowded_image(dice, image, specimens, numbers)
            elif not dice.twist("image without predictions", 0.12):
                records += _on_image(dice, image, specimens, numbers)
        if dice.chance(0.6):
            records = dice.shuffled(records)
    if on_invalid == "error":
        return records, records
    both, only_ours = _invalid(dice, split, truth, numbers)
    records = [(record, True) for record in records + both]
    records = dice.shuffled(records + [(record, False) for record in only_ours])
    return [record for record, _ in records], [record for record, kept in records if kept]


def _on_image(dice, image, specimens, numbers):
    records = []
    for specimen in specimens:
        for _ in range(dice.pick((0, 1, 1, 1, 2, 2, 3))):
            box = _detected(dice, specimen["bbox"])
            category = specimen["category_id"] if dice.chance(0.55) else dice.pick(numbers)
            records.append(_record(dice, image, category, box))
    for left in specimens:
        for right in specimens:
            if right["bbox"] == _beside(dice, left["bbox"]):
                records += _between(dice, image, left, right, numbers)
    false_positives = dice.pick((0, 0, 1, 2))
    return records + [
        _record(dice, image, dice.pick(numbers), _box(dice)) for _ in range(false_positives)
    ]


def _between(dice, image, left, right, numbers):
    """A detection that overlaps two specimens equally, and a worse one on either of them."""
    category = left["category_id"] if dice.chance(0.7) else dice.pick(numbers)
    x, *rest = left["bbox"]
    first = _record(dice, image, category, [x + BESIDE * dice.scale / 2, *rest], 0.95)
    then = _record(dice, image, category, dice.pick((left, right))["bbox"], 0.2)
    return [first, then] if dice.chance(0.7) else [first]


def _detected(dice, box):
    """A detection of a box: on it, beside it, or at an IoU that is exactly a threshold."""
    x, y, w, h = box
    kind = dice.weighted(exact=3, crop=4, moved=2, noise=1, near=1)
    if kind in ("crop", "near"):
        twentieths = dice.between(1, 20) if dice.chance(0.3) else dice.between(10, 19)
        width = w * twentieths / 20
        dice.twists.add("IoU at a threshold" if kind == "crop" else "IoU just off a threshold")
        if kind == "near":
            width += float(dice.rng.normal()) * 1e-12 * dice.scale
        return [x if dice.chance(0.5) else x + w - width, y, max(width, 0.0), h]
    if kind == "moved":
        return _moved(dice, box)
    if kind == "noise":
        return [x + float(dice.rng.normal()), y + float(dice.rng.normal()), w * 1.05, h]
    return list(box)


def _record(dice, image, category, box, score=None):
    if score is None:
        score = dice.pick(TIED_SCORES) if dice.chance(0.6) else float(dice.rng.random())
    if dice.twist("ids as integral floats", 0.02):
        image, category = float(image), float(category)
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def _crowded_image(dice, image, specimens, numbers):
    """About 100 false positives, and true positives with lower scores."""
    one = dice.pick(specimens)["category_id"] if specimens else dice.pick(numbers)
    single = dice.twist("more than 100 boxes of a species on an image", 0.6)
    records = []
    for _ in range(dice.between(96, 103)):
        category = one if single else dice.pick(numbers)
        score = 0.9 if dice.chance(0.5) else float(dice.rng.uniform(0.8, 1.0))
        records.append(_record(dice, image, category, [900, 900, 20, 20], score))
    for specimen in specimens:
        category = one if single else specimen["category_id"]
        score = float(dice.rng.uniform(0.0, 0.7))
        records.append(_record(dice, image, category, list(specimen["bbox"]), score))
    return records


def _invalid(dice, split, truth, numbers):
    """Records that both evaluators drop, and records that only this package drops."""
    image = truth["images"][0]["id"] if truth["images"] else 5
    number = numbers[0] if numbers else 5
    good = {"image_id": image, "category_id": number, "bbox": [1, 1, 20, 20], "score": 0.5}
    both = [
        {k: v for k, v in good.items() if k != "score"},
        good | {"bbox": [1, 1, 20]},
        good | {"image_id": 777},
        "a line",
    ]
    only_ours = [
        good | {"score": 1.5},
        good | {"score": math.nan},
        good | {"bbox": [1, 1, -20, 20]},
        good | {"bbox": [1, math.inf, 20, 20]},
    ]
    nowhere = good | {"category_id": 999}
    (both if split in NAMED else only_ours).append(nowhere)
    return dice.some(both, 0.7), dice.some(only_ours, 0.7)


# --------------------------------------------------------------------------------------------
# Edge cases in the drawn content
# --------------------------------------------------------------------------------------------


def _note_twists(dice, truths, splits, iou):
    dice.twists.add(f"iou {iou}")
    for split in splits:
        truth = truths[split]
        ids = [image["id"] for image in truth["images"]]
        if ids != sorted(ids):
            dice.twists.add("image ids not ascending")
        if 0 in ids:
            dice.twists.add("image id 0")
        listed = {c["id"] for c in truth["categories"]}
        scored = {a["category_id"] for a in truth["annotations"] if not a["iscrowd"]}
        if listed - scored:
            dice.twists.add("listed but unscored species")
        if not listed:
            dice.twists.add("no species listed")
        if truth["annotations"] and not scored:
            dice.twists.add("crowd only")
        if any(a["iscrowd"] for a in truth["annotations"]):
            dice.twists.add(f"crowd in {split}")
        if split in NAMED and len(scored & listed) < 4:
            dice.twists.add("few species")


def _note_bands(dice, truth, band):
    """Whether an image has two bands, and whether one detection can match either."""
    scored = [a for a in truth["annotations"] if not a["iscrowd"]]
    for a in scored:
        for b in scored:
            bands = {band[a["category_id"]], band[b["category_id"]]} - {""}
            if a["image_id"] == b["image_id"] and len(bands) == 2:
                dice.twists.add("two bands on an image")
                if a["bbox"] == b["bbox"]:
                    dice.twists.add("two bands in one place")


TWISTS = frozenset(
    [
        *("blank rank", "blank band", "unknown band on a trainable species", "two ids of one name"),
        *("species not in the taxonomy", "few species", "listed but unscored species"),
        *("no species listed", "specimen of an unlisted species", "no train.json"),
        *("semantic_ood lists a trained species", "train without annotations"),
        *("a subset of splits", "all splits", "files of the scored splits only"),
        *("empty split", "split without specimens", "image without specimens", "crowd only"),
        *("empty predictions", "image without predictions", "crowd", "crowd over a specimen"),
        *("crowd in iid_test", "crowd in inat_test", "crowd in semantic_ood", "crowd in train"),
        *("boxes far from the origin", "boxes of another scale"),
        *("two bands on an image", "two bands in one place"),
        *("two specimens in one place", "two specimens at one distance", "box of size 0"),
        "noise in the coordinates",
        *("area: box", "area: absent", "area: border", "area: mask"),
        *("annotation id 0", "image ids not ascending", "image id 0", "ids as integral floats"),
        *("IoU at a threshold", "IoU just off a threshold", "another iou"),
        *("iou 0.1", "iou 0.3", "iou 0.5", "iou 0.75", "iou 1.0"),
        *("more than 100 boxes on an image", "more than 100 boxes of a species on an image"),
        "invalid records dropped",
    ]
)
"""All edge cases; the seeds must cover every one of them."""
