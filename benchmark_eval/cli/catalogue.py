"""``benchmark-eval catalogue``: the list of all metrics as a Markdown page."""

from __future__ import annotations

import click

from benchmark_eval.core.terminal import say_text


@click.command()
def command() -> None:
    """Print all metrics and their definitions as a Markdown page (docs/metrics.md)."""
    from benchmark_eval.results.metric_page import render_page

    say_text(render_page())
