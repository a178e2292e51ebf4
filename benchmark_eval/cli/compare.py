"""``benchmark-eval compare``: compare models or conditions from their summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.terminal import say_text


@click.command()
@click.argument("sides", nargs=-1, metavar="[NAME=]SIDE [NAME=]SIDE ...")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "md", "csv", "latex"]),
    help="Format of the tables on standard output. Default: text.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all numbers unrounded.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw the differences with their intervals into this .svg, .png or .pdf file.",
)
@click.option(
    "--custom-metrics",
    type=click.Path(path_type=Path),
    help="Python file with custom metrics, which are listed without a verdict (docs/howto.md).",
)
@force_option
def command(
    sides: tuple[str, ...],
    kind: Any,
    as_json: bool,
    plot: Path | None,
    custom_metrics: Path | None,
    force: bool,
) -> None:
    """Compare two or more models or conditions by the headline metrics.

    A SIDE is a <model>_summary.json; a folder with the summaries of one model or of the seeds of
    one condition; a pattern of either in quotes, such as 'results/models/yolo_gu_kall_s*'; or
    RESULTS:CONDITION, such as 'results:yolo global_uniform k=all'. Sides can come from other sweeps
    and other groups, if benchmark and scoring code are the same. Arguments with the same NAME= are
    one side.

    Differences are paired by species, and by seed if the models were trained on the same images.
    A verdict needs three seeds of each side.
    """
    from benchmark_eval.report.comparison import render
    from benchmark_eval.report.draw_one import draw_to, plot_format
    from benchmark_eval.sweep.compare import compare_sides
    from benchmark_eval.sweep.custom_metrics import load_custom_metrics
    from benchmark_eval.sweep.sides import read_sides

    if as_json and kind is not None:
        raise UsageError(f"found --json and --format {kind}; expected one of them")
    if plot is not None:
        plot_format(plot)
    custom = None if custom_metrics is None else load_custom_metrics(custom_metrics)
    read = read_sides(sides, custom)
    result = compare_sides(read)
    if plot is not None:
        from benchmark_eval.report.plots.compared import differences

        inputs = [run.path for side in read for run in side.runs]
        inputs += [custom_metrics] if custom_metrics is not None else []
        draw_to(plot, lambda: differences(result), inputs=inputs, force=force)
    say_text(render(result, "json" if as_json else kind or "text"))
