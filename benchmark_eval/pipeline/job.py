"""How a job of the workflow is run: its log, its faults and the record of what it was made from."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import platform
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np

from benchmark_eval import __version__
from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.errors import EXIT_COULD_NOT_RUN, BenchmarkEvalError, InputError, exit_code
from benchmark_eval.pipeline.recovery import fingerprints, forget_faulty, note_faulty

_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
"""Faults of the file system that are told in full by their message."""


@contextlib.contextmanager
def job(
    log: str | Path,
    *,
    stamp: str | Path | None = None,
    record: str | Path | None = None,
    made: Iterable[str] = (),
) -> Iterator[None]:
    """Send log, standard output, warnings and faults of a job to its log file.

    A fault that this package raises on purpose, or one of the file system (a full disk), is also
    told on standard error and ends the process with the code that the command line has for it; any
    other one leaves its traceback in the log and goes on. ``stamp`` as it was when the job began is
    kept under ``record`` once the job is done. ``made`` are inputs that other jobs have made: those
    that a fault names are noted beside the record, so that they are made again. The log is locked
    meanwhile: where a killed run has left this very job running, the new one waits for its end, so
    that the old one cannot write last.
    """
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    made_from = Path(stamp).read_bytes() if stamp is not None else None
    before = fingerprints(made)
    with _opened(log) as stream:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        handler = _Handler(stream)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
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
            if record is not None and made_from is not None:
                write_bytes_atomic(record, made_from)
                forget_faulty(record)
        except BenchmarkEvalError as fault:
            _note(stream, f"error: {fault}")
            print(f"error: {fault}", file=sys.stderr)
            if isinstance(fault, InputError) and before:
                assert record is not None
                assert stamp is not None
                assert made_from is not None
                note_faulty(record, stamp, made_from, before, fault)
            sys.exit(exit_code(fault))
        except OSError as fault:
            told = fault.errno in _OF_THE_DISK
            _note(stream, f"error: {fault}" if told else traceback.format_exc())
            print(f"error: {fault}", file=sys.stderr)
            sys.exit(EXIT_COULD_NOT_RUN)
        except BaseException:
            _note(stream, traceback.format_exc())
            raise
        finally:
            logging.captureWarnings(capture=False)
            logger.removeHandler(handler)


class _Handler(logging.StreamHandler[TextIO]):
    """Says once, in a line, that the log cannot be written (a full disk)."""

    told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        fault = sys.exc_info()[1]
        if not isinstance(fault, OSError):
            super().handleError(record)
        elif not self.told:
            self.told = True
            print(f"error: {self.stream.name}: {fault.strerror}", file=sys.stderr)


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[TextIO]:
    """The log; that its last lines find no room on the disk is no fault of the job."""
    stream = log.open("a", encoding="utf-8", errors="backslashreplace")
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def _note(stream: TextIO, text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=stream, flush=True)
