"""Known pitfalls of detector evaluation, with the correct result, through the command line.

``cases/coco.json`` has ground truth, predictions and the expected values or parts of the error
message or warning. It contains NaN on purpose.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.cli.main import main

CASES = json.loads((Path(__file__).parent / "cases/coco.json").read_text())
VALUES = [name for name, case in CASES.items() if "values" in case]
ERRORS = [name for name, case in CASES.items() if "error" in case]


def grid(n):
    """``n`` specimens in rows of 15, of two alternating species, each with a detection."""
    truth = [[1, 1 + i % 2, [60 * (i % 15), 60 * (i // 15), 50, 50]] for i in range(n)]
    return truth, [[*row, 0.9] for row in truth]


def arguments(case, folder):
    """Write a case as a benchmark split; return the arguments that evaluate it."""
    split = case.get("split", "iid_test")
    truth, predictions = (
        grid(case["grid"]) if "grid" in case else (case["truth"], case["predictions"])
    )
    listed = case.get("listed") or sorted({row[1] for row in truth})
    benchmark = folder / "benchmark"
    write_split(
        benchmark,
        split,
        truth,
        listed=listed,
        annotation_ids=case.get("annotation_ids"),
        without=case.get("without", ()),
    )
    if split == "semantic_ood":
        # trained species are listed in train.json, as in the real benchmark
        trained = sorted({row[1] for row in predictions})
        write_split(benchmark, "train", [], listed=trained)
        listed = [*trained, *listed]
    write_taxonomy(benchmark, listed)
    write_predictions(folder / "predictions", split, predictions)
    return [
        *["evaluate", "--quiet", "--model-name", "m", "--splits", split],
        *["--benchmark-dir", str(benchmark)],
        *["--predictions-dir", str(folder / "predictions")],
        *["--output-dir", str(folder / "out")],
    ]


def scored(folder, case):
    summary = json.loads(
        (folder / "out/m_summary.json").read_text(),
        parse_constant=lambda text: pytest.fail(f"{text} is not JSON"),
    )
    return summary["per_split"][case.get("split", "iid_test")]


def test_every_case_has_an_expected_result():
    assert len(CASES) == 26
    assert sorted([*VALUES, *ERRORS]) == sorted(CASES)


@pytest.mark.parametrize("engine", ["fast", "pycocotools"])
@pytest.mark.parametrize("name", VALUES)
def test_values(name, engine, tmp_path, capsys):
    case = CASES[name]
    main([*arguments(case, tmp_path), "--engine", engine])
    result = scored(tmp_path, case)
    block = result[case.get("block", "coco")]
    assert {key: round(block[key], 4) for key in case["values"]} == case["values"]
    if "warning" in case:
        assert any(case["warning"] in text for text in result["warnings"]), result["warnings"]
        assert case["warning"] in capsys.readouterr().err


@pytest.mark.parametrize("name", ERRORS)
def test_error_message_and_no_output(name, tmp_path, capsys):
    case = CASES[name]
    with pytest.raises(SystemExit) as stop:
        main(arguments(case, tmp_path))
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert [word for word in case["error"] if word not in message] == [], message
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.slow  # starts a process for each case
@pytest.mark.parametrize("name", ["FB01", "FB12", "FB24"])
def test_installed_command(name, tmp_path):
    case = CASES[name]
    command = [Path(sys.executable).with_name("benchmark-eval"), *arguments(case, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "error" in case:
        assert done.returncode == 1
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert [word for word in case["error"] if word not in done.stderr] == []
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        block = scored(tmp_path, case)["coco"]
        assert {key: round(block[key], 4) for key in case["values"]} == case["values"]
