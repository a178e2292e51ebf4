"""Custom metrics: valid and invalid files, and the columns of their numbers."""

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
def custom(tmp_path):
    """Writes a file of custom metrics and returns its path."""

    def write(text):
        path = tmp_path / "custom.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def aggregated(tmp_path):
    """Aggregates three models with the custom metrics at a path; returns the tables' folder."""
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


def test_numbers_become_columns_with_mean_and_n(custom, aggregated):
    out = aggregated(
        custom("""
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
    assert list(one)[-3:-1] == ["missing_models", "identical_predictions"]
    rows = {row["model"]: row for row in table(out / "models.csv")}
    assert [rows[m]["custom_score"] for m in "abc"] == ["1.0", "4.0", ""]
    assert [bool(rows[m]["custom_only_b"]) for m in "abc"] == [False, True, False]


def test_the_digest_of_the_file_is_recorded(custom, aggregated):
    path = custom("def custom_metrics(evaluation): return {}\n")
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
def test_every_model_with_an_invalid_result_is_named(custom, aggregated, returned, found):
    error = aggregated(custom(f"def custom_metrics(evaluation): return {returned}\n"), code=1)
    assert isinstance(error, InputError)
    assert [p.record for p in error.problems] == ["model 'a'", "model 'b'", "model 'c'"]
    assert all(found in p.found for p in error.problems)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("custom_metrics = 3", "no function custom_metrics"),
        ("def other(evaluation): return {}", "no function custom_metrics"),
        ("def custom_metrics(", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
    ],
)
def test_files_without_the_function_are_rejected(custom, text, found):
    with pytest.raises(InputError, match=found):
        load_custom_metrics(custom(text))


def test_a_missing_file_is_rejected(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_custom_metrics(tmp_path / "none.py")
