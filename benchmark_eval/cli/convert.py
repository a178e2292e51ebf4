"""``benchmark-eval convert``: convert boxes between formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.terminal import say_text
from benchmark_eval.core.text import visible

FORMAT_NAMES = (
    "coco-results",
    "detectron2",
    "mmdetection",
    "ultralytics-json",
    "ultralytics-results",
    "yolo",
    "huggingface",
    "coco",
    "voc-xml",
    "darkflow",
    "xyxy-text",
    "xywh-text",
)
"""The keys of ``benchmark_eval.formats.FORMATS``, repeated to keep --help fast."""
PIXELS = ("edges", "inclusive", "voc")
FRAMES = ("upright", "stored")
_PATH = click.Path(path_type=Path)


@click.command("convert", cls=CommandWithSeveralValues)
@click.argument("source", type=_PATH)
@click.argument("target", type=_PATH)
@click.option(
    "--to",
    "to_format",
    type=click.Choice(["benchmark", *FORMAT_NAMES]),
    required=True,
    help="Format of TARGET. benchmark: write <split>_predictions.json into the folder TARGET.",
)
@click.option(
    "--from",
    "from_format",
    type=click.Choice(FORMAT_NAMES),
    help="Format of SOURCE. Guessed from its content, and stated in the report, if not given.",
)
@click.option(
    "--benchmark-dir",
    type=_PATH,
    help="Benchmark folder. Class names are mapped to its category ids.",
)
@click.option(
    "--splits",
    cls=SeveralValues,
    help="Splits whose images are matched by file name. With several splits, {split} in SOURCE is "
    "replaced by each name.",
)
@click.option(
    "--names",
    type=_PATH,
    help="Class names of the model: text with one name per line, data.yaml, config.json or a COCO "
    "file.",
)
@click.option(
    "--first-class",
    type=click.Choice(["0", "1"]),
    help="Number of the first class in SOURCE.",
)
@click.option("--yes", is_flag=True, help="Accept the inferred number of the first class.")
@click.option(
    "--class-ids",
    is_flag=True,
    help="Class numbers in SOURCE are category ids: those of the --names file (COCO, id2label) or, "
    "without it, the benchmark's.",
)
@click.option(
    "--class-positions",
    is_flag=True,
    help="Class numbers in SOURCE count the names from --first-class, whatever numbers the --names "
    "file states.",
)
@click.option(
    "--image-numbers",
    type=click.Choice(["ids", "names"]),
    help="A number in place of an image is its id, or the number in its file name.",
)
@click.option(
    "--rename",
    "renamed",
    type=(str, str),
    multiple=True,
    metavar="OLD NEW",
    help="Rename a class; may be repeated.",
)
@click.option(
    "--to-names", type=_PATH, help="Number the classes of TARGET in the order of this file."
)
@click.option(
    "--images-only",
    is_flag=True,
    help="With --to coco: write the images of SOURCE and the categories of --to-names, without "
    "annotations.",
)
@click.option(
    "--images-dir", type=_PATH, help="Folder of images, to read sizes and EXIF orientations."
)
@click.option(
    "--frame",
    type=click.Choice(FRAMES),
    help="Frame of SOURCE for images with an EXIF orientation (Ultralytics, OpenCV: upright).",
)
@click.option(
    "--to-frame",
    type=click.Choice(FRAMES),
    help="Frame of the benchmark's annotations, if image sizes do not determine it.",
)
@click.option(
    "--pixels",
    type=click.Choice(PIXELS),
    default="edges",
    show_default=True,
    help="Meaning of corners in SOURCE: edges (width = right - left), or first and last pixel, "
    "0-based (inclusive) or 1-based (voc).",
)
@click.option("--to-pixels", type=click.Choice(PIXELS), help="Meaning of corners in TARGET.")
@click.option(
    "--outside",
    type=click.Choice(["error", "clip", "keep"]),
    default="error",
    show_default=True,
    help="How to handle boxes that extend more than one pixel beyond their image.",
)
@click.option(
    "--missing-is-empty", is_flag=True, help="Images without a file have no boxes (Ultralytics)."
)
@click.option(
    "--scores/--no-scores",
    default=None,
    help="Whether lines of xyxy-text or xywh-text contain a confidence, if they are ambiguous.",
)
@force_option
def command(
    source: Path,
    target: Path,
    splits: tuple[str, ...],
    first_class: str | None,
    yes: bool,
    renamed: tuple[tuple[str, str], ...],
    **options: Any,
) -> None:
    """Convert the annotations or detections in SOURCE to TARGET.

    Each is a file, or a folder with one file per image. Classes are matched by name and images by
    file name. If there are problems, nothing is written. The report lists content that the target
    format cannot represent.
    """
    from benchmark_eval.formats import convert_annotations

    interactive = sys.stdin.isatty()
    reports = convert_annotations(
        source,
        target,
        splits=splits,
        first_class=None if first_class is None else int(first_class),
        rename=dict(renamed),
        confirm=lambda statement: (
            yes
            or (
                interactive
                and click.confirm(visible(f"Found {statement}. Is this correct?"), err=True)
            )
        ),
        **options,
    )
    for report in reports:
        say_text(str(report))
