"""``benchmark-eval verify``: whether results agree with each other and with their inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmark_eval.cli._progress import progress_bar


@click.command("verify")
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--configfile",
    type=click.Path(path_type=Path),
    help="The sweep's config; config/config.yaml where it names data. Without one predictions "
    "and manifest are not compared.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def command(results: Path, configfile: Path | None, quiet: bool) -> None:
    """Make tables and digests of RESULTS again and say what does not agree. Writes nothing.

    RESULTS is the folder that the workflow leaves, or one with summaries. Exit code 0: all
    agrees, 1: something does not, 2: could not run.
    """
    from benchmark_eval.check.verify import differences, verify_results

    default = Path("config", "config.yaml")
    if configfile is None and default.is_file():
        configfile = default
    with progress_bar(shown=not quiet) as progress:
        verified = verify_results(results, configfile, progress=progress)
    for line in differences(verified):
        click.echo(line)
    sys.exit(1 if verified.problems else 0)
