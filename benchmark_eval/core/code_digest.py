"""A digest of the code behind each kind of result: an edit makes only the affected results stale.

Results record the digest of the code that produced them; the workflow reruns their jobs when it
changes. The digest covers whole packages (``ROOMS``), so the path of a file shows whether an edit
to it causes every model to be scored again.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

PACKAGE = "benchmark_eval"
_SHARED = ("protocol.py", "core", "inputs")
ROOMS = {
    "index": _SHARED,
    "scoring": (*_SHARED, "results", "scoring"),
    "sweep": (*_SHARED, "results", "training", "sweep"),
    # the report's fingerprint includes that of the sweep, and so all packages below it
    "report": ("report",),
}
"""Files and folders of the package whose edits make each kind of result stale."""
WITHOUT_EFFECT = (
    "core/errors.py",
    "core/problems.py",
    "core/memory.py",
    "core/records.py",
    "core/code_digest.py",
    "results/frames.py",
    "sweep/frames.py",
)
"""Files of these packages that affect no result: wording of problems, handling of memory, results
as DataFrames."""
SUFFIXES = (".py", ".json", ".mplstyle", ".html", ".css", ".js", ".svg")
"""Suffixes of the files in the digest; files with other suffixes come from editors or Python."""


def package_dir() -> Path:
    """The folder of the package that this process imported."""
    return Path(__file__).resolve().parents[1]


@functools.cache
def code_digest(part: str) -> str:
    """SHA-256 of the names and bytes of all source and data files behind one kind of result.

    ``part`` is a key of ``ROOMS``.
    """
    root = package_dir()
    digest = hashlib.sha256()
    for name in source_files(root, part):
        data = (root / name).read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def source_files(root: Path, part: str) -> list[str]:
    """The files that ``code_digest`` reads, sorted, relative to the package folder ``root``."""
    found: list[str] = []
    for room in ROOMS[part]:
        place = root / room
        files = place.rglob("*") if place.is_dir() else [place]
        found += [path.relative_to(root).as_posix() for path in files if path.suffix in SUFFIXES]
    return sorted(name for name in found if name not in WITHOUT_EFFECT)
