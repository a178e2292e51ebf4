"""An edit makes only those results stale that depend on the edited package."""

import shutil

import grimp
import pytest

from benchmark_eval.core import code_digest
from benchmark_eval.core.code_digest import (
    BUNDLED,
    ROOMS,
    SUFFIXES,
    WITHOUT_EFFECT,
    package_digest,
    source_files,
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    ignored = shutil.ignore_patterns("__pycache__")
    copy = shutil.copytree(code_digest.package_dir(), tmp_path / "benchmark_eval", ignore=ignored)
    monkeypatch.setattr(code_digest, "package_dir", lambda: copy)
    return copy


def digests():
    return {part: code_digest.code_digest.__wrapped__(part) for part in ROOMS}


@pytest.mark.parametrize(
    ("edited", "stale"),
    [
        ("core/errors.py", set()),
        ("core/problems.py", set()),
        ("core/memory.py", set()),
        ("results/frames.py", set()),
        ("sweep/frames.py", set()),
        ("sweep/compare.py", set()),
        ("sweep/sides.py", set()),
        ("cli/evaluate.py", set()),
        ("check/run.py", set()),
        ("pipeline/plan.py", set()),
        ("formats/coco.py", set()),
        ("report/facts.py", {"report"}),
        ("report/style.mplstyle", {"report"}),
        ("sweep/tables.py", {"sweep"}),
        ("training/regimes.py", {"sweep"}),
        ("training/tiers.py", {"scoring", "sweep"}),
        ("scoring/metrics/calibration.py", {"scoring"}),
        ("results/model_report.py", {"scoring", "sweep"}),
        ("inputs/predictions.py", {"index", "scoring", "sweep"}),
        ("inputs/schemas/config.schema.json", {"index", "scoring", "sweep"}),
        ("core/numbers.py", {"index", "scoring", "sweep"}),
        ("protocol.py", {"index", "scoring", "sweep"}),
    ],
)
def test_an_edit_makes_dependent_results_stale(package, edited, stale):
    before = digests()
    path = package / edited
    path.write_text(path.read_text() + "\n")
    after = digests()
    assert {part for part in ROOMS if before[part] != after[part]} == stale


def test_a_new_file_counts_but_backup_and_cache_files_do_not(package):
    before = digests()
    (package / "scoring/coco.py~").write_text("x")
    (package / "scoring/__pycache__").mkdir()
    (package / "scoring/__pycache__/coco.cpython-311.pyc").write_bytes(b"x")
    assert digests() == before
    (package / "scoring/new.py").write_text("")
    assert digests()["scoring"] != before["scoring"]


def test_digests_do_not_depend_on_the_location_of_the_package(package, tmp_path, monkeypatch):
    here = digests()
    other = shutil.copytree(package, tmp_path / "another place/benchmark_eval")
    monkeypatch.setattr(code_digest, "package_dir", lambda: other)
    assert digests() == here


def test_the_digest_of_the_package_covers_everything_except_the_bundled_workflow(package):
    here = package_digest(package)
    (package / BUNDLED / "workflow/scripts").mkdir(parents=True)
    (package / BUNDLED / "workflow/scripts/report.py").write_text("")
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__/protocol.cpython-311.pyc").write_bytes(b"x")
    assert package_digest(package) == here
    (package / "cli/main.py").write_text("")
    assert package_digest(package) != here


def test_every_listed_path_exists():
    root = code_digest.package_dir()
    for part in ROOMS:
        assert all((root / room).exists() for room in ROOMS[part])
        assert source_files(root, part)
    assert all((root / name).is_file() for name in WITHOUT_EFFECT)


def test_every_data_file_of_the_package_counts():
    root = code_digest.package_dir()
    found = {p.suffix for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert found - {".typed", ""} <= set(SUFFIXES)


@pytest.fixture(scope="module")
def imports():
    return grimp.build_graph(
        code_digest.PACKAGE, exclude_type_checking_imports=True, cache_dir=None
    )


def files_of(modules):
    """The files of modules, relative to the package folder; packages have their __init__."""
    root = code_digest.package_dir()
    for module in modules:
        path = "/".join(module.split(".")[1:])
        yield (
            f"{path}.py" if (root / f"{path}.py").is_file() else f"{path}/__init__.py".lstrip("/")
        )


@pytest.mark.parametrize("part", ROOMS)
def test_digests_cover_all_imports(imports, part):
    counted = set(source_files(code_digest.package_dir(), part))
    if part == "report":  # its fingerprint includes the digest of the sweep
        counted |= set(source_files(code_digest.package_dir(), "sweep"))
    modules = {m for m in imports.modules if set(files_of([m])) <= counted}
    counted |= {*WITHOUT_EFFECT, "__init__.py"}  # and the names that the package exports
    needed = {up for module in modules for up in imports.find_upstream_modules(module)}
    assert len(needed) > 5
    assert set(files_of(needed)) - counted == set()
