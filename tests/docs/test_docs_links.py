"""Links between the pages of this repository are valid."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md")]
GENERATED = re.compile(r"(\.\./)*(reference/.*|contributing\.md)")
"""Pages that docs/hooks.py generates; ``make docs`` checks links to them."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_are_valid(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    broken = [target for target in local if not (page.parent / target).exists()]
    if page.is_relative_to(ROOT / "docs"):
        broken = [target for target in broken if not GENERATED.fullmatch(target)]
    assert not broken


def test_every_plot_is_explained_on_a_question_page():
    from benchmark_eval.report.captions import PLOTS

    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/questions/*.md"))
    explained = re.findall(r"`([a-z_]+[*]?)`", text)
    for plot in PLOTS:
        assert any(
            plot.name == name or (name.endswith("*") and plot.name.startswith(name[:-1]))
            for name in explained
        ), plot.name
