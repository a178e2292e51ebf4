"""``benchmark-eval synth``: generate a synthetic benchmark and simulated predictions."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.core.terminal import say


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
    jobs: int | None,
    force: bool,
) -> None:
    """Generate a synthetic benchmark and simulated predictions, without images.

    Counts, folder layout and columns match the real benchmark; species names and boxes are
    invented. The same options give the same bytes.
    """
    from rich.console import Console
    from rich.progress import Progress

    from benchmark_eval.synthetic import make_synthetic

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulated models", total=153 if sweep else 1)
        made = make_synthetic(
            output_dir,
            scale=scale,
            test_scale=test_scale,
            seed=seed,
            sweep=sweep,
            detections_per_specimen=detections_per_specimen,
            jobs=jobs,
            force=force,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    say(
        f"{made.n_models} model{'s' if made.n_models != 1 else ''}, {made.n_detections:,} "
        f"detections, {made.n_bytes / 1e6:.1f} MB of predictions (synthetic)",
        f"benchmark:   {made.benchmark_dir}",
        f"predictions: {made.predictions_dir}",
        f"manifest:    {made.manifest}",
    )
