"""What lies near a prediction file or a benchmark that is not where it was looked for.

Only names are looked at, in the folder itself and one folder deeper and higher.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmark_eval.benchmark import ANNOTATIONS, KNOWN_SPLITS
from benchmark_eval.errors import Problem
from benchmark_eval.taxonomy import TAXONOMY

MOST_NAMES = 2_000
"""Names of a folder that are looked at."""
HINTED = 60
"""Missing files of one run that are looked for elsewhere; the others are most likely alike."""
_NAMED = 5
_NEAR = 3
_WORDS = {
    split: [
        word
        for word in split.split("_")
        if sum(word in other.split("_") for other in KNOWN_SPLITS) == 1
    ]
    for split in KNOWN_SPLITS
}
"""The words of each split's name that no other split has."""


def file_names(split: str) -> tuple[str, str]:
    """The two names that a split's prediction file can have."""
    return f"{split}_predictions.json", f"{split}_predictions.json.gz"


def absence(folder: str | Path, split: str) -> tuple[str, str]:
    """What to say where a split's prediction file is not in ``folder``: found, likely cause."""
    folder = Path(folder)
    plain, packed = file_names(split)
    if not folder.is_dir():
        if folder.exists():
            return f"{_path(folder)} is no folder", ""
        return f"no folder {_path(folder)}", folder_absence(folder)
    found = f"no such file, nor {packed}"
    names = _names(folder)
    near = [name for name in names if _serves(name, split) and (folder / name).is_file()]
    if near:
        near.sort(key=lambda name: -difflib.SequenceMatcher(None, name, plain).ratio())
        return found, f"the folder holds {_listing(near, _NEAR)}: the same under another name?"
    homes = [folder / name for name in names if (folder / name).is_dir()]
    for where, places in (("deeper", homes), ("higher", [folder.absolute().parent])):
        there = [at / name for at in places for name in (plain, packed) if (at / name).is_file()]
        if there:
            return found, f"it lies one folder {where}: {_path(there[0])}"
    return found, f"the folder holds {_listing(names, _NAMED)}"


def with_hints(problems: Iterable[Problem]) -> list[Problem]:
    """The same problems, the first ``HINTED`` missing prediction files with what is near them."""
    hinted: list[Problem] = []
    left = HINTED
    for problem in problems:
        if problem.kind == "missing-predictions" and left:
            left -= 1
            path = Path(problem.file)
            found, cause = absence(path.parent, path.name.removesuffix("_predictions.json"))
            hinted.append(replace(problem, found=found, cause=cause))
        else:
            hinted.append(problem)
    return hinted


def benchmark_absence(folder: str | Path) -> str:
    """What is there instead of a benchmark: the likely cause, in words."""
    folder = Path(folder)
    if not folder.is_dir():
        return folder_absence(folder)
    names = _names(folder)
    inside = [folder / name for name in names if _is_benchmark(folder / name)]
    if inside:
        return f"the benchmark lies one folder deeper: {_path(inside[0])}"
    above = folder.absolute()
    for higher in islice(above.parents, len(ANNOTATIONS.parts)):
        if _is_benchmark(higher):
            return f"this is a folder of the benchmark, which is {_path(higher)}"
    return f"the folder holds {_listing(names, _NAMED)}"


def _is_benchmark(folder: Path) -> bool:
    return (folder / ANNOTATIONS).is_dir() or (
        (folder / TAXONOMY).is_file() and (folder / ANNOTATIONS.parts[0]).is_dir()
    )


def folder_absence(folder: Path) -> str:
    """What is near a folder that does not exist; nothing where it is a file."""
    if folder.exists():
        return ""
    parent = folder.parent
    if not parent.is_dir():
        upper = next((home for home in parent.parents if home.is_dir()), None)
        missing = parent if upper is None else upper / parent.relative_to(upper).parts[0]
        near = _near_name(missing)
        return f"did you mean {_path(near)}?" if near else f"there is no {_path(missing)} either"
    near = _near_name(folder)
    if near:
        return f"did you mean {_path(near)}?"
    names = _names(parent)
    for name in names:
        if (parent / name / folder.name).is_dir():
            return f"a folder of that name lies one folder deeper: {_path(parent / name)}"
    higher = parent.absolute().parent / folder.name
    if higher.is_dir():
        return f"a folder of that name lies one folder higher: {_path(higher)}"
    return f"the folder {_path(parent)} holds {_listing(names, _NAMED)}"


def _near_name(path: Path) -> Path | None:
    """A folder beside ``path`` with nearly its name."""
    names = {name.lower(): name for name in _names(path.parent) if (path.parent / name).is_dir()}
    near = difflib.get_close_matches(path.name.lower(), names, n=1, cutoff=0.75)
    return path.with_name(names[near[0]]) if near else None


def _serves(name: str, split: str) -> bool:
    """Whether a file's name speaks of the split, and of no other."""
    if any(name in file_names(other) for other in KNOWN_SPLITS):
        return False
    text = name.lower()
    spoken = [other for other, words in _WORDS.items() if any(word in text for word in words)]
    if spoken:
        return spoken == [split]
    wanted, _ = file_names(split)
    return bool(difflib.get_close_matches(text, [wanted], cutoff=0.85))


def _names(folder: Path) -> list[str]:
    """What the folder holds, in order of names."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, MOST_NAMES))
    return []


def _listing(names: Sequence[str], most: int) -> str:
    if not names:
        return "nothing"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(_path(name) for name in names[:most]) + more


def _path(path: str | Path) -> str:
    """A name as it is, or spelled out where it holds what no terminal should get."""
    text = str(path)
    return text if text.isprintable() else repr(text)
