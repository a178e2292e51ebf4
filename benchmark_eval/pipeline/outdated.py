"""Which results are up to date, and which process may change them.

A fingerprint describes the inputs that results should be computed from; a record, those that they
were computed from. The name of a record contains the digest of the fingerprint. If the fingerprint
changes, the record of that name does not exist, so Snakemake schedules the job that writes it and
all jobs that depend on it, also in a dry run. If the change is reverted, the record exists again
and nothing is rerun.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from benchmark_eval.core.atomic_write import write_bytes_atomic
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.locks import lock
from benchmark_eval.core.text import some_of

LOCK = "lock"
SUFFIX = ".made"
UNPLANNED = "unplanned"
"""Replaces the digest in the name of a record if there is no fingerprint."""
_DIGITS = 16

_held: dict[Path, TextIO] = {}


def hold(state: str | Path) -> bool:
    """Lock the folder of the fingerprints until this process ends; False if another one holds it.

    The kernel releases the lock when the process ends for any reason. If the lock file cannot be
    written or the file system does not support locks, nothing is locked and the result is True.
    """
    path = Path(state).resolve() / LOCK
    if path in _held:
        return True
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a")
    except OSError:
        return True
    locked = lock(stream)
    if locked:
        _held[path] = stream
    else:
        stream.close()
    return locked is not False


def record_name(part: str, digest: str | None) -> str:
    """Name of the record of a set of results; ``digest`` is that of its fingerprint."""
    return f"{part}.{digest[:_DIGITS] if digest else UNPLANNED}{SUFFIX}"


def write_record(record: str | Path, content: bytes) -> None:
    """Write a record and remove those of the same results with other digests."""
    write_bytes_atomic(record, content)
    for other in _others(Path(record)):
        other.unlink(missing_ok=True)


def remove_outdated(
    made: Iterable[tuple[str | Path, Iterable[str | Path]]], log: Callable[[str], None]
) -> None:
    """Remove every set of results whose current record does not exist.

    ``made`` holds the record and the results of each set. Snakemake keeps old results if a job that
    they depend on fails, and they could be mistaken for new ones. ``log`` is called with what was
    removed and why.
    """
    for record, results in made:
        others = _others(Path(record))
        removed = []
        try:
            for other in others:
                other.unlink(missing_ok=True)
            if Path(record).exists():
                continue
            for result in results:
                with contextlib.suppress(FileNotFoundError):
                    Path(result).unlink()
                    removed.append(str(result))
        except OSError as error:
            raise UsageError(f"cannot remove stale results: {error}") from error
        if removed:
            why = "inputs, options or code changed" if others else "no record of their inputs"
            log(
                f"removed {some_of(removed, 1)}: {why}; "
                "run snakemake without a target to create everything that is missing"
            )


def _others(record: Path) -> list[Path]:
    """Records of the same results with other digests."""
    part = record.name.partition(".")[0]
    return [path for path in record.parent.glob(f"{part}.*{SUFFIX}") if path != record]
