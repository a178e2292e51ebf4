"""Mutation tests: the parity tests detect each of these small mistakes in the package.

A mutant is a copy of the package with one text in one file replaced, loaded instead of the
package. The comparison of ``test_parity.py`` must then find a difference in the first draws.
"""

import contextlib
import functools
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from support import adversarial
from support.comparison import compare, ours_of, run_yardstick

pytestmark = pytest.mark.parity

PACKAGE = Path(__file__).parents[2] / "benchmark_eval"
N_DRAWS = 12
SEARCHED = 90


class Mutant(NamedTuple):
    """A mistake: ``old``, which occurs once in ``file``, is replaced with ``new``.

    ``twist`` is an edge case that a draw must contain to show the mistake.
    """

    file: str
    old: str
    new: str
    twist: str = ""


MUTANTS = {
    "crowd ignored by the COCO matching": Mutant(
        "scoring/coco.py",
        "pairs.subset(pairs.overlap >= MATCH_THRESHOLDS[0])",
        "pairs.subset(~pairs.crowd & (pairs.overlap >= MATCH_THRESHOLDS[0]))",
        "crowd",
    ),
    "crowd ignored by the localisation matching": Mutant(
        "scoring/matching.py",
        "on_crowd[pairs.detection[reach & pairs.crowd & kept[pairs.truth]]] = True",
        "pass",
        "crowd",
    ),
    "crowd scored": Mutant(
        "scoring/coco.py", "included = ~truth.crowd & (suite", "included = (suite", "crowd"
    ),
    "crowd overlap measured as plain IoU": Mutant(
        "scoring/pairs.py",
        "overlap = inter / area if self.crowd else iou",
        "overlap = iou",
        "crowd",
    ),
    "crowd ignores by intersection over detection area in the localisation matching": Mutant(
        "scoring/matching.py", "reach = pairs.iou >= iou", "reach = pairs.overlap >= iou", "crowd"
    ),
    "above the threshold, not at it: COCO, uncontested": Mutant(
        "scoring/matching.py", "overlap[easy] >= threshold", "overlap[easy] > threshold"
    ),
    "above the threshold, not at it: COCO, contested": Mutant(
        "scoring/matching.py",
        "free &= overlap >= self.thresholds",
        "free &= overlap > self.thresholds",
    ),
    "above the threshold, not at it: localisation": Mutant(
        "scoring/matching.py", "reach = pairs.iou >= iou", "reach = pairs.iou > iou"
    ),
    "COCO matches the first on equal IoU": Mutant(
        "scoring/coco.py",
        "last_on_ties=True",
        "last_on_ties=False",
        "two specimens at one distance",
    ),
    "localisation matches the last on equal IoU": Mutant(
        "scoring/matching.py",
        "last_on_ties=False",
        "last_on_ties=True",
        "two specimens at one distance",
    ),
    "equal scores in reverse file order": Mutant(
        "scoring/detections.py",
        "best_first = _best_first(score)",
        "best_first = np.lexsort((-np.arange(len(score)), -score))",
    ),
    "cap of 101": Mutant(
        "scoring/coco.py",
        "CAPS = (1, 10, 100)",
        "CAPS = (1, 10, 101)",
        "more than 100 boxes on an image",
    ),
    "cap per image, not per image and category": Mutant(
        "scoring/coco.py",
        "detections.rank_in_category,",
        "detections.rank,",
        "more than 100 boxes on an image",
    ),
    "ignored specimens matched like scored ones": Mutant(
        "scoring/coco.py",
        "truth.crowd | ~in_area_ranges(truth.area)",
        "truth.crowd | (in_area_ranges(truth.area) & False)",
    ),
    "area border exclusive": Mutant(
        "scoring/coco.py", "(area >= low) & (area <= high)", "(area >= low) & (area < high)"
    ),
    "area of a specimen computed, not read": Mutant(
        "inputs/coco_annotations.py",
        "np.where(np.isnan(area), ",
        "np.where(np.isnan(area) | True, ",
    ),
    "unscored species included in the mean": Mutant(
        "scoring/coco.py",
        "defined = values[~np.isnan(values)]",
        "defined = np.nan_to_num(values.ravel())",
    ),
    "right search of recall points": Mutant(
        "scoring/coco.py", "np.where(needed / n < r", "np.where(needed / n <= r"
    ),
    "class-agnostic without unlisted species": Mutant(
        "scoring/coco.py",
        "np.zeros(len(detections), np.int64)",
        "np.where(np.isin(detections.category, truth.listed), 0, -1)",
    ),
    "unlisted categories kept": Mutant(
        "inputs/predictions.py", "if split in SPECIES_SPLITS:", "if False:"
    ),
    "blank ranks equal": Mutant("scoring/split_data.py", " & (code[true] >= 0)", "", "blank rank"),
    "hierarchy not cumulative": Mutant(
        "scoring/split_data.py",
        "equal(categories.genus_code),",
        "equal(categories.genus_code) & ~equal(categories.name_code),",
    ),
    "true positives of a band from the matching of the split": Mutant(
        "scoring/metrics/ood_by_band.py",
        "local = localise(detections, truth, data.pairs, data.local.iou, keep)",
        "local = data.local",
        "two bands in one place",
    ),
    "specimens of other bands kept": Mutant(
        "scoring/metrics/ood_by_band.py",
        "suite.restricted(inside, keep)",
        "suite.restricted(inside, images[data.truth.image])",
        "two bands on an image",
    ),
    "undefined fraction is zero": Mutant(
        "core/numbers.py",
        "int(part) / int(whole) if whole else None",
        "int(part) / int(whole) if whole else 0.0",
    ),
    "confidence bins include their upper edge": Mutant(
        "scoring/metrics/calibration.py", 'side="right"', 'side="left"'
    ),
    "tiers by listed species": Mutant(
        "scoring/metrics/class_imbalance.py",
        "rows = rows[scored & (",
        "rows = rows[(",
        "listed but unscored species",
    ),
    "ties in the novelty score without mid-ranks": Mutant(
        "scoring/metrics/summary.py", "np.cumsum(count) - (count - 1) / 2", "np.cumsum(count)"
    ),
}
# `1 - 1e-10` has no mutant: no COCO threshold is above 0.95


@contextlib.contextmanager
def loaded(mutant, folder):
    """Load the mutant instead of the package."""
    copy = folder / "benchmark_eval"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        source = (copy / mutant.file).read_text()
        assert source.count(mutant.old) == 1, f"{mutant.old!r} does not occur once in {mutant.file}"
        (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new))
    kept = _unload()
    init = copy / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        "benchmark_eval", init, submodule_search_locations=[str(copy)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["benchmark_eval"] = package
    try:
        spec.loader.exec_module(package)
        yield
    finally:
        _unload()
        sys.modules.update(kept)


def _unload():
    """Remove the package from the loaded modules; return what was removed."""
    names = [name for name in sys.modules if name.split(".")[0] == "benchmark_eval"]
    return {name: sys.modules.pop(name) for name in names}


@functools.cache
def drawn(seed):
    """A case and the yardstick's result for it."""
    case = adversarial.draw(seed, Path(_folder().name) / str(seed))
    return case, run_yardstick(case)


@functools.cache
def twists_of(seed):
    with tempfile.TemporaryDirectory() as folder:
        return adversarial.draw(seed, Path(folder)).twists


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()  # kept alive by the cache


def draws_with(twist):
    """The first seeds whose draw contains an edge case."""
    seeds = (s for s in range(SEARCHED) if not twist or twist in twists_of(s))
    return [seed for seed, _ in zip(seeds, range(N_DRAWS), strict=False)]


def differences(seeds):
    """Differences from the yardstick for the first seed that has any."""
    for seed in seeds:
        case, results = drawn(seed)
        found = compare(results, case, ours_of(case)).differences
        if found:
            return found
    return []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_detected(name, tmp_path):
    with loaded(MUTANTS[name], tmp_path):
        assert differences(draws_with(MUTANTS[name].twist))


def test_an_unchanged_copy_has_no_differences(tmp_path):
    with loaded(None, tmp_path):
        import benchmark_eval

        assert Path(benchmark_eval.__file__).is_relative_to(tmp_path)
        assert differences(range(4)) == []
