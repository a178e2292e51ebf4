"""Measuring commands as whole processes: wall time, CPU time and peak memory of the tree."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """One thread, and modules compiled once and for all, as an installed package has them."""
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**own, **ONE_THREAD, **(more or {})}


@dataclass(frozen=True)
class Cost:
    """What one run of a command cost: seconds, seconds, bytes."""

    wall: float
    cpu: float
    memory: int


def run(
    command: Sequence[str], *, pin: int | None = None, env: Mapping[str, str] | None = None
) -> Cost:
    """Run a command to its end, on one pinned core where asked; raises if it fails.

    Memory is the larger of the largest single process (the kernel's own account) and the
    sampled sum over the process tree.
    """
    tree = _TreeMemory()
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        pinned = [] if pin is None else ["taskset", "--cpu-list", str(pin)]
        process = subprocess.Popen(
            [*pinned, *command],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment(env),
        )
        tree.watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        tree.stop()
        if process.returncode:
            errors.seek(0)
            sys.stderr.buffer.write(errors.read())
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss * 1024, tree.peak))


class _TreeMemory:
    """Samples the resident memory of a process and its children."""

    def __init__(self, every: float = 0.05) -> None:
        self.peak = 0
        self._every = every
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int) -> None:
        self._thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _sample(self, pid: int) -> None:
        while not self._done.wait(self._every):
            try:
                root = psutil.Process(pid)
                tree = [root, *root.children(recursive=True)]
            except psutil.Error:
                return
            total = 0
            for process in tree:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(
        statistics.median(c.wall for c in costs),
        statistics.median(c.cpu for c in costs),
        int(statistics.median(c.memory for c in costs)),
    )
