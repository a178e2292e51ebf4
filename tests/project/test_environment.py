"""environment.yml and the pins match the dependencies in pyproject.toml."""

import itertools
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def name(requirement):
    return re.split(r"[<>=! \[]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_conda_environment_matches_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    expected = sorted(r.replace(" ", "") for r in project["dependencies"])
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [d for d in environment["dependencies"] if isinstance(d, str)]
    found = sorted(d.replace(" ", "") for d in conda if name(d) not in {"python", "pip"})
    # conda-forge has separate packages for two libraries without GUI or extras
    found = sorted(
        d.replace("matplotlib-base", "matplotlib").replace("snakemake-minimal", "snakemake")
        for d in found
    )
    assert found == expected
    python = next(d for d in conda if name(d) == "python")
    assert python == f"python{project['requires-python']}"


def test_every_dependency_is_pinned_exactly():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^ ;]+( ;.*)?", pin) for pin in pins)
    extras = project["optional-dependencies"].values()
    listed = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    assert {name(r) for r in listed} <= {name(pin) for pin in pins}


def test_requirements_files_contain_no_download_address():
    for path in ROOT.glob("requirements*.txt"):
        assert not re.search(r"https?://|file://|--index|--find-links", path.read_text()), path
