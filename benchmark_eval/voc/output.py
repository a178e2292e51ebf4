"""The output folder of a run: all of its files appear together, and no older ones stay.

Everything is written into a hidden folder inside the output folder and moved into place at the
end, ``results.json`` last: where it is, the rest is whole. A list of the files that are ours
(``LEDGER``) lets the next run remove what it does not write again, and nothing else.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.errors import UsageError

RESULTS = "results.json"
LEDGER = ".benchmark-eval-map"
"""Name of the list of our files, one a line, in the output folder."""
STAGE = ".benchmark-eval-map-"
"""How the names of the hidden folders begin in which a run writes."""

_OURS = re.compile(
    r"results\.(json|txt|csv)|precision_recall\.csv|animation\.gif"
    r"|(plots|plots/precision_recall|images)/[^/\0]+"
)


class OutputFolder:
    """A folder that receives the files of one run, whole or not at all.

        with OutputFolder(path, inputs=[...]) as folder:
            (folder.stage / "results.json").write_bytes(...)
            folder.publish()

    Leaving the block without ``publish`` leaves the older results as they were. Raises
    UsageError if ``path`` is an input folder or cannot be written to.
    """

    def __init__(self, path: str | Path, inputs: Sequence[str | Path] = ()) -> None:
        self.path = Path(path)
        for folder in inputs:
            if self.path.resolve() == Path(folder).resolve():
                raise UsageError(f"{path}: found an input folder; expected another one for results")
        self._is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for left in self.path.glob(STAGE + "*"):
                shutil.rmtree(left)
            self.stage = Path(tempfile.mkdtemp(dir=self.path, prefix=STAGE))
        except OSError as fault:
            raise self._unwritable(fault) from fault

    def _unwritable(self, fault: OSError) -> UsageError:
        reason = fault.strerror or type(fault).__name__
        return UsageError(f"{self.path}: found {reason}; expected a folder that can be written to")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.stage, ignore_errors=True)
        if self._is_new and fault is not None:
            with contextlib.suppress(OSError):  # something is in it
                self.path.rmdir()
        if isinstance(fault, OSError):
            raise self._unwritable(fault) from fault

    def ours(self) -> set[str]:
        """Relative names of the files that earlier runs wrote here."""
        try:
            lines = (self.path / LEDGER).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return set()
        # the file may have been edited: it must not make us remove anything else
        return {line for line in lines if _OURS.fullmatch(line) and ".." not in line.split("/")}

    def check_free(self, names: Sequence[str]) -> None:
        """Raise UsageError if one of ``names`` stands in the folder and is not from a run."""
        taken = [
            name
            for name in sorted(set(names) - self.ours())
            if (self.path / name).exists() or self._blocked(name)
        ]
        if taken:
            raise UsageError(
                f"{self.path}: found files that no earlier run wrote ({', '.join(taken[:5])}"
                f"{', ...' if len(taken) > 5 else ''}); expected a new folder or one with results"
            )

    def publish(self) -> None:
        """Put the staged files in the place of all earlier results."""
        new = sorted(_files_below(self.stage))
        self.check_free(new)
        old = self.ours()
        # a kill from here on leaves no results.json, and a ledger that knows every file
        self._note(old.union(new))
        self._remove((old - set(new)) | (old & {RESULTS}))
        for name in sorted(new, key=lambda name: (name == RESULTS, name)):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.stage / name).replace(target)
        self._note(set(new))

    def clear(self) -> None:
        """Remove all earlier results and nothing else."""
        self._remove(self.ours())
        (self.path / LEDGER).unlink(missing_ok=True)

    def _remove(self, names: set[str]) -> None:
        for name in sorted(names, key=lambda name: (name != RESULTS, name)):
            (self.path / name).unlink(missing_ok=True)
        for folder in ("plots/precision_recall", "plots", "images"):
            with contextlib.suppress(OSError):  # not there, or not empty
                (self.path / folder).rmdir()

    def _blocked(self, name: str) -> bool:
        """Whether a file stands where a folder is needed for ``name``."""
        parents = [self.path / parent for parent in Path(name).parents]
        return any(parent.exists() and not parent.is_dir() for parent in parents)

    def _note(self, names: set[str]) -> None:
        write_text_atomic(self.path / LEDGER, "".join(f"{name}\n" for name in sorted(names)))


def _files_below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix()
