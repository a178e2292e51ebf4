"""Options that take several values, like argparse's ``nargs="+"``: ``-i book chair``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import click


class SeveralValues(click.Option):
    """An option that takes all values up to the next option; it may also be repeated.

    Requires ``CommandWithSeveralValues``. A value that begins with a dash is written
    ``--name=-value``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class CommandWithSeveralValues(click.Command):
    """A command that supports ``SeveralValues``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each value, as click expects, then parse."""
        several = {
            name
            for parameter in self.params
            if isinstance(parameter, SeveralValues)
            for name in parameter.opts
        }
        return super().parse_args(ctx, repeated(args, several))


def repeated(args: Sequence[str], several: Collection[str]) -> list[str]:
    """Rewrite ``-i a b`` as ``-i a -i b`` for the options in ``several``.

    Raises click.BadOptionUsage for such an option without a value.
    """
    expanded: list[str] = []
    args = list(args)
    while args and args[0] != "--":
        arg = args.pop(0)
        if arg not in several:
            expanded.append(arg)
            continue
        n_values = 0
        while args and not args[0].startswith("-"):
            expanded += [arg, args.pop(0)]
            n_values += 1
        if not n_values:
            raise click.BadOptionUsage(arg, f"Option '{arg}' requires at least one value.")
    return expanded + args
