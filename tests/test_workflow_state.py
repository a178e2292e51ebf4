"""Digests, stamps and the import closure: what makes a result out of date, and what does not."""

import ast
import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from benchmark_eval import source_digest, state
from benchmark_eval.errors import InputError, UsageError
from benchmark_eval.source_digest import PARTS, import_closure, package_dir
from benchmark_eval.state import DigestCache, stamp_text, write_stamp


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def settled(monkeypatch):
    """Keep digests of files that were written a moment ago, as if time had passed."""
    monkeypatch.setattr(state, "_SETTLED_NS", -(10**12))


def counting(monkeypatch):
    read = []
    real = state._digest
    monkeypatch.setattr(state, "_digest", lambda name, p: (read.append(name), real(name, p))[1])
    return read


def test_digests_are_of_the_content_and_kept(tmp_path, monkeypatch, settled):
    read = counting(monkeypatch)
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"one")
    b.write_bytes(b"")
    cache = DigestCache(tmp_path / "cache.json")
    assert cache.digests([str(b), str(a)]) == {str(b): sha(b""), str(a): sha(b"one")}
    cache.save()
    assert len(read) == 2
    again = DigestCache(tmp_path / "cache.json")
    assert list(again.digests([str(a), str(b), str(a)])) == [str(a), str(b)]
    assert len(read) == 2


def test_an_edit_of_equal_size_under_a_restored_time_is_found(tmp_path, monkeypatch, settled):
    a = tmp_path / "a"
    a.write_bytes(b"one")
    before = a.stat()
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    a.write_bytes(b"two")
    os.utime(a, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert a.stat().st_mtime_ns == before.st_mtime_ns
    assert cache.digests([str(a)]) == {str(a): sha(b"two")}


def test_another_file_moved_into_place_is_found(tmp_path, settled):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"one")
    b.write_bytes(b"two")
    for path in (a, b):
        os.utime(path, ns=(10**18, 10**18))
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    b.replace(a)
    assert cache.digests([str(a)]) == {str(a): sha(b"two")}


def test_a_digest_of_a_file_written_just_now_is_not_kept(tmp_path, monkeypatch):
    read = counting(monkeypatch)
    a = tmp_path / "a"
    a.write_bytes(b"one")
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    cache.digests([str(a)])
    assert len(read) == 2
    assert not cache.changed


def test_files_that_are_gone_are_forgotten(tmp_path, settled):
    a, b = tmp_path / "a", tmp_path / "b"
    for path in (a, b):
        path.write_bytes(b"one")
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a), str(b)])
    a.unlink()
    cache.save()
    assert list(DigestCache(tmp_path / "cache.json").kept) == [str(b)]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"\xff"])
def test_a_broken_cache_only_costs_time(tmp_path, content):
    (tmp_path / "cache.json").write_bytes(content)
    a = tmp_path / "a"
    a.write_bytes(b"one")
    assert DigestCache(tmp_path / "cache.json").digests([str(a)]) == {str(a): sha(b"one")}


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a named pipe, no regular file"):
        DigestCache(tmp_path / "cache.json").digests([str(tmp_path / "pipe")])


def test_every_unreadable_file_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    names = [str(tmp_path / "none"), str(tmp_path / "folder"), str(tmp_path / "nor this")]
    with pytest.raises(InputError) as caught:
        DigestCache(tmp_path / "cache.json").digests(names)
    assert sorted(p.file for p in caught.value.problems) == sorted(names)


def test_progress_is_told_when_there_is_much_to_read(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "_TOLD_FROM_BYTES", 10)
    monkeypatch.setattr(state, "_TOLD_EVERY_SECONDS", 0.0)
    a = tmp_path / "a"
    a.write_bytes(b"x" * 100)
    told = []
    DigestCache(tmp_path / "cache.json").digests([str(a)], told.append)
    assert told
    assert "0.0 of 0.0 GB" in told[0]
    monkeypatch.setattr(state, "_TOLD_FROM_BYTES", 101)
    told.clear()
    DigestCache(tmp_path / "cache.json").digests([str(a)], told.append)
    assert told == []


@pytest.fixture
def small_package(tmp_path):
    files = {
        "__init__.py": "LAZY = {'plots': 'benchmark_eval.report'}\n",
        "evaluation.py": "from benchmark_eval.metrics import ap\nimport numpy\nimport os.path\n",
        "metrics/__init__.py": "",
        "metrics/ap.py": "def f():\n    from ..matching import pairs\n",
        "metrics/other.py": "",
        "matching.py": "import benchmark_eval.errors as e\nSCHEMA = 'schemas/pairs.json'\n",
        "errors.py": "from . import evaluation\n",
        "report/__init__.py": "from .plots import draw\n",
        "report/plots.py": "import benchmark_eval.evaluation\nSTYLE = 'house.mplstyle'\n",
        "report/house.mplstyle": "",
        "schemas/pairs.json": "",
        "schemas/unused.json": "",
    }
    for name, text in files.items():
        path = tmp_path / "benchmark_eval" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "benchmark_eval"


SCORING = [
    "__init__.py",
    "errors.py",
    "evaluation.py",
    "matching.py",
    "metrics/__init__.py",
    "metrics/ap.py",
    "schemas/pairs.json",
]


def test_import_closure_follows_imports_and_nothing_else(small_package):
    assert import_closure(small_package, "benchmark_eval.evaluation") == SCORING
    assert import_closure(small_package, "benchmark_eval.report") == sorted(
        [*SCORING, "report/__init__.py", "report/house.mplstyle", "report/plots.py"]
    )


@pytest.mark.parametrize("edited", SCORING)
def test_an_edit_in_the_closure_changes_the_digest(small_package, monkeypatch, edited):
    monkeypatch.setattr(source_digest, "package_dir", lambda: small_package)
    before = source_digest.code_digest.__wrapped__("scoring")
    with (small_package / edited).open("a") as stream:
        stream.write("# an edit\n")
    assert source_digest.code_digest.__wrapped__("scoring") != before


@pytest.mark.parametrize("edited", ["report/plots.py", "metrics/other.py", "schemas/unused.json"])
def test_an_edit_outside_the_closure_does_not(small_package, monkeypatch, edited):
    monkeypatch.setattr(source_digest, "package_dir", lambda: small_package)
    before = source_digest.code_digest.__wrapped__("scoring")
    (small_package / edited).write_text("X = 1\n")
    assert source_digest.code_digest.__wrapped__("scoring") == before


def test_the_same_package_elsewhere_has_the_same_digest(small_package, tmp_path, monkeypatch):
    monkeypatch.setattr(source_digest, "package_dir", lambda: small_package)
    here = source_digest.code_digest.__wrapped__("scoring")
    other = shutil.copytree(small_package, tmp_path / "an other place/benchmark_eval")
    monkeypatch.setattr(source_digest, "package_dir", lambda: other)
    assert source_digest.code_digest.__wrapped__("scoring") == here


def test_every_part_starts_at_a_module_that_exists():
    for start in PARTS.values():
        assert import_closure(package_dir(), start)
    with pytest.raises(FileNotFoundError, match="has no module"):
        import_closure(package_dir(), "benchmark_eval.nothing")


def imported_by_parsing(source, package):
    """The oracle: the same names from Python's own parser."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")
                above = above[: len(above) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_imports_are_those_that_python_parses():
    sources = sorted(package_dir().rglob("*.py"))
    assert len(sources) > 40
    for path in sources:
        inside = path.relative_to(package_dir().parent).with_suffix("")
        package = ".".join(inside.parts[:-1])
        source = path.read_text()
        parsed = imported_by_parsing(source, package)
        wanted = {name for name in parsed if name.split(".")[0] == "benchmark_eval"}
        # the text of a docstring may add to them
        assert set(source_digest._imported(source, package)) >= wanted, path


def test_imports_in_every_way_of_writing_them():
    source = """
import os, benchmark_eval.a as b, benchmark_eval.c
from benchmark_eval import (  # why (so)
    d,
    e as f,  # and why
)
if True:
    from . import g
    from .h import i, j
\tfrom ..k.l import m as n
from numpy import benchmark_eval
importance = 1
"""
    assert sorted(source_digest._imported(source, "benchmark_eval.x")) == [
        "benchmark_eval",
        "benchmark_eval.a",
        "benchmark_eval.c",
        "benchmark_eval.d",
        "benchmark_eval.e",
        "benchmark_eval.k.l",
        "benchmark_eval.k.l.m",
        "benchmark_eval.x",
        "benchmark_eval.x.g",
        "benchmark_eval.x.h",
        "benchmark_eval.x.h.i",
        "benchmark_eval.x.h.j",
    ]


def test_scoring_does_not_depend_on_tables_plots_or_the_workflow():
    closure = import_closure(package_dir(), PARTS["scoring"])
    forbidden = ("sweep", "report", "cli", "commands", "config", "plan", "state", "joblog")
    assert [name for name in closure if name.split("/")[0].removesuffix(".py") in forbidden] == []


def test_the_package_that_jobs_import_must_be_the_one_loaded_here(tmp_path, monkeypatch):
    state.require_same_package()
    other = shutil.copytree(package_dir(), tmp_path / "benchmark_eval")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UsageError, match="two copies of benchmark_eval") as caught:
        state.require_same_package()
    assert str(other) in str(caught.value)
    assert str(package_dir()) in str(caught.value)


def test_a_python_without_the_package_is_told(tmp_path, monkeypatch):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(UsageError, match="pip install -e"):
        state.require_same_package()


def test_a_stamp_is_written_only_when_it_changed(tmp_path):
    path = tmp_path / "state/m.json"
    text = stamp_text({"b": 1, "a": [1, "ü"]})
    assert stamp_text({"a": [1, "ü"], "b": 1}) == text
    assert write_stamp(path, text)
    os.utime(path, ns=(10**18, 10**18))
    assert not write_stamp(path, text)
    assert path.stat().st_mtime_ns == 10**18
    assert write_stamp(path, stamp_text({"a": 2}))
    assert path.stat().st_mtime_ns > 10**18
    assert [p.name for p in path.parent.iterdir()] == ["m.json"]


def test_a_result_with_a_time_in_the_future_is_still_older_than_a_changed_stamp(tmp_path):
    path, result = tmp_path / "m.json", tmp_path / "result"
    write_stamp(path, "1", result)
    result.write_text("made from 1")
    ahead = 4 * 10**18
    os.utime(result, ns=(ahead, ahead))
    assert not write_stamp(path, "1", result)
    assert result.stat().st_mtime_ns == ahead
    assert write_stamp(path, "2", result)
    assert result.stat().st_mtime_ns < path.stat().st_mtime_ns
    assert Path(result).read_text() == "made from 1"
