"""Hints for missing files and folders: what exists nearby under a similar name or path.

Only names are compared, in the folder itself and one level below and above it.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmark_eval.core.listing import is_hidden
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import dead_link
from benchmark_eval.core.text import some_of
from benchmark_eval.core.user_paths import not_expanded
from benchmark_eval.protocol import ANNOTATIONS, KNOWN_SPLITS, TAXONOMY, file_names

MAX_NAMES = 2_000
"""Maximum number of names in a folder that are compared."""
HINTED = 60
"""Maximum number of missing files per run with a hint; the others usually have the same cause."""
_NAMED = 5
_NEAR = 3
Known = dict[Path, str]
"""The hint for each folder that does not exist."""
_WORDS = {
    split: [
        word
        for word in split.split("_")
        if sum(word in other.split("_") for other in KNOWN_SPLITS) == 1
    ]
    for split in KNOWN_SPLITS
}
"""The words in each split's name that no other split has."""


def predictions_hint(
    folder: str | Path, split: str, others: Collection[str] = (), known: Known | None = None
) -> tuple[str, str]:
    """What was found instead of a split's prediction file in ``folder``, and the likely cause.

    ``others`` are the folders of other models, which are never suggested; ``known`` caches the
    hints for missing folders.
    """
    folder = Path(folder)
    plain, packed = file_names(split)
    link = dead_link(folder / plain) or dead_link(folder / packed)
    if link:
        return link, ""
    if not folder.is_dir():
        if folder.exists():
            return f"{_path(folder)}, which is not a folder", ""
        known = {} if known is None else known
        if folder not in known:
            known[folder] = folder_hint(folder, others)
        return f"no folder {_path(folder)}", known[folder]
    found = f"no such file, and no {packed}"
    names = _names(folder)
    near = [name for name in names if _matches(name, split) and (folder / name).is_file()]
    if near:
        near.sort(key=lambda name: -difflib.SequenceMatcher(None, name, plain).ratio())
        return (
            found,
            f"the folder contains {_listing(near, _NEAR)}: the same file under another name?",
        )
    subfolders = [folder / name for name in names if (folder / name).is_dir()]
    for where, places in (("below", subfolders), ("above", [folder.absolute().parent])):
        files = [at / name for at in places for name in (plain, packed) if (at / name).is_file()]
        if files:
            return found, f"the file is one level {where}: {_path(files[0])}"
    return found, f"the folder contains {_listing(names, _NAMED)}"


def with_hints(problems: Iterable[Problem], others: Iterable[Path] = ()) -> list[Problem]:
    """The same problems, the first ``HINTED`` missing prediction files with a hint.

    ``others`` are the folders of all models of the manifest, which are never suggested for the
    folder of another model.
    """
    hinted: list[Problem] = []
    taken = {os.path.abspath(folder) for folder in others}  # noqa: PTH100  (thousands)
    known: Known = {}
    left = HINTED
    for problem in problems:
        if problem.kind == "missing-predictions" and left:
            left -= 1
            path = Path(problem.file)
            found, cause = predictions_hint(
                path.parent, path.name.removesuffix("_predictions.json"), taken, known
            )
            hinted.append(replace(problem, found=found, cause=cause))
        else:
            hinted.append(problem)
    return hinted


def benchmark_hint(folder: str | Path) -> str:
    """The likely cause if a folder is not a benchmark; empty for a link to nothing."""
    folder = Path(folder)
    if not folder.is_dir():
        return folder_hint(folder, fits=_is_benchmark)
    names = _names(folder)
    inside = [folder / name for name in names if _is_benchmark(folder / name)]
    if inside:
        return f"the benchmark is one level below: {_path(inside[0])}"
    above = folder.absolute()
    for higher in islice(above.parents, len(ANNOTATIONS.parts)):
        if _is_benchmark(higher):
            return f"this is a folder inside the benchmark {_path(higher)}"
    return f"the folder contains {_listing(names, _NAMED)}"


def _is_benchmark(folder: Path) -> bool:
    return (folder / ANNOTATIONS).is_dir() or (
        (folder / TAXONOMY).is_file() and (folder / ANNOTATIONS.parts[0]).is_dir()
    )


def folder_hint(
    folder: Path, others: Collection[str] = (), fits: Callable[[Path], bool] = Path.is_dir
) -> str:
    """The hint for a folder that does not exist; empty if it is a file or a link to nothing.

    Only folders that are not in ``others`` and satisfy ``fits`` are suggested.
    """
    if folder.exists() or dead_link(folder) or not_expanded(folder):
        return "" if folder.exists() else not_expanded(folder)
    parent = folder.parent
    near = _near_path(folder, others)
    if near and fits(near):
        return f"did you mean {_path(near)}?"
    if not parent.is_dir():
        upper = next((home for home in parent.parents if home.is_dir()), None)
        missing = parent if upper is None else upper / parent.relative_to(upper).parts[0]
        near = _near_name(missing)
        likely = near is not None and fits(near)
        return (
            f"did you mean {_path(near or '')}?"
            if likely
            else f"{_path(missing)} does not exist either"
        )
    names = _names(parent)
    for name in names:
        if fits(parent / name / folder.name):
            return f"a folder of that name is one level below, in {_path(parent / name)}"
    higher = parent.absolute().parent / folder.name
    if fits(higher):
        return f"a folder of that name is one level above: {_path(higher)}"
    return f"the folder {_path(parent)} contains {_listing(names, _NAMED)}"


def file_hint(path: Path) -> str:
    """The hint for a file that does not exist; empty if it is a folder or a link to nothing."""
    if path.exists() or dead_link(path) or not_expanded(path):
        return "" if path.exists() else not_expanded(path)
    home = path.parent if path.parent.is_dir() else _near_path(path.parent)
    if home is not None:
        names = {name.lower(): name for name in _names(home) if (home / name).is_file()}
        near = difflib.get_close_matches(path.name.lower(), names, n=1, cutoff=0.75)
        if near:
            return f"did you mean {_path(home / names[near[0]])}?"
    if not path.parent.is_dir():
        return f"no folder {_path(path.parent)}: {folder_hint(path.parent)}"
    return f"the folder {_path(path.parent)} contains {_listing(_names(path.parent), _NAMED)}"


def _near_path(path: Path, others: Collection[str] = ()) -> Path | None:
    """A folder with a name similar to ``path``, in the same folder or one with a similar name."""
    home: Path | None = path.parent
    if home == path:
        return None
    if home is not None and not home.is_dir():
        home = _near_path(home)
    if home is None:
        return None
    moved = home / path.name
    return moved if moved.is_dir() else _near_name(moved, others)


def _near_name(path: Path, others: Collection[str] = ()) -> Path | None:
    """A folder beside ``path`` with a similar name that is not in ``others``."""
    home = os.path.abspath(path.parent)  # noqa: PTH100  (as those of ``others``)
    names = {
        name.lower(): name
        for name in _names(path.parent)
        if os.path.join(home, name) not in others and (path.parent / name).is_dir()  # noqa: PTH118
    }
    near = difflib.get_close_matches(path.name.lower(), names, n=1, cutoff=0.75)
    return path.with_name(names[near[0]]) if near else None


def _matches(name: str, split: str) -> bool:
    """Whether a file's name refers to the split and to no other."""
    if any(name in file_names(other) for other in KNOWN_SPLITS):
        return False
    text = name.lower()
    named = [other for other, words in _WORDS.items() if any(word in text for word in words)]
    if named:
        return named == [split]
    expected, _ = file_names(split)
    return bool(difflib.get_close_matches(text, [expected], cutoff=0.85))


def _names(folder: Path) -> list[str]:
    """The names in a folder, sorted, without hidden ones."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = (entry.name for entry in entries if not is_hidden(entry.name))
        return sorted(islice(names, MAX_NAMES))
    return []


def _listing(names: Sequence[str], most: int) -> str:
    if not names:
        return "nothing"
    return some_of([_path(name) for name in names], most)


def _path(path: str | Path) -> str:
    """A path for messages; escaped if it has unprintable characters."""
    text = str(path)
    return text if text.isprintable() else repr(text)
