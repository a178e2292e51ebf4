"""The memory that is left to this process, and how it holds on to what it has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's names (malloc.h) of when freed memory goes back to the system, and when an allocation
comes from the system by itself."""
_LARGEST_MMAP = 32 * 2**20
"""The most bytes that every version of glibc takes for the latter."""


def keep_freed_memory() -> None:
    """Keep what is freed for the next allocation, for a process that soon ends anyway.

    The C library of Linux gives every freed array of some size back to the system, which hands
    out the next one page by page, each filled with zeros. Where there is no such library, or it
    refuses, nothing is changed.
    """
    # the second without the first would freeze a threshold that else grows with what is freed
    if _tell_c_library("mallopt", _M_MMAP_THRESHOLD, _LARGEST_MMAP):
        _tell_c_library("mallopt", _M_TRIM_THRESHOLD, 2**31 - 1)


def give_back_freed_memory() -> None:
    """Give what ``keep_freed_memory`` holds back to the system, before memory is asked for."""
    _tell_c_library("malloc_trim", 0)


def _tell_c_library(function: str, *values: int) -> int:
    """What a function of this process's C library answers; 0 where there is no such function."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        return int(getattr(ctypes.CDLL(None), function)(*values))
    return 0


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
                with contextlib.suppress(OSError, ValueError, KeyError):
                    most = int((group / limit).read_text())  # "max" is no limit
                    taken = int((group / used).read_text()) - _file_cache(group)
                    yield max(most - taken, 0)


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
