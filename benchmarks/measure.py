"""Measure commands as whole processes: wall time, CPU time and peak memory of the tree."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
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
    """Environment with one thread and with cached bytecode, as in an installed package."""
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**own, **ONE_THREAD, **(more or {})}


@dataclass(frozen=True)
class Cost:
    """Wall time (s), CPU time (s) and peak memory (bytes) of one run of a command."""

    wall: float
    cpu: float
    memory: int


_LAUNCH = """
import os, sys, time
report, *command = sys.argv[1:]
start = time.perf_counter()
child = os.posix_spawnp(command[0], command, os.environ)
_, status, usage = os.wait4(child, 0)
wall, code = time.perf_counter() - start, os.waitstatus_to_exitcode(status)
figures = wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, code
os.write(int(report), " ".join(map(repr, figures)).encode())
"""
"""Starts the command from a small process: the kernel counts the memory of the parent process as
part of the child's peak, and the benchmark itself can be large."""


def run(
    command: Sequence[str], *, pin: int | None = None, env: Mapping[str, str] | None = None
) -> Cost:
    """Run a command, optionally pinned to one core; raises if it fails.

    Memory is the larger of the largest single process (as counted by the kernel) and the sampled
    sum over the process tree.
    """
    tree = _TreeMemory()
    report, write = os.pipe()
    with tempfile.TemporaryFile() as errors, os.fdopen(report) as figures:
        pinned = [] if pin is None else ["taskset", "--cpu-list", str(pin)]
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(write)]
        process = subprocess.Popen(
            [*launch, *pinned, *command],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment(env),
            pass_fds=[write],
        )
        os.close(write)
        tree.watch(process.pid)
        process.wait()
        tree.stop()
        wall, cpu, largest, code = (figures.read() or "0 0 0 -1").split()
        if code != "0":
            errors.seek(0)
            sys.stderr.buffer.write(errors.read())
            raise SystemExit(f"{' '.join(command)} failed with exit code {code}")
    return Cost(float(wall), float(cpu), max(int(largest) * 1024, tree.peak))


class _TreeMemory:
    """Samples the resident memory of all descendants of a process."""

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
                tree = psutil.Process(pid).children(recursive=True)
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
    """Median of each quantity."""
    return Cost(
        statistics.median(c.wall for c in costs),
        statistics.median(c.cpu for c in costs),
        int(statistics.median(c.memory for c in costs)),
    )
