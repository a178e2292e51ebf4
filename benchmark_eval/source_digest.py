"""One digest for the code of each part of this package: an edit changes those parts that use it.

Results name the digest of the code they came from, and the workflow makes them again when it
changed. Which files belong to a part is found by following imports in the sources, nothing is
imported or run.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

import benchmark_eval

PACKAGE = "benchmark_eval"
PARTS = {
    "index": "benchmark_eval.index",
    "scoring": "benchmark_eval.evaluation",
    "sweep": "benchmark_eval.sweep",
    "report": "benchmark_eval.report",
}
"""The parts of the package whose edits outdate different results, and where each starts."""

_DATA_SUFFIXES = (".json", ".mplstyle", ".html", ".css", ".svg")
_DATA_NAME = re.compile(r"([\w-][\w.-]*\.(?:json|mplstyle|html|css|svg))[\"']")
_NAMES = r"\((?:[^()#\n]|#[^\n]*|\n)*\)|[^\n]*"
_IMPORT = re.compile(
    rf"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+({_NAMES})|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)


def package_dir() -> Path:
    """The folder of the package that this process imported."""
    assert benchmark_eval.__file__ is not None
    return Path(benchmark_eval.__file__).resolve().parent


@functools.cache
def code_digest(part: str) -> str:
    """SHA-256 over the sources that a part of the package (a key of ``PARTS``) can import.

    Names and bytes of every module in its import closure within this package, and of the data
    files that those modules name; not of other parts, so that an edit to a plot leaves all
    scores valid.
    """
    root = package_dir()
    digest = hashlib.sha256()
    for name in import_closure(root, PARTS[part]):
        data = (root / name).read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def import_closure(root: Path, start: str) -> list[str]:
    """Files of the package at ``root`` that importing and running module ``start`` may load.

    Paths relative to ``root``, sorted. Imports inside functions count; so does a data file whose
    name stands as text in one of the modules.
    """
    data_files = {
        path.name: path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix in _DATA_SUFFIXES
    }
    files: set[str] = set()
    queue = [start]
    seen: set[str] = set()
    while queue:
        module = queue.pop()
        if module in seen:
            continue
        seen.add(module)
        path = _source_of(root, module)
        if path is None:
            if module == start:
                raise FileNotFoundError(f"{root} has no module {start}")
            continue
        files.add(path.relative_to(root).as_posix())
        source = _text(path)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        queue += [module.rpartition(".")[0] or PACKAGE, *_imported(source, package)]
        if any(name in source for name in data_files):
            named = _DATA_NAME.findall(source)
            files.update(data_files[name] for name in named if name in data_files)
    return sorted(files)


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _imported(source: str, package: str) -> list[str]:
    """Names of this package's modules that a source may import, and of things in them.

    Read off the text: parsing all sources would cost each job some 50 ms.
    """
    imported: list[str] = []
    for base, names, modules in _IMPORT.findall(source):
        plain = re.sub(r"#[^\n]*|[()]", "", names or modules)
        first = [part.split()[0] for part in plain.split(",") if part.strip()]
        home = _absolute(base, package)
        found = first if modules else [home, *(f"{home}.{name}" for name in first)]
        imported += [name for name in found if name.split(".")[0] == PACKAGE]
    return imported


def _source_of(root: Path, module: str) -> Path | None:
    """The file of a module of the package, None if there is no such module."""
    inside = module.split(".")[1:]
    place = root.joinpath(*inside)
    for candidate in (place / "__init__.py", place.with_suffix(".py")):
        if (inside or candidate.name == "__init__.py") and candidate.is_file():
            return candidate
    return None


def _absolute(name: str, package: str) -> str:
    """The absolute name of the module that a ``from`` statement names in ``package``."""
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    parts = package.split(".")
    return ".".join(part for part in (*parts[: len(parts) - level + 1], name[level:]) if part)
