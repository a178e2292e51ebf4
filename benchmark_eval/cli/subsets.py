"""``benchmark-eval subsets``: draw the training subsets of the regimes."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._grid import architecture_option, condition_option, seed_option
from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.core.terminal import say
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
    help="Draw the conditions and seeds of this manifest and fill in its column train_annotations. "
    "Without it, a new manifest.csv is written to the output folder.",
)
@condition_option
@seed_option
@architecture_option
@force_option
def command(
    benchmark_dir: Path,
    output_dir: Path,
    manifest: Path | None,
    conditions: tuple[tuple[str, str], ...],
    seeds: tuple[int, ...],
    architectures: tuple[str, ...],
    force: bool,
) -> None:
    """Draw the training subsets of the three regimes from the benchmark's train.json.

    Within a seed, subsets are nested in k and in p. Specimens of species for which an image was
    not drawn are crowd regions (iscrowd=1): training must ignore them, not treat them as
    background.
    """
    from benchmark_eval.training.subsets import write_subsets

    if manifest is not None and (conditions or seeds or architectures):
        raise click.UsageError(
            "--manifest cannot be combined with --condition, --seed or --architecture: it already "
            "lists them"
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
            force=force,
        )
    for condition, species in made.short.items():
        shown = ", ".join(species[:5]) + (" ..." if len(species) > 5 else "")
        say(f"note: {condition}: {len(species)} species have fewer images ({shown})")
    say(
        f"{len(made.rows)} subsets: {made.folder}",
        f"exact and expected budgets: {made.folder / 'budgets.csv'}",
        f"manifest with train_annotations: {made.manifest}",
    )
