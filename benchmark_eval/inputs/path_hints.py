"""What lies near a prediction file or a benchmark that is not where it was looked for.

Only names are looked at, in the folder itself and one folder deeper and higher.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import some_of
from benchmark_eval.protocol import ANNOTATIONS, KNOWN_SPLITS, TAXONOMY, file_names

MOST_NAMES = 2_000
"""Names of a folder that are looked at."""
HINTED = 60
"""Missing files of one run that are looked for elsewhere; the others are most likely alike."""
_NAMED = 5
_NEAR = 3
Known = dict[Path, str]
"""What is near folders that do not exist."""
_WORDS = {
    split: [
        word
        for word in split.split("_")
        if sum(word in other.split("_") for other in KNOWN_SPLITS) == 1
    ]
    for split in KNOWN_SPLITS
}
"""The words of each split's name that no other split has."""


def absence(
    folder: str | Path, split: str, others: Collection[str] = (), known: Known | None = None
) -> tuple[str, str]:
    """What to say where a split's prediction file is not in ``folder``: found, likely cause.

    ``others`` are folders of other models, which are nobody's misspelling; ``known`` keeps the
    causes of folders that were looked for before.
    """
    folder = Path(folder)
    plain, packed = file_names(split)
    if not folder.is_dir():
        if folder.exists():
            return f"{_path(folder)} is no folder", ""
        known = {} if known is None else known
        if folder not in known:
            known[folder] = folder_absence(folder, others)
        return f"no folder {_path(folder)}", known[folder]
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


def with_hints(problems: Iterable[Problem], others: Iterable[Path] = ()) -> list[Problem]:
    """The same problems, the first ``HINTED`` missing prediction files with what is near them.

    ``others`` are the folders of all models of the manifest: each holds the predictions of its own
    row, so that none is named as what another one may mean.
    """
    hinted: list[Problem] = []
    taken = {os.path.abspath(folder) for folder in others}  # noqa: PTH100  (thousands)
    known: Known = {}
    left = HINTED
    for problem in problems:
        if problem.kind == "missing-predictions" and left:
            left -= 1
            path = Path(problem.file)
            found, cause = absence(
                path.parent, path.name.removesuffix("_predictions.json"), taken, known
            )
            hinted.append(replace(problem, found=found, cause=cause))
        else:
            hinted.append(problem)
    return hinted


def benchmark_absence(folder: str | Path) -> str:
    """What is there instead of a benchmark: the likely cause, in words."""
    folder = Path(folder)
    if not folder.is_dir():
        return folder_absence(folder, fits=_is_benchmark)
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


def folder_absence(
    folder: Path, others: Collection[str] = (), fits: Callable[[Path], bool] = Path.is_dir
) -> str:
    """What is near a folder that does not exist, but for ``others``; nothing where it is a file.

    No folder is named as what may be meant that does not fit.
    """
    if folder.exists():
        return ""
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
            else f"there is no {_path(missing)} either"
        )
    names = _names(parent)
    for name in names:
        if fits(parent / name / folder.name):
            return f"a folder of that name lies one folder deeper: {_path(parent / name)}"
    higher = parent.absolute().parent / folder.name
    if fits(higher):
        return f"a folder of that name lies one folder higher: {_path(higher)}"
    return f"the folder {_path(parent)} holds {_listing(names, _NAMED)}"


def file_absence(path: Path) -> str:
    """What is near a file that does not exist; nothing where it is a folder."""
    if path.exists():
        return ""
    home = path.parent if path.parent.is_dir() else _near_path(path.parent)
    if home is not None:
        names = {name.lower(): name for name in _names(home) if (home / name).is_file()}
        near = difflib.get_close_matches(path.name.lower(), names, n=1, cutoff=0.75)
        if near:
            return f"did you mean {_path(home / names[near[0]])}?"
    if not path.parent.is_dir():
        return f"there is no folder {_path(path.parent)}: {folder_absence(path.parent)}"
    return f"the folder {_path(path.parent)} holds {_listing(_names(path.parent), _NAMED)}"


def _near_path(path: Path, others: Collection[str] = ()) -> Path | None:
    """A folder with nearly the name of ``path``, in its folder or in one with nearly that name."""
    home: Path | None = path.parent
    if home == path:
        return None
    if home is not None and not home.is_dir():
        home = _near_path(home)
    if home is None:
        return None
    there = home / path.name
    return there if there.is_dir() else _near_name(there, others)


def _near_name(path: Path, others: Collection[str] = ()) -> Path | None:
    """A folder beside ``path`` with nearly its name, but for ``others``."""
    home = os.path.abspath(path.parent)  # noqa: PTH100  (as those of ``others``)
    names = {
        name.lower(): name
        for name in _names(path.parent)
        if os.path.join(home, name) not in others and (path.parent / name).is_dir()  # noqa: PTH118
    }
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
    return some_of([_path(name) for name in names], most)


def _path(path: str | Path) -> str:
    """A name as it is, or spelled out where it holds what no terminal should get."""
    text = str(path)
    return text if text.isprintable() else repr(text)
