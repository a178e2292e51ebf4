"""The models of a sweep and the files that belong to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from benchmark_eval.inputs.manifest import budget_text
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.page.tables import shown
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.results.writers import model_files


@dataclass(frozen=True, slots=True)
class Card:
    """A model: its condition, its headline metrics, its warnings and its files.

    ``files`` are (name, link), with an empty link for a file that the page does not reach.
    """

    model: str
    condition: str
    metrics: list[tuple[str, str]]
    messages: list[str]
    files: list[tuple[str, str]]
    evidence: bool


def files_below(folder: Path, place: str | Path | None, names: Iterable[str]) -> dict[str, str]:
    """The relative link of each file in ``place`` that exists at or below ``folder``.

    A link to any other place could contain the name of a user or break when the page moves.
    """
    if place is None:
        return {}
    try:
        inside = Path(place).resolve().relative_to(folder.resolve())
    except ValueError:
        return {}
    return {
        name: quote((inside / name).as_posix()) for name in names if (Path(place) / name).is_file()
    }


def model_cards(facts: Facts, folder: Path, eval_dir: str | Path | None) -> list[Card]:
    """All models, in table order."""
    said: dict[str, list[str]] = {}
    for item in facts.data.warnings:
        for name in item.models:
            about = "" if item.alike else " (numbers of the first such model)"
            said.setdefault(name, []).append(f"{item.split}: {item.text}{about}")
    for copies in facts.data.identical:
        for name in copies.models:
            others = [other for other in copies.models if other != name]
            said.setdefault(name, []).append(
                f"{', '.join(copies.splits)}: same prediction files as {', '.join(others[:3])}"
                + (f" and {len(others) - 3} more" if len(others) > 3 else "")
            )
    lacking = set(facts.data.without_evidence)
    return [
        Card(
            row.model,
            f"{facts.look.label(row.architecture)}, {row.regime} "
            f"{budget_text(row.regime, row.k_or_p)}, seed {row.seed}",
            [(BY_NAME[name].label, shown(row.values.get(name))) for name in HEADLINE],
            said.get(row.model, []),
            _files(row.model, folder, eval_dir),
            row.model not in lacking,
        )
        for row in facts.data.models
    ]


def _files(model: str, folder: Path, eval_dir: str | Path | None) -> list[tuple[str, str]]:
    names = [path.name for path in model_files(".", model).values()]
    found: dict[str, str] = {}
    if eval_dir is not None:
        for place in (Path(eval_dir), Path(eval_dir) / model):
            found |= files_below(folder, place, names)
    return [(name, found.get(name, "")) for name in names]
