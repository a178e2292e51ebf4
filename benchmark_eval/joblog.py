"""How a job of the workflow is run: its log, its faults and the record of what it was made from."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.metadata
import logging
import platform
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmark_eval import __version__
from benchmark_eval.errors import BenchmarkEvalError, InputError
from benchmark_eval.files import write_bytes_atomic
from benchmark_eval.recovery import fingerprints, note_faulty

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
    told on standard error and ends the process with code 1; any other one leaves its traceback in
    the log and goes on. ``stamp`` as it was when the job began is kept under ``record`` once the
    job is done. ``made`` are inputs that other jobs have made: those that a fault names are noted
    beside the record, so that they are made again. The log is locked meanwhile: where a killed run
    has left this very job running, the new one waits for its end, so that the old one cannot write
    last.
    """
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    made_from = Path(stamp).read_bytes() if stamp is not None else None
    before = fingerprints(made)
    with log.open("a", encoding="utf-8") as stream:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        handler = logging.StreamHandler(stream)
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
            *map(importlib.metadata.version, ("numpy", "msgspec")),
            platform.platform(),
        )
        try:
            with contextlib.redirect_stdout(stream):
                yield
            if record is not None and made_from is not None:
                write_bytes_atomic(record, made_from)
        except BenchmarkEvalError as fault:
            print(f"error: {fault}", file=stream)
            print(f"error: {fault}", file=sys.stderr)
            if isinstance(fault, InputError) and before:
                assert record is not None
                assert stamp is not None
                assert made_from is not None
                note_faulty(record, stamp, made_from, before, fault)
            sys.exit(1)
        except OSError as fault:
            if fault.errno in _OF_THE_DISK:
                print(f"error: {fault}", file=stream)
            else:
                traceback.print_exc(file=stream)
            print(f"error: {fault}", file=sys.stderr)
            sys.exit(1)
        except BaseException:
            traceback.print_exc(file=stream)
            raise
        finally:
            logging.captureWarnings(capture=False)
            logger.removeHandler(handler)
