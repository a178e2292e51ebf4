"""What a command may write, replace and remove; kills, and several processes in one folder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_eval.core import locks, outputs
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import RECORD, STAGE, Listing, claim, new_folder, read_record

NAMES = ["a", "b", "c/d", "seal"]


def write(folder, word, names=NAMES, **options):
    with claim(folder, names, **options) as out:
        for name in names:
            out.write(name, f"{word} {name}".encode())
        out.publish(names[-1])


def content(folder):
    """All visible files."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


def complete(word):
    return {name: f"{word} {name}" for name in NAMES}


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name[0] == "." and path.name != RECORD]


class _Stop(BaseException):
    """Simulates a kill."""


# the old seal, six renames (two of them of the record)
@pytest.mark.parametrize("step", range(7))
@pytest.mark.parametrize("older", [True, False], ids=["files before", "new folder"])
def test_a_stop_at_any_step_leaves_the_old_files_or_no_seal(tmp_path, monkeypatch, older, step):
    if older:
        write(tmp_path, "old")
    done = 0
    real = {"replace": Path.replace, "unlink": Path.unlink}

    def counting(name):
        def call(self, *args, **kwargs):
            nonlocal done
            if name == "replace" or self == tmp_path / "seal":
                if done == step:
                    raise _Stop
                done += 1
            return real[name](self, *args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in real:
            patched.setattr(Path, name, counting(name))
        patched.setattr(outputs.Outputs, "end", lambda self: self._claim.close())  # no cleanup
        with pytest.raises(_Stop):
            write(tmp_path, "new")
    found = content(tmp_path)
    assert set(found) <= set(NAMES)
    if "seal" in found:
        assert found in (complete("old"), complete("new"))
    assert hidden(tmp_path)
    # the next run recognises all of them as ours, in whatever state they are
    write(tmp_path, "newer")
    assert content(tmp_path) == complete("newer")
    assert hidden(tmp_path) == []
    assert {name: len(digests) for name, digests in read_record(tmp_path).items()} == dict.fromkeys(
        NAMES, 1
    )


def test_a_relative_folder_is_not_mistaken_for_a_claim_of_another_process(tmp_path, monkeypatch):
    """``tempfile.mkdtemp`` returns an absolute path since Python 3.12."""
    made = outputs.tempfile.mkdtemp
    monkeypatch.setattr(outputs.tempfile, "mkdtemp", lambda **kw: str(Path(made(**kw)).resolve()))
    monkeypatch.chdir(tmp_path)
    write("relative", "new")
    assert content(tmp_path / "relative") == complete("new")
    assert hidden(tmp_path / "relative") == []


def test_a_file_that_appears_while_a_killed_run_is_repaired_is_kept(tmp_path):
    write(tmp_path, "old")
    (tmp_path / "b").unlink()
    (tmp_path / "b").write_text("mine")
    with pytest.raises(UsageError, match="b: found a file that was edited since"):
        write(tmp_path, "new")
    assert content(tmp_path) == complete("old") | {"b": "mine"}


def test_a_file_that_appears_during_the_work_is_kept(tmp_path):
    with claim(tmp_path, ["a"]) as out:
        out.write("a", b"ours")
        (tmp_path / "a").write_text("mine")
        with pytest.raises(UsageError, match="did not write"):
            out.publish()
    assert content(tmp_path) == {"a": "mine"}


def test_without_publish_the_earlier_files_stay(tmp_path):
    write(tmp_path, "old")
    with claim(tmp_path, NAMES) as out:
        out.write("a", b"new")
    assert content(tmp_path) == complete("old")
    with pytest.raises(ZeroDivisionError), claim(tmp_path / "x" / "y", NAMES) as out:
        out.write("a", b"new")
        1 / 0  # noqa: B018
    assert not (tmp_path / "x").exists()


def test_a_claimed_file_that_is_not_written_is_removed(tmp_path):
    write(tmp_path, "old")
    with claim(tmp_path, NAMES) as out:
        out.write("b", b"new")
        out.publish()
    assert content(tmp_path) == {"b": "new"}
    assert not (tmp_path / "c").exists()
    assert set(read_record(tmp_path)) == {"b"}


def test_clear_removes_only_what_is_ours(tmp_path):
    write(tmp_path, "old")
    (tmp_path / "b").write_text("mine")
    with claim(tmp_path, [*NAMES, "new"], force=True) as out:
        out.clear()
    assert content(tmp_path) == {"b": "mine"}


def test_files_below_a_claimed_folder_are_removed_if_ours(tmp_path):
    names = ["pictures/1", "pictures/2"]
    write(tmp_path, "old", names)
    (tmp_path / "pictures" / "mine").write_text("mine")
    with claim(tmp_path, ["pictures/"]) as out:
        out.write("pictures/3", b"new")
        out.publish()
    assert content(tmp_path) == {"pictures/3": "new", "pictures/mine": "mine"}


def test_declared_outputs_need_no_record(tmp_path):
    (tmp_path / "a").write_text("of the workflow")
    (tmp_path / "input").write_text("mine")
    write(tmp_path, "new", declared=True)
    assert content(tmp_path) == complete("new") | {"input": "mine"}
    assert not (tmp_path / RECORD).exists()
    with (
        pytest.raises(UsageError, match="input: found an input"),
        claim(tmp_path, ["input"], inputs=[tmp_path / "input"], declared=True),
    ):
        pass


def test_all_problems_are_reported_together_with_the_remedy(tmp_path):
    write(tmp_path, "old")
    (tmp_path / "a").write_text("mine")
    (tmp_path / "b").unlink()
    (tmp_path / "b").symlink_to("a")
    with (
        pytest.raises(UsageError) as error,
        claim(tmp_path, NAMES, inputs=[tmp_path / "seal"]),
    ):
        pass
    assert str(error.value) == (
        "cannot write here:\n"
        f"  {tmp_path}/seal: found an input of this command; expected a different output\n"
        f"  {tmp_path}/a: found a file that was edited since benchmark-eval wrote it; expected no "
        "file\n"
        f"  {tmp_path}/b: found a link; expected no file\n"
        "nothing was written; use another output folder (--force replaces existing files, but "
        "never inputs or folders)"
    )


def test_a_listing_reads_by_suffix_and_no_hidden_files(tmp_path):
    listing = Listing(tmp_path, (".txt",))
    write(tmp_path, "x", ["a.csv", ".b.txt"], inputs=[listing])
    for name in ("a.txt", "A.TXT"):
        with (
            pytest.raises(UsageError, match=r"every \.txt file is read"),
            claim(tmp_path, [name], inputs=[listing]),
        ):
            pass
    write(tmp_path, "x", ["below/a.txt"], inputs=[listing])


def test_an_edited_record_does_not_reach_other_files(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("x")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of x
    files = {name: [digest] for name in ["../mine", f"{tmp_path}/mine", "p/../../mine", "p//m"]}
    record = {"version": 1, "files": files}
    (tmp_path / "out" / RECORD).write_text(json.dumps(record))
    assert read_record(tmp_path / "out") == {}
    record["version"] = 0
    record["files"] = {"a": [digest]}
    (tmp_path / "out" / RECORD).write_text(json.dumps(record))
    assert read_record(tmp_path / "out") == {}
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "out" / RECORD).unlink()
    (tmp_path / "out" / RECORD).symlink_to(tmp_path / "elsewhere")
    assert read_record(tmp_path / "out") == {}


def test_a_linked_subfolder_is_replaced_only_with_force(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "d").write_text("mine")
    (tmp_path / "c").symlink_to("target")
    with pytest.raises(UsageError, match="a link in place of the folder c"):
        write(tmp_path, "new")
    write(tmp_path, "new", force=True)
    assert content(tmp_path) == complete("new") | {"target/d": "mine"}


def test_a_folder_that_is_not_writable_is_reported(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="expected a writable folder"):
            write(folder, "new")


def test_a_failed_write_names_the_output(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        write(tmp_path, "new")
    assert error.value.filename == str(tmp_path / "a")


# --------------------------------------------------------------------------- whole folders


def test_a_new_folder_appears_complete_or_not_at_all(tmp_path, monkeypatch):
    with new_folder(tmp_path / "x" / "new") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "x" / "new").exists()
    assert content(tmp_path) == {"x/new/a": "1"}
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "y" / "new"):
        1 / 0  # noqa: B018
    assert not (tmp_path / "y").exists()
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as folder:
        (folder / "a").write_text("1")
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UsageError, match="new or empty"), new_folder("."):
        pass
    (tmp_path / "empty" / "a").unlink()
    with new_folder(".") as folder:  # a shell stays in its folder
        (folder / "b").write_text("2")
    assert content(Path()) == {"b": "2"}


def test_a_folder_that_is_filled_meanwhile_is_kept(tmp_path):
    with pytest.raises(UsageError, match="new or empty"), new_folder(tmp_path / "new") as folder:
        (folder / "a").write_text("ours")
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "a").write_text("mine")
    assert content(tmp_path) == {"new/a": "mine"}


# ------------------------------------------------------------------------ several processes

WRITER = """
import sys
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import claim

folder, word, *names = sys.argv[1:]
for line in sys.stdin:
    try:
        with claim(folder, names) as out:
            print("claimed", flush=True)
            sys.stdin.readline()
            for name in names:
                out.write(name, f"{word} {name}".encode())
            out.publish(names[-1])
        print("done", flush=True)
    except UsageError as error:
        print(error, flush=True)
"""


class Writer:
    """Another process, which claims files when told to, and writes them when told to."""

    def __init__(self, folder, word, names=NAMES):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), word, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def writers(tmp_path):
    made = []

    def start(*args):
        made.append(Writer(tmp_path, *args))
        return made[-1]

    yield start
    for writer in made:
        writer.kill()


def test_a_second_process_is_told_that_another_one_is_writing(tmp_path, writers):
    write(tmp_path, "old")
    first = writers("first")
    first.step()
    assert first.answer() == "claimed"
    for _ in range(3):
        with pytest.raises(UsageError, match="another process is writing a, b, c/d and 1 more"):
            write(tmp_path, "second", force=True)
        with pytest.raises(UsageError, match="another process is writing b"):
            write(tmp_path, "second", ["b", "other"])
    assert content(tmp_path) == complete("old")
    first.step()
    assert first.answer() == "done"
    assert content(tmp_path) == complete("first")
    write(tmp_path, "second")
    assert content(tmp_path) == complete("second")


def test_processes_with_different_files_share_a_folder(tmp_path, writers):
    others = [writers(f"{number}", [f"file {number}", "x/" + str(number)]) for number in range(4)]
    for _ in range(5):
        for step in ("claimed", "done"):
            for other in others:
                other.step()
            assert [other.answer() for other in others] == [step] * 4
    assert len(content(tmp_path)) == 8
    assert set(read_record(tmp_path)) == set(content(tmp_path))


def test_of_processes_that_start_together_one_writes(tmp_path, writers):
    others = [writers(str(number)) for number in range(3)]
    for _ in range(20):
        for other in others:
            other.step()
        answers = [other.answer() for other in others]
        assert answers.count("claimed") == 1
        assert sum(f"{tmp_path}: another process is writing" in text for text in answers) == 2
        for other, text in zip(others, answers, strict=True):
            if text == "claimed":
                other.step()
                assert other.answer() == "done"
            else:  # two more lines of the message
                assert "\n" not in text
        assert content(tmp_path) in [complete(str(number)) for number in range(3)]
    assert hidden(tmp_path) == []


def test_what_a_killed_process_left_is_removed_and_nothing_of_a_live_one(tmp_path, writers):
    killed, live = writers("killed", ["a"]), writers("live", ["b"])
    for writer in (killed, live):
        writer.step()
        assert writer.answer() == "claimed"
    assert len(hidden(tmp_path)) == 2
    killed.kill()
    (tmp_path / ".benchmark-eval-notes").mkdir()
    (tmp_path / ".benchmark-eval-notes" / "mine").write_text("mine")
    write(tmp_path, "new", ["a"])
    assert len(hidden(tmp_path)) == 2  # of the live process, and the user's
    assert (tmp_path / ".benchmark-eval-notes" / "mine").exists()
    live.step()
    assert live.answer() == "done"
    assert content(tmp_path) == {"a": "new a", "b": "live b"}


def test_without_locks_files_are_written_and_nothing_is_cleaned(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    left = tmp_path / f"{outputs.STAGE}x"
    left.mkdir()
    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    write(tmp_path, "old")
    write(tmp_path, "new")
    assert content(tmp_path) == complete("new")
    assert hidden(tmp_path) == [left.name]


def test_a_forked_child_does_not_keep_the_claim_of_a_killed_process(tmp_path):
    code = f"""
import os, signal, sys, time
from benchmark_eval.core.outputs import claim
with claim({str(tmp_path)!r}, ["a.txt"]):
    if os.fork() == 0:
        print("forked", flush=True)
        time.sleep(60)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout.readline() == b"forked\n"
            assert process.wait() == -signal.SIGKILL
            with claim(tmp_path, ["a.txt"]) as output:
                output.write("a.txt", b"new")
                output.publish()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "a.txt"]


def test_a_record_of_a_later_version_is_refused(tmp_path):
    (tmp_path / RECORD).write_text('{"version": 99, "files": {}}')
    with (
        pytest.raises(UsageError, match="found version 99; expected version 1"),
        claim(tmp_path, ["a.txt"]),
    ):
        pass
    assert list(tmp_path.iterdir()) == [tmp_path / RECORD]


def test_a_hidden_folder_of_another_host_stays(tmp_path):
    hidden = tmp_path / f"{STAGE}other"
    (hidden / "files").mkdir(parents=True)
    (hidden / "claim.json").write_text('{"host": "elsewhere", "names": ["a.txt"]}')
    with claim(tmp_path, ["a.txt"]) as output:
        output.write("a.txt", b"new")
        output.publish()
    assert hidden.is_dir()


def test_a_folder_with_a_hidden_folder_of_a_killed_process_is_filled(tmp_path):
    (tmp_path / "new" / f"{STAGE}killed").mkdir(parents=True)
    with new_folder(tmp_path / "new") as made:
        (made / "a.txt").write_text("a")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("kind", ["notes", "link", "folder"])
def test_something_else_at_the_place_of_the_record_is_refused(tmp_path, kind):
    record = tmp_path / RECORD
    if kind == "notes":
        record.write_text("my notes")
    elif kind == "link":
        record.symlink_to("elsewhere")
    else:
        record.mkdir()
    with pytest.raises(UsageError, match="expected a record or no such file"):
        claim(tmp_path, ["a.txt"], force=True).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == [RECORD]


def test_a_hidden_folder_of_the_user_stays(tmp_path):
    mine = tmp_path / f"{STAGE}backup/files/x"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    with claim(tmp_path, ["a.txt"]) as output:
        output.write("a.txt", b"new")
        output.publish()
    assert mine.read_text() == "precious"


def test_an_empty_folder_keeps_its_permissions(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2775)
    with new_folder(folder) as made:
        (made / "a.txt").write_text("a")
    assert folder.stat().st_mode & 0o7777 == 0o2775
