"""``benchmark-eval subsets``: the training subsets of the regimes."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._grid import architecture_option, condition_option, seed_option
from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.training.regimes import GRID, SEEDS


@click.command("subsets")
@click.option(
    "--benchmark-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="The unpacked benchmark, with train.json.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for <condition>_s<seed>/{train.json, images.txt} and budgets.csv.",
)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    help="Draw what this manifest lists and fill in its train_annotations. Without it the grid "
    "is drawn and a manifest.csv is written beside the subsets.",
)
@condition_option
@seed_option
@architecture_option
def command(
    benchmark_dir: Path,
    output_dir: Path,
    manifest: Path | None,
    conditions: tuple[tuple[str, str], ...],
    seeds: tuple[int, ...],
    architectures: tuple[str, ...],
) -> None:
    """Draw the training subsets of the three regimes from the benchmark's train.json.

    Nested in k and in p within a seed. Boxes of a species that did not draw the image are crowd
    (iscrowd=1) in the subset: a trainer must skip them, not learn them as background.
    """
    from benchmark_eval.training.subsets import write_subsets

    if manifest is not None and (conditions or seeds or architectures):
        raise click.UsageError(
            "--manifest names conditions, seeds and architectures itself: leave out --condition, "
            "--seed and --architecture"
        )
    with progress_bar() as progress:
        made = write_subsets(
            benchmark_dir,
            output_dir,
            manifest=manifest,
            conditions=conditions or GRID,
            seeds=seeds or SEEDS,
            architectures=architectures,
            progress=progress,
        )
    for condition, species in made.short.items():
        shown = ", ".join(species[:5]) + (" ..." if len(species) > 5 else "")
        click.echo(f"note: {condition}: {len(species)} species have fewer images ({shown})")
    click.echo(
        f"{len(made.rows)} subsets: {made.folder}\n"
        f"exact and expected budgets: {made.folder / 'budgets.csv'}\n"
        f"manifest with train_annotations: {made.manifest}"
    )
