"""The command line: each command is a module of ``benchmark_eval.cli``, imported when called.

An evaluation job therefore does not import pandas or matplotlib.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from benchmark_eval import __version__
from benchmark_eval.core.errors import EXIT_COULD_NOT_RUN, BenchmarkEvalError, exit_code, unwritable

# command -> help line, so that `benchmark-eval --help` need not import the commands
COMMANDS = {
    "check": "Find every problem in benchmark, manifest, config and predictions.",
    "evaluate": "Score one model on the splits of the benchmark.",
    "aggregate": "Aggregate the summaries of a sweep into tables and a report.",
    "plot": "Draw the plots of a sweep from its tables.",
    "report": "Write the report of a sweep from its tables.",
    "run": "Run the workflow of this package with Snakemake.",
    "init": "Set up a folder for a sweep: config, manifest, next steps.",
    "verify": "Check results against each other and against their inputs.",
    "subsets": "Draw the training subsets of the three regimes from train.json.",
    "convert": "Convert annotations and detections between formats.",
    "synth": "Generate a synthetic benchmark and simulated predictions.",
    "map": "Compute PASCAL VOC 2012 mAP from text files.",
    "catalogue": "List all metrics and their definitions.",
}


class _LazyCommands(click.Group):
    """A group that lists all commands and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"benchmark_eval.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="benchmark-eval")
def cli() -> None:
    """Evaluate detectors on the Bark and Ambrosia Beetle Detection Benchmark."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line. Known errors are printed without traceback and set the exit code."""
    try:
        cli.main(args=argv, prog_name="benchmark-eval", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_COULD_NOT_RUN)
    except click.Abort:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BenchmarkEvalError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # the reader closed the pipe; Python must not try to flush standard output at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_COULD_NOT_RUN)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
    except UnicodeEncodeError as error:
        print(f"error: {unwritable(error)}", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
    except MemoryError:
        print("error: not enough memory", file=sys.stderr)
        sys.exit(EXIT_COULD_NOT_RUN)
