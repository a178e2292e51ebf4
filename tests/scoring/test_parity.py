"""Parity: every metric equals that of the benchmark's evaluator and of pycocotools.

Tested on adversarial benchmarks (``adversarial.py``) from fixed seeds and from a fresh seed per
run; the environment variable ``PARITY_SEED`` replays the latter. The only exceptions are the
rules in ``comparison.py``, one for each deviation in docs/deviations.md.
"""

from collections import Counter

import pytest
from support import adversarial, direct_coco
from support.comparison import Comparison, compare, run_ours, run_yardstick

pytestmark = pytest.mark.parity

AT_ONCE = 12
CHUNKS = 10
LEAST = 5_000
"""Fewest values that a chunk of fixed seeds compares: 50,000 in total."""


def check_draw(seed, folder):
    """Compare one draw with the yardstick; return the comparison."""
    case = adversarial.draw(seed, folder)
    ours, files = run_ours(case, folder / "out")
    comparison = compare(run_yardstick(case), case, ours, files)
    assert not comparison.differences, (
        f"seed {seed}, splits {case.splits}, iou {case.iou}: "
        f"{len(comparison.differences)} of {comparison.n_values} values differ\n"
        + "\n".join(comparison.differences[:30])
    )
    return comparison


def check_draws(first_seed, folder, record_property):
    """Compare consecutive draws; return the number of compared values."""
    n_values, used = 0, Counter()
    for seed in range(first_seed, first_seed + AT_ONCE):
        comparison = check_draw(seed, folder / str(seed))
        n_values += comparison.n_values
        used += comparison.used
    record_property("yardstick", n_values)
    for deviation, count in used.items():
        record_property(f"deviation {deviation}", count)
    return n_values


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_equals_the_benchmarks_evaluator(chunk, tmp_path, record_property):
    assert check_draws(chunk * AT_ONCE, tmp_path, record_property) >= LEAST


def test_equals_the_benchmarks_evaluator_on_a_fresh_draw(fresh_seed, tmp_path, record_property):
    assert check_draws(fresh_seed, tmp_path, record_property) > 1_000


def test_equals_the_benchmarks_evaluator_with_small_chunks(monkeypatch, tmp_path, record_property):
    # small benchmarks never fill a chunk; no metric may depend on the sizes
    monkeypatch.setattr("benchmark_eval.scoring.pairs.PAIRS_AT_ONCE", 5)
    monkeypatch.setattr("benchmark_eval.scoring.matching.PAIRS_IN_BLOCK", 3)
    monkeypatch.setattr("benchmark_eval.scoring.matching.ROUNDS_AT_ONCE", 1)
    assert check_draws(500, tmp_path, record_property) >= LEAST


def test_the_fixed_seeds_cover_every_edge_case(tmp_path):
    met = set()
    for seed in range(CHUNKS * AT_ONCE):
        met |= adversarial.draw(seed, tmp_path / str(seed)).twists
    assert adversarial.TWISTS - met == set()
    assert met - adversarial.TWISTS == set(), "an edge case that is not listed"


@pytest.mark.parametrize("seed", range(1000, 1024))
def test_both_engines_equal_pycocotools(seed, tmp_path, record_property):
    case = adversarial.draw(seed, tmp_path)
    fast, _ = run_ours(case, tmp_path / "fast")
    second, _ = run_ours(case, tmp_path / "second", engine="pycocotools")
    n_values = 0
    for split in case.splits:
        for ours in (fast, second):
            comparison = Comparison()
            comparison.tree(direct_coco.scores(case, split), ours["per_split"][split])
            assert not comparison.differences, comparison.differences[:30]
            n_values += comparison.n_values
    record_property("pycocotools", n_values)
    assert n_values > 20
    for key in ("per_split", "summary", "headline"):
        comparison = Comparison()
        comparison.tree(second[key], fast[key])
        assert not comparison.differences, comparison.differences[:30]
