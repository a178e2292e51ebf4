"""docs/trust.md agrees with the code."""

import re
from pathlib import Path

from benchmark_eval.check.kinds import markdown_table
from benchmark_eval.inputs import prediction_decoder
from benchmark_eval.inputs.coco_annotations import MEMORY_PER_BYTE
from benchmark_eval.scoring.diagnostics import (
    BENCHMARK_WARNINGS,
    WARNINGS,
    boxes,
    evidence,
    ids,
    scores,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/trust.md"
TABLE = re.compile(r"(?<=renew with: python tests/docs/test_trust_page.py -->\n).*", re.DOTALL)


def test_the_page_has_every_kind_of_finding():
    assert TABLE.search(PAGE.read_text()).group() == "\n" + markdown_table()


def test_every_test_named_on_the_page_exists():
    named = set(re.findall(r"`((?:test|check)_\w+\.py)`", PAGE.read_text()))
    assert len(named) > 10
    assert [name for name in named if not list((ROOT / "tests").rglob(name))] == []


def test_thresholds_are_those_of_the_code():
    text = " ".join(PAGE.read_text().split())
    rows = dict(re.findall(r"\| ([a-z -]+) \| ([^|]+) \|", text))
    assert {*WARNINGS, *BENCHMARK_WARNINGS} <= set(rows)
    assert f"(at most {evidence.SAMPLE:,})" in text
    assert f"at least {evidence.MIN_GAINED} boxes must" in text
    assert evidence.MIN_GAINED_PER_LOST == 5
    shares = {
        "boxes outside": boxes.OUTSIDE_FRACTION,
        "held-out ids": ids.HELD_OUT_FRACTION,
        "untrained species": ids.HELD_OUT_FRACTION,
        "tied scores": scores.MAX_TIED,
        "repeated records": scores.DUPLICATE_FRACTION,
    }
    for name, share in shares.items():
        assert f"{100 * share:g} %" in rows[name], name
    for name in ("another split", "image positions", "resized images"):
        assert f"{100 * evidence.MIN_FRACTION:g} %" in rows[name], name
    assert f"at least {evidence.MIN_GAINED} images" in rows["turned images"]
    assert f"({boxes.MIN_TURNED} images if half" in rows["turned images"]
    assert f"{evidence.MIN_GAINED_PER_LOST} times as many" in rows["turned images"]
    assert f"at least {boxes.MIN_TURNED_OUTSIDE_ALONE} images exceed" in rows["turned images"]
    assert f"by {100 * boxes.PAST:g} % of its longer side" in rows["turned images"]
    assert f"({boxes.MIN_TURNED_OUTSIDE} images if half" in rows["turned images"]
    threshold = rows["score threshold"]
    assert f"below {scores.MIN_SCORE_THRESHOLD:g}" in threshold
    shares = f"{100 * scores.EDGE_FRACTION:g} %, and {scores.EDGE_STEP:g} times"
    assert f"at least {scores.MIN_AT_EDGE} of them, {shares}" in threshold
    assert f"fewer than {scores.MIN_DETECTIONS} detections" in threshold
    few = f"{100 * scores.FEW_EDGE_FRACTION:g} %, and {scores.FEW_EDGE_STEP:g} times"
    assert f"{scores.FEW_AT_EDGE} of them, {few}" in threshold
    usual = ", ".join(f"{value:g}" for value in scores.USUAL_THRESHOLDS)
    assert f"at most {scores.ABOVE_USUAL:g} above a usual threshold ({usual})" in threshold
    assert f"but at least {scores.MIN_SCORES}, the lowest" in threshold
    assert f"beyond {boxes.MAX_NORMALISED:g} px" in rows["normalised boxes"]
    assert f"more than {10 * boxes.MAX_NORMALISED:g} px" in rows["normalised boxes"]
    assert (prediction_decoder.MEMORY_PER_BYTE, MEMORY_PER_BYTE) == (4, 8)
    assert f"takes {prediction_decoder.LISTING_PER_BYTE:g} bytes per byte" in text
    assert f"within {prediction_decoder.LONGEST_RECORD // 2**20} MB" in text


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: "\n" + markdown_table(), PAGE.read_text()))
