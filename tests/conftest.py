"""Shared fixtures, and a summary of what the parity and trust tests tried in all processes."""

import fcntl
import os
import secrets
import signal
from collections import Counter

import pytest
from hypothesis import settings
from support.workflow_sweep import Sweep

settings.register_profile("default", deadline=None)  # do not fail on a busy machine
settings.load_profile("default")

PARITY_SEED = "PARITY_SEED"
DEEP = "HYPOTHESIS_EXAMPLES"


def pytest_configure():
    # a shell starts background jobs with SIGINT ignored, which tests of Ctrl-C would inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # set before xdist starts its workers, so that all of them inherit the same seed
    os.environ.setdefault(PARITY_SEED, str(10**6 + secrets.randbelow(10**9)))


def pytest_collection_modifyitems(config, items):
    """``make test-deep``: only the property tests, with the requested number of examples."""
    examples = int(os.environ.get(DEEP, "0"))
    if not examples:
        return
    deep = [item for item in items if getattr(item.obj, "is_hypothesis_test", False)]
    config.hook.pytest_deselected(items=[item for item in items if item not in deep])
    items[:] = deep
    for item in deep:
        usual = item.obj._hypothesis_internal_use_settings
        item.obj._hypothesis_internal_use_settings = settings(usual, max_examples=examples)


@pytest.fixture
def fresh_seed():
    """A new seed for each run, or the seed of the run to be reproduced."""
    return int(os.environ[PARITY_SEED])


@pytest.fixture(scope="session")
def base(tmp_path_factory, worker_id):
    """A finished sweep, run once and shared by all xdist workers."""
    shared = tmp_path_factory.getbasetemp()
    folder = (shared if worker_id == "master" else shared.parent) / "base sweep"
    with folder.with_name("base sweep.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            sweep = Sweep.make(folder.with_name("base sweep at work"))
            sweep.run()
            sweep.folder.rename(folder)
        return Sweep(folder)


@pytest.fixture
def sweep(base, tmp_path):
    """A copy of the finished sweep, which a test may modify."""
    return base.copy(tmp_path / "sweep")


def pytest_terminal_summary(terminalreporter):
    # user properties of the reports are sent back by the xdist workers
    counts = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":  # has the properties of all phases
                counts.update({name: n for name, n in report.user_properties if type(n) is int})
    if counts["yardstick"] or counts["pycocotools"]:
        terminalreporter.write_line(
            f"parity: {counts['yardstick']:,} values compared with the benchmark's evaluator, "
            f"{counts['pycocotools']:,} with pycocotools "
            f"({PARITY_SEED}={os.environ[PARITY_SEED]} reproduces this run)"
        )
    if counts["faults"] or counts["inputs"] or counts["kills"]:
        terminalreporter.write_line(
            f"trust: {counts['faults']:,} problems planted, {counts['inputs']:,} inputs tried, "
            f"{counts['kills']:,} runs killed, {counts['sweeps']:,} sweeps broken"
        )
    deviations = sorted((name, n) for name, n in counts.items() if name.startswith("deviation "))
    for name, n in deviations:
        terminalreporter.write_line(f"parity: {name}: applied {n:,} times")
