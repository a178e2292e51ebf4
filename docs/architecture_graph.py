"""Draw the subpackages and the imports between them into docs/architecture.svg.

Run by ``make architecture-graph``. The layers come from the import-linter contract in
pyproject.toml, the arrows from the import statements. An arrow is left out where a longer path
leads to the same subpackage.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/architecture.svg"
PACKAGE = "benchmark_eval"
# horizontal centre of each room; a new room needs an entry
COLUMNS = {
    "cli": 330, "check": 150, "pipeline": 290, "report": 290, "gallery": 110,
    "scoring": 110, "sweep": 290, "synthetic": 470, "results": 110, "training": 290,
    "formats": 470, "inputs": 290, "voc": 470,
    "core": 380, "protocol": 200,
}  # fmt: skip
WIDTH, HEIGHT, ROW = 110, 34, 74
SIZE = (580, 8 * ROW)


def layers() -> list[list[str]]:
    """The rooms from top to bottom; rooms of one layer do not import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [layer.split(" | ") for layer in contract["layers"] if layer != "__main__"]


def imports() -> dict[str, set[str]]:
    """For each room the lower rooms that its modules import."""
    level = {room: number for number, layer in enumerate(layers()) for room in layer}
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found: dict[str, set[str]] = {room: set() for room in level}
    for module in graph.modules:
        source = _room(module)
        for imported in graph.find_modules_directly_imported_by(module):
            target = _room(imported)
            if source in level and target in level and level[source] < level[target]:
                found[source].add(target)
    return found


def _room(module: str) -> str:
    """``benchmark_eval.<room>.<...>`` -> ``<room>``, empty for the package itself."""
    return module.removeprefix(PACKAGE).lstrip(".").partition(".")[0]


def reduced(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the arrows that a longer path replaces (its transitive reduction)."""
    return {
        room: {
            target
            for target in targets
            if not any(target in _reachable(graph, other) for other in targets - {target})
        }
        for room, targets in graph.items()
    }


def _reachable(graph: Mapping[str, set[str]], room: str) -> set[str]:
    return graph[room].union(*(_reachable(graph, target) for target in graph[room]))


def svg() -> str:
    """The drawing as text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    width, height = SIZE
    place = {
        room: (COLUMNS[room], number * ROW + 30)
        for number, layer in enumerate(layers())
        for room in layer
    }
    arrows = sorted((a, b) for a, targets in reduced(imports()).items() for b in targets)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">'
    )
    yield "<title>Subpackages of benchmark_eval and the imports between them</title>"
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>'
    )
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    for a, b in arrows:
        (x1, y1), (x2, y2) = place[a], place[b]
        yield (
            f'<line class="{a} {b}" x1="{x1}" y1="{y1 + HEIGHT // 2}" x2="{x2}" '
            f'y2="{y2 - HEIGHT // 2 - 2}" stroke="#555" stroke-width="1.3" '
            'marker-end="url(#head)"/>'
        )
    for room, (x, y) in place.items():
        yield (
            f'<rect x="{x - WIDTH // 2}" y="{y - HEIGHT // 2}" width="{WIDTH}" '
            f'height="{HEIGHT}" rx="4" fill="#f3ece4" stroke="#6d4c41"/>'
        )
        yield f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#222">{room}</text>'
    yield "</svg>"


if __name__ == "__main__":
    TARGET.write_text(svg(), encoding="utf-8")
