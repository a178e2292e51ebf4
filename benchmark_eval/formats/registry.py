"""Registry of formats: file or folder, capabilities, and the module that reads and writes."""

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
    ultralytics_results,
    voc_xml,
    xywh_text,
    xyxy_text,
    yolo,
)
from benchmark_eval.formats.assembling import Parsed
from benchmark_eval.formats.options import Options
from benchmark_eval.formats.table import BoxTable, PixelRule

Trait = Literal[
    "scores",  # boxes may have a confidence
    "no scores",  # boxes may lack a confidence
    "ids",  # images and classes are identified by the benchmark's ids
    "image numbers",  # images may be identified by a number, an id or part of the file name
    "image ids",  # images have ids in addition to names
    "full names",  # images are identified by file name, otherwise by stem
    "sizes",  # images have a width and height
    "empty images",  # images without boxes are listed
    "ignored",  # boxes can be crowd or difficult
    "ignored detections",  # so can boxes with a confidence
    "numbers",  # classes are numbered; names are in a separate file
    "class texts",  # classes are text, which may be a number or LABEL_<number>
    "corners",  # boxes are given by corners, interpreted by the pixel rule
]


class _Module(Protocol):
    """The module of a format: one reader and one writer."""

    def read(self, path: Path, options: Options, problems: Problems, /) -> Parsed: ...
    def write(self, boxes: BoxTable, target: Path, pixels: PixelRule, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One format: a single file or a folder with one file per image, and its capabilities.

    ``also_reads`` is set if a source may be the other kind of container, too.
    """

    name: str
    label: str
    container: Literal["file", "folder"]
    module: _Module
    traits: tuple[Trait, ...]
    also_reads: Literal["file", "folder"] | None = None
    suffix: str = ".json"

    def supports(self, trait: Trait) -> bool:
        """Whether the format can represent ``trait``."""
        return trait in self.traits


# fmt: off
_TABLE = (
    Format("coco-results", "COCO results", "file", coco_results,
           ("scores", "ids", "image numbers")),
    Format("detectron2", "Detectron2 coco_instances_results.json", "file", coco_results,
           ("scores", "ids", "image numbers")),
    Format("mmdetection", "MMDetection *.bbox.json", "file", coco_results,
           ("scores", "ids", "image numbers")),
    Format("ultralytics-json", "Ultralytics predictions.json (save_json)", "file", ultralytics_json,
           ("scores", "full names", "numbers", "image numbers")),
    Format("ultralytics-results", "Ultralytics Results.to_json()", "folder", ultralytics_results,
           ("scores", "empty images", "class texts", "image numbers"), also_reads="file"),
    Format("yolo", "YOLO text (Ultralytics save_txt)", "folder", yolo,
           ("scores", "no scores", "empty images", "numbers"), suffix=".txt"),
    Format("huggingface", "Hugging Face detections by image", "file", huggingface,
           ("scores", "full names", "empty images", "class texts", "image numbers")),
    Format("coco", "COCO annotations", "file", coco,
           ("scores", "no scores", "image ids", "full names", "sizes", "empty images", "ignored",
            "ignored detections")),
    Format("voc-xml", "Pascal VOC XML", "folder", voc_xml,
           ("no scores", "full names", "sizes", "empty images", "ignored", "corners",
            "class texts"), suffix=".xml"),
    Format("darkflow", "darkflow JSON", "folder", darkflow,
           ("scores", "no scores", "empty images", "corners", "class texts")),
    Format("xyxy-text", "text files of benchmark-eval map", "folder", xyxy_text,
           ("scores", "no scores", "empty images", "ignored", "corners",
            "class texts"), suffix=".txt"),
    Format("xywh-text", "text files with left, top, width, height", "folder", xywh_text,
           ("scores", "no scores", "empty images", "ignored", "class texts"), suffix=".txt"),
)
# fmt: on

FORMATS = {entry.name: entry for entry in _TABLE}
"""Every format that can be read and written, by name."""

BENCHMARK = "benchmark"
"""The benchmark's prediction files: COCO results named after the split. Write-only."""
