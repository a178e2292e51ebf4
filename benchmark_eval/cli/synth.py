"""``benchmark-eval synth``: generate a synthetic benchmark and simulated predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.core.terminal import say
from benchmark_eval.core.text import counted


def number_of_images(ctx: click.Context, param: click.Parameter, text: str) -> int | Literal["all"]:
    """The value of ``--images``: a number, or all."""
    if text == "all":
        return "all"
    if text.isascii() and text.isdecimal():
        return int(text)
    raise click.BadParameter(f"found {text!r}; expected a number of images, or all", ctx, param)


@click.command("synth")
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for benchmark/, predictions/<model>/ and manifest.csv.",
)
@click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Size in (0, 1]; 1 is the size of the real benchmark. Never removes species or bands.",
)
@click.option(
    "--test-scale",
    type=float,
    default=None,
    help="Size of iid_test and inat_test. Default: the value of --scale.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option("--sweep", is_flag=True, help="Simulate all 153 models of the sweep, not just one.")
@click.option(
    "--detections-per-specimen",
    type=float,
    default=21.0,
    show_default=True,
    help="Mean number of detections per scored specimen; at most 300 per image.",
)
@click.option(
    "--images",
    is_flag=False,
    flag_value="all",
    default="0",
    metavar="[N]",
    callback=number_of_images,
    help="Draw every image, or only the first N of each split: artificial pictures that fit the "
    "boxes. At full size, all images take 20 minutes and 3.5 GB.",
)
@click.option(
    "--jobs", type=int, default=None, help="Number of parallel processes. Default: all cores."
)
@force_option
def command(
    output_dir: Path,
    scale: float,
    test_scale: float | None,
    seed: int,
    sweep: bool,
    detections_per_specimen: float,
    images: int | Literal["all"],
    jobs: int | None,
    force: bool,
) -> None:
    """Generate a synthetic benchmark and simulated predictions.

    Counts, folder layout and columns match the real benchmark; species names and boxes are
    invented. The same options give the same bytes.
    """
    from benchmark_eval.synthetic import make_synthetic

    what = "models and images" if images else "models"
    with progress_bar() as bar:
        made = make_synthetic(
            output_dir,
            scale=scale,
            test_scale=test_scale,
            seed=seed,
            sweep=sweep,
            detections_per_specimen=detections_per_specimen,
            images=images,
            jobs=jobs,
            force=force,
            progress=None if bar is None else lambda done, total: bar(what, done, total),
        )
    say(
        f"{counted(made.n_models, 'model')}, {made.n_detections:,} "
        f"detections, {made.n_bytes / 1e6:.1f} MB of predictions (synthetic)",
        *([f"{counted(made.n_images, 'picture')} drawn"] if images else []),
        f"benchmark:   {made.benchmark_dir}",
        f"predictions: {made.predictions_dir}",
        f"manifest:    {made.manifest}",
    )
