"""Reports what the parity tests compared, whichever process compared it."""

import os
import secrets

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
    compared = {"yardstick": 0, "pycocotools": 0}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if report.when == "call" and name in compared:
                    compared[name] += value
    if any(compared.values()):
        terminalreporter.write_line(
            f"parity: {compared['yardstick']:,} values compared with the benchmark's evaluator, "
            f"{compared['pycocotools']:,} with pycocotools "
            f"({PARITY_SEED}={os.environ[PARITY_SEED]} draws the same again)"
        )
