"""Tables of a sweep and metrics of a model as DataFrames: the same cells as the CSV files."""

import csv
import math

import pandas as pd
import pytest
from support.factories import BUDGETS, evaluation, manifest_text, write_benchmark, write_evaluation

from benchmark_eval import aggregate, load_benchmark, read_aggregated, read_summary
from benchmark_eval.core.errors import InputError
from benchmark_eval.results.writers import SUMMARY_COLUMNS, summary_csv
from benchmark_eval.sweep.tables import CSV_FILES

GU, IN, TA = BUDGETS
NAMES = ("NA", "null", "nan", "None", "True", "007", "1e5")
TABLES = {name.removesuffix(".csv") for name in CSV_FILES}
FROM_EVIDENCE = {
    *(
        "pooled_shares",
        "band_gaps",
        "confusions",
        "genus_confusions",
        "labels",
        "confusion_by_chance",
    ),
    *("reliability", "risk_coverage", "novelty", "novelty_histograms"),
}
"""Tables without rows if there is no evidence, as here."""
OWN = """
def custom_metrics(evaluation):
    return {"n": 2.5, "half_n": 0.5, "undefined": None}
"""
"""Custom metrics whose names end like those of counts."""


def aggregated(folder, rows):
    """A folder of tables of these models: (row of the manifest, value or None)."""
    benchmark = write_benchmark(folder / "benchmark")
    digests = load_benchmark(benchmark).digests
    (folder / "eval").mkdir()
    for row, value in rows:
        if value is not None:
            made = evaluation(row[0], value=value, benchmark=digests)
            write_evaluation(folder / "eval", made)
    header = "model_name,architecture,regime,k_or_p,seed"
    (folder / "manifest.csv").write_text(manifest_text([row for row, _ in rows], header))
    (folder / "own.py").write_text(OWN)
    aggregate(
        eval_dir=folder / "eval",
        manifest=folder / "manifest.csv",
        benchmark=benchmark,
        output_dir=folder / "tables",
        allow_missing=True,
        custom_metrics=folder / "own.py",
    )
    return folder / "tables"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    rows = [((name, "NA", GU, str(k), 0), 0.5) for k, name in enumerate(NAMES, start=1)]
    rows += [((f"t{seed}", "007", TA, "0", seed), 0.25) for seed in range(2)]
    rows += [(("gone", "1e5", IN, "0.1", 7), None), (("in0", "1e5", IN, "1", 7), 0.1)]
    return aggregated(tmp_path_factory.mktemp("sweep"), rows)


def cells(path):
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


def same(cell, value, kind):
    """Whether a cell of a CSV file is a value of a DataFrame."""
    if kind == "str":
        return isinstance(value, str) and value == cell
    if kind == "Int64":
        return value is pd.NA if cell == "" else int(cell) == value
    return math.isnan(value) if cell == "" else float(cell) == value


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_cell_equals_that_of_the_csv_file(sweep, name):
    frame = read_aggregated(sweep)[name]
    header, rows = cells(sweep / f"{name}.csv")
    assert frame.columns.tolist() == header
    assert len(frame) == len(rows)
    assert bool(rows) == (name not in FROM_EVIDENCE)
    assert list(frame.index) == list(range(len(rows)))
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    for column, texts in zip(header, columns, strict=True):
        kind = str(frame[column].dtype)
        kind = "str" if kind == "object" else kind
        assert kind in {"str", "Int64", "float64"}, column
        assert all(map(same, texts, frame[column].tolist(), [kind] * len(texts))), column


def test_a_table_by_file_or_folder(sweep):
    assert set(read_aggregated(sweep)) == TABLES
    pd.testing.assert_frame_equal(
        read_aggregated(str(sweep))["models"], read_aggregated(sweep / "aggregated.json")["models"]
    )


def test_names_that_look_like_values_stay_text(sweep):
    tables = read_aggregated(sweep)
    models = tables["models"]
    assert set(NAMES) < set(models["model"])
    assert models.set_index("model").loc["007", ["architecture", "k_or_p", "seed"]].tolist() == [
        "NA",
        "6",
        "0",
    ]
    assert set(tables["learning_curves"]["architecture"]) == {"NA", "007", "1e5"}
    assert set(tables["target_species_curves"]["k"]) == {"0"}


def test_counts_are_integers_and_undefined_is_nan(sweep):
    tables = read_aggregated(sweep)
    curves = tables["learning_curves"].set_index(["architecture", "k_or_p"])
    targets, missing = curves.loc[("007", "0")], curves.loc[("1e5", "0.1")]
    assert curves["n_seeds"].dtype == curves["iid_AP_50_n"].dtype == "Int64"
    assert (targets["n_seeds"], targets["iid_AP_50_n"], missing["iid_AP_50_n"]) == (2, 2, 0)
    assert math.isnan(missing["iid_AP_50_mean"])
    assert missing["missing_models"] == "gone"
    assert targets["missing_models"] == ""
    assert str(tables["budget_curves"]["n_images"].dtype) == "float64"
    assert str(tables["density_curves"]["n_images"].dtype) == "Int64"


def test_custom_metrics_are_numbers_whatever_their_names(sweep):
    tables = read_aggregated(sweep)
    assert tables["models"]["custom_half_n"].tolist()[0] == 0.5
    assert tables["models"]["custom_undefined"].isna().all()
    curves = tables["learning_curves"]
    assert set(curves["custom_n_mean"].dropna()) == {2.5}
    assert set(curves["custom_n_n"]) == {0, 1, 2}


def test_a_table_without_rows_has_the_same_types(tmp_path, sweep):
    empty = read_aggregated(aggregated(tmp_path, [(("m", "a", GU, "1", 0), 0.5)]))
    full = read_aggregated(sweep)
    for name in ("target_species_curves", "target_vs_nontarget"):
        assert empty[name].empty
        assert empty[name].dtypes.equals(full[name].dtypes)


def test_the_metrics_of_a_model_equal_those_of_its_csv_file(tmp_path):
    made = evaluation("1e5", value=0.5)
    write_evaluation(tmp_path, made)
    (tmp_path / "s.csv").write_text(summary_csv(made))
    frame = read_summary(tmp_path / "1e5_summary.json")
    header, rows = cells(tmp_path / "s.csv")
    assert tuple(header) == tuple(frame.columns) == SUMMARY_COLUMNS
    assert frame[header[:4]].to_numpy().tolist() == [row[:4] for row in rows]
    flags = {"True": "1", "False": "0"}
    texts = [flags.get(row[4], row[4]) for row in rows]
    assert all(map(same, texts, frame["value"].tolist(), ["float64"] * len(texts)))
    assert {"", "True", "False"} < {row[4] for row in rows}
    assert str(frame["value"].dtype) == "float64"
    assert set(frame["model"]) == {"1e5"}


def test_other_files_are_input_errors(tmp_path):
    (tmp_path / "m_summary.json").write_text("{}")
    with pytest.raises(InputError, match=r"m_summary\.json"):
        read_summary(tmp_path / "m_summary.json")
    with pytest.raises(InputError, match=r"aggregated\.json"):
        read_aggregated(tmp_path)
