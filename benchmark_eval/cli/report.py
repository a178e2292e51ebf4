"""``benchmark-eval report``: write the report of a sweep."""

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
    help="Folder for report.md, which links to the plots in ../plots relative to this folder.",
)
@click.option(
    "--plot-format",
    type=click.Choice(["svg", "png"]),
    default="svg",
    show_default=True,
    help="Format of the plots shown in the report.",
)
@force_option
def command(
    aggregated: Path,
    output_dir: Path,
    plot_format: str,
    force: bool,
) -> None:
    """Write report.md from the tables of a sweep."""
    from benchmark_eval.report import write_report
    from benchmark_eval.sweep import load_current_tables

    write_report(
        load_current_tables(aggregated),
        output_dir,
        plot_format=plot_format,
        inputs=[aggregated],
        force=force,
    )
