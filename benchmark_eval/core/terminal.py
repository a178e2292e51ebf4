"""Standard input and output: the only place where text leaves the program.

``print`` and ``click.echo`` are forbidden elsewhere (ruff: T201, TID251), so that no message can
forget to escape what names, keys and paths may contain.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Any, TextIO

from benchmark_eval.core.text import visible

STANDARD_OUTPUT = "standard output"


def say(*lines: str, err: bool = False) -> None:
    """Print lines on standard output, or on standard error with ``err``.

    Each is printed as exactly one line, with control characters escaped. Raises ``OSError`` (a full
    disk, a closed pipe) for standard output; standard error is lost silently, as nothing else is
    left to report it.
    """
    text = "".join(f"{visible(line)}\n" for line in lines)
    if err:
        with contextlib.suppress(OSError, ValueError):
            _write(sys.stderr, text)
        return
    try:
        _write(sys.stdout, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush; what the encoding of the stream lacks is escaped."""
    if stream is None:  # closed, in a program that imports this package
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def say_text(text: str, *, err: bool = False) -> None:
    """Print text of several lines whose names were escaped when it was made."""
    say(*text.removesuffix("\n").split("\n"), err=err)


class VisibleFormatter(logging.Formatter):
    """One line per log message, and one per line of a traceback, without control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        """The line of a message."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  (logging's name)
        """The lines of a traceback."""
        return "\n".join(map(visible, super().formatException(ei).split("\n")))


def open_standard_streams() -> None:
    """Open the null device in place of every standard stream that is closed (``command >&-``).

    Otherwise the first file that is opened would take its number, and receive what a library or
    a child process writes to standard output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def flush_standard_streams() -> OSError | None:
    """Flush standard output and standard error; returns the error of standard output, if any.

    A stream that cannot be flushed is replaced by the null device, because Python would try again
    at exit, print a traceback and change the exit code.
    """
    failed = None
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except OSError as error:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            failed = error if stream is sys.stdout else None
    return failed
