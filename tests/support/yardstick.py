"""The benchmark's own evaluator, loaded from the file that ``make setup`` downloads."""

import contextlib
import functools
import importlib.util
import io
from pathlib import Path

FILE = Path(__file__).parents[2] / ".yardstick/ibbi/evaluate/_reference_evaluator.py"


@functools.cache
def module():
    """Load the evaluator's module without importing its package."""
    assert FILE.is_file(), f"{FILE} is missing: run make setup"
    spec = importlib.util.spec_from_file_location("yardstick_evaluator", FILE)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def run(benchmark, predictions, splits, iou=0.5):
    """The evaluator's results, with the private keys that its CSV writers need."""
    with contextlib.redirect_stdout(io.StringIO()):
        return module().run_evaluation(benchmark, predictions, list(splits), iou, quiet=True)
