"""Options that select the conditions, seeds and architectures of a sweep."""

from __future__ import annotations

import click

from benchmark_eval.protocol import REGIMES

condition_option = click.option(
    "--condition",
    "conditions",
    type=(click.Choice(REGIMES), str),
    multiple=True,
    metavar="REGIME K_OR_P",
    help="A training condition; may be repeated. Default: the 17 conditions of the benchmark.",
)
seed_option = click.option(
    "--seed", "seeds", type=int, multiple=True, help="A seed; may be repeated. Default: 0, 1, 2."
)
architecture_option = click.option(
    "--architecture",
    "architectures",
    multiple=True,
    help="An architecture of the new manifest; may be repeated.",
)
