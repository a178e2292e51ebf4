"""Test Snakemake's report of two small sweeps in a browser: make test-report.

Runs the sweeps, one of them with a prefix, in one workflow, makes ``report.zip``, opens its
page in headless Chromium, visits the first page, every category, image and description, and
compares them with the list of plots.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from browser.chromium import dump, find_browser, seen_in  # noqa: E402
from support.workflow_sweep import Sweep, two_modules  # noqa: E402

from benchmark_eval.report.captions import PLOTS  # noqa: E402

FIRST_PAGE = (
    *("Sweep in results", "IoU threshold:0.5", "Sweep in strict/results", "IoU threshold:0.75"),
    *("Models:5", "benchmark-eval 0."),
)
FOLDERS = ("", " (strict)")
"""What the categories of the sweeps end with."""


PAGE = "Report"
"""The category of the page of a sweep."""


def main() -> int:
    """Exit code 0 if the page is as expected, 1 if not, 2 without a browser."""
    browser = find_browser()
    if browser is None:
        print("Chromium not found: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        page = make_page(Path(folder))
        seen = walk(browser, page, Path(folder))
    problems = compare(seen)
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    if not problems:
        n_rows, n_categories = len(seen["rows"]), len(seen["categories"])
        print(f"{n_rows} results in {n_categories} categories, all as expected")
    return 1 if problems else 0


def make_page(folder: Path) -> Path:
    """Run the sweeps and unpack their report; returns the path of the page."""
    sweep = two_modules(Sweep.make(folder / "data"), folder / "sweep", plot_formats=["svg", "png"])
    sweep.run()
    sweep.run("--report", "report.zip")
    with zipfile.ZipFile(sweep.folder / "report.zip") as packed:
        packed.extractall(folder)
    return folder / "report/report.html"


def walk(browser: str, page: Path, folder: Path) -> dict[str, Any]:
    """Content of the page, as collected by ``walk.js``."""
    text = page.read_text()
    before, _, after = text.rpartition("</body>")
    walked = page.with_name("walk.html")
    walked.write_text(f"{before}<script>{(HERE / 'walk.js').read_text()}</script></body>{after}")
    document, _ = dump(browser, walked, folder)
    return seen_in(document, "walk.js")


def compare(seen: dict[str, Any]) -> list[str]:
    """Differences between the page and the list of plots."""
    problems = list(seen["errors"])
    questions = [*(plot.question for plot in PLOTS), PAGE]
    expected = {f"{question}{folder}" for question in questions for folder in FOLDERS}
    if set(seen["categories"]) != expected:
        problems.append(f"categories {seen['categories']}, expected {sorted(expected)}")
    problems += [
        f"the first page does not say {words!r}: {seen['about']!r}"
        for words in FIRST_PAGE
        if words not in seen["about"]
    ]
    problems += [f"the first page links to {link!r}" for link in seen["links"] if bad(link)]
    rows = {(row["category"], row["labels"][0]): row for row in seen["rows"]}
    n_expected = len(FOLDERS) * (len(PLOTS) + 1)
    if len(rows) != len(seen["rows"]) or len(rows) != n_expected:
        problems.append(f"{len(seen['rows'])} results, expected {n_expected}")
    pages = [rows.pop((f"{PAGE}{folder}", "Report of the sweep"), None) for folder in FOLDERS]
    if None in pages:
        problems.append(f"no page of a sweep among {sorted(rows)}")
    for plot, folder in itertools.product(PLOTS, FOLDERS):
        row = rows.get((f"{plot.question}{folder}", plot.title))
        if row is None:
            problems.append(f"no {plot.title!r} of {folder or 'results'} among {sorted(rows)}")
            continue
        if sorted(row["formats"]) != ["png", "svg"]:
            problems.append(f"{plot.title!r} has the formats {row['formats']}")
        if not row["width"] or plot.name not in row["picture"]:
            problems.append(f"{plot.title!r} shows {row['picture']!r}, {row['width']} px wide")
        if row["description"] != plot.caption:
            problems.append(f"{plot.title!r} is described as {row['description']!r}")
    pictures = [row.get("picture") for row in rows.values()]
    if len(set(pictures)) != len(pictures):
        problems.append("two results show the same file")
    return problems


def bad(link: str) -> bool:
    """Whether a link leads neither into the page nor to a web address."""
    return not link.startswith(("https://", "javascript:", "#"))


if __name__ == "__main__":
    sys.exit(main())
