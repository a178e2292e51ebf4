"""The reference implementation of TIDE, loaded from the folder that ``make setup`` fills."""

import functools
import importlib
import sys
import types
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".yardstick/tidecv"
TYPES = {
    "wrong_name": "ClassError",
    "poor_box": "BoxError",
    "both": "OtherError",
    "duplicate": "DuplicateError",
    "background": "BackgroundError",
    "missed": "MissedError",
}
"""Our name of each error type, and tidecv's class."""


@functools.cache
def module():
    """Import tidecv's evaluation without its plots, which need opencv and seaborn."""
    assert FOLDER.is_dir(), f"{FOLDER} is missing: run make setup"
    package = types.ModuleType("tidecv")
    package.__path__ = [str(FOLDER)]
    plots = types.ModuleType("tidecv.plotting")
    plots.Plotter = type("Plotter", (), {"__init__": lambda self, *_, **__: None})
    pictures = types.ModuleType("cv2")
    pictures.FONT_HERSHEY_SIMPLEX, pictures.LINE_AA = 0, 0
    stubs = {"tidecv": package, "tidecv.plotting": plots, "cv2": pictures}
    before = {name: sys.modules.get(name) for name in stubs}
    sys.modules.update(stubs)
    try:
        return importlib.import_module("tidecv.quantify"), importlib.import_module("tidecv.data")
    finally:
        for name, old in before.items():
            if name != "tidecv":
                sys.modules.pop(name)
            if old is not None:
                sys.modules[name] = old


def errors(images, truth, rows, max_detections=100):
    """Counts and AP gains (fractions) by our names, and AP, by tidecv.

    ``truth`` holds [image, category, box], ``rows`` [image, category, box, score].
    """
    quantify, data = module()
    annotations, predictions = (data.Data(name, max_detections) for name in ("truth", "rows"))
    for image in sorted(images):
        annotations.add_image(image, str(image))
    for image, category, box in sorted(truth, key=lambda row: row[0]):
        annotations.add_ground_truth(image, category, box)
    for image, category, box, score in sorted(rows, key=lambda row: row[0]):
        predictions.add_detection(image, category, score, box)
    run = quantify.TIDE().evaluate(annotations, predictions, mode="bbox")
    counts = {kind.__name__: n for kind, n in run.count_errors().items()}
    gains = {kind.__name__: gain / 100 for kind, gain in run.fix_main_errors().items()}
    return (
        {name: counts[kind] for name, kind in TYPES.items()},
        {name: gains[kind] for name, kind in TYPES.items()},
        run.ap / 100,
    )
