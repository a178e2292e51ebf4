"""Ctrl-C while modules are imported.

``KeyboardInterrupt`` inside an import prints a traceback, or is swallowed by a library. Until a
command starts its work there is nothing to clean up, so the process can just end.
"""

from __future__ import annotations

import contextlib
import os
import signal

EXIT_INTERRUPTED = 130


def _exit(_number: int, _frame: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def exit_at_once() -> None:
    """From now on, Ctrl-C ends the process, unless it is ignored (``nohup``) or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_as_usual() -> None:
    """From now on, Ctrl-C raises ``KeyboardInterrupt``, so that files are cleaned up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
