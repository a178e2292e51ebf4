"""The option ``--force`` of all commands that write files."""

from __future__ import annotations

import click

force_option = click.option(
    "--force",
    is_flag=True,
    help="Replace existing files that benchmark-eval did not write, or that were edited since. "
    "Never replaces an input.",
)
