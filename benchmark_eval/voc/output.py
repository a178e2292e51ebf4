"""Output folder of a run: replace all files of the previous run together.

Files are written into a hidden folder inside the output folder and moved into place at the end,
``results.json`` last: if it exists, all files are complete. The next run removes only files
listed in ``LEDGER``.
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
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.core.text import some_of

RESULTS = "results.json"
LEDGER = ".benchmark-eval-map"
"""Name of the list of files written by runs, one per line, in the output folder."""
STAGE = ".benchmark-eval-map-"
"""Name prefix of the hidden folders in which a run writes."""

_OURS = re.compile(
    r"results\.(json|txt|csv)|precision_recall\.csv|animation\.gif"
    r"|(plots|plots/precision_recall|images)/[^/\0]+"
)


class OutputFolder:
    """A folder that receives all files of one run, or none.

        with OutputFolder(path, inputs=[...]) as folder:
            (folder.stage / "results.json").write_bytes(...)
            folder.publish()

    Without ``publish``, earlier results are kept. Raises UsageError if ``path`` is an input folder
    or not writable.
    """

    def __init__(self, path: str | Path, inputs: Sequence[str | Path] = ()) -> None:
        self.path = Path(path)
        for folder in inputs:
            if self.path.resolve() == Path(folder).resolve():
                raise UsageError(
                    f"{path}: found an input folder; expected a different folder for results"
                )
        self._is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for leftover in self.path.glob(STAGE + "*"):
                shutil.rmtree(leftover)
            self.stage = Path(tempfile.mkdtemp(dir=self.path, prefix=STAGE))
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UsageError:
        reason = error.strerror or type(error).__name__
        return UsageError(f"{self.path}: found {reason}; expected a writable folder")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.stage, ignore_errors=True)
        if self._is_new and error is not None:
            with contextlib.suppress(OSError):  # not empty
                self.path.rmdir()
        if isinstance(error, OSError):
            raise self._unwritable(error) from error

    def ours(self) -> set[str]:
        """Relative names of the files written by earlier runs."""
        try:
            lines = read_input(self.path / LEDGER).decode("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return set()
        # an edited ledger must not cause the removal of other files
        return {line for line in lines if _OURS.fullmatch(line) and ".." not in line.split("/")}

    def check_free(self, names: Sequence[str]) -> None:
        """Raise UsageError if one of ``names`` exists and was not written by an earlier run."""
        taken = [
            name
            for name in sorted(set(names) - self.ours())
            if (self.path / name).exists() or self._blocked(name)
        ]
        if taken:
            raise UsageError(
                f"{self.path}: found files not written by an earlier run ({some_of(taken, 5)}); "
                "expected a new folder or a folder with earlier results"
            )

    def publish(self) -> None:
        """Replace all earlier results with the staged files."""
        new = sorted(_files_below(self.stage))
        self.check_free(new)
        old = self.ours()
        # if killed from here on, there is no results.json, and the ledger lists every file
        self._write_ledger(old.union(new))
        self._remove((old - set(new)) | (old & {RESULTS}))
        for name in sorted(new, key=lambda name: (name == RESULTS, name)):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.stage / name).replace(target)
        self._write_ledger(set(new))

    def clear(self) -> None:
        """Remove all earlier results, and no other files."""
        self._remove(self.ours())
        (self.path / LEDGER).unlink(missing_ok=True)

    def _remove(self, names: set[str]) -> None:
        for name in sorted(names, key=lambda name: (name != RESULTS, name)):
            (self.path / name).unlink(missing_ok=True)
        for folder in ("plots/precision_recall", "plots", "images"):
            with contextlib.suppress(OSError):  # missing or not empty
                (self.path / folder).rmdir()

    def _blocked(self, name: str) -> bool:
        """Whether a parent folder of ``name`` exists as a file."""
        parents = [self.path / parent for parent in Path(name).parents]
        return any(parent.exists() and not parent.is_dir() for parent in parents)

    def _write_ledger(self, names: set[str]) -> None:
        write_text_atomic(self.path / LEDGER, "".join(f"{name}\n" for name in sorted(names)))


def _files_below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix()
