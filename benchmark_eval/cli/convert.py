"""``benchmark-eval convert``: boxes from one format to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues

FORMAT_NAMES = (
    "coco-results",
    "detectron2",
    "ultralytics-json",
    "yolo",
    "huggingface",
    "coco",
    "voc-xml",
    "darkflow",
    "xyxy-text",
)
"""The keys of ``benchmark_eval.formats.FORMATS``, here so that --help need not load them."""
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
    help="benchmark: write <split>_predictions.json into the folder TARGET.",
)
@click.option(
    "--from",
    "from_format",
    type=click.Choice(FORMAT_NAMES),
    help="Found out by the type of SOURCE if not given.",
)
@click.option(
    "--benchmark-dir", type=_PATH, help="The benchmark: class names become its category ids."
)
@click.option(
    "--splits",
    cls=SeveralValues,
    help="Match images by file name with this split. With several, {split} in SOURCE stands for "
    "each.",
)
@click.option(
    "--names",
    type=_PATH,
    help="Names of the model's classes: a name a line, data.yaml, config.json or a COCO file.",
)
@click.option(
    "--first-class",
    type=click.Choice(["0", "1"]),
    help="The number of the first class in SOURCE.",
)
@click.option("--yes", is_flag=True, help="Take what is inferred about class numbers.")
@click.option(
    "--class-ids", is_flag=True, help="Class numbers of SOURCE are the benchmark's category ids."
)
@click.option(
    "--rename",
    "renamed",
    type=(str, str),
    multiple=True,
    metavar="OLD NEW",
    help="Another name for a class; may be repeated.",
)
@click.option(
    "--to-names", type=_PATH, help="Number the classes of TARGET in the order of this file."
)
@click.option(
    "--images-dir", type=_PATH, help="Image files: their sizes and EXIF orientation are read."
)
@click.option(
    "--frame",
    type=click.Choice(FRAMES),
    help="How the source saw images that EXIF turns (Ultralytics, OpenCV: upright).",
)
@click.option(
    "--to-frame",
    type=click.Choice(FRAMES),
    help="How the benchmark's boxes see them, where sizes do not tell.",
)
@click.option(
    "--pixels",
    type=click.Choice(PIXELS),
    default="edges",
    show_default=True,
    help="What corner numbers of SOURCE are: edges (width = right - left), or first and last "
    "pixel counted from 0 (inclusive) or from 1 (voc).",
)
@click.option("--to-pixels", type=click.Choice(PIXELS), help="The same of TARGET.")
@click.option(
    "--outside",
    type=click.Choice(["error", "clip", "keep"]),
    default="error",
    show_default=True,
    help="What to do with boxes that leave their image by more than a pixel.",
)
@click.option(
    "--missing-is-empty", is_flag=True, help="An image without a file has no boxes (Ultralytics)."
)
@click.option(
    "--scores/--no-scores",
    default=None,
    help="Whether lines of plain text hold a confidence, where they can be read either way.",
)
def command(
    source: Path,
    target: Path,
    splits: tuple[str, ...],
    first_class: str | None,
    yes: bool,
    renamed: tuple[tuple[str, str], ...],
    **options: Any,
) -> None:
    """Convert the boxes of SOURCE to TARGET, both a file or a folder with a file for each image.

    Classes go by name, images by file name. Nothing is written where anything is wrong, and the
    report says what the target's format cannot carry.
    """
    from benchmark_eval.formats import convert_annotations

    asks = sys.stdin.isatty()
    reports = convert_annotations(
        source,
        target,
        splits=splits,
        first_class=None if first_class is None else int(first_class),
        rename=dict(renamed),
        confirm=lambda said: yes or (asks and click.confirm(f"{said}. Is that so?", err=True)),
        **options,
    )
    for report in reports:
        click.echo(str(report))
