"""The workflow that belongs to the package is found, and the command that runs it is right."""

import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from support.workflow_sweep import ROOT

from benchmark_eval.cli import run
from benchmark_eval.core.errors import UsageError
from benchmark_eval.pipeline import workflow_files
from benchmark_eval.pipeline.workflow_files import snakemake_command, workflow_dir

START = [sys.executable, "-P", "-m", "snakemake"]
WORKFLOW = ["--snakefile", str(ROOT / "workflow/Snakefile")]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_checkout_uses_its_own_files():
    assert workflow_dir() == ROOT / "workflow"
    assert (workflow_dir() / "profiles/default/config.yaml").is_file()
    assert (workflow_dir() / "../config/config.yaml").is_file()
    schemas = ROOT / "benchmark_eval/inputs/schemas"
    assert {path.name for path in (workflow_dir() / "schemas").iterdir()} == {
        path.name for path in schemas.iterdir()
    }
    assert all(path.resolve().parent == schemas for path in (ROOT / "workflow/schemas").iterdir())


def test_a_wheel_uses_the_files_that_it_contains(tmp_path, monkeypatch):
    package = tmp_path / "benchmark_eval"
    monkeypatch.setattr(workflow_files, "package_dir", lambda: package)
    with pytest.raises(UsageError, match="benchmark_eval: found no workflow; expected bundled/"):
        workflow_dir()
    (package / "bundled/workflow").mkdir(parents=True)
    (package / "bundled/workflow/Snakefile").touch()
    assert workflow_dir() == package / "bundled/workflow"


@pytest.mark.parametrize(
    ("options", "keys", "expected"),
    [
        ([], {}, ["--cores", "all", *WORKFLOW]),
        (["-n"], {"cores": "4"}, ["--cores", "4", *WORKFLOW, "-n"]),
        (
            ["tables"],
            {"configfiles": ["a.yaml", "b.yaml"]},
            ["--configfile", "a.yaml", "b.yaml", "--cores", "all", *WORKFLOW, "tables"],
        ),
        *(
            (given, {}, [*WORKFLOW, *given])
            for given in (
                ["-c2"],
                ["-j", "2"],
                ["--cores=2"],
                ["--jobs", "9"],
                ["--profile", "site"],
                ["--workflow-profile=slurm"],
            )
        ),
        (["--", "--cores"], {}, ["--cores", "all", *WORKFLOW, "--", "--cores"]),
    ],
)
def test_the_command(options, keys, expected):
    assert snakemake_command(options, **keys) == [*START, *expected]


def test_a_profile_in_the_current_folder_may_set_the_cores(tmp_path):
    (tmp_path / "profiles/default").mkdir(parents=True)
    assert snakemake_command([]) == [*START, *WORKFLOW]


@pytest.mark.parametrize(
    "options", [["-s", "x"], ["-sx"], ["--snakefile=x"], ["--quiet", "--snake", "x"]]
)
def test_another_workflow_is_refused(options):
    with pytest.raises(UsageError, match="snakemake --snakefile FILE"):
        snakemake_command(options)


def test_options_that_only_resemble_the_refused_one_are_passed_on():
    options = ["--shadow-prefix", "s", "--scheduler=greedy", "--software-deployment-method", "x"]
    assert snakemake_command(options)[-5:] == options
    assert snakemake_command(["--", "-s"])[-2:] == ["--", "-s"]


@pytest.fixture
def started(monkeypatch):
    """The commands that would replace the process."""
    commands = []
    monkeypatch.setattr(run.os, "execv", lambda path, words: commands.append([path, *words[1:]]))
    return commands


def test_options_of_the_command_line(started):
    args = ["--configfile", "a", "b", "-n", "--cores", "2", "--", "--config", "iou=0.6", "-k"]
    result = CliRunner().invoke(run.command, args)
    assert result.exit_code == 0, result.output
    head = ["--configfile", "a", "b", "--cores", "2", *WORKFLOW]
    assert started == [[*START, *head, "--dry-run", "--config", "iou=0.6", "-k"]]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-k"], "No such option '-k'. Options of Snakemake follow after --."),
        (["--configfile", "--", "tables"], "Option '--configfile' requires at least one value."),
    ],
)
def test_bad_usage(started, args, message):
    result = CliRunner().invoke(run.command, args)
    assert result.exit_code == 2
    assert message in result.output
    assert started == []


# a workflow in place of the real one, in a copy of its surroundings
SLOW = """
rule slow:
    shell: "echo $PPID > parent; sleep 60"
"""


@pytest.fixture
def in_wheel(tmp_path):
    """A package whose bundled workflow only sleeps; returns the command that runs it."""
    bundled = tmp_path / "benchmark_eval/bundled/workflow"
    bundled.mkdir(parents=True)
    (bundled / "Snakefile").write_text(SLOW)
    code = (
        "import sys, pathlib\n"
        "from benchmark_eval.pipeline import workflow_files\n"
        f"workflow_files.package_dir = lambda: pathlib.Path({str(bundled.parents[1])!r})\n"
        "from benchmark_eval.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    return [sys.executable, "-c", code, "run"]


@pytest.mark.workflow
def test_ctrl_c_and_other_signals_reach_snakemake(in_wheel, tmp_path):
    with subprocess.Popen(
        in_wheel, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        parent = tmp_path / "parent"
        while not (parent.exists() and parent.read_text()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        assert parent.read_text().strip() == str(process.pid)  # no process in between
        os.killpg(process.pid, signal.SIGINT)
        output = process.stderr.read()
    assert process.returncode == 1
    assert "Terminating processes on user request" in output
    assert list(tmp_path.glob(".snakemake/locks/*")) == []


@pytest.mark.workflow
def test_the_exit_code_is_that_of_snakemake(in_wheel):
    for args, code in (["--", "--list-rules"], 0), (["--", "no_such_target"], 1), (["--", "-z"], 2):
        done = subprocess.run([*in_wheel, *args], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
