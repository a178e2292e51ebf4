"""Runs a job of the workflow: log file, error messages and exit code."""

from __future__ import annotations

import contextlib
import errno
import logging
import platform
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np

from benchmark_eval import __version__
from benchmark_eval.core.errors import EXIT_COULD_NOT_RUN, BenchmarkEvalError, exit_code
from benchmark_eval.core.locks import wait_for_lock
from benchmark_eval.core.terminal import VisibleFormatter, say, say_text
from benchmark_eval.core.text import visible

_EXPLAINED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
"""File system errors with a self-explanatory message; others get a traceback in the log."""


@contextlib.contextmanager
def job(log: str | Path) -> Iterator[None]:
    """Redirect log messages, standard output, warnings and errors of a job to its log file.

    Errors of this package and of the file system (such as a full disk) are also printed on standard
    error, with their notes, and end the process with the exit code of the command line. For any
    other error, the traceback is written to the log and the error is raised again. The log is
    locked while the job runs: if a killed run left the same job running, the new job waits until it
    has finished, so that the old one cannot overwrite its results.
    """
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with _opened(log) as stream:
        wait_for_lock(stream)
        stream.truncate(0)
        handler = _Handler(stream)
        handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger = logging.getLogger()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logging.captureWarnings(capture=True)
        warnings.simplefilter("default")
        logger.info(
            "benchmark-eval %s, Python %s, numpy %s, msgspec %s, %s",
            __version__,
            platform.python_version(),
            np.__version__,
            msgspec.__version__,
            platform.platform(),
        )
        try:
            with contextlib.redirect_stdout(stream):
                yield
        except BenchmarkEvalError as error:
            message = "\n".join(["error: " + str(error), *getattr(error, "__notes__", [])])
            _write(stream, message)
            say_text(message, err=True)
            sys.exit(exit_code(error))
        except OSError as error:
            message = visible(f"error: {error}")
            _write(stream, message if error.errno in _EXPLAINED else traceback.format_exc())
            say(message, err=True)
            sys.exit(EXIT_COULD_NOT_RUN)
        except BaseException:
            _write(stream, traceback.format_exc())
            raise
        finally:
            logging.captureWarnings(capture=False)
            logger.removeHandler(handler)


class _Handler(logging.StreamHandler[TextIO]):
    """Reports only once, in one line, that the log cannot be written (such as on a full disk)."""

    reported = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self.reported:
            self.reported = True
            say(f"error: {self.stream.name}: {error.strerror}", err=True)


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[TextIO]:
    """Open the log; the job does not fail if a full disk truncates the last lines."""
    stream = log.open("a", encoding="utf-8", errors="backslashreplace")
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def _write(stream: TextIO, text: str) -> None:
    with contextlib.suppress(OSError):
        stream.writelines(f"{visible(line)}\n" for line in text.split("\n"))
        stream.flush()
