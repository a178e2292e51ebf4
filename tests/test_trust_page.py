"""docs/trust.md is in step with the code."""

import re
from pathlib import Path

from benchmark_eval import diagnostics, predictions
from benchmark_eval.check.kinds import markdown_table
from benchmark_eval.coco_files import MEMORY_PER_BYTE
from benchmark_eval.diagnostics import BENCHMARK_WARNINGS, WARNINGS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/trust.md"
TABLE = re.compile(r"(?<=renew with: python tests/test_trust_page.py -->\n).*", re.DOTALL)


def test_every_kind_of_finding_stands_on_the_page():
    assert TABLE.search(PAGE.read_text()).group() == "\n" + markdown_table()


def test_every_test_that_the_page_names_is_there():
    named = set(re.findall(r"`((?:test|check)_\w+\.py)`", PAGE.read_text()))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


def test_thresholds_are_those_of_the_code():
    text = " ".join(PAGE.read_text().split())
    rows = dict(re.findall(r"\| ([a-z -]+) \| ([^|]+) \|", text))
    assert {*WARNINGS, *BENCHMARK_WARNINGS} <= set(rows)
    assert f"(at most {diagnostics.SAMPLE:,})" in text
    assert f"at least {diagnostics.ENOUGH} boxes must" in text
    assert diagnostics.TIMES == 5
    shares = {
        "boxes outside": diagnostics.OUTSIDE_SHARE,
        "held-out ids": diagnostics.HELD_OUT_SHARE,
        "tied scores": diagnostics.TIED,
        "repeated records": diagnostics.REPEATED_SHARE,
    }
    for name, share in shares.items():
        assert f"{100 * share:g} %" in rows[name], name
    for name in ("another split", "resized images"):
        assert f"{100 * diagnostics.FEW:g} %" in rows[name], name
    threshold = rows["score threshold"]
    assert f"below {diagnostics.CUT_SCORE:g}" in threshold
    shares = f"{100 * diagnostics.EDGE_SHARE:g} %, and {diagnostics.EDGE_STEP:g} times"
    assert f"at least {diagnostics.ENOUGH_AT_EDGE} of them, {shares}" in threshold
    assert f"fewer than {diagnostics.ENOUGH_TO_CUT} detections" in threshold
    assert f"beyond {diagnostics.TINY:g} px" in rows["normalised boxes"]
    assert f"more than {10 * diagnostics.TINY:g} px" in rows["normalised boxes"]
    assert (predictions.MEMORY_PER_BYTE, MEMORY_PER_BYTE) == (4, 8)
    assert f"takes {predictions.LISTING_PER_BYTE:g} bytes a byte" in text
    assert f"within {predictions.LONGEST_RECORD // 2**20} MB" in text


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: "\n" + markdown_table(), PAGE.read_text()))
