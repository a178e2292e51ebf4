"""The scripts of profiles/sge, with a fake scheduler instead of Grid Engine."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

PROFILE = Path(__file__).parents[2] / "profiles/sge"

FAKE_QSTAT = """#!/bin/sh
[ "$1" = -j ] || exit 2
if [ -e "queue/$2" ]; then cat "queue/$2"; exit 0; fi
echo "Following jobs do not exist: "
echo "$2"
exit 1
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "queue").mkdir()
    qstat = tmp_path / "bin/qstat"
    qstat.write_text(FAKE_QSTAT)
    qstat.chmod(0o755)
    return tmp_path


def run(folder, command, **environment):
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "STATUS_WAIT": "0", **environment}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def status(folder, job):
    done = run(folder, [PROFILE / "status.sh", job])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def run_job(folder, job, command):
    """Run the script that Snakemake would submit for a command."""
    text = (PROFILE / "jobscript.sh").read_text()
    script = folder / "job.sh"
    script.write_text(text.format(properties="{}", exec_job=f"{command} && exit 0 || exit 1"))
    return run(folder, ["sh", script], JOB_ID=job).returncode


@pytest.mark.parametrize(
    ("command", "code", "expected"), [("true", 0, "success\n"), ("false", 1, "failed\n")]
)
def test_a_job_is_running_while_it_is_in_the_queue(folder, command, code, expected):
    (folder / "queue/7").write_text("job_number: 7\n")
    assert status(folder, "7") == "running\n"
    assert run_job(folder, "7", command) == code
    assert status(folder, "7") == "running\n"
    (folder / "queue/7").unlink()
    assert status(folder, "7") == expected


def test_a_killed_job_has_failed(folder):
    assert run_job(folder, "71", "true") == 0
    assert run_job(folder, "8", "kill -9 $$") != 0
    assert status(folder, "7") == "failed\n"  # killed before it started
    assert status(folder, "8") == "failed\n"
    assert status(folder, "71") == "success\n"


def test_a_job_that_cannot_start_has_failed(folder):
    (folder / "queue/7").write_text("job_number: 7\nerror reason 1: can't chdir\n")
    assert status(folder, "7") == "failed\n"


def test_a_scheduler_that_does_not_answer_is_asked_again(folder):
    (folder / "bin/qstat").write_text("#!/bin/sh\necho 'unable to contact qmaster' >&2\nexit 1\n")
    assert status(folder, "7") == "running\n"


def test_the_profile_uses_the_scripts_and_requests_seconds():
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text())
    assert (PROFILE / profile["jobscript"]).is_file()
    assert os.access(PROFILE / profile["cluster-generic-status-cmd"], os.X_OK)
    submit = profile["cluster-generic-submit-cmd"]
    for name, value in {"resources.mem_mb": 1200, "resources.runtime": 30, "threads": 1}.items():
        submit = submit.replace(f"{{{name}}}", str(value))
    shown = run(PROFILE, ["sh", "-c", f"printf '%s\\n' {submit}"]).stdout
    assert "h_vmem=1200M,h_rt=1800" in shown
    assert shlex.split(submit)[:2] == ["qsub", "-terse"]
