"""``benchmark-eval plot``: draw the plots of a sweep."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._force import force_option


@click.command()
@click.option(
    "--aggregated",
    type=click.Path(path_type=Path),
    required=True,
    help="The aggregated.json written by `benchmark-eval aggregate`.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the plots. report.md links to ../plots relative to its own folder.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["svg", "png", "pdf"]),
    multiple=True,
    default=("svg", "png"),
    show_default=True,
    help="File format; may be repeated.",
)
@click.option("--only", multiple=True, help="Name of a plot; may be repeated. Default: all plots.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Number of parallel processes. Default: all cores. The files do not depend on it.",
)
@force_option
def command(
    aggregated: Path,
    output_dir: Path,
    formats: tuple[str, ...],
    only: tuple[str, ...],
    jobs: int | None,
    force: bool,
) -> None:
    """Draw the plots of a sweep from its tables."""
    from benchmark_eval.check.files import usable_cores
    from benchmark_eval.report import write_plots
    from benchmark_eval.sweep import load_current_tables

    write_plots(
        load_current_tables(aggregated),
        output_dir,
        formats,
        only or None,
        jobs=jobs or usable_cores(),
        inputs=[aggregated],
        force=force,
    )
