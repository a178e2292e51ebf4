"""Every runtime dependency is imported by the package or its workflow."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def runtime_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {normal(re.split(r"[<>=!~ \[;]", r, maxsplit=1)[0]) for r in project["dependencies"]}


@cache
def imported():
    """Top-level names of the modules that the sources import, without the package itself."""
    names = set()
    for path in (ROOT / "benchmark_eval").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
    # Snakefiles cannot be parsed by ast
    for path in [*ROOT.glob("workflow/Snakefile"), *ROOT.glob("workflow/rules/*.smk")]:
        names.update(re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(), re.M))
    return {name.partition(".")[0] for name in names} - {"benchmark_eval"}


@cache
def installed():
    """The packages that provide each top-level module; reads all installed packages."""
    return packages_distributions()


def unused(dependencies, modules):
    homes = installed()
    used = {normal(package) for module in modules for package in homes.get(module, ())}
    return sorted(dependencies - used)


def test_every_runtime_dependency_is_imported():
    assert unused(runtime_dependencies(), imported()) == []


def test_every_imported_package_is_a_runtime_dependency():
    homes = installed()
    others = imported() - sys.stdlib_module_names
    undeclared = {m for m in others if not {normal(p) for p in homes[m]} & runtime_dependencies()}
    assert undeclared == set()


def test_an_unused_dependency_is_found():
    modules = imported()
    assert unused(runtime_dependencies(), modules - {"pandas"}) == ["pandas"]
    assert unused({"rich", "pytest"}, modules) == ["pytest"]
