"""The public API: its names, what importing it loads, its docstrings and its page of the site."""

import ast
import doctest
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import benchmark_eval

ROOT = Path(__file__).parents[2]
NAMES = [name for name in benchmark_eval.__all__ if name != "__version__"]


def loaded_by(code):
    """Heavy packages that a new interpreter has loaded after running ``code``."""
    heavy = "{'numpy', 'pandas', 'scipy', 'matplotlib', 'msgspec', 'snakemake'}"
    code = f"{code}\nimport sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout.strip())


def test_public_names():
    assert benchmark_eval.__all__ == [
        "run_evaluation",
        "evaluate_to_files",
        "load_benchmark",
        "read_predictions",
        "aggregate",
        "compare",
        "read_summary",
        "read_aggregated",
        "convert_annotations",
        "write_subsets",
        "check_inputs",
        "verify_results",
        "score_voc_folders",
        "make_synthetic",
        "BenchmarkEvalError",
        "InputError",
        "UsageError",
        "__version__",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported(name):
    found = getattr(benchmark_eval, name)
    assert found.__name__ == name
    assert name in dir(benchmark_eval)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'benchmark_eval' has no attribute 'no_such_name'"):
        benchmark_eval.no_such_name  # noqa: B018
    assert not hasattr(benchmark_eval, "no_such_name")


def test_names_for_type_checkers_match_the_lazy_imports():
    tree = ast.parse(Path(benchmark_eval.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {
        alias.name: node.module.removeprefix("benchmark_eval.")
        for block in blocks
        for node in block.body
        for alias in node.names
        if node.module != "typing"
    }
    assert declared == benchmark_eval._MODULES
    assert sorted(declared) == sorted(NAMES)


def test_importing_the_package_loads_no_heavy_package():
    assert loaded_by("import benchmark_eval; dir(benchmark_eval)") == []
    assert "numpy" in loaded_by("from benchmark_eval import run_evaluation")


def test_pandas_and_matplotlib_are_not_on_the_evaluation_path():
    names = "run_evaluation, evaluate_to_files, aggregate, read_aggregated, read_summary"
    loaded = loaded_by(
        f"from benchmark_eval import {names}, make_synthetic\n"
        "import tempfile\n"
        "folder = tempfile.TemporaryDirectory()\n"
        "made = make_synthetic(folder.name, scale=0.005, jobs=1)\n"
        "evaluate_to_files(benchmark=made.benchmark_dir, model_name='alder_gu_kall_s0',\n"
        "    predictions_dir=made.predictions_dir / 'alder_gu_kall_s0', output_dir=folder.name)\n"
        "aggregate(eval_dir=folder.name, manifest=made.manifest, benchmark=made.benchmark_dir,\n"
        "    output_dir=folder.name)\n"
    )
    assert not {"pandas", "matplotlib"} & set(loaded)


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(
        getattr(benchmark_eval, name), name, module=False, globs={}
    )
    (test,) = [test for test in found if test.examples]
    output = []
    assert doctest.DocTestRunner().run(test, out=output.append).failed == 0, "".join(output)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_describe_every_parameter(name):
    found = getattr(benchmark_eval, name)
    text = inspect.getdoc(found)
    assert re.search(r"^Examples\n--------$", text, re.M)
    if inspect.isclass(found):
        return
    for section in ("Parameters", "Returns", "Raises", "Notes"):
        assert re.search(rf"^{section}\n-{{{len(section)}}}$", text, re.M), section
    body = re.search(r"^Parameters\n-+\n(.*?)^\n?Returns$", text, re.M | re.S)[1]
    described = [
        word.strip() for line in re.findall(r"^(\w[\w, ]*) : ", body, re.M)
        for word in line.split(",")
    ]  # fmt: skip
    assert sorted(described) == sorted(inspect.signature(found).parameters)


def test_the_api_page_lists_exactly_the_public_names():
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.api_page()
    assert re.findall(r"^::: benchmark_eval\.(\S+)$", page, re.M) == benchmark_eval.__all__
    assert "Python API: reference/api.md" in (ROOT / "mkdocs.yml").read_text()
    sources = [ROOT / "docs/hooks.py", *ROOT.glob("docs/**/*.md")]
    assert sum(path.read_text().count(":::") for path in sources) == 1


PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md")]


def test_documentation_imports_only_the_api():
    found = {}
    for page in PAGES:
        for code in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("benchmark_eval"):
                    names = {alias.name for alias in node.names}
                    found.setdefault(page.name, set()).update(
                        names if node.module == "benchmark_eval" else {node.module}
                    )
                elif isinstance(node, ast.Import):
                    assert not any(a.name.startswith("benchmark_eval.") for a in node.names), page
    assert len(found) >= 3
    assert {page: names - set(NAMES) for page, names in found.items() if names - set(NAMES)} == {}
