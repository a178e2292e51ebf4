"""The manifest is read as text, parsed strictly, and all its problems are reported at once."""

import json
from importlib import resources

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs.manifest import condition_of, parse_budget, read_manifest
from benchmark_eval.inputs.model_names import MAX_NAME_BYTES, name_problem

HEADER = "model_name,regime,k_or_p,seed\n"
SCHEMA = json.loads(
    resources.files("benchmark_eval.inputs").joinpath("schemas/manifest.schema.json").read_text()
)


@pytest.fixture
def write(tmp_path):
    def write(text, name="manifest.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def problems_of(path):
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    return caught.value.problems


def test_equal_budgets_in_different_notation_are_one_condition(write):
    manifest = read_manifest(
        write(
            HEADER
            + "a,global_uniform,1,0\nb,global_uniform,1.0,1\n"
            + "c,incremental_natural,0.10,0\nd,incremental_natural,0.1,1\n"
            + "e,incremental_natural,1e-1,2\nf,global_uniform,all,0\n"
            + 'g,incremental_uniform_targets,"0",0\nh,incremental_natural,1.00,0\n'
        )
    )
    cells = [(m.regime, m.k_or_p) for m in manifest.models]
    assert cells == [
        ("global_uniform", "1"),
        ("global_uniform", "1"),
        ("incremental_natural", "0.1"),
        ("incremental_natural", "0.1"),
        ("incremental_natural", "0.1"),
        ("global_uniform", "all"),
        ("incremental_uniform_targets", "0"),
        ("incremental_natural", "1"),
    ]
    assert len({m.condition for m in manifest.models}) == 5


def test_table_order_is_numeric_with_all_last_and_independent_of_file_order(write):
    rows = [
        "x1,incremental_natural,0.5,0",
        "x2,global_uniform,all,0",
        "x3,global_uniform,10,1",
        "x4,global_uniform,10,0",
        "x5,global_uniform,5,0",
        "x6,incremental_uniform_targets,0,0",
    ]
    one = read_manifest(write(HEADER + "\n".join(rows))).in_table_order()
    two = read_manifest(write(HEADER + "\n".join(reversed(rows)))).in_table_order()
    assert [m.model_name for m in one] == ["x5", "x4", "x3", "x2", "x1", "x6"]
    assert [m.model_name for m in one] == [m.model_name for m in two]


@pytest.mark.parametrize(
    ("regime", "text"),
    [
        *(
            ("global_uniform", t)
            for t in (
                "nan", "inf", "1_000", "-1", "0", "1.5", "", " ", "ALL", "1e99", "٣", "+1", "0x1",
            )
        ),
        *(
            ("incremental_natural", t)
            for t in ("0", "0.0", "1.5", "1.0000001", "nan", "all", "-0.1", "1e-99", "5%", "0,1")
        ),
        *(("incremental_uniform_targets", t) for t in ("all", "-0", "0.5", "inf", "1_0")),
    ],
)  # fmt: skip
def test_an_invalid_budget_is_reported(regime, text, write):
    assert parse_budget(regime, text) is None
    quoted = f'"{text}"'
    (problem,) = problems_of(write(HEADER + f"m,{regime},{quoted},0\n"))
    assert problem.field == "k_or_p"
    assert problem.record == "row 1 (line 2)"


@given(st.integers(1, 10**9))
def test_integer_budgets_have_one_canonical_text(k):
    for text in (str(k), f"{k}.0", f"0{k}", f"{k}e0", f"{k}."):
        assert parse_budget("global_uniform", text) == (float(k), str(k))


@given(st.integers(1, 10**6))
def test_fractions_are_written_as_the_shortest_decimal(millionths):
    long = f"{millionths / 10**6:.6f}000"
    value, canonical = parse_budget("incremental_natural", long)
    assert value == float(canonical) == millionths / 10**6
    assert canonical == "1" or (canonical[:2] == "0." and canonical[-1] != "0")
    assert parse_budget("incremental_natural", f"{millionths}e-6") == (value, canonical)


def test_condition_of_equals_the_condition_read_from_a_manifest(write):
    (entry,) = read_manifest(write(HEADER + "m,incremental_natural,0.10,0\n")).models
    assert condition_of("default", "incremental_natural", "0.10") == entry.condition


@pytest.mark.parametrize("budget", [("global_uniform", "0"), ("other", "5")])
def test_condition_of_rejects_an_invalid_regime_or_budget(budget):
    with pytest.raises(ValueError, match="not a condition"):
        condition_of("default", *budget)


@pytest.mark.parametrize("seed", ["", "s0", "1.5", "-1", "1_0", "nan"])
def test_an_invalid_seed_is_reported_with_its_row(seed, write):
    (problem,) = problems_of(write(HEADER + f"ok,global_uniform,1,0\nm,global_uniform,1,{seed}\n"))
    assert (problem.record, problem.field) == ("row 2 (line 3)", "seed")


@pytest.mark.parametrize("column", ["predictions_dir", "train_annotations"])
@pytest.mark.parametrize("url", ["s3://bucket/a", "file:///data/a", "HTTPS://example.org/a"])
def test_a_url_instead_of_a_path_is_reported_with_the_remedy(column, url, write):
    header = HEADER.replace("\n", f",{column}\n")
    (problem,) = problems_of(write(header + f"m,global_uniform,1,0,{url}\n"))
    assert (problem.kind, problem.field, problem.found) == ("url", column, repr(url))
    assert "Copy them to one that this computer" in problem.cause


@pytest.mark.parametrize("path", ["a:b", "C:/data", "x/s3://y", "./s3://y"])
def test_other_paths_with_colons_are_not_urls(path, write):
    header = HEADER.replace("\n", ",predictions_dir\n")
    (model,) = read_manifest(write(header + f"m,global_uniform,1,0,{path}\n")).models
    assert model.predictions_dir.name == path.rpartition("/")[2]


def test_names_that_look_like_values_are_kept(write):
    names = ["NA", "null", "nan", "None", "True", "007", "1e5", "1+1", "Ips_é", "a b"]
    rows = "".join(f"{n},global_uniform,{k},0\n" for k, n in enumerate(names, start=1))
    assert [m.model_name for m in read_manifest(write(HEADER + rows)).models] == names


@pytest.mark.parametrize(
    "name",
    [
        "a/b", "a\\b", "..", "a..b", "-rf", ".hidden", " a", "a ", "a\tb", "a\u0000b", "a\u202eb",
        "a\u2028b", "=1+1", "+a", "@a",
        "x" * (MAX_NAME_BYTES + 1), "é" * (MAX_NAME_BYTES // 2 + 1), "a\x85b",
    ],
)  # fmt: skip
def test_names_that_cannot_be_file_names_are_rejected(name, write):
    assert name_problem(name) is not None
    (problem,) = problems_of(write(HEADER + f'"{name}",global_uniform,1,0\n'))
    assert (problem.kind, problem.field) == ("model-name", "model_name")
    assert problem.found.isprintable()


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a"])
def test_architectures_that_are_spreadsheet_formulas_are_rejected(name, write):
    text = f"architecture,{HEADER}{name},ok,global_uniform,1,0\nb,m,global_uniform,1,0\n"
    (problem,) = problems_of(write(text))
    assert (problem.record, problem.field) == ("row 1 (line 2)", "architecture")
    assert repr(name) in problem.found


def test_a_name_at_the_length_limit_is_valid():
    assert name_problem("x" * MAX_NAME_BYTES) is None


def test_duplicates_are_reported_with_both_rows(write):
    path = write(
        HEADER
        + "a,global_uniform,1,0\nb,global_uniform,1.0,0\n"
        + "a,global_uniform,5,0\nA,global_uniform,10,0\n"
    )
    seed, model, case = problems_of(path)
    assert (seed.kind, seed.record) == ("duplicate-seed", "row 2 (line 3)")
    assert "row 1 (line 2)" in seed.found
    assert "global_uniform k=1, seed 0" in seed.found
    assert "add a column 'architecture'" in seed.cause
    assert (model.kind, model.record) == ("duplicate-model", "row 3 (line 4)")
    assert (case.kind, case.record) == ("duplicate-model", "row 4 (line 5)")
    assert "case" in case.expected


@pytest.mark.parametrize(("one", "other"), [("YOLO", "Yolo"), ("Caf\u00e9", "Cafe\u0301")])
def test_two_spellings_of_an_architecture_are_reported(one, other, write):
    header = HEADER.replace("model_name,", "model_name,architecture,")
    path = write(f"{header}a,{one},global_uniform,1,0\nb,{other},global_uniform,5,0\n")
    (problem,) = problems_of(path)
    assert (problem.kind, problem.record, problem.field) == (
        "architecture",
        "row 2 (line 3)",
        "architecture",
    )
    assert "row 1 (line 2)" in problem.found
    assert repr(one) in problem.found
    assert repr(other) in problem.found


def test_the_same_seed_of_two_architectures_is_not_a_duplicate(write):
    head = "architecture," + HEADER
    text = head + "yolo,a,global_uniform,1,0\ndetr,b,global_uniform,1,0\n"
    assert [m.architecture for m in read_manifest(write(text)).models] == ["yolo", "detr"]
    (problem,) = problems_of(write(text + "detr,c,global_uniform,1,0\n"))
    assert problem.kind == "duplicate-seed"
    assert problem.cause == ""


def test_all_problems_are_in_one_message(write):
    path = write(
        HEADER
        + "a,global_uniform,1\n"
        + "b/c,global_uniforms,x,\n"
        + "d,incremental_natural,2,0\n"
        + ",,,\n"
        + "e,global_uniform,1,0\ne,global_uniform,1,1\n"
    )
    kinds = [p.kind for p in problems_of(path)]
    assert kinds == [
        "row-length", "blank-cell", "model-name", "regime", "k_or_p", "blank-row",
        "duplicate-model",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"(?s)7 problems.*did you mean 'global_uniform'"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", ["empty"]),
        (" \n\n", ["empty"]),
        (HEADER, ["no-rows"]),
        ("model_name,regime,k_or_p\na,global_uniform,1\n", ["missing-column"]),
        ("model_name,regime,k_or_p,seed,Seed\na,global_uniform,1,0,0\n", ["unknown-column"]),
        ("model_name,regime,k_or_p,seed,seed\na,global_uniform,1,0,0\n", ["duplicate-column"]),
        (HEADER.replace(",", ";"), ["unknown-column", "missing-column"]),
        (HEADER + 'a,"global_uniform"x,1,0\n', ["not-csv"]),
        (HEADER + 'a,global_uniform,1,"0\n', ["not-csv"]),
        (HEADER.encode() + b"\xe9,global_uniform,1,0\n", ["not-utf8"]),
        ("\ufeffmodel_name".encode("utf-16"), ["not-utf8"]),
        (HEADER + "a, global_uniform,1,0\n", ["surrounding-whitespace"]),
    ],
)
def test_files_that_are_not_a_manifest_are_rejected(text, kinds, write):
    assert [p.kind for p in problems_of(write(text))] == kinds


def test_a_missing_manifest_is_reported(tmp_path):
    (problem,) = problems_of(tmp_path / "none.csv")
    assert problem.kind == "missing-file"


def test_byte_order_mark_crlf_and_empty_lines_are_accepted(write):
    text = "\ufeff" + HEADER + "\na,global_uniform,1,0\n\nb,global_uniform,1,1\n\n"
    manifest = read_manifest(write(text.replace("\n", "\r\n")))
    assert [(m.model_name, m.row, m.line) for m in manifest.models] == [("a", 1, 3), ("b", 2, 5)]


def test_paths_are_relative_to_the_manifest_and_blank_ones_are_none(write, tmp_path):
    head = "predictions_dir,train_annotations," + HEADER
    manifest = read_manifest(
        write(head + "preds/a,/data/t.json,a,global_uniform,1,0\n,,b,global_uniform,1,1\n")
    )
    a, b = manifest.models
    assert a.predictions_dir == tmp_path / "preds/a"
    assert str(a.train_annotations) == "/data/t.json"
    assert b.predictions_dir is b.train_annotations is None


ROWS = {"model_name": "a", "regime": "global_uniform", "k_or_p": "1", "seed": "0"}


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"k_or_p": "all", "architecture": "x"}, True),
        ({"k_or_p": "1e0", "model_name": "007"}, True),
        ({"regime": "incremental_natural", "k_or_p": ".5"}, True),
        ({"regime": "incremental_natural", "k_or_p": "all"}, False),
        ({"regime": "incremental_uniform_targets", "k_or_p": "all"}, False),
        ({"regime": "other"}, False),
        ({"k_or_p": "1_000"}, False),
        ({"seed": "s0"}, False),
        ({"seed": "1.5"}, False),
        ({"model_name": "a/b"}, False),
        ({"model_name": "-a"}, False),
        ({"model_name": "=a"}, False),
        ({"model_name": "a=+@"}, True),
        ({"architecture": "+a"}, False),
        ({"architecture": "a+"}, True),
        ({"model_name": "a..b"}, False),
        ({"model_name": "a "}, False),
        ({"architecture": ""}, False),
        ({"colour": "red"}, False),
    ],
)
def test_schema_and_reader_agree(change, valid, write):
    row = {**ROWS, **change}
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(row) is valid
    path = write(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    if valid:
        assert len(read_manifest(path).models) == 1
    else:
        assert problems_of(path)


def test_reading_a_manifest_imports_no_table_library():
    import subprocess
    import sys

    code = (
        "import sys, benchmark_eval.inputs.manifest;"
        "print(sorted({'pandas', 'numpy', 'scipy', 'matplotlib', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
