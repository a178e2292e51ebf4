"""``benchmark-eval catalogue``: every metric, as a Markdown page."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Print every metric with its meaning (docs/metrics.md is this output)."""
    from benchmark_eval.results.metric_page import render_page

    click.echo(render_page(), nl=False)
