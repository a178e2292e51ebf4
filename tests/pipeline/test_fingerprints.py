"""Cached digests of files, and the fingerprints that contain them."""

import hashlib
import os
import shutil
import sys

import pytest

from benchmark_eval.core.code_digest import package_dir
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.pipeline import fingerprints
from benchmark_eval.pipeline.fingerprints import (
    DigestCache,
    fingerprint_text,
    write_fingerprint,
)


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def settled(monkeypatch):
    """Cache the digests of new files, as if they had been written some time ago."""
    monkeypatch.setattr(fingerprints, "_SETTLED_NS", -(10**12))


def counting(monkeypatch):
    read = []
    real = fingerprints._digest
    monkeypatch.setattr(
        fingerprints, "_digest", lambda name, p: (read.append(name), real(name, p))[1]
    )
    return read


def test_digests_are_those_of_the_content_and_are_cached(tmp_path, monkeypatch, settled):
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


def test_an_edit_with_equal_size_and_restored_mtime_is_detected(tmp_path, monkeypatch, settled):
    a = tmp_path / "a"
    a.write_bytes(b"one")
    before = a.stat()
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    a.write_bytes(b"two")
    os.utime(a, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert a.stat().st_mtime_ns == before.st_mtime_ns
    assert cache.digests([str(a)]) == {str(a): sha(b"two")}


def test_a_replaced_file_is_detected(tmp_path, settled):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"one")
    b.write_bytes(b"two")
    for path in (a, b):
        os.utime(path, ns=(10**18, 10**18))
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    b.replace(a)
    assert cache.digests([str(a)]) == {str(a): sha(b"two")}


def test_the_digest_of_a_file_that_was_just_written_is_not_cached(tmp_path, monkeypatch):
    read = counting(monkeypatch)
    a = tmp_path / "a"
    a.write_bytes(b"one")
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a)])
    cache.digests([str(a)])
    assert len(read) == 2
    assert not cache.changed


def test_deleted_files_are_dropped_from_the_cache(tmp_path, settled):
    a, b = tmp_path / "a", tmp_path / "b"
    for path in (a, b):
        path.write_bytes(b"one")
    cache = DigestCache(tmp_path / "cache.json")
    cache.digests([str(a), str(b)])
    a.unlink()
    cache.save()
    assert list(DigestCache(tmp_path / "cache.json").kept) == [str(b)]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"\xff"])
def test_a_damaged_cache_is_ignored(tmp_path, content):
    (tmp_path / "cache.json").write_bytes(content)
    a = tmp_path / "a"
    a.write_bytes(b"one")
    assert DigestCache(tmp_path / "cache.json").digests([str(a)]) == {str(a): sha(b"one")}


def test_a_named_pipe_is_rejected_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a named pipe, not a regular file"):
        DigestCache(tmp_path / "cache.json").digests([str(tmp_path / "pipe")])


def test_every_unreadable_file_is_reported(tmp_path):
    (tmp_path / "folder").mkdir()
    names = [str(tmp_path / "none"), str(tmp_path / "folder"), str(tmp_path / "nor this")]
    with pytest.raises(InputError) as caught:
        DigestCache(tmp_path / "cache.json").digests(names)
    assert sorted(p.file for p in caught.value.problems) == sorted(names)


def test_progress_is_logged_if_there_is_much_to_read(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "_LOGGED_FROM_BYTES", 10)
    monkeypatch.setattr(fingerprints, "_LOGGED_EVERY_SECONDS", 0.0)
    a = tmp_path / "a"
    a.write_bytes(b"x" * 100)
    lines = []
    DigestCache(tmp_path / "cache.json").digests([str(a)], lines.append)
    assert lines
    assert "0.0 of 0.0 GB" in lines[0]
    monkeypatch.setattr(fingerprints, "_LOGGED_FROM_BYTES", 101)
    lines.clear()
    DigestCache(tmp_path / "cache.json").digests([str(a)], lines.append)
    assert lines == []


def test_jobs_must_import_the_same_package_as_the_workflow(tmp_path, monkeypatch):
    fingerprints.require_same_package()
    other = shutil.copytree(package_dir(), tmp_path / "benchmark_eval")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fingerprints.require_same_package()  # a copy of the same code
    with (other / "cli/main.py").open("a") as stream:
        stream.write("# an edit\n")
    with pytest.raises(UsageError, match="two copies of benchmark_eval") as caught:
        fingerprints.require_same_package()
    assert str(other) in str(caught.value)
    assert str(package_dir()) in str(caught.value)
    assert f"{sys.executable} -m pip install -e {package_dir().parent}" in str(caught.value)


def test_a_python_without_the_package_is_reported(tmp_path, monkeypatch):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(UsageError, match="-m pip install -e /"):
        fingerprints.require_same_package()


def test_a_fingerprint_is_written_only_if_it_changed(tmp_path):
    path = tmp_path / "state/m.json"
    text = fingerprint_text({"b": 1, "a": [1, "ü"]})
    assert fingerprint_text({"a": [1, "ü"], "b": 1}) == text
    assert write_fingerprint(path, text)
    os.utime(path, ns=(10**18, 10**18))
    assert not write_fingerprint(path, text)
    assert path.stat().st_mtime_ns == 10**18
    assert write_fingerprint(path, fingerprint_text({"a": 2}))
    assert [p.name for p in path.parent.iterdir()] == ["m.json"]
