"""Links between the pages of this repository lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md")]
MADE = re.compile(r"(\.\./)*(reference/.*|contributing\.md)")
"""Pages of the site that docs/hooks.py makes: ``make docs`` fails where such a link is wrong."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    gone = [target for target in local if not (page.parent / target).exists()]
    if page.is_relative_to(ROOT / "docs"):
        gone = [target for target in gone if not MADE.fullmatch(target)]
    assert not gone


def test_every_plot_is_explained_on_a_page_of_questions():
    from benchmark_eval.report.captions import PLOTS

    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/questions/*.md"))
    explained = re.findall(r"`([a-z_]+[*]?)`", text)
    for plot in PLOTS:
        assert any(
            plot.name == name or (name.endswith("*") and plot.name.startswith(name[:-1]))
            for name in explained
        ), plot.name
