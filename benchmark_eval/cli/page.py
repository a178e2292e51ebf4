"""``benchmark-eval page``: write the page of a sweep."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.core.terminal import say


@click.command()
@click.option(
    "--aggregated",
    type=click.Path(path_type=Path),
    required=True,
    help="The aggregated.json written by `benchmark-eval aggregate`.",
)
@click.option(
    "--eval-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the files of the models, as for `benchmark-eval aggregate`. The page links "
    "to files in its own folder or below.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The page, for example results/report.html.",
)
@force_option
def command(aggregated: Path, eval_dir: Path | None, output: Path, force: bool) -> None:
    """Write one page with all results of a sweep, which a browser opens without network."""
    from benchmark_eval.report import write_page
    from benchmark_eval.sweep import load_current_tables

    write_page(
        load_current_tables(aggregated),
        output,
        tables_dir=aggregated.parent,
        eval_dir=eval_dir,
        inputs=[aggregated],
        force=force,
    )
    say(f"wrote {output}")
