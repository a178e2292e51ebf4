"""Fingerprints: small files with the digests of a job's inputs, its options and its code.

Snakemake compares modification times, which are unreliable after a copy, ``touch`` or ``rsync -a``,
and it does not detect edits of an imported library. Every job of the workflow therefore has a
fingerprint. It contains the digests of the files that the job reads, the options that affect its
results, and the digest of the code. A job that succeeds keeps its fingerprint as a record, and runs
again when the two differ (``pipeline.outdated``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmark_eval import __version__
from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.code_digest import PACKAGE, package_digest, package_dir
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import open_input, read_input, unreadable

CACHE_VERSION = 1
_LOGGED_FROM_BYTES = 500_000_000
_LOGGED_EVERY_SECONDS = 5.0
_CHUNK = 1 << 20
# A file that changed this recently may change again within the same tick of the file system's
# clock, with the same size and times, so its digest is not cached.
_SETTLED_NS = 2_000_000_000

FileStat = tuple[int, int, int, int]
"""size, mtime_ns, ctime_ns, inode: unchanged as long as the file is not written."""


class DigestCache:
    """SHA-256 of files, recomputed only if the size, mtime, ctime or inode of a file changed.

    The ctime reveals an edit that keeps the size and restores the mtime. ``path`` is the JSON file
    that stores the digests between runs; if it is lost or damaged, digests are recomputed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.kept: dict[str, tuple[FileStat, str]] = {}
        self.changed = False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(read_input(self.path))
            if content["version"] == CACHE_VERSION:
                self.kept = {
                    name: ((int(a), int(b), int(c), int(d)), str(digest))
                    for name, (a, b, c, d, digest) in content["files"].items()
                }

    def digests(
        self, paths: Iterable[str], log: Callable[[str], None] | None = None
    ) -> dict[str, str]:
        """The SHA-256 (hex) of each file, in the order given.

        ``log`` is called with the progress every few seconds if there is much to read. Raises
        InputError with every file that cannot be read.
        """
        found: dict[str, str] = {}
        changed: dict[str, FileStat] = {}
        problems: list[Problem] = []
        names = list(dict.fromkeys(paths))
        for name in names:
            try:
                now = _file_stat(os.stat(name))  # noqa: PTH116  (thousands of files each load)
            except OSError as error:
                problems.append(unreadable(name, error))
                continue
            kept = self.kept.get(name)
            if kept is not None and kept[0] == now:
                found[name] = kept[1]
            else:
                changed[name] = now
        progress = _Progress(sum(size for size, *_ in changed.values()), log)
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            jobs = {pool.submit(_digest, name, progress): name for name in changed}
            for job in as_completed(jobs):
                name = jobs[job]
                try:
                    found[name], after = job.result()
                except OSError as error:
                    problems.append(unreadable(name, error))
                    continue
                settled = time.time_ns() - after[2] > _SETTLED_NS
                if after == changed[name] and settled:
                    self.kept[name] = (after, found[name])
                    self.changed = True
        if problems:
            raise InputError(sorted(problems, key=lambda problem: problem.file))
        return {name: found[name] for name in names}

    def save(self) -> None:
        """Store new digests for the next run; drop those of deleted files."""
        if self.changed:
            files = {
                name: [*kept[0], kept[1]]
                for name, kept in sorted(self.kept.items())
                if os.path.exists(name)  # noqa: PTH110
            }
            text = json.dumps({"version": CACHE_VERSION, "files": files}, indent=0)
            write_text_atomic(self.path, text + "\n", sync=False)
            self.changed = False


class _Progress:
    """Logs the progress of hashing; silent if there is little to hash."""

    def __init__(self, total: int, log: Callable[[str], None] | None) -> None:
        self.total = total
        self.done = 0
        self.log = log if total >= _LOGGED_FROM_BYTES else None
        self.logged = 0.0

    def add(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if self.log is not None and now - self.logged >= _LOGGED_EVERY_SECONDS:
            self.logged = now
            gigabytes = f"{self.done / 1e9:.1f} of {self.total / 1e9:.1f} GB"
            self.log(f"reading new or changed prediction files: {gigabytes}")


def _file_stat(status: os.stat_result) -> FileStat:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _digest(name: str, progress: _Progress) -> tuple[str, FileStat]:
    """SHA-256 of a file and its state after the last byte was read."""
    digest = hashlib.sha256()
    with open_input(name) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            progress.add(len(chunk))
        return digest.hexdigest(), _file_stat(os.fstat(stream.fileno()))


def text_digest(text: str) -> str:
    """SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def require_same_package() -> None:
    """Raise UsageError unless the Python of a job imports the same code as this process.

    The digest of the code is meaningless if jobs run other code. Another copy of the same code is
    accepted, such as a wheel beside a checkout. Jobs start Python in the same way as this function
    (``python -P``).
    """
    code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    here = package_dir()
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(
            f"{sys.executable} cannot import {PACKAGE} ({reason}); "
            f"install it there: {_install_command(here)}"
        )
    there = Path(done.stdout.strip()).resolve().parent
    if there != here and package_digest(there) != package_digest(here):
        raise UsageError(
            f"two copies of {PACKAGE} with different code: the workflow imported {here}, but its "
            f"jobs would import {there}. Unset PYTHONPATH, or install the one that the workflow "
            f"imported: {_install_command(here)}"
        )


def _install_command(package: Path) -> str:
    """The command that installs a copy of this package for the Python that runs jobs."""
    checkout = package.parent
    in_checkout = (checkout / "pyproject.toml").is_file()
    source = f"-e {shlex.quote(str(checkout))}" if in_checkout else f"benchmark-eval=={__version__}"
    return f"{shlex.quote(sys.executable)} -m pip install {source}"


def fingerprint_text(content: Mapping[str, Any]) -> str:
    """The content of a fingerprint as text, with sorted keys."""
    return json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n"


def write_fingerprint(path: str | Path, text: str) -> bool:
    """Write a fingerprint if its text changed; return whether it was written."""
    with contextlib.suppress(OSError), open_input(path) as stream:
        if stream.read() == text.encode():
            return False
    write_text_atomic(path, text, sync=False)
    return True
