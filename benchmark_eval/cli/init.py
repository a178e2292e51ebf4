"""``benchmark-eval init``: set up a folder for a sweep."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._grid import architecture_option, condition_option, seed_option
from benchmark_eval.core.terminal import say
from benchmark_eval.training.regimes import GRID, SEEDS


@click.command("init")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--benchmark-dir",
    type=click.Path(path_type=Path),
    help="The unpacked benchmark; can also be set later in config/config.yaml.",
)
@architecture_option
@condition_option
@seed_option
def command(
    directory: Path,
    benchmark_dir: Path | None,
    architectures: tuple[str, ...],
    conditions: tuple[tuple[str, str], ...],
    seeds: tuple[int, ...],
) -> None:
    """Set up DIRECTORY for a sweep: config, manifest, prediction folders and next steps."""
    from benchmark_eval.training.scaffold import CONFIG, NEXT_STEPS, init_project
    from benchmark_eval.training.subsets import MANIFEST

    made = init_project(
        directory,
        benchmark_dir=benchmark_dir,
        architectures=architectures,
        conditions=conditions or GRID,
        seeds=seeds or SEEDS,
    )
    say(
        f"{made.folder}: a sweep of {made.n_models} models",
        f"  {CONFIG.as_posix()}  settings of the evaluation",
        f"  {MANIFEST}  training condition of each model",
        f"  {NEXT_STEPS}  what to do next, step by step",
    )
