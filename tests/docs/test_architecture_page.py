"""docs/architecture.md and its drawing agree with the package."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
NAMES = sorted(set(re.findall(r"`((?:[a-z_]+\.){2,}\w+)`", PAGE)))


@pytest.fixture(scope="module")
def graph():
    path = ROOT / "docs/architecture_graph.py"
    spec = importlib.util.spec_from_file_location("architecture_graph", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawing_is_up_to_date(graph):
    assert graph.TARGET.read_text() == graph.svg(), "renew: make architecture-graph"


def test_the_table_has_every_room_from_top_to_bottom(graph):
    level = {room: number for number, layer in enumerate(graph.layers()) for room in layer}
    rooms = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert sorted(rooms) == sorted(level)
    assert [level[room] for room in rooms] == sorted(level.values())


def test_transitive_reduction(graph):
    edges = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set(), "d": set()}
    assert graph.reduced(edges) == {"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()}


@pytest.mark.parametrize("name", NAMES)
def test_every_named_function_exists(name):
    module, _, function = name.rpartition(".")
    assert hasattr(importlib.import_module(f"benchmark_eval.{module}"), function)


def test_the_walks_name_functions_of_many_modules():
    assert len(NAMES) > 20
