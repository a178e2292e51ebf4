"""The command line: each command is a module of ``benchmark_eval.cli``, imported when called.

An evaluation job therefore does not import pandas or matplotlib.
"""

from __future__ import annotations

import importlib
import io
import logging
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from benchmark_eval import __version__
from benchmark_eval.core.errors import EXIT_COULD_NOT_RUN, BenchmarkEvalError, exit_code, unwritable
from benchmark_eval.core.interrupts import EXIT_INTERRUPTED, raise_as_usual
from benchmark_eval.core.terminal import (
    STANDARD_OUTPUT,
    VisibleFormatter,
    flush_standard_streams,
    open_standard_streams,
    say,
    say_text,
)
from benchmark_eval.core.text import visible
from benchmark_eval.core.user_paths import expand_argument

# command -> help line, so that `benchmark-eval --help` need not import the commands
COMMANDS = {
    "check": "Find every problem in benchmark, manifest, config and predictions.",
    "evaluate": "Score one model on the splits of the benchmark.",
    "aggregate": "Aggregate the summaries of a sweep into tables and a report.",
    "compare": "Compare models or conditions, also of other sweeps.",
    "plot": "Draw the plots of a sweep from its tables.",
    "report": "Write the report of a sweep from its tables.",
    "page": "Write one page with all results of a sweep, to open in a browser.",
    "gallery": "Show the most telling errors of a model on crops of the images.",
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
        raise_as_usual()  # from here on, commands clean up what they have begun
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(map(expand_argument, args)))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="benchmark-eval")
def cli() -> None:
    """Evaluate detectors on the Bark and Ambrosia Beetle Detection Benchmark."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line. Known errors are printed without traceback and set the exit code."""
    open_standard_streams()
    if logging.lastResort is not None:  # prints warnings if no log file is given
        logging.lastResort.setFormatter(VisibleFormatter("warning: %(message)s"))
    streams = sys.stdout, sys.stderr
    try:
        _run(argv)
    except SystemExit:
        _finish_output(streams)
        raise
    _finish_output(streams)


def _finish_output(streams: tuple[TextIO, TextIO]) -> None:
    """Report output that could not be written, such as on a full disk or to a closed pipe."""
    # click replaces the streams if a pipe is closed, and exits with 1, which means "problems found"
    lost = (sys.stdout, sys.stderr) != streams
    sys.stdout, sys.stderr = streams
    error = flush_standard_streams()
    if error is not None and not isinstance(error, BrokenPipeError):
        say(f"error: {STANDARD_OUTPUT}: {error.strerror or error}", err=True)
    if lost or error is not None:
        sys.exit(EXIT_COULD_NOT_RUN)


def _run(argv: Sequence[str] | None) -> None:
    try:
        cli.main(args=argv, prog_name="benchmark-eval", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        _say_usage(error)
        sys.exit(EXIT_COULD_NOT_RUN)
    except click.Abort:
        say("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BenchmarkEvalError as error:
        say_text(f"error: {error}", err=True)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        sys.exit(EXIT_COULD_NOT_RUN)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"error: {place}{error.strerror or error}", err=True)
        sys.exit(EXIT_COULD_NOT_RUN)
    except UnicodeEncodeError as error:
        say(f"error: {unwritable(error)}", err=True)
        sys.exit(EXIT_COULD_NOT_RUN)
    except MemoryError:
        say("error: not enough memory", err=True)
        sys.exit(EXIT_COULD_NOT_RUN)


def _say_usage(error: click.ClickException) -> None:
    """Print an error of the arguments as click does."""
    shown = io.StringIO()
    error.show(file=shown)
    text = shown.getvalue().expandtabs()
    if not isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help
        text = text.replace(error.message, visible(error.message))
    say_text(text, err=True)
