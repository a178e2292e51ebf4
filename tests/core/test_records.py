"""Records of the workflow: their names, and results that do not match them."""

import hashlib

import pytest

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.records import (
    from_earlier_run,
    record_content,
    record_name,
    require_last_run,
)


def test_a_record_is_named_by_part_and_digest():
    assert record_name("sweep", "0123456789abcdef" + "f" * 48) == "sweep.0123456789abcdef.made"
    assert record_name("sweep", None) == "sweep.unplanned.made"


def test_results_whose_record_does_not_match_the_fingerprint_are_from_an_earlier_run(
    tmp_path, monkeypatch
):
    tables, state = tmp_path / "aggregated/aggregated.json", tmp_path / ".state"
    require_last_run(tables)  # not made by the workflow
    state.mkdir()
    (state / "sweep.json").write_text("planned")
    with pytest.raises(InputError) as caught:
        require_last_run(tables)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{tables}: found results of an earlier run; expected results")
    assert "run snakemake without a target" in problem.cause
    monkeypatch.chdir(tables.parent.mkdir() or tables.parent)
    with pytest.raises(InputError):
        require_last_run(tables.name)
    digest = hashlib.sha256(b"planned").hexdigest()
    (state / record_name("sweep", digest)).write_text("planned")
    require_last_run(tables)
    assert from_earlier_run(tmp_path, "plots", tmp_path / "plots") is None  # never planned


def test_tables_that_were_edited_are_refused(tmp_path):
    tables, state = tmp_path / "aggregated/aggregated.json", tmp_path / ".state"
    state.mkdir()
    tables.parent.mkdir()
    (state / "sweep.json").write_text("planned\n")
    tables.write_text("tables")
    record = state / record_name("sweep", hashlib.sha256(b"planned\n").hexdigest())
    record.write_bytes(record_content(b"planned\n", tables))
    require_last_run(tables)
    tables.write_text("other tables")
    with pytest.raises(InputError, match="edited manually"):
        require_last_run(tables)
