"""The wheel contains the workflow and runs a sweep in a new environment, without the repository."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest
from support.factories import write_benchmark
from support.workflow_sweep import ROOT, Sweep, write_predictions

from benchmark_eval.training.scaffold import init_project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

BUNDLED = "benchmark_eval/bundled/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a source distribution, which contains no ignored files."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("*.whl")
    return found


def pip(*args):
    """Run the pip of this environment, without network."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *args]
    done = subprocess.run(
        [*command, "--no-index", "--no-deps"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_contains_the_workflow_with_its_config_profiles_and_schemas(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    expected = {f"workflow/{name}": data for name, data in content(ROOT / "workflow").items()}
    for name, data in content(ROOT / "profiles").items():
        expected[f"workflow/profiles/{name}"] = data
    for name in ("config.schema.json", "manifest.schema.json"):
        data = (ROOT / "benchmark_eval/inputs/schemas" / name).read_bytes()
        expected[f"workflow/schemas/{name}"] = data
    for name in ("config/README.md", "config/config.yaml"):
        expected[name] = (ROOT / name).read_bytes()
    bundled = {n.removeprefix(BUNDLED): d for n, d in found.items() if n.startswith(BUNDLED)}
    assert bundled == expected
    package = {f"benchmark_eval/{n}": d for n, d in content(ROOT / "benchmark_eval").items()}
    others = {name for name in found if not name.startswith(BUNDLED) and ".dist-info/" not in name}
    assert others == set(package)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin folder of a new environment with the wheel, and with the packages of this one."""
    folder = tmp_path_factory.mktemp("a new environment")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    # a path in a .pth file: .pth files in that folder (this package, editable) are not read
    (packages / "pins.pth").write_text(sysconfig.get_path("purelib"))
    pip("--python", folder / "bin/python", "install", "--ignore-installed", wheel)
    return folder / "bin"


@pytest.fixture
def call(installed, tmp_path):
    """Run a command of the new environment; returns its output including standard error."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }

    def run(command, *args, cwd=tmp_path):
        done = subprocess.run(
            [installed / command, *args],
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def test_a_project_runs_without_the_repository(call, installed, tmp_path):
    project = tmp_path / "a project"
    benchmark = write_benchmark(tmp_path / "benchmark")
    init_project(project, benchmark_dir=benchmark, conditions=[("global_uniform", "1")], seeds=[0])
    (project / "predictions/gu_k1_s0").rmdir()
    write_predictions(project / "predictions/gu_k1_s0", benchmark, 0)
    config = project / "config/config.yaml"
    config.write_text(config.read_text().replace("[svg, png]", "[svg]"))

    where = call("python", "-c", "import benchmark_eval; print(benchmark_eval.__file__)")
    assert where.startswith(str(installed.parent))
    output = call("benchmark-eval", "run", cwd=project)
    for folder in ("workflow", "benchmark_eval", "profiles"):
        assert f"{ROOT}/{folder}" not in output
    summary = json.loads((project / "results/models/gu_k1_s0/gu_k1_s0_summary.json").read_text())
    assert summary["model"] == "gu_k1_s0"
    assert (project / "results/aggregated/report.md").stat().st_size
    # the profile of the package is used
    assert f"{installed.parent}/lib" in next(
        line for line in output.splitlines() if "workflow specific profile" in line
    )

    # the workflow of a checkout accepts the installed package, and the fingerprints are the same
    checkout = Sweep(project)
    checkout.python = installed / "python"
    checkout.env["PYTHONPATH"] = ""
    assert checkout.planned() == (set(), set())
