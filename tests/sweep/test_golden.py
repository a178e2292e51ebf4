"""The same inputs give the same bytes: the stored ones, in every environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # runs whole sweeps in new processes

HERE = Path(__file__).parent / "golden"
SCRIPT = HERE / "sweep.py"


def run(folder, *options, **environment):
    """Run the sweep in its own process; returns {name: digest} and standard error."""
    done = subprocess.run(
        [sys.executable, SCRIPT, folder, *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    lines = [line.split("  ") for line in done.stdout.splitlines()]
    return {name: digest for digest, name in lines}, done.stderr


def test_golden_sweep(tmp_path):
    """After an intended change of results: sweep.py --renew, and say so in the commit."""
    found, _ = run(tmp_path)
    for path in HERE.glob("expected/*.csv"):
        (made,) = tmp_path.rglob(f"results/**/{path.name}")
        assert made.read_text() == path.read_text(), path.name
    expected = (HERE / "expected/SHA256SUMS").read_text().splitlines()
    assert [f"{digest}  {name}" for name, digest in sorted(found.items())] == expected


def dispatched():
    """Features of this processor for which numpy has special code, the oldest first."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__[name]]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A larger sweep, with sums long enough to depend on the order of addition."""
    found, _ = run(tmp_path_factory.mktemp("usual"), "--size", "30", "--plots")
    assert len(found) > 60
    return found


ENVIRONMENTS = {
    "another hash seed": {"PYTHONHASHSEED": "1"},
    "a third hash seed": {"PYTHONHASHSEED": "4294967295"},
    "another locale": {"LC_ALL": "C", "LANG": "tr_TR.UTF-8"},
    "no UTF-8": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "another time zone": {"TZ": "Asia/Kathmandu"},
    "OpenBLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS for Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1"},
    "numpy without the newest features": {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched()[-1:])},
    "numpy without any features": {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched())},
}


WITH_PLOTS = ("another hash seed", "another locale", "numpy without any features")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_same_bytes_in_other_environments(usual, tmp_path, name):
    plots = ["--plots"] if name in WITH_PLOTS else []
    found, errors = run(tmp_path, "--size", "30", *plots, **ENVIRONMENTS[name])
    assert (
        "NPY_DISABLE_CPU_FEATURES" not in errors
    )  # numpy warns of features that it cannot disable
    assert {name.endswith(".svg") for name in found} == {False, *map(bool, plots)}
    assert found == {name: digest for name, digest in usual.items() if name in found}
    assert len(found) == len(usual) - (0 if plots else 2)


def test_same_bytes_in_another_folder_and_order(usual, tmp_path):
    folder = tmp_path / "a folder with blanks, (and) more"
    found, _ = run(folder, "--size", "30", "--plots", "--reverse")
    assert found == usual


def test_positions_of_the_layout_are_rounded():
    """Their last bits depend on memory addresses, and names in an SVG depend on them."""
    from benchmark_eval.report.figures import Page, house_style

    with house_style():
        page = Page(2, 3)
        figure = page.headings("a title", [], "a note")
    sides = [side for panel in figure.axes for side in panel.get_position().bounds]
    assert len(sides) == 24
    assert sides == [pytest.approx(round(side, 5), abs=1e-15) for side in sides]
