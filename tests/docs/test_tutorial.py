"""Runs the commands of docs/tutorial.md and checks their results."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_eval.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
SCRIPT = "\n".join(re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S))


@pytest.mark.workflow
def test_the_tutorial_runs_from_a_benchmark_to_a_report(tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = re.sub(r"(?<![\w/])tutorial/", f"{tmp_path}/", SCRIPT)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, env=environment, check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    project = tmp_path / "project"
    assert "0 problems" in ran.stdout
    assert "not carried over" in ran.stdout
    with (project / "manifest.csv").open(newline="") as file:
        models = list(csv.DictReader(file))
    assert len(models) == 12
    for row in models:
        name = row["model_name"]
        summary = project / "results" / "models" / name / f"{name}_summary.json"
        per_split = json.loads(summary.read_text())["per_split"]
        # near zero if a conversion shifted class ids or confused images
        if row["k_or_p"] == "all":
            assert per_split["iid_test"]["decomposition"]["acc_species_given_det"] > 0.25
        assert per_split["semantic_ood"]["decomposition"]["detection_recall"] > 0.5
        assert not [w for w in per_split["iid_test"]["warnings"] if "shift" in w]
    aggregated = project / "results" / "aggregated"
    with (aggregated / "budget_curves.csv").open(newline="") as file:
        assert {row["source"] for row in csv.DictReader(file)} == {"exact"}
    report = (aggregated / "report.md").read_text()
    assert "12 models of 2 architectures" in report


def test_the_commands_of_the_tutorial_exist():
    verbs = set(re.findall(r"benchmark-eval ([a-z]+)", SCRIPT))
    assert verbs == {"synth", "init", "subsets", "convert", "check", "run"}
    assert verbs <= set(COMMANDS)
    for target in re.findall(r"\]\(([a-z_/]+\.(?:md|py))\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
