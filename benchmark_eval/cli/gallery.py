"""``benchmark-eval gallery``: a local page with the most telling errors of a model."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.terminal import say, say_text
from benchmark_eval.core.text import counted
from benchmark_eval.protocol import KNOWN_SPLITS


@click.command("gallery", cls=CommandWithSeveralValues)
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    help="Name of a model. Give it twice to see what one model detects and the other misses.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for index.html, crops/ and images/.",
)
@click.option(
    "--configfile",
    type=click.Path(path_type=Path),
    help="Config of the sweep. Default: config/config.yaml if neither --benchmark-dir nor "
    "--predictions-dir is given.",
)
@click.option("--benchmark-dir", type=click.Path(path_type=Path), help="The unpacked benchmark.")
@click.option(
    "--predictions-dir",
    type=click.Path(path_type=Path),
    help="Folder with <model>/<split>_predictions.json[.gz], or with the files of one model.",
)
@click.option(
    "--eval-dir",
    type=click.Path(path_type=Path),
    help="Folder with the summaries of the models, which must be of the same benchmark and "
    "predictions. Default: results/models, if present.",
)
@click.option(
    "--images-dir",
    type=click.Path(path_type=Path),
    help="Folder of the images: <split>/<file name> or <file name>. Default: detection/images of "
    "the benchmark.",
)
@click.option(
    "--splits",
    cls=SeveralValues,
    type=click.Choice(KNOWN_SPLITS),
    help="Splits to show. Default: those of the config, otherwise the three test splits.",
)
@click.option(
    "--cases",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Maximum number of cases of each error type and split.",
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Number of parallel processes. Default: all cores."
)
@click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
@force_option
def command(
    models: tuple[str, ...],
    output_dir: Path,
    configfile: Path | None,
    benchmark_dir: Path | None,
    predictions_dir: Path | None,
    eval_dir: Path | None,
    images_dir: Path | None,
    splits: tuple[str, ...],
    cases: int,
    jobs: int | None,
    quiet: bool,
    force: bool,
) -> None:
    """Write a local page with the most telling errors of a model: truth and prediction on crops.

    Images that are missing or cannot be shown are listed; the page shows the other cases.
    """
    from benchmark_eval.core.problems import render_problems
    from benchmark_eval.gallery import write_gallery

    default = Path("config", "config.yaml")
    if (configfile, benchmark_dir, predictions_dir) == (None, None, None) and default.is_file():
        configfile = default
    with progress_bar(shown=not quiet) as progress:
        made = write_gallery(
            models,
            output_dir,
            configfile=configfile,
            benchmark_dir=benchmark_dir,
            predictions_dir=predictions_dir,
            eval_dir=eval_dir,
            images_dir=images_dir,
            splits=splits or None,
            cases=cases,
            jobs=jobs,
            progress=progress,
            force=force,
        )
    if made.warnings:
        say_text(f"warning: {render_problems(made.warnings)}", err=True)
    say(f"{counted(made.n_cases, 'case')}, {made.n_pictured:,} with pictures: {made.page}")
