"""What a run of the workflow left broken: cleared away, so that the next one makes it again.

Snakemake locks its working directory and marks the outputs of running jobs. A killed run leaves
both behind, and the next one stops and asks for ``--unlock`` and ``--rerun-incomplete``. Here
both can be undone without asking: a note names the process that runs, so that a lock without a
living owner is known, and every result is written whole or not at all, so that an unfinished job
is simply one whose results are taken away again.

Files between jobs that cannot be used (cut short, of another version, put there by hand) are set
aside under another name: Snakemake would never make again what is there.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import socket
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmark_eval.errors import InputError
from benchmark_eval.files import write_text_atomic

SNAKEMAKE = Path(".snakemake")
"""Snakemake's own folder, relative to the working directory."""
BROKEN = ".broken"
"""What the names of files end in that were set aside."""


def _identity() -> dict[str, str | int]:
    """What tells this process from every other: host, pid, and when it started."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": _started(os.getpid()) or "",
    }


def _started(pid: int) -> str | None:
    """When a process of this host started (ticks since boot), None where there is none.

    Process numbers are given out again; number and start together are not.
    """
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return line.rpartition(")")[2].split()[19]


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
    """Whether another run works in this folder, as far as its note and Snakemake's locks tell."""
    note = Path(note)
    return note.exists() and bool(_locks()) and _owner_lives(note) is not False


def set_aside(path: str | Path) -> None:
    """Move a file that cannot be used away, so that the workflow makes it again."""
    os.replace(path, f"{path}{BROKEN}")  # noqa: PTH105


def set_aside_broken_index(path: str | Path) -> bool:
    """Set aside an index that is not whole (cut short, a byte changed); True if it was so."""
    try:
        with zipfile.ZipFile(path) as store:
            whole = store.testzip() is None
    except FileNotFoundError:
        return False
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError):
        whole = False
    if not whole:
        set_aside(path)
    return not whole


@contextlib.contextmanager
def remaking(files: Iterable[str]) -> Iterator[None]:
    """Set aside those of a job's inputs that its ``InputError`` names, and say so."""
    try:
        yield
    except InputError as fault:
        named = {Path(problem.file) for problem in fault.problems}
        faulty = [name for name in files if Path(name) in named and Path(name).exists()]
        for name in faulty:
            set_aside(name)
        if faulty:
            told = f"set aside as *{BROKEN}, so that the next run makes them again: "
            print(told + ", ".join(faulty), file=sys.stderr)
            logging.getLogger(__name__).warning("%s%s", told, ", ".join(faulty))
        raise


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
