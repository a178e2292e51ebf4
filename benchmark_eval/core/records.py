"""Names of the records in the state folder of the workflow, and whether results match them.

The workflow writes two kinds of files to ``results/.state``. A fingerprint (``sweep.json``) has the
digests of what results should be computed from. A record (``sweep.<digest>.made``) is written by
the job that computed them; its name contains the digest of the fingerprint.
"""

from __future__ import annotations

from pathlib import Path

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.outputs import RECORD, read_record
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import file_sha256, read_input

FINGERPRINT_OF = {
    "index": "benchmark",
    "sweep": "sweep",
    "plots": "report",
    "report": "report",
    "page": "report",
}
"""The fingerprint of each set of results: index, tables (sweep), plots, report, page."""
STATE = ".state"
SUFFIX = ".made"
UNPLANNED = "unplanned"
"""Replaces the digest in the name of a record if there is no fingerprint."""
_DIGITS = 16


def record_name(part: str, digest: str | None) -> str:
    """Name of the record of a set of results; ``digest`` is that of its fingerprint."""
    return f"{part}.{digest[:_DIGITS] if digest else UNPLANNED}{SUFFIX}"


def file_digest(path: str | Path) -> str | None:
    """SHA-256 (hex) of a file; None if it cannot be read."""
    try:
        return file_sha256(path)
    except OSError:
        return None


def current_record(state: Path, part: str) -> Path:
    """Path of the record that matches the fingerprint in ``state``, whether it exists or not."""
    return state / record_name(part, file_digest(state / f"{FINGERPRINT_OF[part]}.json"))


def record_content(fingerprint: bytes, result: str | Path | None) -> bytes:
    """The content of a record: the fingerprint, and the SHA-256 of the ``result`` that was made."""
    return fingerprint + (f"{file_digest(result)}\n".encode() if result is not None else b"")


def recorded_digest(record: str | Path) -> str | None:
    """The SHA-256 of the result in a record; None if the record has none or cannot be read."""
    try:
        lines = read_input(record).splitlines()
    except OSError:
        return None
    return lines[1].decode("ascii", "replace") if len(lines) == 2 else None


def edited(path: str | Path, digest: str | None, record: Path) -> Problem | None:
    """A problem if the ``digest`` of a result is not the one in its record."""
    recorded = recorded_digest(record)
    if recorded is None or recorded == digest:
        return None
    return _changed(path, digest, recorded, "as when the workflow wrote it")


def outdated_model(state: Path, model: str, path: Path, digest: str) -> Problem | None:
    """A problem if the summary at ``path`` is outdated, or was edited since the workflow wrote it.

    ``digest`` is that of the summary. None also if the workflow did not make it.
    """
    fingerprint, record = (state / "models" / f"{model}{end}" for end in (".json", SUFFIX))
    try:
        planned = read_input(fingerprint)
    except OSError:
        return None
    try:
        current = read_input(record).startswith(planned)
    except OSError:
        current = False
    return edited(path, digest, record) if current else _earlier_run(path, fingerprint)


def from_earlier_run(results: Path, part: str, path: Path) -> Problem | None:
    """A problem if ``path`` was computed from other inputs than those that were last planned.

    ``results`` is the results folder of the workflow, ``path`` a file or folder of ``part`` in it.
    None also if the workflow did not make it.
    """
    state = results / STATE
    fingerprint = state / f"{FINGERPRINT_OF[part]}.json"
    if not fingerprint.is_file() or current_record(state, part).exists():
        return None
    return _earlier_run(path, fingerprint)


def _earlier_run(path: Path, fingerprint: Path) -> Problem:
    return Problem(
        "earlier-run",
        str(path),
        "results of an earlier run",
        f"results computed from the inputs, options and code in {fingerprint}",
        cause="not updated since inputs, options or code changed: run snakemake without a target",
    )


def require_last_run(aggregated: str | Path) -> None:
    """Raise InputError if an ``aggregated.json`` is of an earlier run, or was edited."""
    path = Path(aggregated)
    results = path.absolute().parent.parent
    digest = file_digest(path)
    problem = from_earlier_run(results, "sweep", path)
    if problem is None and (results / STATE).is_dir():
        problem = edited(path, digest, current_record(results / STATE, "sweep"))
    if problem is None:
        problem = rewritten(path, digest)
    if problem is not None:
        raise InputError([problem])


def rewritten(path: Path, digest: str | None) -> Problem | None:
    """A problem if a file that a command wrote was changed since, by the record beside it."""
    recorded = read_record(path.parent).get(path.name)
    if recorded is None or digest is None or digest in recorded:
        return None
    return _changed(path, digest, recorded[-1], f"as recorded in {RECORD} when it was written")


def _changed(path: str | Path, digest: str | None, recorded: str, when: str) -> Problem:
    return Problem(
        "digest",
        str(path),
        f"SHA-256 {str(digest)[:12]}...",
        f"SHA-256 {recorded[:12]}..., {when}",
        cause="edited manually, or restored from a backup",
    )
