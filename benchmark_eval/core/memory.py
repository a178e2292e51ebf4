"""The memory available to this process, and what happens to the memory it frees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc parameters (malloc.h): the size from which freed memory is returned to the system, and the
size from which an allocation is mapped separately."""
_LARGEST_MMAP = 32 * 2**20
"""The largest M_MMAP_THRESHOLD in bytes that every version of glibc accepts."""


def keep_freed_memory() -> None:
    """Keep freed memory for the next allocation, in a short-lived process.

    By default glibc returns large freed arrays to the system, which then provides the next one
    page by page, each filled with zeros. Without glibc nothing changes.
    """
    # the second alone would fix a threshold that otherwise grows with the freed sizes
    if _call_c_library("mallopt", _M_MMAP_THRESHOLD, _LARGEST_MMAP):
        _call_c_library("mallopt", _M_TRIM_THRESHOLD, 2**31 - 1)


def give_back_freed_memory() -> None:
    """Return memory held by ``keep_freed_memory`` to the system, before a large allocation."""
    _call_c_library("malloc_trim", 0)


def _call_c_library(function: str, *values: int) -> int:
    """Call a function of this process's C library; 0 if it does not exist."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        return int(getattr(ctypes.CDLL(None), function)(*values))
    return 0


def available_memory() -> int | None:
    """Bytes of memory that this process can still allocate; None if unknown.

    The minimum of the machine's available memory, the limits of the control groups of a batch
    system or container, and ``ulimit -v``.
    """
    limits = [*_machine(), *_control_groups(), *_address_space()]
    return min(limits) if limits else None


def _machine() -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _control_groups() -> Iterator[int]:
    """The memory left in each control group of the process, up to the root (versions 1 and 2)."""
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
    """Bytes of a control group that the system can reclaim at any time."""
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
