"""Options that choose conditions, seeds and architectures of a sweep."""

from __future__ import annotations

import click

from benchmark_eval.protocol import REGIMES

condition_option = click.option(
    "--condition",
    "conditions",
    type=(click.Choice(REGIMES), str),
    multiple=True,
    metavar="REGIME K_OR_P",
    help="One condition instead of the benchmark's 17; may be repeated.",
)
seed_option = click.option(
    "--seed", "seeds", type=int, multiple=True, help="Instead of 0, 1, 2; may be repeated."
)
architecture_option = click.option(
    "--architecture",
    "architectures",
    multiple=True,
    help="A row of the new manifest for each architecture; may be repeated.",
)
