"""A digest of the code behind each kind of result: an edit makes only the affected results stale.

Results record the digest of the code that produced them; the workflow reruns their jobs when it
changes. The digest covers whole packages (``ROOMS``), so the path of a file shows whether an edit
to it causes every model to be scored again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = "benchmark_eval"
_SHARED = ("protocol.py", "core", "inputs")
ROOMS = {
    "index": _SHARED,
    "scoring": (*_SHARED, "results", "training/tiers.py", "scoring"),
    "sweep": (*_SHARED, "results", "training", "sweep"),
    # the report's fingerprint includes that of the sweep, and so all packages below it
    "report": ("report",),
}
"""Files and folders of the package whose edits make each kind of result stale."""
WITHOUT_EFFECT = (
    "core/errors.py",
    "core/problems.py",
    "core/locks.py",
    "core/memory.py",
    "core/outputs.py",
    "core/records.py",
    "core/code_digest.py",
    "results/frames.py",
    "sweep/compare.py",
    "sweep/frames.py",
    "sweep/sides.py",
)
"""Files of these packages that affect no result: wording of problems, handling of memory, which
files may be replaced, results as DataFrames, comparisons outside the tables of a sweep."""
BUNDLED = "bundled"
"""The folder of the package, in a wheel only, that contains the workflow."""
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
    return _digest(root, source_files(root, part))


def _digest(root: Path, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        data = (root / name).read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def package_digest(root: Path) -> str:
    """SHA-256 of all source and data files of the package in the folder ``root``.

    Equal for an editable installation and a wheel of the same code.
    """
    files = (path for path in root.rglob("*") if path.suffix in SUFFIXES)
    names = (path.relative_to(root) for path in files)
    return _digest(root, sorted(n.as_posix() for n in names if n.parts[0] != BUNDLED))


def source_files(root: Path, part: str) -> list[str]:
    """The files that ``code_digest`` reads, sorted, relative to the package folder ``root``."""
    found: list[str] = []
    for room in ROOMS[part]:
        place = root / room
        files = place.rglob("*") if place.is_dir() else [place]
        found += [path.relative_to(root).as_posix() for path in files if path.suffix in SUFFIXES]
    return sorted(name for name in found if name not in WITHOUT_EFFECT)
