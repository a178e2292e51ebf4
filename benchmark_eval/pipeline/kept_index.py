"""The workflow's index of the benchmark, and the record by which a foreign or broken one is known.

Beside the index lies a record with its SHA-256 and that of the stamp it was made from. An index
that its record does not vouch for (cut short, a byte changed, put there by hand, of another
benchmark or release) is made again by the process that plans, under its old time: what was scored
with the right one stays valid.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from benchmark_eval.core.atomic_write import write_text_atomic
from benchmark_eval.pipeline.fingerprints import DigestCache, stamp_text, text_digest
from benchmark_eval.pipeline.recovery import BROKEN, set_aside


def make_index(
    benchmark_dir: str | Path, index: str | Path, stamp: str | Path, record: str | Path
) -> None:
    """Make the index from a benchmark that is what ``stamp`` says, and its record.

    Raises as ``write_index`` does.
    """
    from benchmark_eval.inputs.benchmark_index import (
        write_index,  # with numpy, which planning can spare
    )

    made_from = Path(stamp).read_text()
    write_index(benchmark_dir, index, stamp=stamp)
    write_text_atomic(record, _record(_digest(index), made_from))


def mend_index(
    benchmark_dir: str | Path,
    index: str | Path,
    stamp: str | Path,
    record: str | Path,
    cache: DigestCache,
) -> str | None:
    """Make an index again that its record does not vouch for; a line on it if it was faulty.

    Where the benchmark is another than the index was made from, Snakemake makes it again: here it
    is only dated before the stamp. Raises ``InputError`` where the index cannot be read or the
    benchmark is faulty.
    """
    index = Path(index)
    if not index.exists():
        return None
    digest = cache.digests([str(index)])[str(index)]
    now = Path(stamp).read_text()
    kept: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(Path(record).read_bytes())
        kept = {name: str(content[name]) for name in ("benchmark", "index")}
    if kept == {"benchmark": text_digest(now), "index": digest}:
        return None
    before, stamped = index.stat().st_mtime_ns, Path(stamp).stat().st_mtime_ns
    if kept and kept["benchmark"] != text_digest(now):
        if before >= stamped:
            os.utime(index, ns=(stamped - 1_000_000_000,) * 2)
        return None
    fresh = index.with_name(f"{index.name}.new")
    aside = index.with_name(f"{index.name}{BROKEN}")
    make_index(benchmark_dir, fresh, stamp, record)
    if _digest(fresh) == digest:  # only the record was lost
        fresh.unlink()
        return None
    set_aside(index)
    fresh.rename(index)
    os.utime(index, ns=(min(before, stamped),) * 2)
    return f"{index} was not as this workflow makes it: now it is; the other lies in {aside}"


def _record(digest: str, stamp: str) -> str:
    return stamp_text({"benchmark": text_digest(stamp), "index": digest})


def _digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
