"""Fingerprints: small files with the digests of what a job reads, its options and its code.

Snakemake compares modification times, which a copy, a ``touch`` or ``rsync -a`` make wrong, and it
never sees an edit of an imported library. So every job of the workflow has a fingerprint as an
input: a file with the digests of what the job reads, the options that matter and the code that
runs. A fingerprint is rewritten only when one of these changed; then its job is out of date for
Snakemake by any of its own rules.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.code_digest import PACKAGE, package_dir
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import open_input

CACHE_VERSION = 1
_LOGGED_FROM_BYTES = 500_000_000
_LOGGED_EVERY_SECONDS = 5.0
_CHUNK = 1 << 20
# A file whose inode changed this recently may change again within one tick of the file system's
# clock, under the same size and times: its digest is not kept for the next load.
_SETTLED_NS = 2_000_000_000

FileStat = tuple[int, int, int, int]
"""size, mtime_ns, ctime_ns, inode: equal as long as nobody wrote to the file."""


class DigestCache:
    """SHA-256 of files, read again only when size, mtime, ctime or inode of a file changed.

    ctime is what finds an edit of equal size under a restored mtime. ``path`` is the JSON file
    that keeps the digests between runs; one that is lost or broken only costs time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.kept: dict[str, tuple[FileStat, str]] = {}
        self.changed = False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(self.path.read_bytes())
            if content["version"] == CACHE_VERSION:
                self.kept = {
                    name: ((int(a), int(b), int(c), int(d)), str(digest))
                    for name, (a, b, c, d, digest) in content["files"].items()
                }

    def digests(
        self, paths: Iterable[str], log: Callable[[str], None] | None = None
    ) -> dict[str, str]:
        """The SHA-256 (hex) of each file, in the order given.

        ``log`` gets a line of progress every few seconds when there is much to read. Raises
        InputError naming every file that cannot be read.
        """
        found: dict[str, str] = {}
        changed: dict[str, FileStat] = {}
        problems: list[Problem] = []
        names = list(dict.fromkeys(paths))
        for name in names:
            try:
                now = _file_stat(os.stat(name))  # noqa: PTH116  (thousands of files each load)
            except OSError as error:
                problems.append(_unreadable(name, error))
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
                    problems.append(_unreadable(name, error))
                    continue
                settled = time.time_ns() - after[2] > _SETTLED_NS
                if after == changed[name] and settled:
                    self.kept[name] = (after, found[name])
                    self.changed = True
        if problems:
            raise InputError(sorted(problems, key=lambda problem: problem.file))
        return {name: found[name] for name in names}

    def save(self) -> None:
        """Keep the digests for the next run, if there are new ones; forget files that are gone."""
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
    """Logs how far the hashing of many bytes is; silent when there is little to do."""

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


def _unreadable(name: str, error: OSError) -> Problem:
    return Problem("unreadable", name, error.strerror or type(error).__name__, "a readable file")


def text_digest(text: str) -> str:
    """SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def require_same_package() -> None:
    """``UsageError`` unless a job's own Python imports the package that this process has imported.

    A digest of the code means nothing when the jobs run another copy of it. Jobs are commands that
    call Python as it is called here (``python -P``).
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
            "install it there: pip install -e . in the folder of the workflow"
        )
    there = Path(done.stdout.strip()).resolve().parent
    if there != here:
        raise UsageError(
            f"two copies of {PACKAGE}: the workflow has loaded {here}, its jobs would import "
            f"{there}. Install the one that you mean (pip install -e . in its folder) and remove "
            "the other (pip uninstall benchmark-eval, or unset PYTHONPATH)"
        )


def fingerprint_text(content: Mapping[str, Any]) -> str:
    """A fingerprint's content as text: equal for equal content."""
    return json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n"


def write_fingerprint(path: str | Path, text: str, result: str | Path | None = None) -> bool:
    """Write a fingerprint if its text changed; True if it was written.

    ``result`` is a file that is made from what the fingerprint describes. Where it is not older
    than the changed fingerprint (a clock that ran ahead, a file system that counts whole seconds)
    its modification time is set back, because Snakemake will compare the two.
    """
    with contextlib.suppress(OSError), open(path, "rb") as stream:  # noqa: PTH123  (many, each load)
        if stream.read() == text.encode():
            return False
    write_text_atomic(path, text, sync=False)
    if result is not None:
        with contextlib.suppress(FileNotFoundError):
            written = os.stat(path).st_mtime_ns  # noqa: PTH116
            status = os.stat(result)  # noqa: PTH116
            if status.st_mtime_ns >= written:
                os.utime(result, ns=(status.st_atime_ns, written - 1_000_000_000))
    return True
