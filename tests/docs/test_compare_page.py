"""The commands and the code of docs/compare.md run as they are written."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.sides import aggregated, random_side

from benchmark_eval.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/compare.md").read_text()


@pytest.fixture
def _place(tmp_path, monkeypatch):
    """The results folder of the page, and the summaries of another group."""
    sides = {"yolo": random_side(1), "rcnn": random_side(2)}
    aggregated(tmp_path, sides, budget="all", infix="_gu_kall")
    theirs = tmp_path / "their_summaries"
    theirs.mkdir()
    for path in tmp_path.glob("results/models/rcnn*/*_summary.json"):
        shutil.copy(path, theirs)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_place")
def test_the_commands(capsys):
    (block,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
    commands = block.strip().split("\n")
    assert len(commands) == 4
    for command in commands:
        program, *words = shlex.split(command, comments=True)
        assert program == "benchmark-eval"
        main(words)
        assert "A - B" in capsys.readouterr().out
    assert Path("difference.svg").is_file()


@pytest.mark.usefixtures("_place")
def test_the_code(capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["iid_AP_50_95", "A", "B"],
        ["inat_AP_50_95", "A", "B"],
        ["ood_species_mean_detection_recall", "A", "B"],
    ]
