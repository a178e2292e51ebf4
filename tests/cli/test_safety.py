"""Malicious names, links and formulas, and unsafe calls in the sources."""

import ast
import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.layout import write_predictions, write_split, write_taxonomy

import benchmark_eval
from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs.config import read_config

ROOT = Path(benchmark_eval.__file__).parent.parent
SOURCES = sorted(
    path
    for folder in ("benchmark_eval", "workflow/scripts", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)
FORMULA = '=HYPERLINK("http://example.org";"x")'


# --------------------------------------------------------------------------------------------
# Sources
# --------------------------------------------------------------------------------------------

NEVER_IMPORTED = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
NEVER_CALLED = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "input"}
ON_PURPOSE = {"benchmark_eval/sweep/custom_metrics.py": ["exec", "compile"]}
"""Code that runs a file by design: custom metrics of the user."""
ONLY_SAFE_YAML = {"yaml.safe_load", "yaml.safe_dump"}


def dotted(node):
    """``a.b.c`` for a dotted name, otherwise blank."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and dotted(node.value):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def unsafe(tree):
    """Unsafe imports and calls in a source, as (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names]
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            for name in names:
                if name.partition(".")[0] in NEVER_IMPORTED:
                    yield node.lineno, f"import {name}"
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        keywords = {k.arg: k.value for k in node.keywords}
        if name in NEVER_CALLED:
            yield node.lineno, name
        if name.startswith("yaml.") and "load" in name and name not in ONLY_SAFE_YAML:
            yield node.lineno, name
        if name.endswith("np.load") or name == "numpy.load":
            allowed = keywords.get("allow_pickle")
            if not (isinstance(allowed, ast.Constant) and allowed.value is False):
                yield node.lineno, f"{name} that may unpickle"
        shell = keywords.get("shell")
        if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
            yield node.lineno, f"{name} through a shell"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_sources_contain_no_unsafe_calls(path):
    found = [what for _, what in unsafe(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == ON_PURPOSE.get(path.relative_to(ROOT).as_posix(), [])


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.numpy_pickle",
        "eval(text)",
        "exec(text)",
        "os.system(text)",
        "yaml.load(text)",
        "yaml.unsafe_load(text)",
        "yaml.full_load_all(text)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=flag)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_unsafe_calls_are_detected(text):
    assert len(list(unsafe(ast.parse(text)))) == 1


# --------------------------------------------------------------------------------------------
# YAML
# --------------------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, "more than 20 aliases"),
        pytest.param("[" * 1_000 + "]" * 1_000, "nested too deeply", marks=pytest.mark.slow),
        ("iou: 2024-99-99", "month must be in 1..12"),
        ("iou: !!python/object/apply:os.system [echo]", "could not determine a constructor"),
        ("iou: " + "9" * 10_000, "Exceeds the limit"),
        ("iou: [", "while parsing"),
        ("\x00", "unacceptable character"),
    ],
    ids=["laughs", "brackets", "date", "object", "digits", "half", "nul"],
)
def test_a_malicious_config_is_an_error(tmp_path, text, words):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_config(tmp_path / "config.yaml")


def test_a_few_aliases_are_allowed(tmp_path):
    (tmp_path / "config.yaml").write_text("predictions_dir: &p data\nbenchmark_dir: *p\n")
    assert str(read_config(tmp_path / "config.yaml").benchmark_dir) == "data"


# --------------------------------------------------------------------------------------------
# Names
# --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A benchmark with a formula as species name, and predictions."""
    path = write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]], [1, 1, [20, 0, 9, 9], 1]])
    write_taxonomy(tmp_path, [1])
    for file in (path, tmp_path / "species_taxonomy.csv"):
        file.write_text(file.read_text().replace("Genus0 species1", "=Genus0 species1"))
    write_predictions(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9], 0.5]])
    return tmp_path


def evaluate(folder, name, output=None):
    main(
        [
            *["evaluate", "--quiet", "--splits", "iid_test", "--model-name", name],
            *["--benchmark-dir", str(folder), "--predictions-dir", str(folder)],
            *["--output-dir", str(output or folder / "out")],
        ]
    )


@pytest.mark.parametrize(
    "name",
    [
        "../m",
        "a/b",
        "a\\b",
        "/etc/m",
        "..",
        ".hidden",
        "-rf",
        "m\n",
        "m\x00",
        "m\x1b[2J",
        "m\u202egnp.exe",
        "m\u2028",
        " m",
        "=m",
        "+m",
        "@m",
        "m" * 300,
        "",
    ],
)
def test_a_name_that_is_not_a_file_name_is_rejected(folder, name, capsys):
    with pytest.raises(SystemExit) as stop:
        evaluate(folder, name)
    assert stop.value.code == 2
    assert "model name" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_formulas_are_escaped_in_every_table_of_a_model(folder):
    evaluate(folder, "m")
    cells = [
        cell
        for path in sorted((folder / "out").glob("*.csv"))
        for row in csv.reader(path.open(newline=""))
        for cell in row
    ]
    assert "'=Genus0 species1" in cells
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))] == []
    # negative numbers are not escaped
    assert [c for c in cells if c.startswith("-") and not c[1:].replace(".", "").isdigit()] == []
    summary = json.loads((folder / "out/m_summary.json").read_text())
    assert summary["per_split"]["iid_test"]["per_species"]["1"]["name"] == "=Genus0 species1"


@pytest.mark.slow  # draws plots
def test_markup_in_names_is_escaped_in_report_and_plots(tmp_path):
    """A sweep with markup, formulas and TeX in architecture and model names."""
    from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation

    from benchmark_eval.inputs.benchmark_reader import load_benchmark

    benchmark = write_benchmark(tmp_path / "benchmark")
    digests = load_benchmark(benchmark).digests
    evil = ["<script>alert(1)</script>", "$\\frac{1}$ ![x](http://example.org/x.png)"]
    rows = []
    for number, architecture in enumerate(evil):
        for seed in (0, 1):
            name = f"m=1+{number}{seed}"
            rows.append([name, architecture, "global_uniform", "1", str(seed)])
            warnings = [("iid_test", "<b>bold</b> [a](http://example.org)")]
            item = evaluation(name, 0.3 + seed / 10, benchmark=digests, warnings=warnings)
            write_evaluation(tmp_path / "eval", item)
    (tmp_path / "manifest.csv").write_text(manifest_text(rows))
    tables, plots, report = (str(tmp_path / name) for name in ("tables", "plots", "report"))
    given = ["--benchmark-dir", str(benchmark), "--manifest", str(tmp_path / "manifest.csv")]
    main(["aggregate", "--eval-dir", str(tmp_path / "eval"), *given, "--output-dir", tables])
    given = ["--aggregated", f"{tables}/aggregated.json"]
    only = ["--only", "learning_iid_AP_50_95", "--only", "operating_curve", "--only", "target_grid"]
    main(["plot", *given, *only, "--output-dir", plots, "--format", "svg"])
    main(["report", *given, "--output-dir", report])
    for path in (tmp_path / "tables").glob("*.csv"):
        cells = [cell for row in csv.reader(path.open(newline="")) for cell in row]
        assert [c for c in cells if c.startswith(("=", "+", "@"))] == [], path
    reports = [*tmp_path.glob("report/**/*.md"), *tmp_path.glob("tables/*.md")]
    assert reports
    for path in reports:
        text = path.read_text()
        assert "<script" not in text
        assert "<b>" not in text
        assert "](http://example.org" not in text
    drawings = list((tmp_path / "plots").rglob("*.svg"))
    assert drawings
    for path in drawings:
        tags = {node.tag.rpartition("}")[2] for node in ElementTree.parse(path).iter()}
        assert "script" not in tags
        assert "image" not in tags or "example.org" not in path.read_text()
