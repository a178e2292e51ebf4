"""The command line: one verb a module in ``benchmark_eval.cli``, imported when it is called.

Importing only the verb that runs keeps an evaluation job from paying for pandas and matplotlib.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from benchmark_eval import __version__
from benchmark_eval.core.errors import EXIT_COULD_NOT_RUN, BenchmarkEvalError, exit_code, unwritable

# verb -> one line of help (what `benchmark-eval --help` shows without importing the verb)
VERBS = {
    "check": "Find every problem of benchmark, manifest, config and all predictions.",
    "evaluate": "Score one model on the benchmark's splits.",
    "aggregate": "Turn the summaries of a sweep into curves, grids and budgets.",
    "plot": "Draw the plots of a sweep from its tables.",
    "report": "Write the report of a sweep from its tables.",
    "init": "Make a folder ready for a sweep: config, manifest, next steps.",
    "verify": "Say which results do not agree with each other or with their inputs.",
    "subsets": "Draw the training subsets of the three regimes from train.json.",
    "convert": "Convert boxes between formats, and into prediction files.",
    "synth": "Make a synthetic benchmark and simulated predictions.",
    "map": "Mean average precision of plain text files of boxes (PASCAL VOC 2012).",
    "catalogue": "List every metric with its meaning.",
}


class _Verbs(click.Group):
    """A group that lists every verb and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"benchmark_eval.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="benchmark-eval")
def cli() -> None:
    """Evaluation of detectors on the Bark and Ambrosia Beetle Detection Benchmark."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; a known error is printed without a traceback and ends in its code."""
    try:
        cli.main(args=argv, prog_name="benchmark-eval", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as fault:
        fault.show()
        sys.exit(EXIT_COULD_NOT_RUN)
    except click.Abort:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BenchmarkEvalError as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(exit_code(fault))
    except BrokenPipeError:
        # whoever read our output has seen enough; nothing more can be told, not even at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_COULD_NOT_RUN)
    except OSError as fault:
        place = f"{fault.filename}: " if fault.filename else ""
        print(f"error: {place}{fault.strerror or fault}", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
    except UnicodeEncodeError as fault:
        print(f"error: {unwritable(fault)}", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
    except MemoryError:
        print("error: there is not enough memory", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
