"""Models with warnings are reported at the end of a run, where they are not overlooked."""

import shutil

import pytest
from support.workflow_sweep import MODELS, Sweep

pytestmark = pytest.mark.workflow


def test_a_run_ends_with_the_number_of_models_with_warnings(tmp_path):
    sweep = Sweep.make(tmp_path)
    sweep.write_manifest({name: MODELS[name] for name in ("NA", "007")})
    shutil.copy(sweep.predictions("NA"), sweep.predictions("007"))
    notice = "2 models have warnings: see results/aggregated/report.md"
    end = sweep.run().split("steps (100%) done")[-1]
    assert notice in end
    # no report, no warnings
    shutil.rmtree(tmp_path / "results")
    assert "have warnings" not in sweep.run("tables")
