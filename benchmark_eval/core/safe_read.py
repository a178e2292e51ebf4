"""Opening input files: only regular files, and only if their content fits in memory.

A pipe may block forever, a device may never end, and a file larger than memory gets the process
killed without a message. The ``OSError`` for a rejected file states the reason.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from benchmark_eval.core.memory import available_memory, give_back_freed_memory
from benchmark_eval.core.problems import Problem, Problems

_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a named pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def open_input(path: str | Path) -> BufferedReader:
    """Open a regular file (or a link to one) for reading; raises ``OSError`` for anything else."""
    mode = os.stat(path).st_mode  # noqa: PTH116
    for is_kind, number, name in _KINDS:
        if is_kind(mode):
            raise OSError(number, f"{name}, not a regular file")
    return Path(path).open("rb")


def read_input(path: str | Path, *, memory_per_byte: float = 2.0) -> bytes:
    """All bytes of a regular file; raises ``OSError`` if its content does not fit in memory."""
    with open_input(path) as stream:
        check_size(os.fstat(stream.fileno()).st_size, memory_per_byte)
        return stream.read()


def unreadable(
    file: str | Path, error: Exception, expected: str = "a readable file", *, record: str = ""
) -> Problem:
    """The problem of a file that cannot be opened or read; ``file`` is its name in messages."""
    found = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Problem("unreadable", str(file), found, expected, record)


def read_or_report(
    path: str | Path,
    problems: Problems,
    expected: str = "a readable file",
    *,
    file: str | None = None,
    record: str = "",
    memory_per_byte: float = 2.0,
) -> bytes | None:
    """All bytes of a regular file; ``None`` and a new problem if it cannot be read.

    ``file`` is its name in messages, by default its path.
    """
    try:
        return read_input(path, memory_per_byte=memory_per_byte)
    except OSError as error:
        problems.extend([unreadable(file or path, error, expected, record=record)])
        return None


def check_size(size: int, memory_per_byte: float) -> None:
    """Raise ``OSError`` if the content of ``size`` bytes of text does not fit in memory."""
    free = available_memory()
    if free is not None and size * memory_per_byte > free:
        give_back_freed_memory()
        free = available_memory()
    if free is not None and size * memory_per_byte > free:
        raise OSError(
            errno.EFBIG,
            f"{_gigabytes(size)} of text, which takes about {_gigabytes(size * memory_per_byte)} "
            f"of memory; {_gigabytes(free)} is free",
        )


MAX_ALIASES = 20
"""Maximum number of aliases (``*name``) in a YAML text. Nested aliases expand exponentially: 20
give at most 1,500 values, a hundred give more than fit in memory."""


def parse_yaml(text: str) -> object:
    """Decode YAML with plain values only; raises ``ValueError`` for any other text."""
    import yaml

    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        if sum(isinstance(event, yaml.AliasEvent) for event in events) > MAX_ALIASES:
            raise ValueError(f"more than {MAX_ALIASES} aliases (*name)")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.2f} GB"
