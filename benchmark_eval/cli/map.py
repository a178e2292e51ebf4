"""``benchmark-eval map``: PASCAL VOC 2012 mean average precision of text files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.terminal import say, say_text


class _Folder(click.Path):
    """A folder; refuses "" (an unset shell variable), which would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("found an empty string; expected a folder", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = _Folder(path_type=Path, file_okay=False)


def class_thresholds(
    ctx: click.Context, param: click.Parameter, tokens: tuple[str, ...]
) -> dict[str, float]:
    """``CLASS IOU CLASS IOU ...`` as a dictionary."""
    from benchmark_eval.voc.text import class_name

    if len(tokens) % 2:
        raise click.BadParameter(
            f"found {len(tokens)} values ({' '.join(tokens)}); expected pairs of a class and its "
            "IoU (put class names with spaces in quotes)",
            ctx,
            param,
        )
    thresholds: dict[str, float] = {}
    for name, text in zip(tokens[::2], tokens[1::2], strict=True):
        try:
            value = float(text)
        except ValueError:
            raise click.BadParameter(
                f"found {text!r} after class {name!r}; expected an IoU in (0, 1]",
                ctx,
                param,
            ) from None
        if class_name(name) in thresholds:
            raise click.BadParameter(
                f"found class {name!r} twice; expected unique classes", ctx, param
            )
        thresholds[class_name(name)] = value
    return thresholds


@click.command(
    cls=CommandWithSeveralValues, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "-pd",
    "--prediction_dir",
    "--prediction-dir",
    type=FOLDER,
    required=True,
    help="Folder of detections, one text file per image: CLASS CONFIDENCE LEFT TOP RIGHT BOTTOM.",
)
@click.option(
    "-gt",
    "--ground_truth_dir",
    "--ground-truth-dir",
    type=FOLDER,
    required=True,
    help="Folder of ground truth, one text file per image: CLASS LEFT TOP RIGHT BOTTOM "
    "[difficult].",
)
@click.option(
    "-id",
    "--image_dir",
    "--image-dir",
    type=FOLDER,
    help="Folder of images with the same names, to draw true positives, missed objects and false "
    "positives.",
)
@click.option(
    "-od",
    "--output_dir",
    "--output-dir",
    type=FOLDER,
    help="Folder for results, plots and annotated images. If not given, results are only printed.",
)
@click.option(
    "-a", "--animate", is_flag=True, help="Write an animated GIF of the annotated images."
)
@click.option("-np", "--no-plot", "--no_plot", is_flag=True, help="Do not draw plots.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the mAP.")
@click.option(
    "-i",
    "--ignore",
    cls=SeveralValues,
    metavar="CLASS [CLASS ...]",
    help="Exclude these classes.",
)
@click.option(
    "--set-class-iou",
    "--set_class_iou",
    "class_iou",
    cls=SeveralValues,
    metavar="CLASS IOU [CLASS IOU ...]",
    callback=class_thresholds,
    help="IoU thresholds of individual classes.",
)
@click.option(
    "--iou", type=float, default=0.5, show_default=True, help="IoU threshold of all other classes."
)
@click.option(
    "--coordinates",
    type=click.Choice(["pixel", "continuous"]),
    default="pixel",
    show_default=True,
    help="Width of a box: right - left + 1 (pixel, as in VOC) or right - left (continuous).",
)
@click.option(
    "--draw-confidence",
    "--draw_confidence",
    type=float,
    default=0.25,
    show_default=True,
    help="Minimum confidence of detections drawn in images.",
)
@force_option
def command(no_plot: bool, quiet: bool, output_dir: Path | None, **options: Any) -> None:
    """Compute the PASCAL VOC 2012 mean average precision of detections in text files."""
    from benchmark_eval.voc import run_map
    from benchmark_eval.voc.results import as_text, headline

    with progress_bar(shown=not quiet) as progress:
        result = run_map(output_dir=output_dir, plots=not no_plot, progress=progress, **options)
    if quiet:
        say(headline(result))
        for note in result.notes:
            say(f"note: {note}", err=True)
        return
    say_text(as_text(result))
    if output_dir is not None:
        say(f"written to {output_dir}")
