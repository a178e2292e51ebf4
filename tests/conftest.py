"""Reports what the parity tests compared, whichever process compared it."""

import os
import secrets
from collections import Counter

import pytest

PARITY_SEED = "PARITY_SEED"


def pytest_configure():
    # drawn before xdist starts its workers, which inherit it: all of them draw the same
    os.environ.setdefault(PARITY_SEED, str(10**6 + secrets.randbelow(10**9)))


@pytest.fixture
def fresh_seed():
    """A seed drawn anew for each run, or that of the run to be replayed."""
    return int(os.environ[PARITY_SEED])


def pytest_terminal_summary(terminalreporter):
    # results travel with the reports, as those do come back from the workers
    counts = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                counts.update({name: n for name, n in report.user_properties if type(n) is int})
    if counts["yardstick"] or counts["pycocotools"]:
        terminalreporter.write_line(
            f"parity: {counts['yardstick']:,} values compared with the benchmark's evaluator, "
            f"{counts['pycocotools']:,} with pycocotools "
            f"({PARITY_SEED}={os.environ[PARITY_SEED]} draws the same again)"
        )
    deviations = sorted((name, n) for name, n in counts.items() if name.startswith("deviation "))
    for name, n in deviations:
        terminalreporter.write_line(f"parity: {name}: applied {n:,} times")
