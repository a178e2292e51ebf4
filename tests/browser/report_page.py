"""Snakemake's report of a small sweep, read in a browser as a reader would: make test-report.

Runs the sweep, makes ``report.zip``, opens its page in headless Chromium, walks through every
category, picture and description, and compares what was seen with the catalogue of plots.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.workflow_sweep import Sweep  # noqa: E402

from benchmark_eval.report.captions import PLOTS  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 300


def main() -> int:
    """Exit code 0 if the page shows what it should, 1 if not, 2 without a browser."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print("no Chromium here: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        page = make_page(Path(folder))
        seen = walk(browser, page, Path(folder))
    faults = compare(seen)
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    if not faults:
        n_rows, n_categories = len(seen["rows"]), len(seen["categories"])
        print(f"{n_rows} results in {n_categories} categories, as they should be")
    return 1 if faults else 0


def make_page(folder: Path) -> Path:
    """Run the sweep and unpack its report; the page."""
    sweep = Sweep.make(folder / "sweep")
    sweep.configure(plot_formats=["svg", "png"])
    sweep.run()
    sweep.run("--report", "report.zip")
    with zipfile.ZipFile(sweep.folder / "report.zip") as packed:
        packed.extractall(folder)
    return folder / "report/report.html"


def walk(browser: str, page: Path, folder: Path) -> dict[str, Any]:
    """What ``walk.js`` sees on the page."""
    text = page.read_text()
    before, _, after = text.rpartition("</body>")
    walked = page.with_name("walk.html")
    walked.write_text(f"{before}<script>{(HERE / 'walk.js').read_text()}</script></body>{after}")
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=600000"),
            *("--dump-dom", walked.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise SystemExit("FAILED: the page was not walked to its end")
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen


def compare(seen: dict[str, Any]) -> list[str]:
    """What is not as it should be."""
    faults = list(seen["errors"])
    wanted = {plot.question for plot in PLOTS} | {"Report"}
    if set(seen["categories"]) != wanted:
        faults.append(f"categories {seen['categories']}, not {sorted(wanted)}")
    rows = {row["labels"][0]: row for row in seen["rows"]}
    for plot in PLOTS:
        row = rows.get(plot.title)
        if row is None:
            faults.append(f"no {plot.title!r} among {sorted(rows)}")
            continue
        if row["category"] != plot.question:
            faults.append(f"{plot.title!r} is under {row['category']!r}")
        if sorted(row["formats"]) != ["png", "svg"]:
            faults.append(f"{plot.title!r} has the formats {row['formats']}")
        if not row["width"] or plot.name not in row["picture"]:
            faults.append(f"{plot.title!r} shows {row['picture']!r}, {row['width']} px wide")
        if row["description"] != plot.caption:
            faults.append(f"{plot.title!r} is described as {row['description']!r}")
    others = [row for row in seen["rows"] if row["category"] == "Report"]
    if not others or not all(row["description"] for row in others):
        faults.append(f"the report is not there or not described: {others}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
