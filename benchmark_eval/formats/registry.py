"""The formats by name: where they lie, what they can say, who reads and writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
from benchmark_eval.formats.options import Faults, Options
from benchmark_eval.formats.table import BoxTable, PixelRule

Scores = Literal["always", "optional", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format.

    ``place``: a single file, or a folder with a file for each image. ``scores``: whether its boxes
    have confidences. ``ids``: images and classes by their ids in the benchmark instead of by name.
    What else it can say: ``ignored`` specimens, image ``sizes``, ``full_names`` of image files
    (else without suffix) and ``empty_images``. ``needs_names``: it numbers classes, and their names
    are written beside it. ``pixels``: its numbers are corners, whose meaning the pixel rule tells.
    """

    name: str
    label: str
    place: Literal["file", "folder"]
    scores: Scores
    read: Callable[[Path, Options, Faults], Parsed]
    write: Callable[[BoxTable, Path, PixelRule], None]
    ids: bool = False
    ignored: bool = False
    sizes: bool = False
    full_names: bool = False
    empty_images: bool = True
    needs_names: bool = False
    pixels: bool = False


FORMATS = {
    entry.name: entry
    for entry in (
        Format(
            name="coco-results",
            label="COCO results",
            place="file",
            scores="always",
            read=coco_results.read,
            write=coco_results.write,
            ids=True,
            empty_images=False,
        ),
        Format(
            name="detectron2",
            label="Detectron2 coco_instances_results.json",
            place="file",
            scores="always",
            read=coco_results.read,
            write=coco_results.write,
            ids=True,
            empty_images=False,
        ),
        Format(
            name="ultralytics-json",
            label="Ultralytics predictions.json (save_json)",
            place="file",
            scores="always",
            read=ultralytics_json.read,
            write=ultralytics_json.write,
            full_names=True,
            empty_images=False,
            needs_names=True,
        ),
        Format(
            name="yolo",
            label="YOLO text (Ultralytics save_txt)",
            place="folder",
            scores="optional",
            read=yolo.read,
            write=yolo.write,
            needs_names=True,
        ),
        Format(
            name="huggingface",
            label="Hugging Face detections by image",
            place="file",
            scores="always",
            read=huggingface.read,
            write=huggingface.write,
            full_names=True,
        ),
        Format(
            name="coco",
            label="COCO annotations",
            place="file",
            scores="never",
            read=coco.read,
            write=coco.write,
            ignored=True,
            sizes=True,
            full_names=True,
        ),
        Format(
            name="voc-xml",
            label="Pascal VOC XML",
            place="folder",
            scores="never",
            read=voc_xml.read,
            write=voc_xml.write,
            ignored=True,
            sizes=True,
            full_names=True,
            pixels=True,
        ),
        Format(
            name="darkflow",
            label="darkflow JSON",
            place="folder",
            scores="optional",
            read=darkflow.read,
            write=darkflow.write,
            pixels=True,
        ),
        Format(
            name="xyxy-text",
            label="plain text of the mAP tool",
            place="folder",
            scores="optional",
            read=xyxy_text.read,
            write=xyxy_text.write,
            ignored=True,
            pixels=True,
        ),
    )
}
"""Every format that can be read and written, by name."""

BENCHMARK = "benchmark"
"""The benchmark's prediction files: COCO results under the split's name. Written only."""
