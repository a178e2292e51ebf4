"""Options that take several values, as argparse's ``nargs="+"`` does: ``-i book chair``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import click


class SeveralValues(click.Option):
    """An option whose values reach to the next option; it may also be repeated.

    Belongs into a ``CommandWithSeveralValues``. A value that begins with a dash is written
    ``--name=-value``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class CommandWithSeveralValues(click.Command):
    """A command that understands ``SeveralValues``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spell every value out before click, which wants one value an option, parses them."""
        several = {
            name
            for parameter in self.params
            if isinstance(parameter, SeveralValues)
            for name in parameter.opts
        }
        return super().parse_args(ctx, repeated(args, several))


def repeated(args: Sequence[str], several: Collection[str]) -> list[str]:
    """``-i a b`` as ``-i a -i b`` for the options in ``several``; all else as it is.

    Raises click.BadOptionUsage for one of them without a value.
    """
    spelled: list[str] = []
    args = list(args)
    while args and args[0] != "--":
        arg = args.pop(0)
        if arg not in several:
            spelled.append(arg)
            continue
        n_values = 0
        while args and not args[0].startswith("-"):
            spelled += [arg, args.pop(0)]
            n_values += 1
        if not n_values:
            raise click.BadOptionUsage(arg, f"Option '{arg}' requires at least one value.")
    return spelled + args
