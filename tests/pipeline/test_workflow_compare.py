"""``compare`` reads results of the workflow, and refuses those that are edited or outdated."""

import pytest
from support.workflow_sweep import edit_unseen

from benchmark_eval import InputError, compare

pytestmark = pytest.mark.workflow


def kinds(*sides):
    with pytest.raises(InputError) as caught:
        compare(*sides)
    return {problem.kind for problem in caught.value.problems}


def test_edited_and_outdated_results_are_refused(sweep):
    results = sweep.folder / "results"
    sides = f"{results}:global_uniform k=1", f"{results}:global_uniform k=all"
    result = compare(*sides)
    assert [side.models for side in result.sides] == [["NA", "007"], ["1e5"]]
    assert {row.n_species for row in result.differences} == {5, 2, 3}

    summary = sweep.summary("007")
    data = summary.read_bytes()
    summary.write_bytes(data.replace(b'"AP_50": 0', b'"AP_50": 1'))
    assert summary.read_bytes() != data
    assert kinds(*sides) == {"digest"}
    summary.write_bytes(data)
    assert compare(*sides) == result

    edit_unseen(sweep.predictions("007"))
    sweep.run("results/models/1e5/1e5_summary.json")  # plans all models, and runs none
    assert kinds(summary, sweep.summary("1e5")) == {"earlier-run"}
    sweep.run()
    assert compare(*sides).sides == result.sides
