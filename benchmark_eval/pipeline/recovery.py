"""What a run of the workflow left broken: cleared away, so that the next one makes it again.

Snakemake locks its working directory and marks the outputs of running jobs. A killed run leaves
both behind, and the next one stops and asks for ``--unlock`` and ``--rerun-incomplete``. Here
both can be undone without asking: a note names the process that runs, so that a lock without a
living owner is known, and every result is written whole or not at all, so that an unfinished job
is simply one whose results are taken away again.

Files between jobs that cannot be used (cut short, of another version, put there by hand) are set
aside under another name: Snakemake would never make again what is there. Jobs never move a file:
they only note which of their inputs are faulty, and the process that planned them moves these once
the run has ended.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.text import counted, some_of

SNAKEMAKE = Path(".snakemake")
"""Snakemake's own folder, relative to the working directory."""
BROKEN = ".broken"
"""What the names of files end in that were set aside."""
FAULTY = ".faulty"
"""What a note on faulty results ends in."""
_NAMED = 3

Fingerprint = tuple[int, int, int]
"""size, mtime_ns, inode: whether a file is still the same."""


def _identity() -> dict[str, str | int]:
    """What tells this process from every other: host, pid, and when it started."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": _started(os.getpid()) or "",
    }


def _started(pid: int) -> str | None:
    """When a process of this host started (ticks since boot), None where none lives.

    One that has ended and that nobody has waited for (a zombie) lives no more. Process numbers are
    given out again; number and start together are not.
    """
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *others = line.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else others[18]


def note_running(note: str | Path) -> None:
    """Note that this process runs the workflow now."""
    write_text_atomic(note, json.dumps(_identity()) + "\n", sync=False)


def note_finished(note: str | Path) -> None:
    """Take the note away: this run has ended by itself."""
    with contextlib.suppress(FileNotFoundError):
        Path(note).unlink()


def clear_killed_run(note: str | Path, results: str | Path) -> bool:
    """Clear away what a killed run left behind; True if there was one.

    Only where ``note`` names a process of this host that lives no more: removes Snakemake's locks
    and those files below ``results`` that unfinished jobs had begun to leave. A run on another
    host, or one that lives, is left alone; then Snakemake itself says that the folder is locked.
    """
    note = Path(note)
    if _owner_lives(note) is not False:
        return False
    # whoever gets to move the note clears the rest: two new runs cannot both believe it is theirs
    mine = note.with_name(f"{note.name}.{os.getpid()}")
    try:
        note.rename(mine)
    except OSError:
        return False
    for lock in _locks():
        lock.unlink(missing_ok=True)
    root = Path(results)
    for marker, name in _unfinished(SNAKEMAKE / "incomplete"):
        path = Path(name)
        if root in path.parents:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                marker.unlink()
    mine.unlink()
    return True


def other_run(note: str | Path) -> bool:
    """Whether another run works in this folder: one that lives, with or without a lock.

    Where the note cannot tell (a run on another host), Snakemake's locks do.
    """
    note = Path(note)
    lives = _owner_lives(note)
    if lives:
        return bool(json.loads(note.read_bytes()) != _identity())
    return lives is None and note.exists() and bool(_locks())


def set_aside(path: str | Path) -> None:
    """Move a file that cannot be used away, so that the workflow makes it again."""
    os.replace(path, f"{path}{BROKEN}")  # noqa: PTH105


def note_faulty(
    record: str | Path,
    stamp: str | Path,
    made_from: bytes,
    before: Mapping[str, Fingerprint],
    fault: InputError,
) -> None:
    """Note those results of other jobs that a job's fault names, for ``set_aside_faulty``.

    ``before`` maps the results that the job reads to what they were when it began. Nothing is
    noted where ``stamp`` is no longer ``made_from``, as it was then: such a job has judged by what
    another call of snakemake wrote meanwhile.
    """
    named = {Path(problem.file) for problem in fault.problems}
    faulty = {name: status for name, status in before.items() if Path(name) in named}
    with contextlib.suppress(OSError):
        if faulty and Path(stamp).read_bytes() == made_from:
            content = {"stamp": hashlib.sha256(made_from).hexdigest(), "files": faulty}
            write_text_atomic(f"{record}{FAULTY}", json.dumps(content) + "\n", sync=False)


def set_aside_faulty(
    state: str | Path, planned: Iterable[str], tell: Callable[[str], None]
) -> None:
    """Set aside what the jobs of this run have noted, so that the next one makes it again.

    Only what was noted by one of the ``planned`` stamps (SHA-256) and is still the same file.
    Called when a run ends: no job reads these files any more.
    """
    stamps = set(planned)
    moved: list[str] = []
    for note in sorted(Path(state).glob(f"*{FAULTY}")):
        content: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            content = json.loads(note.read_bytes())
        with contextlib.suppress(OSError):
            note.unlink()
        if content.get("stamp") not in stamps:
            continue
        for name, was in content["files"].items():
            try:
                if fingerprints([name]).get(name) == tuple(was):
                    set_aside(name)
                    moved.append(name)
            except OSError as fault:
                tell(f"cannot set aside {name}: {fault.strerror}; remove it and run again")
    if moved:
        which = some_of(moved, _NAMED)
        tell(f"set aside as *{BROKEN}, so that the next run makes them again: {which}")


def forget_faulty(record: str | Path) -> None:
    """Drop what a killed run or an earlier attempt has noted: a job judges anew."""
    Path(f"{record}{FAULTY}").unlink(missing_ok=True)


def fingerprints(files: Iterable[str]) -> dict[str, Fingerprint]:
    """Size, mtime_ns and inode of those files that are there."""
    found: dict[str, Fingerprint] = {}
    for name in files:
        with contextlib.suppress(OSError):
            status = os.stat(name)  # noqa: PTH116  (thousands of files)
            found[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def _owner_lives(note: Path) -> bool | None:
    """Whether the process that ``note`` names lives; None where that cannot be told."""
    try:
        owner = json.loads(note.read_bytes())
        host, pid, started = str(owner["host"]), int(owner["pid"]), str(owner["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host != socket.gethostname() or _started(os.getpid()) is None:
        return None
    return _started(pid) == started


def _locks() -> list[Path]:
    """Snakemake's lock files in the working directory."""
    try:
        return sorted((SNAKEMAKE / "locks").iterdir())
    except OSError:
        return []


def _unfinished(folder: Path) -> Iterator[tuple[Path, str]]:
    """Snakemake's markers of files whose job has not ended, and the names of these files.

    A marker's path is the file's name in URL-safe base64, cut into folders that start with '@'
    where it is too long for one name. Jobs that went to a cluster may still run there; their
    markers stay, with the number that the cluster gave them.
    """
    for base, _, names in os.walk(folder):
        above = Path(base).relative_to(folder).parts
        for name in names:
            marker = Path(base, name)
            text = "".join(part.removeprefix("@") for part in (*above, name))
            with contextlib.suppress(OSError, ValueError, AttributeError):
                if json.loads(marker.read_bytes()).get("external_jobid") is None:
                    yield marker, base64.urlsafe_b64decode(text).decode()


def not_evaluated(models: Sequence[str], logs: str | Path) -> str:
    """What to tell at the end of a run that has planned these evaluations and not done them."""
    return (
        f"{counted(len(models), 'model')} not evaluated: {some_of(sorted(models), _NAMED)}. What "
        f"has failed is told above; where that is an evaluation, {logs}/<model>.log has more. "
        "The next run evaluates only what is left."
    )
