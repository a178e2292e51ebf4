"""Metrics of the user's own: what their file may hold, and where their numbers go."""

import csv

import pytest
from click.testing import CliRunner
from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation

from benchmark_eval.cli.main import cli
from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.sweep import load_tables
from benchmark_eval.sweep.custom_metrics import load_custom_metrics

ROWS = [
    ("a", "x", "global_uniform", "1", "0"),
    ("b", "x", "global_uniform", "1", "1"),
    ("c", "x", "global_uniform", "5", "0"),
]


@pytest.fixture
def own(tmp_path):
    """Writes a file of own metrics; its path."""

    def write(text):
        path = tmp_path / "own.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def aggregated(tmp_path):
    """Aggregates three models with the own metrics at a path; the folder of the tables."""
    benchmark = write_benchmark(tmp_path / "benchmark")
    digests = load_benchmark(benchmark).digests
    (tmp_path / "eval").mkdir()
    for row in ROWS:
        made = evaluation(row[0], value=0.5, benchmark=digests)
        write_evaluation(tmp_path / "eval", made)
    (tmp_path / "m.csv").write_text(
        manifest_text(ROWS, "model_name,architecture,regime,k_or_p,seed")
    )

    def run(path, code=0):
        done = CliRunner().invoke(
            cli,
            [
                *("aggregate", "--eval-dir", str(tmp_path / "eval")),
                *("--manifest", str(tmp_path / "m.csv"), "--benchmark-dir", str(benchmark)),
                *("--output-dir", str(tmp_path / "out"), "--custom-metrics", str(path)),
            ],
        )
        assert (done.exit_code == 0) is (code == 0), done.output
        return tmp_path / "out" if code == 0 else done.exception

    return run


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_numbers_become_columns_with_mean_and_n(own, aggregated):
    out = aggregated(
        own("""
MADE = {"a": 1.0, "b": 4, "c": None}

def custom_metrics(evaluation):
    found = {"score": MADE[evaluation.model]}
    if evaluation.model == "b":
        found["only_b"] = evaluation.per_split["iid_test"].coco.AP_50
    return found
""")
    )
    one, five = table(out / "learning_curves.csv")
    assert (one["custom_score_mean"], one["custom_score_n"]) == ("2.5", "2")
    assert (five["custom_score_mean"], five["custom_score_n"]) == ("", "0")
    assert (one["custom_only_b_n"], five["custom_only_b_n"]) == ("1", "0")
    assert list(one)[-2:] == ["missing_models", "identical_predictions"]
    rows = {row["model"]: row for row in table(out / "models.csv")}
    assert [rows[m]["custom_score"] for m in "abc"] == ["1.0", "4.0", ""]
    assert [bool(rows[m]["custom_only_b"]) for m in "abc"] == [False, True, False]


def test_what_was_run_is_on_record(own, aggregated):
    path = own("def custom_metrics(evaluation): return {}\n")
    table = load_tables(aggregated(path) / "aggregated.json")
    assert table.inputs.options["custom_metrics"] == load_custom_metrics(path).digest


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ("3", "type int"),
        ("{'a b': 1}", "'a b': 1"),
        ("{1: 1}", "1: 1"),
        ("{'a': '1'}", "'a': '1'"),
        ("{'a': True}", "'a': True"),
        ("{'a': float('nan')}", "'a': nan"),
        ("{'a': 1 / 0}", "ZeroDivisionError: division by zero"),
        ("evaluation.nothing", "no attribute"),
    ],
)
def test_every_model_whose_numbers_are_none_is_named(own, aggregated, returned, found):
    fault = aggregated(own(f"def custom_metrics(evaluation): return {returned}\n"), code=1)
    assert isinstance(fault, InputError)
    assert [p.record for p in fault.problems] == ["model 'a'", "model 'b'", "model 'c'"]
    assert all(found in p.found for p in fault.problems)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("custom_metrics = 3", "no function custom_metrics"),
        ("def other(evaluation): return {}", "no function custom_metrics"),
        ("def custom_metrics(", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
    ],
)
def test_files_that_define_nothing(own, text, found):
    with pytest.raises(InputError, match=found):
        load_custom_metrics(own(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_custom_metrics(tmp_path / "none.py")
