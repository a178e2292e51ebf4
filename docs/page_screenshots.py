"""Draw the two screenshots of the page: make page-screenshots.

python docs/page_screenshots.py results/report.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
SHOTS = (("leaderboard", "light"), ("panel-curves", "dark"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main(page: Path) -> None:
    """Write ``docs/page_<scheme>.png``, 1,280 px wide."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit("Chromium not found: apt-get install chromium")
    options = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=browser, args=options)
        for place, scheme in SHOTS:
            size = {"width": 1280, "height": 720}
            tab = made.new_page(viewport=size, color_scheme=scheme)
            tab.goto(page.resolve().as_uri() + f"#{place}")
            tab.wait_for_selector("html[data-ready]")
            tab.evaluate("place => document.getElementById(place).scrollIntoView()", place)
            tab.screenshot(path=HERE / f"page_{scheme}.png")
        made.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
