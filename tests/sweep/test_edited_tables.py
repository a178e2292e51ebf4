"""Tables that were edited after they were written, and tables after an error."""

import pytest
from support.small_sweep import run_sweep

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.records import require_last_run
from benchmark_eval.sweep import load_current_tables, tables
from benchmark_eval.sweep.frames import read_aggregated

ROWS = [((f"m{seed}", "a", "global_uniform", "1", seed), {"value": 0.2}) for seed in range(3)]


def test_an_edited_aggregated_json_is_refused(tmp_path):
    """By the record beside it, also outside the workflow."""
    run_sweep(tmp_path, ROWS)
    path = tmp_path / "out" / tables.AGGREGATED
    require_last_run(path)
    path.write_bytes(path.read_bytes() + b" ")
    for read in (require_last_run, load_current_tables, read_aggregated):
        with pytest.raises(InputError, match="as recorded in"):
            read(path)


def test_an_unexpected_error_leaves_no_stale_tables(tmp_path):
    run_sweep(tmp_path, ROWS)
    names = ["benchmark", "eval", "manifest.csv"]
    with pytest.raises(ZeroDivisionError), tables.claim_tables(tmp_path / "out"):
        1 / 0  # noqa: B018
    assert not (tmp_path / "out" / tables.AGGREGATED).exists()
    assert all((tmp_path / name).exists() for name in names)
