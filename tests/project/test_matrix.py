"""The file of GitHub Actions and ``make test-matrix`` test the versions that are supported."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from support.workflow_sweep import ROOT

CI = ROOT / ".github/workflows/ci.yml"
spec = importlib.util.spec_from_file_location("matrix", ROOT / "tests/matrix/run.py")
matrix = importlib.util.module_from_spec(spec)
spec.loader.exec_module(matrix)


def test_the_lowest_snakemake_is_the_one_that_the_workflow_requires():
    assert matrix.requirement("newest") == "snakemake"
    (lowest,) = re.findall(
        r'^min_version\("(.*)"\)$', (ROOT / "workflow/Snakefile").read_text(), re.M
    )
    assert matrix.requirement("lowest") == f"snakemake=={lowest}.*"


def test_the_versions_on_github_are_those_of_the_script():
    jobs = yaml.safe_load(CI.read_text())["jobs"]
    versions = jobs["versions"]["strategy"]["matrix"]
    assert versions == {"python": list(matrix.PYTHONS), "snakemake": ["lowest", "newest"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={matrix.PYTHONS[0]}"
    called = [step["run"] for step in jobs["versions"]["steps"] if "run" in step]
    assert called == ['python tests/matrix/run.py --snakemake "$SNAKEMAKE"']


@pytest.mark.parametrize(
    ("pythons", "expected"),
    [
        (["3.12"], [("3.12", "lowest"), ("3.12", "newest")]),
        (["3.11", "3.13"], [("3.11", "lowest"), ("3.11", "newest"), ("3.13", "newest")]),
    ],
)
def test_the_oldest_python_is_tested_with_both(pythons, expected):
    assert matrix.combinations(pythons) == expected


def test_a_python_that_does_not_run_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "python3.12").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.12").chmod(0o755)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    here = Path(sys.executable).resolve()
    monkeypatch.setenv("PATH", f"{tmp_path}:{here.parent}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert set(matrix.installed_pythons()) == {version}


def linted(folder):
    zizmor = shutil.which("zizmor", path=Path(sys.executable).parent)
    command = [zizmor, "--offline", "--no-progress", "--strict-collection", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_file_for_github_has_no_problems(tmp_path):
    done = linted(CI.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / ".github/workflows/ci.yml"
    broken.parent.mkdir(parents=True)
    broken.write_text(CI.read_text().replace("runs-on:", "run-on:"))
    done = linted(broken.parent)
    assert done.returncode != 0
    assert '"runs-on" is a required property' in done.stderr
    unpinned = re.sub(r"checkout@\w+", "checkout@v4", CI.read_text())
    broken.write_text(unpinned)
    assert linted(broken.parent).returncode != 0


def test_the_sweep_of_the_catalog_is_the_one_that_is_tested():
    config = yaml.safe_load((ROOT / ".test/config/config.yaml").read_text())
    assert {key: config[key] for key in ("benchmark_dir", "predictions_dir", "manifest")} == {
        "benchmark_dir": "data/benchmark",
        "predictions_dir": "data/predictions",
        "manifest": "data/manifest.csv",
    }
    ignored = subprocess.run(
        ["git", "check-ignore", ".test/data/x", ".test/results/x", ".matrix/x"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert len(ignored.stdout.splitlines()) == 3
