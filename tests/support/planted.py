"""A small valid sweep, and a way to plant every problem that ``benchmark-eval check`` reports.

``PLANTS`` maps a kind of finding to the change that causes it and to the findings it causes: that
kind, plus others if they are unavoidable. Each plant changes a different place, so that most of
them can be combined in one tree.
"""

import csv
import hashlib
import io
import json
from dataclasses import dataclass, field

import yaml

from support.layout import ANNOTATIONS, DuplicateKey, record, species

MODELS = tuple("abcdefghijklmnopqrs")
SPLITS = ("iid_test", "inat_test", "semantic_ood")
KNOWN, UNSEEN = (1, 2, 3, 4, 5, 6), (101, 102, 103)
BOX = [100, 100, 50, 60]
TAXONOMY_COLUMNS = [
    "scientificName",
    "subfamily",
    "tribe",
    "genus",
    "benchmark_role",
    "target_band",
    "distance_band_vs_trainable",
]


def _split(name, listed, n_images, *, crowd=False):
    """``n_images`` images with one specimen each, cycling through the listed species."""
    boxes = [(image, listed[(image - 1) % len(listed)], 0) for image in range(1, n_images + 1)]
    if crowd:
        boxes.append((1, listed[1], 1))
    return {
        "info": {},
        "images": [
            {
                "id": i,
                "width": 1000,
                "height": 1000,
                "file_name": f"{i}.jpg",
                "source_image_uuid": f"{name}-{i}",
                "license_name": "CC BY 4.0",
            }
            for i in range(1, n_images + 1)
        ],
        "annotations": [
            {
                "id": i,
                "image_id": image,
                "category_id": category,
                "bbox": BOX if not crowd_region else [500, 500, 90, 90],
                "area": 3000,
                "iscrowd": crowd_region,
                "source_record_id": f"{name}-record-{i}",
            }
            for i, (image, category, crowd_region) in enumerate(boxes, 1)
        ],
        "categories": [{"id": n, "name": species(n)} for n in listed],
    }


def _taxonomy_row(number):
    genus = species(number).split()[0]
    role = "semantic_ood" if number > 100 else "trainable"
    tribe = f"Tribe{(number - 1) // 6}"
    row = [species(number), "Scolytinae", tribe, genus, role, "", "near_genus"]
    return dict(zip(TAXONOMY_COLUMNS, row, strict=True))


@dataclass
class Tree:
    """The content of a sweep before it is written; ``after`` changes the written files."""

    splits: dict = field(
        default_factory=lambda: {
            "train": _split("train", KNOWN, 40),
            "iid_test": _split("iid_test", KNOWN, 30, crowd=True),
            "inat_test": _split("inat_test", KNOWN, 30, crowd=True),
            "semantic_ood": _split("semantic_ood", UNSEEN, 30),
        }
    )
    taxonomy: list = field(default_factory=lambda: [*map(_taxonomy_row, (*KNOWN, *UNSEEN))])
    header: list = field(default_factory=lambda: ["model_name", "regime", "k_or_p", "seed"])
    rows: list = field(
        default_factory=lambda: [
            [model, "global_uniform", str(k), "0"] for k, model in enumerate(MODELS, 1)
        ]
    )
    predictions: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)
    after: list = field(default_factory=list)

    def __post_init__(self):
        for number, model in enumerate(MODELS):
            for split in SPLITS:
                self.predictions[model, split] = [
                    record(i, 1 + (i - 1) % 6, list(BOX), 0.5 + i / 100 + number / 10_000)
                    for i in range(1, 31)
                ]

    def annotation(self, split, number):
        """The annotation with this id."""
        return next(a for a in self.splits[split]["annotations"] if a["id"] == number)

    def write(self, folder):
        """Write the sweep; returns its config file."""
        coco = folder / ANNOTATIONS
        coco.mkdir(parents=True)
        for name, content in self.splits.items():
            (coco / f"{name}.json").write_text(json.dumps(content))
        (folder / "species_taxonomy.csv").write_text(
            _csv(TAXONOMY_COLUMNS, [list(row.values()) for row in self.taxonomy])
        )
        images = [image for split in self.splits.values() for image in split["images"]]
        licences = {
            image["source_image_uuid"]: image["license_name"]
            for image in images
            if "source_image_uuid" in image
        }
        (folder / "image_licences.csv").write_text(
            _csv(["source_image_uuid", "license_name"], licences.items())
        )
        for (model, split), records in self.predictions.items():
            path = folder / "predictions" / model / f"{split}_predictions.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(records))
        (folder / "manifest.csv").write_text(_csv(self.header, self.rows))
        listed = ["species_taxonomy.csv", *(f"{ANNOTATIONS}/{name}.json" for name in self.splits)]
        digests = [[n, hashlib.sha256((folder / n).read_bytes()).hexdigest()] for n in listed]
        (folder / "MANIFEST.csv").write_text(_csv(["path", "sha256"], digests))
        config = {
            "benchmark_dir": str(folder),
            "predictions_dir": str(folder / "predictions"),
            "manifest": str(folder / "manifest.csv"),
            **self.config,
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        for change in self.after:
            change(folder)
        return folder / "config.yaml"


def _csv(header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


@dataclass
class Plant:
    """``change`` modifies a tree; ``finds`` maps the kinds then found to their numbers.

    ``alone`` says why the plant cannot be combined with others; ``rows`` marks plants that break
    the manifest, so that checks which need a valid manifest do not run.
    """

    change: object
    finds: dict
    alone: str = ""
    rows: bool = False


PLANTS = {}


def plant(kind, times=1, *, also=(), alone="", rows=False):
    """Register the decorated change as the plant of ``kind``."""

    def register(change):
        assert kind not in PLANTS
        PLANTS[kind] = Plant(change, {kind: times, **dict(also)}, alone, rows)
        return change

    return register


# --------------------------------------------------------------------------------------------
# Single predictions: each kind in a different model
# --------------------------------------------------------------------------------------------


def _record(kind, model, change, times=1, split="iid_test"):
    def change_tree(tree):
        for at in range(3, 3 + times):
            change(tree.predictions[model, split], at)

    PLANTS[kind] = Plant(change_tree, {kind: times})


def _set(key, value):
    def change(records, at):
        records[at][key] = value

    return change


def _replace(records, at):
    records[at] = "a record"


_record("record-shape", "a", _replace)
_record("id-type", "b", _set("image_id", "4"), times=2)
_record("bbox-type", "c", _set("bbox", [1, 2, 3]))
_record("score-type", "d", _set("score", "0.9"))
_record("bbox-not-finite", "e", _set("bbox", [float("nan"), 1, 2, 3]))
_record("bbox-negative", "f", _set("bbox", [9, 9, -5, 4]))
_record("score-range", "g", _set("score", 97), times=25)
_record("image-id-unknown", "h", _set("image_id", 999), split="semantic_ood")
_record("category-id-unknown", "i", _set("category_id", 77), split="inat_test")


# --------------------------------------------------------------------------------------------
# Prediction files
# --------------------------------------------------------------------------------------------


def _file(text, model, split="iid_test"):
    def change(folder):
        path = folder / f"predictions/{model}/{split}_predictions.json"
        path.write_bytes(text)

    return change


@plant("not-json")
def _(tree):
    tree.after.append(_file(b'[{"image_id": 1, "cat', "j"))


@plant("duplicate-key", 2)
def _(tree):
    tree.predictions["s", "iid_test"][3][DuplicateKey("score")] = 0.5
    tree.annotation("train", 14)[DuplicateKey("iscrowd")] = 0


@plant("not-a-list")
def _(tree):
    tree.after.append(_file(b'{"images": []}', "k"))


@plant("empty-predictions")
def _(tree):
    tree.after.append(_file(b"", "l"))


@plant("missing-predictions")
def _(tree):
    del tree.predictions["m", "semantic_ood"]


@plant("ambiguous-predictions")
def _(tree):
    tree.after.append(
        lambda folder: (folder / "predictions/n/iid_test_predictions.json.gz").write_bytes(b"")
    )


@plant("unreadable")
def _(tree):
    def change(folder):
        path = folder / "predictions/o/iid_test_predictions.json"
        path.unlink()
        path.mkdir()

    tree.after.append(change)


@plant("likely-mistake")
def _(tree):
    for entry in tree.predictions["p", "iid_test"]:
        entry["score"] = 0.5


@plant("same-predictions")
def _(tree):
    tree.predictions["q", "iid_test"] = tree.predictions["r", "iid_test"]


@plant("shared-predictions-dir", alone="adds a column to the manifest")
def _(tree):
    tree.header.append("predictions_dir")
    for row in tree.rows:
        row.append("predictions/a" if row[0] == "s" else "")


@plant("no-predictions", alone="no model is left to check")
def _(tree):
    tree.predictions.clear()
    tree.config["manifest"] = None
    tree.after.append(lambda folder: (folder / "predictions").mkdir())


@plant("missing-file", alone="without a manifest, every folder counts as a model")
def _(tree):
    tree.after.append(lambda folder: (folder / "manifest.csv").unlink())


# --------------------------------------------------------------------------------------------
# Annotation files
# --------------------------------------------------------------------------------------------


@plant("not-coco", alone="the split's other problems are not reported")
def _(tree):
    del tree.splits["inat_test"]["annotations"]


@plant("size-type")
def _(tree):
    tree.splits["train"]["images"][0]["width"] = "1000"


@plant("name-type", alone="without the record, the split's categories are not checked")
def _(tree):
    tree.splits["semantic_ood"]["categories"].append({"id": 104, "name": 5})


@plant("not-unicode")
def _(tree):
    tree.splits["train"]["images"][1]["file_name"] = "Ips\ud800.jpg"


@plant("image-size", 2)
def _(tree):
    tree.splits["inat_test"]["images"][0]["width"] = 0
    tree.splits["train"]["images"][2]["height"] = -100


@plant("iscrowd-missing", 2)
def _(tree):
    del tree.annotation("iid_test", 3)["iscrowd"]
    del tree.annotation("iid_test", 4)["iscrowd"]


@plant("iscrowd-value")
def _(tree):
    tree.annotation("train", 3)["iscrowd"] = 2


@plant("duplicate-annotation-id")
def _(tree):
    tree.annotation("train", 5)["id"] = 4


@plant("duplicate-image-id")
def _(tree):
    tree.splits["train"]["images"].append(
        {"id": 6, "source_image_uuid": "another", "license_name": "CC BY 4.0"}
    )


@plant("duplicate-category-id")
def _(tree):
    tree.splits["train"]["categories"].append({"id": 2, "name": species(2)})


@plant("annotation-image-unknown")
def _(tree):
    tree.annotation("train", 7)["image_id"] = 999


@plant("annotation-category-unknown")
def _(tree):
    tree.annotation("train", 8)["category_id"] = 77


@plant("annotation-box")
def _(tree):
    tree.annotation("train", 9)["bbox"] = [1, 2, -3, 4]


@plant("annotation-area")
def _(tree):
    tree.annotation("train", 10)["area"] = -1


@plant("annotation-empty-box")
def _(tree):
    tree.annotation("train", 11)["bbox"] = [1, 2, 0, 4]


@plant("category-name", also={"species-not-in-taxonomy": 1, "species-untrained": 1}.items())
def _(tree):
    tree.splits["inat_test"]["categories"][0]["name"] = "Another species1"


@plant("missing-split", alone="no part of the split is left")
def _(tree):
    del tree.splits["inat_test"]


@plant("image-in-two-splits")
def _(tree):
    tree.splits["iid_test"]["images"][2]["source_image_uuid"] = "train-3"


@plant("file-name-in-two-splits")
def _(tree):
    for split, row in (("train", 4), ("inat_test", 7)):
        tree.splits[split]["images"][row]["file_name"] = "K\u00e4fer-4.jpg"


@plant("record-in-two-splits")
def _(tree):
    tree.annotation("semantic_ood", 2)["source_record_id"] = "train-record-3"


@plant("stray-annotations")
def _(tree):
    content = {"images": [], "annotations": [], "categories": [{"id": 1, "name": species(1)}]}
    tree.after.append(
        lambda folder: (folder / ANNOTATIONS / "backup.json").write_text(json.dumps(content))
    )


@plant("split-file-name")
def _(tree):
    tree.after.append(lambda folder: (folder / ANNOTATIONS / "Train.JSON").write_text("{}"))


@plant("species-two-ids")
def _(tree):
    tree.splits["semantic_ood"]["categories"].append({"id": 109, "name": species(101)})


@plant("no-crowd")
def _(tree):
    tree.annotation("iid_test", 31)["iscrowd"] = 0


# --------------------------------------------------------------------------------------------
# Other tables of the benchmark
# --------------------------------------------------------------------------------------------


@plant("not-utf8", alone="the taxonomy has no readable row left")
def _(tree):
    tree.after.append(
        lambda folder: (folder / "species_taxonomy.csv").write_bytes(b"scientificName\xff\n")
    )
    tree.after.append(_forget_digests)


@plant("missing-column", alone="the taxonomy has no readable row left")
def _(tree):
    def change(folder):
        path = folder / "species_taxonomy.csv"
        path.write_text(path.read_text().replace("tribe", "trybe"))

    tree.after += [change, _forget_digests]


def _forget_digests(folder):
    (folder / "MANIFEST.csv").unlink()


@plant("row-length")
def _(tree):
    tree.taxonomy.append({"scientificName": "Short row"})


@plant("duplicate-species")
def _(tree):
    tree.taxonomy.append(_taxonomy_row(1))


@plant("target-band")
def _(tree):
    tree.taxonomy[0]["target_band"] = "near"


@plant("distance-band")
def _(tree):
    row = next(row for row in tree.taxonomy if row["scientificName"] == species(102))
    row["distance_band_vs_trainable"] = "far"


@plant("species-not-in-taxonomy")
def _(tree):
    for split in tree.splits.values():
        for category in split["categories"]:
            if category["id"] == 103:
                category["name"] = "Genus34 species1O3"


@plant("genus-in-two-tribes")
def _(tree):
    tree.taxonomy[1]["tribe"] = "Tribe9"


@plant("tribe-in-two-subfamilies")
def _(tree):
    tree.taxonomy[4]["subfamily"] = "Platypodinae"


@plant("species-role", 3)
def _(tree):
    tree.taxonomy[3]["benchmark_role"] = "semantic_ood"


@plant("species-seen", also={"species-role": 1}.items())
def _(tree):
    tree.splits["train"]["categories"].append({"id": 101, "name": species(101)})


@plant("species-untrained")
def _(tree):
    tree.splits["inat_test"]["categories"].append({"id": 7, "name": species(7)})
    tree.taxonomy.append(_taxonomy_row(7))


@plant("digest")
def _(tree):
    def change(folder):
        with (folder / ANNOTATIONS / "semantic_ood.json").open("a") as stream:
            stream.write("\n")

    tree.after.append(change)


@plant("listed-file-missing")
def _(tree):
    def change(folder):
        with (folder / "MANIFEST.csv").open("a") as stream:
            stream.write("evaluation/evaluate.py," + "0" * 64 + "\n")

    tree.after.append(change)


@plant("image-without-licence")
def _(tree):
    tree.after.append(_licence("train-12,CC BY 4.0\n", ""))


@plant("licence-differs")
def _(tree):
    tree.after.append(_licence("train-13,CC BY 4.0\n", "train-13,CC BY-NC 4.0\n"))


def _licence(old, new):
    def change(folder):
        path = folder / "image_licences.csv"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


# --------------------------------------------------------------------------------------------
# Manifest
# --------------------------------------------------------------------------------------------


def _manifest(text):
    def change(folder):
        (folder / "manifest.csv").write_bytes(text)

    return change


@plant("empty", alone="the manifest has no readable row left")
def _(tree):
    tree.after.append(_manifest(b"\n"))


@plant("not-csv", alone="the manifest has no readable row left")
def _(tree):
    tree.after.append(_manifest(b'model_name,regime,k_or_p,seed\n"m"x,global_uniform,1,0\n'))


@plant("no-rows", alone="the manifest has no readable row left")
def _(tree):
    tree.rows.clear()


@plant("unknown-column", alone="rows are not read with such a header")
def _(tree):
    tree.header.append("colour")
    for row in tree.rows:
        row.append("red")


@plant("duplicate-column", alone="rows are not read with such a header")
def _(tree):
    tree.header.append("seed")
    for row in tree.rows:
        row.append("0")


def _row(kind, *rows):
    def change(tree):
        tree.rows += [list(row) for row in rows]

    PLANTS[kind] = Plant(change, {kind: 1}, rows=True)


_row("blank-row", ["", "", "", ""])
_row("blank-cell", ["aa", "global_uniform", "50", ""])
_row("unprintable", ["ab", "global_uniform", "51", "0\u200b"])
_row("surrounding-whitespace", ["ac", "global_uniform", " 52", "0"])
_row("model-name", ["../ad", "global_uniform", "53", "0"])
_row("regime", ["ae", "global", "54", "0"])
_row("k_or_p", ["af", "incremental_natural", "1.5", "0"])
_row("seed", ["ag", "global_uniform", "56", "1.5"])
_row("duplicate-model", ["a", "global_uniform", "57", "0"])
_row("duplicate-seed", ["ah", "global_uniform", "1", "0"])
# a seed with an unprintable character is also an invalid seed
PLANTS["unprintable"].finds["seed"] = 1


@plant("architecture", alone="every other row of the manifest would need the column")
def _(tree):
    _column(tree, "architecture")
    for row in tree.rows:
        row[-1] = "YOLO"
    tree.rows[-1][-1] = "Yolo"


@plant("url", alone="every other row of the manifest would need the column", rows=True)
def _(tree):
    _column(tree, "predictions_dir")
    tree.rows.append(["ai", "global_uniform", "58", "0", "s3://bucket/ai"])


@plant("not-a-subset")
def _(tree):
    _column(tree, "train_annotations")
    tree.rows[-1][-1] = "subset.json"
    tree.after.append(
        lambda folder: (folder / "subset.json").write_text(
            json.dumps({"images": [], "annotations": [{"image_id": 77777}], "categories": []})
        )
    )


def _column(tree, name):
    tree.header.append(name)
    for row in tree.rows:
        row.append("")


# --------------------------------------------------------------------------------------------
# Config
# --------------------------------------------------------------------------------------------


@plant("config-key")
def _(tree):
    tree.config["split"] = "iid_test"


@plant("config-value")
def _(tree):
    tree.config["iou"] = 1.5


@plant("missing-folder", alone="no part of the benchmark is left")
def _(tree):
    tree.config["benchmark_dir"] = "elsewhere"


@plant("config-shape", alone="no part of the config is left")
def _(tree):
    tree.after.append(lambda folder: (folder / "config.yaml").write_text("- a list\n"))


@plant("wildcard-character", alone="the folder replaces that of all predictions")
def _(tree):
    tree.config["predictions_dir"] = "{model}"
    for entry in tree.rows:
        entry.append("predictions/" + entry[0])
    tree.header.append("predictions_dir")
