"""``check`` finds exactly the planted problems: each kind alone, and all compatible kinds."""

import ast
import json
from collections import Counter
from pathlib import Path

import pytest
from support.planted import PLANTS, Tree

import benchmark_eval
from benchmark_eval import check_inputs
from benchmark_eval.check.kinds import KINDS

pytestmark = pytest.mark.slow  # checks a sweep for each kind of finding

PACKAGE = Path(benchmark_eval.__file__).parent
SOURCES = [
    *("core/safe_read", "core/csv_text"),
    *("inputs/benchmark_reader", "inputs/coco_annotations", "inputs/taxonomy", "inputs/config"),
    *("inputs/predictions", "inputs/prediction_decoder", "inputs/prediction_files"),
    *("inputs/manifest", "pipeline/plan", "training/budgets"),
    *("check/benchmark", "check/files", "check/run"),
]
PLANTED = Counter()
NEVER_FOUND = {
    "not-yaml": "the command exits with 'could not run'",
    "no-annotations": "found by the workflow while planning; check reports missing-file",
    "no-taxonomy": "found by the workflow while planning; check reports missing-file",
}


def found(folder, tree):
    config = tree.write(folder)
    given = {}
    if config.read_text().startswith("- "):
        given = {"benchmark_dir": str(folder), "predictions_dir": str(folder / "predictions")}
    report = check_inputs(config, **given, jobs=1)
    assert json.loads(json.dumps(report.to_dict()))["problems"] == report.count("problem")
    assert report.exit_code == (1 if report.count("problem") else 0)
    return report


def counts(report, *, notes=False):
    kinds = Counter()
    for finding in report.findings:
        if notes == (finding.level == "note"):
            kinds[finding.problem.kind] += finding.problem.times
    return dict(kinds)


@pytest.fixture(autouse=True)
def record_counts(record_property):
    before = PLANTED.total()
    yield
    record_property("faults", PLANTED.total() - before)


def planted(tree, *kinds):
    expected = Counter()
    for kind in kinds:
        PLANTS[kind].change(tree)
        expected.update(PLANTS[kind].finds)
    PLANTED.update(expected)
    return dict(expected)


def test_the_base_tree_is_valid(tmp_path):
    report = found(tmp_path, Tree())
    assert counts(report) == {}
    assert counts(report, notes=True) == {"counts": 4, "sweep": 1}
    assert (report.n_models, report.n_files) == (19, 57)


@pytest.mark.parametrize("kind", PLANTS)
def test_only_the_planted_kind_is_found(kind, tmp_path):
    tree = Tree()
    expected = planted(tree, kind)
    report = found(tmp_path, tree)
    assert counts(report) == expected
    problems = [f.problem for f in report.findings if f.problem.kind == kind]
    assert all(p.file and p.found and p.expected for p in problems)
    assert {f.level for f in report.findings if f.problem.kind == kind} == {KINDS[kind].level}


def test_missing_predictions_are_found_without_a_manifest(tmp_path):
    tree = Tree()
    tree.config["manifest"] = None
    del tree.predictions["m", "semantic_ood"]
    report = found(tmp_path, tree)
    assert counts(report) == {"missing-predictions": 1}
    (problem,) = [f.problem for f in report.findings if f.problem.kind == "missing-predictions"]
    assert "the folder contains iid_test_predictions.json" in problem.cause


def test_all_kinds_in_one_tree(tmp_path):
    """With a valid manifest: all kinds that neither break it nor hide other problems."""
    kinds = [kind for kind, plant in PLANTS.items() if not plant.alone and not plant.rows]
    tree = Tree()
    expected = planted(tree, *kinds)
    assert len(kinds) > 40
    # likely mistakes are not searched for if the benchmark has problems
    del expected["likely-mistake"]
    assert counts(found(tmp_path, tree)) == expected


def test_all_kinds_in_one_tree_with_an_invalid_manifest(tmp_path):
    needs_manifest = {"missing-predictions", "empty-predictions", "ambiguous-predictions"}
    needs_manifest |= {"not-a-subset", "likely-mistake"}
    kinds = [k for k, plant in PLANTS.items() if not plant.alone and k not in needs_manifest]
    tree = Tree()
    expected = planted(tree, *kinds)
    assert len(kinds) > 50
    assert counts(found(tmp_path, tree)) == expected


def test_every_kind_in_the_code_is_planted_and_documented():
    kinds = set().union(*(kinds_in(PACKAGE / f"{name}.py") for name in SOURCES))
    assert kinds - set(NEVER_FOUND) == set(KINDS)
    notes = {kind for kind, entry in KINDS.items() if entry.level == "note"}
    assert set(PLANTS) == set(KINDS) - notes


def kinds_in(path):
    """The kinds of problem that a module creates: arguments of ``Problem`` and similar calls."""
    kinds = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            owner = getattr(node.func, "value", None)
            owner = getattr(owner, "id", getattr(owner, "attr", ""))
            if name == "Problem" or (name == "add" and owner in ("self", "problems")):
                kinds |= texts(node.args[:1])
            elif name == "add_rows" or (name == "add" and owner == "invalid"):
                kinds |= texts(node.args[1:2])
        elif isinstance(node, ast.For) and "kind" in ast.dump(node.target):
            for row in getattr(node.iter, "elts", ()):
                kinds |= texts(row.elts[:1])
    return kinds


def texts(nodes):
    """The string constants that an argument can evaluate to."""
    return {
        leaf.value
        for node in nodes
        for leaf in ([node.body, node.orelse] if isinstance(node, ast.IfExp) else [node])
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
    }
