"""``benchmark-eval aggregate``: the tables and the report of a sweep."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.core.terminal import say


@click.command()
@click.option(
    "--eval-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with <model>_summary.json or <model>/<model>_summary.json files.",
)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    required=True,
    help="CSV file that maps each model to its training condition.",
)
@click.option(
    "--benchmark-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="The unpacked benchmark, or its index (.npz).",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the tables and report.md. If aggregation fails, those of an earlier run are "
    "removed.",
)
@click.option(
    "--allow-missing/--no-allow-missing",
    default=False,
    show_default=True,
    help="Exclude and list models without a summary instead of stopping.",
)
@click.option(
    "--custom-metrics",
    type=click.Path(path_type=Path),
    help="Python file with custom metrics, which become additional columns (docs/howto.md).",
)
@click.option(
    "--price-per-image",
    type=click.FloatRange(min=0),
    help="Price of a training image, in any currency: budgets are also compared and planned by "
    "price.",
)
@click.option(
    "--price-per-specimen",
    type=click.FloatRange(min=0),
    help="Price of an annotated specimen, in the same currency.",
)
@force_option
def command(
    eval_dir: Path,
    manifest: Path,
    benchmark_dir: Path,
    output_dir: Path,
    allow_missing: bool,
    custom_metrics: Path | None,
    price_per_image: float | None,
    price_per_specimen: float | None,
    force: bool,
) -> None:
    """Aggregate the summaries of a sweep into learning curves, further tables and report.md."""
    from benchmark_eval.report.document import PLOTS_PLACE, aggregate_with_report
    from benchmark_eval.sweep.prices import Prices
    from benchmark_eval.sweep.tables import AGGREGATED

    report = aggregate_with_report(
        eval_dir=eval_dir,
        manifest=manifest,
        benchmark=benchmark_dir,
        output_dir=output_dir,
        allow_missing=allow_missing,
        custom_metrics=custom_metrics,
        prices=Prices(price_per_image, price_per_specimen),
        force=force,
    )
    say(f"wrote tables and {report}")
    say(
        f"to draw the plots, run: benchmark-eval plot --aggregated "
        f"{shlex.quote(str(output_dir / AGGREGATED))} --output-dir "
        f"{shlex.quote(str(output_dir / PLOTS_PLACE))}"
    )
