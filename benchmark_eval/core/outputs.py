"""Output files: the one rule by which every command writes, replaces and removes files.

    with claim(folder, ["table.csv", "report.md"], inputs=[manifest], force=force) as out:
        out.write("table.csv", data)
        out.publish()

``claim`` refuses, before any work, outputs that are inputs and files that this program did not
write. The files in ``RECORD``, beside the outputs, are ours while their digest is the recorded
one. New files are written to a hidden folder inside the output folder; ``publish`` moves them into
place together. Without ``publish``, earlier files stay.

The hidden folder holds a locked list of the claimed names, so that a second process that wants to
write one of them stops, and so that the hidden folder of a killed process can be recognised and
removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.listing import listed, walked
from benchmark_eval.core.locks import lock, wait_for_lock
from benchmark_eval.core.safe_read import file_sha256, open_input, read_input
from benchmark_eval.core.text import some_of

RECORD = ".benchmark-eval.json"
"""Name of the record of the files that this program wrote into a folder."""
STAGE = ".benchmark-eval-"
"""Name prefix of the hidden folders in which files are prepared."""
VERSION = 1
_CLAIM, _FILES = "claim.json", "files"
_MAX_LISTED = 30

Digests = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Input files that a command finds by listing ``folder``: those that end in ``suffixes``.

    Hidden files are never read. Subfolders are searched only with ``below``.
    """

    folder: Path
    suffixes: tuple[str, ...] = ("",)
    below: bool = False

    def reads(self, name: str) -> bool:
        """Whether a file of this name in ``folder`` would be read."""
        return name[:1] != "." and name.lower().endswith(self.suffixes)


Input = str | Path | Listing


class _Claim(msgspec.Struct):
    host: str
    names: list[str]


class _Record(msgspec.Struct):
    version: int
    files: Digests


class Outputs:
    """The files that a command has claimed in a folder; made by ``claim``."""

    def __init__(
        self,
        folder: str | Path,
        names: Iterable[str],
        inputs: Iterable[Input],
        *,
        force: bool,
        declared: bool,
    ) -> None:
        self.folder = Path(folder)
        self._names = list(dict.fromkeys(names))
        self._force = force
        self._declared = declared
        self._inputs = _Inputs(inputs)
        self._made: list[Path] = []
        self._claim: IO[bytes] | None = None
        self._hidden: Path | None = None

    # ------------------------------------------------------------------ for commands

    @property
    def stage(self) -> Path:
        """The hidden folder to write to; its files move to ``folder`` when they are published."""
        assert self._hidden is not None
        return self._hidden / _FILES

    def path(self, name: str) -> Path:
        """Where to write the output ``name`` until it is published."""
        path = self.stage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, data: bytes) -> None:
        """Prepare the content of the output ``name``."""
        path = self.path(name)
        try:
            path.write_bytes(data)
        except OSError as error:
            error.filename = str(path)  # "no space left on device" names no file
            raise

    def publish(self, seal: str | None = None) -> None:
        """Move all prepared files into place; remove claimed files that were not prepared.

        All bytes are on disk before the first old file is touched. Then the old ``seal`` (one of
        the files) is removed first and the new one is put in place last: if it exists, all other
        files are complete, even after a kill in between. The record names old and new digests
        until the end, so that the next run recognises what a killed run left.

        Raises UsageError if a file that is not ours appeared since the claim.
        """
        new = {name: (self._synced(name),) for name in sorted(_files_below(self.stage))}
        with _locked(self.folder):
            recorded = self._recorded()
            names = self._all_names(recorded)
            self._refuse({*names, *new}, recorded)
            gone = [name for name in names if name not in new]
            both = {name: (*digests, *recorded.get(name, ())) for name, digests in new.items()}
            self._keep_record(recorded | both, complete=False)
            if seal is not None:
                self._remove(seal)
            for name in gone:
                self._remove(name)
            for name in sorted(new, key=lambda name: (name == seal, name)):
                self._make_parents(name)
                (self.stage / name).replace(self.folder / name)
            self._keep_record(recorded | new)
            self._made.clear()

    def clear(self) -> None:
        """Remove the claimed files of earlier runs, for example because they are stale.

        Files that are not ours stay, also with ``force``.
        """
        with _locked(self.folder):
            recorded = self._recorded()
            ours = [
                name
                for name in self._all_names(recorded)
                if not (self._inputs.problem(self.folder / name) or self._obstacle(name))
                and (self._declared or not self._foreign(name, recorded))
            ]
            for name in ours:
                self._remove(name)
            self._keep_record(recorded)

    def remove(self, name: str) -> None:
        """Remove a claimed file; a link itself, never its target."""
        with _locked(self.folder):
            self._remove(name)

    def adopt(self, name: str) -> None:
        """Record a claimed file that was written in place (a log)."""
        with _locked(self.folder), contextlib.suppress(FileNotFoundError):
            self._keep_record(self._recorded() | {name: (file_sha256(self.folder / name),)})

    # ------------------------------------------------------------------ begin and end

    def begin(self) -> None:
        """Claim the names and check them; raises UsageError with every problem."""
        try:
            if not self._declared:
                _require_record(self.folder)
            self._made = _make_folder(self.folder)
            with _locked(self.folder) as proven:
                # the path is absolute or relative, depending on the version of Python
                made = tempfile.mkdtemp(dir=self.folder, prefix=STAGE)
                self._hidden = self.folder / Path(made).name
                self._claim = (self._hidden / _CLAIM).open("wb")
                lock(self._claim)
                claimed = _Claim(socket.gethostname(), self._names)
                self._claim.write(msgspec.json.encode(claimed))
                self._claim.flush()
                self.stage.mkdir()
                taken = _claimed(self.folder, self._hidden, clean=proven).intersection(self._names)
                recorded = self._recorded()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UsageError(
                f"{self.folder}: found {reason}; expected a writable folder"
            ) from error
        if taken:
            raise UsageError(
                f"{self.folder}: another process is writing {some_of(sorted(taken), 3)} in this "
                "folder; nothing was written; wait until it has finished, or use another folder"
            )
        self._refuse(self._all_names(recorded), recorded)

    def end(self) -> None:
        """Remove the hidden folder, and new folders that stayed empty."""
        if self._hidden is not None:
            shutil.rmtree(self._hidden, ignore_errors=True)
        if self._claim is not None:
            with contextlib.suppress(OSError):  # a full disk
                self._claim.close()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()

    def published_name(self, file: object) -> str | None:
        """The place of a prepared file, for messages; None for any other file."""
        if (
            self._hidden is not None
            and isinstance(file, str)
            and Path(file).is_relative_to(self.stage)
        ):
            return str(self.folder / Path(file).relative_to(self.stage))
        return None

    # ------------------------------------------------------------------ the rule

    def _all_names(self, recorded: Mapping[str, object]) -> list[str]:
        """The claimed files, and those of earlier runs below claimed folders (``images/``)."""
        folders = tuple(name for name in self._names if name.endswith("/"))
        below = [name for name in sorted(recorded) if folders and name.startswith(folders)]
        return list(dict.fromkeys([n for n in self._names if not n.endswith("/")] + below))

    def _refuse(self, names: Iterable[str], recorded: Digests) -> None:
        """Raise UsageError if one of ``names`` must not be written or removed."""
        folders = [self.folder / name for name in self._names if name.endswith("/")]
        never = [
            f"{folder}: found {found}; expected a different output"
            for folder in folders
            if (found := self._inputs.problem(folder, folder=True))
        ]
        without_force: list[str] = []
        for name in sorted(names):
            path = self.folder / name
            if found := self._inputs.problem(path) or self._obstacle(name):
                never.append(f"{path}: found {found}; expected a different output")
            elif not self._declared and (found := self._foreign(name, recorded)):
                without_force.append(f"{path}: found {found}; expected no file")
        lines = never + ([] if self._force else without_force)
        if not lines:
            return
        remedy = "use another output folder"
        if without_force and not self._force:
            remedy += " (--force replaces existing files, but never inputs or folders)"
        more = [f"... and {len(lines) - _MAX_LISTED:,} more"] if len(lines) > _MAX_LISTED else []
        shown = [f"  {line}" for line in lines[:_MAX_LISTED] + more]
        raise UsageError("cannot write here:", *shown, f"nothing was written; {remedy}")

    def _obstacle(self, name: str) -> str | None:
        """What is at an output's place and is never replaced."""
        for parent in _folders_of(name):
            mode = _mode(self.folder / parent)
            if mode is None or stat.S_ISLNK(mode):
                return None
            if not stat.S_ISDIR(mode):
                return f"a file in place of the folder {parent}"
        return "a folder" if stat.S_ISDIR(_mode(self.folder / name) or 0) else None

    def _foreign(self, name: str, recorded: Digests) -> str | None:
        """What is at an output's place and is only replaced with ``force``."""
        for parent in _folders_of(name):
            if stat.S_ISLNK(_mode(self.folder / parent) or 0):
                return f"a link in place of the folder {parent}"
        mode = _mode(self.folder / name)
        if mode is None:
            return None
        if not stat.S_ISREG(mode):
            return "a link" if stat.S_ISLNK(mode) else "a device or pipe"
        if name not in recorded:
            return "a file that benchmark-eval did not write"
        if file_sha256(self.folder / name) not in recorded[name]:
            return "a file that was edited since benchmark-eval wrote it"
        return None

    # ------------------------------------------------------------------ steps

    def _synced(self, name: str) -> str:
        """The SHA-256 of a prepared file, whose bytes are then on disk."""
        path = self.stage / name
        try:
            with open_input(path) as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                os.fsync(stream.fileno())
        except OSError as error:
            error.filename = str(path)
            raise
        return digest

    def _make_parents(self, name: str) -> None:
        for folder in _folders_of(name):
            parent = self.folder / folder
            if parent.is_symlink():  # forced: its target stays
                parent.unlink()
            parent.mkdir(exist_ok=True)

    def _remove(self, name: str) -> None:
        path = self.folder / name
        below = [self.folder / folder for folder in _folders_of(name)]
        if any(parent.is_symlink() for parent in below):
            return  # the link is replaced; what it leads to stays
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        for parent in reversed(below):
            with contextlib.suppress(OSError):  # not empty
                parent.rmdir()

    def _recorded(self) -> Digests:
        return {} if self._declared else read_record(self.folder)

    def _keep_record(self, files: Digests, *, complete: bool = True) -> None:
        """Replace the record; unless it announces a change, it only names files that exist."""
        if self._declared:
            return
        assert self._hidden is not None
        kept = {
            name: sorted(set(digests))
            for name, digests in files.items()
            if not complete or os.path.lexists(self.folder / name)
        }
        path = self.folder / RECORD
        if not kept:
            path.unlink(missing_ok=True)
            return
        content = {"version": VERSION, "files": kept}
        data = msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=1) + b"\n"
        staged = self._hidden / "record.json"
        with staged.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        staged.replace(path)


@contextlib.contextmanager
def claim(
    folder: str | Path,
    names: Iterable[str],
    *,
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> Iterator[Outputs]:
    """Claim the outputs of a command before it starts to work.

    Parameters
    ----------
    folder : str or Path
        The output folder; created if needed, and removed again if it stays empty.
    names : iterable of str
        Relative names (with ``/``) of all files that the command writes or removes. A name that
        ends in ``/`` stands for all files below that folder whose names are not known yet; files
        of earlier runs there are removed by ``publish`` and ``clear``.
    inputs : iterable of str, Path or Listing
        The files that the command reads. A folder or a `Listing` stands for all files in it that
        the command would read.
    force : bool, default False
        Whether to replace files that this program did not write, or that were edited since. Links
        are replaced, their targets stay. Never allows to replace an input or a folder.
    declared : bool, default False
        True for jobs of the workflow: whatever exists at these names is an output of the workflow,
        because Snakemake declares it; no record is needed or written. Inputs are still refused.

    Raises
    ------
    UsageError
        An output is an input, would be read as an input by the next run, or exists and is not
        ours; or another process is writing it; or the folder is not writable. Nothing is changed,
        and all problems are listed.
    """
    outputs = Outputs(folder, names, inputs, force=force, declared=declared)
    try:
        outputs.begin()
        yield outputs
    except OSError as error:
        # "no space left on device" names no file
        error.filename = outputs.published_name(error.filename) or error.filename or str(folder)
        raise
    finally:
        outputs.end()


def require_new_folder(path: str | Path) -> None:
    """Raise UsageError unless ``path`` is a new or empty folder: old and new files must not mix."""
    path = Path(path)
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not any(_visible(path)):
            return
        if path.exists() or path.is_symlink():
            raise UsageError(
                f"{path}: found a file or a non-empty folder; expected a new or empty folder "
                "(old and new files must not be mixed)"
            )


@contextlib.contextmanager
def new_folder(path: str | Path, *, inputs: Iterable[Input] = ()) -> Iterator[Path]:
    """A folder to fill, which appears at ``path`` when the block ends: complete, or not at all.

    The entries of an existing, empty folder appear one after the other. Raises UsageError unless
    ``path`` is a new or empty folder.
    """
    require_new_folder(path)
    place = Path(os.path.realpath(path))
    # the current folder and mount points cannot be replaced, only filled
    filled = place.is_dir()  # keeps its permissions
    home = place if filled else place.parent
    with claim(home, [f"{place.name}/"], inputs=inputs, declared=True) as outputs:
        made = outputs.stage / place.name
        made.mkdir()
        yield made
        require_new_folder(path)
        if not filled:
            made.replace(place)
            return
        for entry in sorted(made.iterdir()):
            entry.replace(place / entry.name)


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith(STAGE))


def read_record(folder: str | Path) -> Digests:
    """The files that this program wrote into ``folder``, with their SHA-256.

    While files are being replaced, a file has two digests. A damaged record, one of an earlier
    version or a link names no files. Raises UsageError for one of a later version.
    """
    path = Path(folder) / RECORD
    try:
        if path.is_symlink():
            return {}
        record = msgspec.json.decode(read_input(path), type=_Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if record.version > VERSION:
        raise UsageError(
            f"{path}: found version {record.version}; expected version {VERSION} (written by a "
            "newer version of benchmark-eval: use that one, or another folder)"
        )
    if record.version != VERSION:
        return {}
    return {name: digests for name, digests in record.files.items() if _is_inside(name)}


def _require_record(folder: Path) -> None:
    """Raise UsageError if something else is at the place of the record."""
    path = folder / RECORD
    mode = _mode(path)
    if mode is None:
        return
    try:
        if not stat.S_ISREG(mode):
            raise ValueError
        msgspec.json.decode(read_input(path), type=_Record)
    except (OSError, ValueError, RecursionError):
        raise UsageError(
            f"{path}: found something other than a record of benchmark-eval; expected a record or "
            "no such file (likely cause: edited manually); nothing was written; move it away"
        ) from None


def _folders_of(name: str) -> list[str]:
    """The folders above an output, outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    return [parent.as_posix() for parent in PurePosixPath(name).parents][-2::-1]


def _is_inside(name: str) -> bool:
    """Whether a recorded name is below the folder: an edited record must not lead elsewhere."""
    parts = name.split("/")
    return "\0" not in name and not {"", ".", ".."}.intersection(parts)


class _Inputs:
    """The input files of a command, by identity: paths, links and hard links are all found."""

    def __init__(self, inputs: Iterable[Input]) -> None:
        self._paths: set[str] = set()
        self._ids: set[tuple[int, int]] = set()
        self._listings: list[tuple[str, tuple[int, int] | None, Listing]] = []
        for item in inputs:
            if not isinstance(item, Listing):
                if not Path(item).is_dir():
                    self._paths.add(_real(item))
                    if identity := _identity(item):
                        self._ids.add(identity)
                    continue
                item = Listing(Path(item))  # noqa: PLW2901
            self._listings.append((_real(item.folder), _identity(item.folder), item))
            with contextlib.suppress(OSError):
                found = walked(item.folder) if item.below else listed(item.folder)
                read = [path for path in found if item.reads(path.name)]
                self._ids.update(filter(None, map(_identity, read)))

    def problem(self, path: Path, *, folder: bool = False) -> str | None:
        """Why ``path`` must not be an output; with ``folder``, any file in the folder ``path``."""
        if not folder and (_real(path) in self._paths or _identity(path) in self._ids):
            return "an input of this command"
        home = path if folder else path.parent
        real, identity = _real(home), _identity(home)
        for source, source_identity, listing in self._listings:
            same = real == source or (identity is not None and identity == source_identity)
            same |= listing.below and Path(real).is_relative_to(source)
            if same and (folder or listing.reads(path.name)):
                kinds = " and ".join(suffix for suffix in listing.suffixes if suffix)
                return f"a place in the input folder {listing.folder}, where every " + (
                    f"{kinds} file is read" if kinds else "file may be read"
                )
        return None


def _real(path: str | Path) -> str:
    return os.path.realpath(path)


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _mode(path: Path) -> int | None:
    """The mode of a path, not following a link; None if nothing exists there."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _files_below(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _make_folder(folder: Path) -> list[Path]:
    """Create a folder and its parents; returns those that did not exist, outermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder for a moment; yields whether the file system supports this."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield wait_for_lock(handle)
    finally:
        os.close(handle)


def _claimed(folder: Path, own: Path, *, clean: bool) -> set[str]:
    """The names that live processes have claimed in ``folder``.

    With ``clean``, the hidden folders of processes of this host that have ended are removed. Those
    of other hosts stay: the locks of some shared file systems are visible on one host only.
    """
    names: set[str] = set()
    for hidden in folder.glob(f"{STAGE}*"):
        if hidden == own or hidden.is_symlink():
            continue
        with contextlib.suppress(OSError):  # removed by its process at this moment
            entries = {entry.name for entry in hidden.iterdir()}
            if _CLAIM not in entries:
                if clean and not entries:
                    hidden.rmdir()  # of a process that was killed before it wrote its claim
                continue
            # NFS locks only files that are open for writing
            with (hidden / _CLAIM).open("r+b") as stream:
                free = lock(stream)
                claimed = _Claim("", [])
                with contextlib.suppress(msgspec.DecodeError):
                    claimed = msgspec.json.decode(stream.read(), type=_Claim)
            if free is False:
                names.update(claimed.names)
            ended = free is True and claimed.host in ("", socket.gethostname())
            if ended and clean and entries <= {_CLAIM, _FILES, "record.json"}:
                shutil.rmtree(hidden, ignore_errors=True)
    return names
