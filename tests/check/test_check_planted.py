"""``check`` finds exactly what was planted: each kind alone, and all that can stand together."""

import ast
import json
from collections import Counter
from pathlib import Path

import pytest
from support.planted import PLANTS, Tree

import benchmark_eval
from benchmark_eval import check_inputs
from benchmark_eval.check.kinds import KINDS

PACKAGE = Path(benchmark_eval.__file__).parent
SOURCES = [
    *("inputs/benchmark_reader", "inputs/coco_annotations", "inputs/taxonomy", "inputs/config"),
    *("inputs/predictions", "inputs/prediction_decoder", "inputs/prediction_files"),
    *("inputs/manifest", "pipeline/plan", "training/budgets"),
    *("check/benchmark", "check/files", "check/run"),
]
PLANTED = Counter()
NEVER_FOUND = {
    "not-yaml": "ends in 'could not run'",
    "no-annotations": "the workflow's own first look; check tells missing-file",
    "no-taxonomy": "the workflow's own first look; check tells missing-file",
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
def tell_counts(record_property):
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


def test_the_base_tree_is_sound(tmp_path):
    report = found(tmp_path, Tree())
    assert counts(report) == {}
    assert counts(report, notes=True) == {"counts": 4, "sweep": 1}
    assert (report.n_models, report.n_files) == (19, 57)


@pytest.mark.parametrize("kind", PLANTS)
def test_one_kind_is_found_and_nothing_else(kind, tmp_path):
    tree = Tree()
    expected = planted(tree, kind)
    report = found(tmp_path, tree)
    assert counts(report) == expected
    told = [f.problem for f in report.findings if f.problem.kind == kind]
    assert all(p.file and p.found and p.expected for p in told)
    assert {f.level for f in report.findings if f.problem.kind == kind} == {KINDS[kind].level}


def test_all_kinds_in_one_tree(tmp_path):
    """With a sound manifest: everything but what breaks the manifest or hides other faults."""
    kinds = [kind for kind, plant in PLANTS.items() if not plant.alone and not plant.rows]
    tree = Tree()
    expected = planted(tree, *kinds)
    assert len(kinds) > 40
    # a faulty benchmark says nothing about the likelihood of a mistake in predictions
    del expected["likely-mistake"]
    assert counts(found(tmp_path, tree)) == expected


def test_all_kinds_in_one_tree_with_a_broken_manifest(tmp_path):
    needs_manifest = {"missing-predictions", "empty-predictions", "ambiguous-predictions"}
    needs_manifest |= {"not-a-subset", "likely-mistake"}
    kinds = [k for k, plant in PLANTS.items() if not plant.alone and k not in needs_manifest]
    tree = Tree()
    expected = planted(tree, *kinds)
    assert len(kinds) > 50
    assert counts(found(tmp_path, tree)) == expected


def test_every_kind_of_the_code_is_planted_and_explained():
    kinds = set().union(*(kinds_in(PACKAGE / f"{name}.py") for name in SOURCES))
    assert kinds - set(NEVER_FOUND) == set(KINDS)
    noted = {kind for kind, meaning in KINDS.items() if meaning.level == "note"}
    assert set(PLANTS) == set(KINDS) - noted


def kinds_in(path):
    """The kinds of problem that a module makes: first argument of Problem, fault and the like."""
    kinds = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            owner = getattr(getattr(node.func, "value", None), "id", "")
            if name in ("Problem", "fault") or (name == "add" and owner == "self"):
                kinds |= texts(node.args[:1])
            elif name == "strike" or (name == "add" and owner == "faults"):
                kinds |= texts(node.args[1:2])
        elif isinstance(node, ast.For) and "kind" in ast.dump(node.target):
            for row in getattr(node.iter, "elts", ()):
                kinds |= texts(row.elts[:1])
    return kinds


def texts(nodes):
    """The string constants that an argument can be."""
    return {
        leaf.value
        for node in nodes
        for leaf in ([node.body, node.orelse] if isinstance(node, ast.IfExp) else [node])
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
    }
