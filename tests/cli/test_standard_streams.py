"""Closed and full standard streams, a closed pipe and Ctrl-C: exit code, and no traceback."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import benchmark_eval
from benchmark_eval.synthetic import make_synthetic

pytestmark = pytest.mark.slow  # starts processes

ROOT = Path(__file__).parents[2]
COMMAND = f"{shlex.quote(sys.executable)} -m benchmark_eval"
FULL = "standard output: No space left on device"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return make_synthetic(tmp_path_factory.mktemp("tree"), scale=0.005, jobs=1)


def shell(line, cwd, **more):
    """Run a command line; returns exit code, standard output and standard error."""
    done = subprocess.run(
        ["bash", "-c", line], cwd=cwd, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, **more
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("catalogue", 0),
        ("--version", 0),
        ("check --benchmark-dir missing", 1),
        ("evaluate --benchmark-dir missing --predictions-dir x --output-dir y", 1),
        ("convert missing x --to coco", 2),
        ("nosuch", 2),
        ("", 2),
    ],
)
@pytest.mark.parametrize(
    "streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", ">&- 2>/dev/full"]
)
def test_closed_streams_do_not_change_the_exit_code(tmp_path, words, code, streams):
    assert shell(f"{COMMAND} {words} {streams}", tmp_path)[0] == code
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_output_is_not_taken_by_a_result_file(tmp_path, tree):
    """The first file that is opened would get its number; the model's report would go there."""
    (model,) = tree.predictions_dir.iterdir()
    words = f"evaluate --benchmark-dir {tree.benchmark_dir} --predictions-dir {model} --output-dir"
    assert shell(f"{COMMAND} {words} a", tmp_path)[0] == 0
    assert shell(f"{COMMAND} {words} b <&- >&- 2>&-", tmp_path)[0] == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}


def test_a_question_without_standard_input_is_not_asked(tmp_path):
    (tmp_path / "r.json").write_text(
        '[{"image_id": 1, "category_id": 0, "bbox": [1, 1, 2, 2], "score": 0.5}]'
    )
    (tmp_path / "n.txt").write_text("a\n")
    line = f"{COMMAND} convert r.json o.json --from detectron2 --to huggingface --names n.txt <&-"
    code, _, printed = shell(line, tmp_path)
    assert code == 1
    assert "expected confirmation: --first-class 0 or --yes" in printed


@pytest.mark.parametrize("words", ["catalogue", "--version", "--help", "map --help"])
def test_a_full_disk_behind_standard_output(tmp_path, words):
    code, _, printed = shell(f"{COMMAND} {words} >/dev/full", tmp_path)
    assert code == 2
    assert printed.endswith("No space left on device\n")


def test_findings_that_could_not_be_printed(tmp_path):
    code, _, printed = shell(f"{COMMAND} check --benchmark-dir missing >/dev/full", tmp_path)
    assert (code, printed) == (2, f"error: {FULL}\n")


@pytest.mark.parametrize("words", ["catalogue", "check --benchmark-dir missing --json"])
def test_a_closed_pipe(tmp_path, words):
    # the reader is gone before the command starts
    line = f"mkfifo p; exec 3<>p 4>p 3<&-; {COMMAND} {words} >&4; echo code $? >&2"
    _, printed, errors = shell(line, tmp_path)
    assert (printed, errors) == ("", "code 2\n")


INTERRUPT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {words!r}
from benchmark_eval.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("benchmark_eval.core", ["catalogue"]),
        ("benchmark_eval.core.interrupts", ["catalogue"]),
        ("benchmark_eval.cli.main", ["catalogue"]),
        ("click", ["catalogue"]),
        ("benchmark_eval.cli.evaluate", ["evaluate", "--help"]),
        ("numpy", ["evaluate", "--help"]),
        ("benchmark_eval.results.metric_page", ["catalogue"]),
        ("benchmark_eval.check.run", ["check", "--benchmark-dir", "missing"]),
    ],
)
def test_ctrl_c_while_modules_are_imported(tmp_path, module, words):
    code = INTERRUPT.format(module=module, words=words)
    exit_code, printed, errors = shell(
        f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", tmp_path
    )
    assert exit_code == 130
    assert printed == ""
    assert errors.strip() in ("", "interrupted")


def test_ctrl_c_that_is_ignored_stays_ignored(tmp_path):
    """As with ``nohup``, or in the background of a script."""
    code = INTERRUPT.format(module="click", words=["--version"])
    line = f"trap '' INT; {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    version = f"benchmark-eval, version {benchmark_eval.__version__}\n"
    assert shell(line, tmp_path)[:2] == (0, version)


def test_ctrl_c_raises_keyboard_interrupt_again_while_a_command_works():
    code = (
        "import signal\n"
        "from benchmark_eval.core.interrupts import exit_at_once, raise_as_usual\n"
        "exit_at_once()\n"
        "assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler\n"
        "raise_as_usual()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT)})
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
