"""Test the workflow with the oldest supported and the newest Snakemake (``make test-matrix``).

Each combination of Python and Snakemake has its own environment in .matrix/, with a wheel of this
package and the newest releases of all other packages. It runs the sweep of .test/ from the wheel,
and the tests of the workflow that are marked ``matrix``. Without options, the oldest Python that is
installed is combined with both versions of Snakemake, and the others with the newest.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".matrix"
PYTHONS = ("3.11", "3.12", "3.13")
TESTS = ("-m", "matrix", "tests/pipeline")
TOOLS = ("pytest", "pytest-xdist", "hypothesis")


def requirement(snakemake: str) -> str:
    """The requirement of pip: the lowest version in pyproject.toml, or any."""
    if snakemake == "newest":
        return "snakemake"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (lowest,) = re.findall(r"snakemake>=([\d.]+)", " ".join(project["dependencies"]))
    return f"snakemake=={lowest}.*"


def installed_pythons() -> dict[str, str]:
    """The interpreters on PATH or of pyenv, by version."""
    found = {}
    for version in PYTHONS:
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        for path in [shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python")]:
            if path is not None and version_of(path) == version:
                found[version] = str(path)
                break
    return found


def version_of(python: str | Path) -> str | None:
    """Major and minor version; None if the command does not run (such as a shim of pyenv)."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def combinations(versions: list[str]) -> list[tuple[str, str]]:
    """Pairs of a Python version and ``lowest`` or ``newest``."""
    return [(versions[0], "lowest"), *((version, "newest") for version in versions)]


class Environment:
    """An environment of one Python and one Snakemake."""

    def __init__(self, python: str, snakemake: str) -> None:
        version = version_of(python)
        self.name = f"python{version}-snakemake-{snakemake}"
        self.folder = ENVIRONMENTS / self.name
        self.bin = self.folder / "bin"
        self.python = python
        self.snakemake = snakemake

    def test(self) -> bool:
        """Install the packages and run the tests; whether all passed."""
        begun = time.monotonic()
        print(f"== {self.name}", flush=True)
        try:
            self.install()
            self.run_sweep()
            self.call("python", "-m", "pytest", "-q", "-n", "2", *TESTS, cwd=ROOT)
        except subprocess.CalledProcessError as error:
            print(f"== {self.name}: failed: {error}", flush=True)
            return False
        version = self.call("python", "-m", "snakemake", "--version", stdout=subprocess.PIPE)
        seconds = time.monotonic() - begun
        print(f"== {self.name}: Snakemake {version.strip()}, passed after {seconds:.0f} s")
        return True

    def install(self) -> None:
        """Create the environment anew: the newest release may have changed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([self.python, "-m", "venv", self.folder], check=True)
        packages = [str(ROOT), requirement(self.snakemake), *TOOLS]
        self.call("python", "-m", "pip", "install", "--quiet", *packages)

    def run_sweep(self) -> None:
        """Run the sweep of .test from the wheel, twice; the second run has nothing to do."""
        folder = self.folder / "sweep"
        shutil.copytree(ROOT / ".test/config", folder / "config")
        synth = ("synth", "--output-dir", "data", "--scale", "0.005")
        self.call("benchmark-eval", *synth, cwd=folder)
        self.call("benchmark-eval", "run", "--cores", "2", "--", "--quiet", "all", cwd=folder)
        again = self.call(
            *("benchmark-eval", "run", "--dry-run"), cwd=folder, stdout=subprocess.PIPE
        )
        if "Nothing to be done" not in again:
            raise subprocess.CalledProcessError(1, "benchmark-eval run --dry-run", again)

    def call(
        self, command: str, *args: str, cwd: Path | None = None, stdout: int | None = None
    ) -> str:
        """Run a command of this environment; with ``stdout=PIPE``, return all its output."""
        done = subprocess.run(
            [self.bin / command, *args],
            cwd=cwd or self.folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            stdout=stdout,
            stderr=None if stdout is None else subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout or ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--snakemake",
        choices=["lowest", "newest"],
        help="test only this version, with the Python that runs this script",
    )
    options = parser.parse_args()
    if options.snakemake:
        chosen = [Environment(sys.executable, options.snakemake)]
    else:
        pythons = installed_pythons()
        if not pythons:
            sys.exit(f"no Python found; expected one of {', '.join(PYTHONS)}")
        print(f"Python {', '.join(pythons)}", flush=True)
        chosen = [Environment(pythons[v], s) for v, s in combinations(list(pythons))]
    results = {environment.name: environment.test() for environment in chosen}
    failed = [name for name, passed in results.items() if not passed]
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
