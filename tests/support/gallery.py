"""A small benchmark with images and one or two models, for the gallery."""

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
from PIL import Image

from benchmark_eval.gallery.cases import Scored
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.predictions import check_predictions
from benchmark_eval.scoring.evaluate import Options, evaluate_split
from benchmark_eval.scoring.metrics.operating_point import given_threshold
from support.layout import ANNOTATIONS, write_predictions, write_split, write_taxonomy

SPECIES = (1, 2, 3, 4, 5, 6, 7)
"""1-3 and 4-6 are genera of one tribe; 7 is of another one."""
SPECIMEN = [0, 0, 100, 100]
# every error type once, most of them on image 1
TRUTH = [[image, 1, SPECIMEN] for image in (1, 2, 3, 4, 5)]
FOUND = [
    [1, 1, SPECIMEN, 0.9],  # correct
    [1, 1, [0, 0, 100, 90], 0.5],  # duplicate, IoU 0.9
    [1, 1, [60, 0, 100, 100], 0.4],  # poor box, IoU 0.25
    [1, 4, [65, 0, 100, 100], 0.3],  # both
    [1, 1, [500, 500, 50, 50], 0.2],  # background
    [2, 2, SPECIMEN, 0.8],  # congener
    [3, 4, SPECIMEN, 0.7],  # same tribe
    [4, 7, SPECIMEN, 0.6],  # another tribe
]
"""Image 5 is missed."""


def scored(folder, found, truth=TRUTH, split="iid_test", *, model=0, threshold=None, **layout):
    """One model on one split."""
    write_split(folder / "b", split, truth, listed=SPECIES, **layout)
    write_taxonomy(folder / "b", SPECIES)
    benchmark = load_benchmark(folder / "b")
    path = write_predictions(folder / f"p{model}", split, found)
    predictions = check_predictions(path, benchmark, split).predictions
    options = Options((split,))
    result = evaluate_split(benchmark, split, predictions, options, given_threshold(threshold))
    return Scored.of(model, result)


def place(folder, splits=("iid_test", "inat_test", "semantic_ood"), *, images=True):
    """A benchmark ``b``, models ``m`` and ``n`` (worse) in ``p``, images of 300 x 200 px."""
    for split in splits:
        write_split(folder / "b", split, TRUTH, listed=SPECIES, size=(300, 200))
        path = folder / "b" / ANNOTATIONS / f"{split}.json"
        content = json.loads(path.read_text())
        for image in content["images"]:
            image["source_image_uuid"] = f"{split}-{image['id']}"
        path.write_text(json.dumps(content))
        found = [row for row in FOUND if row[2][0] < 300]
        write_predictions(folder / "p/m", split, found)
        write_predictions(folder / "p/n", split, [row for row in found if row[0] != 2])
        if images:
            draw_images(folder / "b/detection/images" / split)
    write_taxonomy(folder / "b", SPECIES)
    write_licences(folder / "b", splits)
    return folder


def draw_images(folder, numbers=range(1, 6), size=(300, 200)):
    """Grey JPEG images with a white specimen, ``<number>.jpg``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        pixels = np.full((size[1], size[0], 3), 90, np.uint8)
        pixels[:100, :100] = 255
        Image.fromarray(pixels).save(folder / f"{number}.jpg")


def write_licences(benchmark, splits, **changes):
    """``image_licences.csv``; ``changes`` are values of columns in every row."""
    row = {
        "license_name": "CC BY 4.0",
        "license_url": "https://creativecommons.org/licenses/by/4.0/",
        "photographer": "A. Photographer",
        "holding_institution": "A Museum",
        **changes,
    }
    with (benchmark / "image_licences.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ["split", "file_name", "source_image_uuid", *row])
        writer.writeheader()
        for split in splits:
            for number in range(1, 6):
                writer.writerow(
                    {
                        "split": split,
                        "file_name": f"{number}.jpg",
                        "source_image_uuid": f"{split}-{number}",
                        **row,
                    }
                )


class Page(HTMLParser):
    """A page as its parser sees it: elements, and the cases with their text."""

    def __init__(self, path):
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.elements = []
        self.cases = []
        self.text = ""
        self._in_case = False
        self.feed(self.html)
        self.text = re.sub(r"\s+", " ", self.text)
        for case in self.cases:
            case["text"] = re.sub(r"\s+", " ", case["text"])

    def _space(self, tag):
        if tag not in ("a", "strong", "code", "span"):
            self.handle_data(" ")

    def handle_starttag(self, tag, attrs):
        self._space(tag)
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if "data-case" in attrs:
            self._in_case = True
            self.cases.append({**attrs, "text": "", "pictures": [], "links": []})
        if self._in_case and tag == "img":
            self.cases[-1]["pictures"].append(attrs)
        if self._in_case and tag == "a":
            self.cases[-1]["links"].append(attrs["href"])

    def handle_endtag(self, tag):
        self._space(tag)
        if tag == "section":
            self._in_case = False

    def handle_data(self, data):
        self.text += data
        if self._in_case:
            self.cases[-1]["text"] += data

    def of(self, **values):
        """The cases with these data attributes."""
        return [c for c in self.cases if all(c[f"data-{k}"] == v for k, v in values.items())]
