"""Opening input files: only regular files, and only if their content fits in memory.

A pipe may block forever, a device may never end, and a file larger than memory gets the process
killed without a message. The ``OSError`` for a rejected file states the reason. Every module that
reads a file does it with these functions; a test finds the others.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

from benchmark_eval.core.first_bytes import SNIFFED, encoding_cause, foreign
from benchmark_eval.core.memory import available_memory, give_back_freed_memory
from benchmark_eval.core.problems import Problem, Problems

_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a named pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)
UNCHECKED_BYTES = 1_000_000
"""Size up to which the free memory is not checked, which is slow for thousands of small files."""


class ForeignContentError(OSError):
    """The file is something else, such as a Git LFS pointer; ``cause`` is the likely cause."""

    def __init__(self, found: str, cause: str) -> None:
        super().__init__(errno.EINVAL, found)
        self.cause = cause


def open_input(path: str | Path) -> BufferedReader:
    """Open a regular file (or a link to one) for reading; raises ``OSError`` for anything else."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except ValueError:
        raise OSError(errno.EINVAL, "a name with a NUL character") from None
    for is_kind, number, name in _KINDS:
        if is_kind(mode):
            raise OSError(number, f"{name}, not a regular file")
    return Path(path).open("rb")


def read_input(path: str | Path, *, memory_per_byte: float = 2.0, text: bool = True) -> bytes:
    """All bytes of a regular file.

    Raises ``OSError`` if the content does not fit in memory or, for ``text``, is obviously that of
    another file (``first_bytes.foreign``).
    """
    with open_input(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > UNCHECKED_BYTES:
            check_size(size, memory_per_byte)
        data = stream.read()
    if text:
        require_own_content(data[:SNIFFED])
    return data


def file_sha256(path: str | Path) -> str:
    """SHA-256 (hex) of a regular file of any size; raises ``OSError`` if it cannot be read."""
    with open_input(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_own_content(start: bytes) -> None:
    """Raise ``ForeignContentError`` if a file that starts like this is of another kind."""
    found = foreign(start)
    if found is not None:
        raise ForeignContentError(*found)


def decoded(data: bytes, problems: Problems, expected: str = "text in UTF-8") -> str | None:
    """The text of a UTF-8 file without its byte order mark; None and a problem if it is not UTF-8.

    The problem is added for the file of ``problems``.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # the codec counts from the end of a byte order mark
        at = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, at) + 1
        problems.add(
            "not-utf8",
            f"the byte {data[at]:#04x}, which is not UTF-8",
            expected,
            record=f"line {line}",
            cause=encoding_cause(data),
        )
        return None


def absent(path: str | Path, otherwise: str = "no such file") -> str:
    """What was found in place of a file or folder that does not exist.

    A link that leads nowhere is named, ``path`` itself or a folder above it.
    """
    return dead_link(path) or otherwise


def dead_link(path: str | Path) -> str:
    """``a link to <target>, which does not exist``; empty if ``path`` has no such link.

    A link that points to itself, directly or through others, is named as such.
    """
    path = Path(path)
    for part in (path, *path.parents):
        if not os.path.islink(part):  # noqa: PTH114  (false for a name with NUL)
            continue
        try:
            os.stat(part)  # noqa: PTH116
            return ""  # whatever is missing, it is not due to this link
        except FileNotFoundError:
            lost = "which does not exist"
        except OSError as error:
            if error.errno != errno.ELOOP:
                return ""
            lost = "which leads back to the link itself"
        where = "" if part == path else f"{part}, "
        return f"{where}a link to {os.readlink(part)}, {lost}"  # noqa: PTH115
    return ""


def unreadable(
    file: str | Path, error: Exception, expected: str = "a readable file", *, record: str = ""
) -> Problem:
    """The problem of a file that cannot be opened or read; ``file`` is its name in messages."""
    found = getattr(error, "strerror", None) or str(error) or type(error).__name__
    lost = isinstance(error, FileNotFoundError) or getattr(error, "errno", None) == errno.ELOOP
    if lost and getattr(error, "filename", None) is not None:
        found = absent(os.fsdecode(getattr(error, "filename", "")), found)
    cause = getattr(error, "cause", "")
    return Problem("unreadable", str(file), found, expected, record, cause=cause)


def read_or_report(
    path: str | Path,
    problems: Problems,
    expected: str = "a readable file",
    *,
    file: str | None = None,
    record: str = "",
    memory_per_byte: float = 2.0,
    text: bool = True,
) -> bytes | None:
    """All bytes of a regular file; ``None`` and a new problem if it cannot be read.

    ``file`` is its name in messages, by default its path. ``text`` is as for ``read_input``.
    """
    try:
        return read_input(path, memory_per_byte=memory_per_byte, text=text)
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


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.2f} GB"
