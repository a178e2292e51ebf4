"""``benchmark-eval verify``: check results against each other and against their inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.core.terminal import say


@click.command("verify")
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--configfile",
    type=click.Path(path_type=Path),
    help="Config of the sweep. Default: config/config.yaml, if present. Prediction files and "
    "manifest are compared only if the config names them.",
)
@click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
def command(results: Path, configfile: Path | None, quiet: bool) -> None:
    """Recompute the tables and digests of RESULTS and report every difference. Writes nothing.

    RESULTS is the results folder of the workflow (default: results) or a folder with summaries.
    Exit code 0: no differences, 1: differences found, 2: could not run.
    """
    from benchmark_eval.check.verify import verification_lines, verify_results

    default = Path("config", "config.yaml")
    if configfile is None and default.is_file():
        configfile = default
    with progress_bar(shown=not quiet) as progress:
        verified = verify_results(results, configfile, progress=progress)
    say(*verification_lines(verified))
    sys.exit(1 if verified.problems else 0)
