"""Opening input files: only regular ones, and none that memory cannot hold.

A pipe would block for ever, a device never ends, and a file of more than memory gets the process
killed without a word. What is refused is an ``OSError`` whose text says why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a named pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def open_input(path: str | Path) -> BufferedReader:
    """A regular file (or a link to one) opened for reading; ``OSError`` for anything else."""
    mode = os.stat(path).st_mode  # noqa: PTH116
    for is_kind, number, name in _KINDS:
        if is_kind(mode):
            raise OSError(number, f"{name}, no regular file")
    return Path(path).open("rb")


def read_input(path: str | Path, *, memory_per_byte: float = 2.0) -> bytes:
    """All bytes of a regular file that ``memory_per_byte`` times its size leaves memory for."""
    with open_input(path) as stream:
        check_size(os.fstat(stream.fileno()).st_size, memory_per_byte)
        return stream.read()


def check_size(size: int, memory_per_byte: float) -> None:
    """Refuse (``OSError``) ``size`` bytes of text whose content memory cannot hold."""
    free = available_memory()
    if free is not None and size * memory_per_byte > free:
        raise OSError(
            errno.EFBIG,
            f"{_gigabytes(size)} of text, which takes about {_gigabytes(size * memory_per_byte)} "
            f"of memory; {_gigabytes(free)} are free",
        )


MOST_ALIASES = 20
"""Aliases (``*name``) that a YAML text may hold: no more than 1,500 copies come of so many, while a
hundred, nested, can stand for more values than memory holds."""


def parse_yaml(text: str) -> object:
    """What a YAML text holds, plain values only; ``ValueError`` for any text that is no such."""
    import yaml

    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        if sum(isinstance(event, yaml.AliasEvent) for event in events) > MOST_ALIASES:
            raise ValueError(f"more than {MOST_ALIASES} aliases (*name)")
        return yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ValueError(" ".join(str(fault).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.2f} GB"


def available_memory() -> int | None:
    """Bytes of memory that this process can still take; None where the system does not tell.

    The least of what the machine has free, what the control groups of a batch system or
    container leave, and what ``ulimit -v`` leaves.
    """
    found = [*_machine(), *_control_groups(), *_address_space()]
    return min(found) if found else None


def _machine() -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _control_groups() -> Iterator[int]:
    """What each group that the process is in, up to the root, leaves (version 2 and 1)."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers == "":
                root, limit, used = _CGROUP, "memory.max", "memory.current"
            elif "memory" in controllers.split(","):
                root = _CGROUP / "memory"
                limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
            else:
                continue
            folder = root / place.strip("/")
            for group in (folder, *folder.parents):
                if group == root.parent:
                    break
                with contextlib.suppress(OSError, ValueError, KeyError):  # "max" is no limit
                    taken = int((group / used).read_text()) - _file_cache(group)
                    yield max(int((group / limit).read_text()) - taken, 0)


def _file_cache(group: Path) -> int:
    """Bytes of a control group that the system gives back when they are wanted."""
    fields = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    total = "total_" if "total_inactive_file" in fields else ""
    return sum(int(fields[f"{total}{name}"]) for name in ("active_file", "inactive_file"))


def _address_space() -> Iterator[int]:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield max(soft - pages * resource.getpagesize(), 0)
