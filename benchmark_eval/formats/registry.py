"""The formats by name: where they lie, what they can say, who reads and writes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from benchmark_eval.core.problems import Problems
from benchmark_eval.formats import (
    coco,
    coco_results,
    darkflow,
    huggingface,
    ultralytics_json,
    voc_xml,
    xyxy_text,
    yolo,
)
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule

Trait = Literal[
    "scores",  # boxes have a confidence, or may have one
    "no scores",  # boxes without a confidence are fine
    "ids",  # images and classes go by their ids in the benchmark
    "image ids",  # images have ids besides names
    "full names",  # images go by their file names; else without folder and suffix
    "sizes",  # images have a width and height
    "empty images",  # images without boxes are there
    "ignored",  # boxes can be crowd or difficult
    "numbers",  # classes are numbered; their names are written into a file beside
    "corners",  # box numbers are corners, whose meaning the pixel rule tells
]


class _Module(Protocol):
    """A format's own module: one reader and one writer."""

    def read(self, path: Path, options: Options, problems: Problems, /) -> Parsed: ...
    def write(self, boxes: BoxTable, target: Path, pixels: PixelRule, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One format: a single file, or a folder with a file for each image; and what it can say."""

    name: str
    label: str
    place: Literal["file", "folder"]
    module: _Module
    traits: tuple[Trait, ...]

    def says(self, trait: Trait) -> bool:
        """Whether the format can say this."""
        return trait in self.traits


# fmt: off
_TABLE = (
    Format("coco-results", "COCO results", "file", coco_results, ("scores", "ids")),
    Format("detectron2", "Detectron2 coco_instances_results.json", "file", coco_results,
           ("scores", "ids")),
    Format("ultralytics-json", "Ultralytics predictions.json (save_json)", "file", ultralytics_json,
           ("scores", "full names", "numbers")),
    Format("yolo", "YOLO text (Ultralytics save_txt)", "folder", yolo,
           ("scores", "no scores", "empty images", "numbers")),
    Format("huggingface", "Hugging Face detections by image", "file", huggingface,
           ("scores", "full names", "empty images")),
    Format("coco", "COCO annotations", "file", coco,
           ("no scores", "image ids", "full names", "sizes", "empty images", "ignored")),
    Format("voc-xml", "Pascal VOC XML", "folder", voc_xml,
           ("no scores", "full names", "sizes", "empty images", "ignored", "corners")),
    Format("darkflow", "darkflow JSON", "folder", darkflow,
           ("scores", "no scores", "empty images", "corners")),
    Format("xyxy-text", "plain text of the mAP tool", "folder", xyxy_text,
           ("scores", "no scores", "empty images", "ignored", "corners")),
)
# fmt: on

FORMATS = {entry.name: entry for entry in _TABLE}
"""Every format that can be read and written, by name."""

BENCHMARK = "benchmark"
"""The benchmark's prediction files: COCO results under the split's name. Written only."""
