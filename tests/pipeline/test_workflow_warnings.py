"""Models with warnings are told at the end of a run, where they are not overlooked."""

import shutil

import pytest
from support.workflow_sweep import MODELS, Sweep

pytestmark = pytest.mark.workflow


def test_the_last_words_of_a_run_are_its_warnings(tmp_path):
    sweep = Sweep.make(tmp_path)
    sweep.write_manifest({name: MODELS[name] for name in ("NA", "007")})
    shutil.copy(sweep.predictions("NA"), sweep.predictions("007"))
    told = "2 models have warnings: see results/aggregated/report.md"
    end = sweep.run().split("steps (100%) done")[-1]
    assert told in end
    # a run that makes no report has none to tell of
    shutil.rmtree(tmp_path / "results")
    assert "have warnings" not in sweep.run("tables")
