"""``benchmark-eval check``: find problems in the benchmark, manifest, config and predictions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from benchmark_eval.cli._progress import progress_bar
from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.terminal import say_text
from benchmark_eval.protocol import KNOWN_SPLITS


@click.command("check", cls=CommandWithSeveralValues)
@click.option(
    "--configfile",
    help="Config of the sweep. Default: config/config.yaml if no input option is given.",
)
@click.option("--benchmark-dir", help="The unpacked benchmark.")
@click.option("--manifest", help="The manifest of a sweep (CSV).")
@click.option(
    "--predictions-dir",
    help="Folder with <model>/<split>_predictions.json[.gz], or with the files of one model.",
)
@click.option(
    "--splits",
    cls=SeveralValues,
    type=click.Choice(KNOWN_SPLITS),
    help="Splits whose predictions are checked. Default: those of the config, otherwise the three "
    "test splits.",
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Number of parallel processes. Default: all cores."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
def command(
    configfile: str | None,
    benchmark_dir: str | None,
    manifest: str | None,
    predictions_dir: str | None,
    splits: tuple[str, ...],
    jobs: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find every problem in the benchmark, the manifest, the config and all prediction files.

    Options take precedence over the config. Exit code 0: no problems (but possibly warnings and
    notes), 1: problems found, 2: could not run.
    """
    from benchmark_eval.check import check_inputs
    from benchmark_eval.core.memory import keep_freed_memory

    keep_freed_memory()
    default = Path("config", "config.yaml")
    given = (configfile, benchmark_dir, manifest, predictions_dir, splits or None)
    with progress_bar(shown=not quiet) as progress:
        report = check_inputs(
            default if set(given) == {None} and default.is_file() else configfile,
            benchmark_dir=benchmark_dir,
            manifest=manifest,
            predictions_dir=predictions_dir,
            splits=splits or None,
            jobs=jobs,
            progress=progress,
        )
    if as_json:
        say_text(json.dumps(report.to_dict(), indent=1))
    elif sys.stdout.isatty():
        from rich.console import Console

        report.show(Console())
    else:
        say_text(report.text())
    sys.exit(report.exit_code)
