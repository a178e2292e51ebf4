"""Test the gallery in a browser: make test-gallery.

Makes a small benchmark with pictures and two models, writes their gallery, opens it in headless
Chromium at several widths, light and dark, uses every filter, and compares what is shown with the
page. The policy of the page forbids every request but for its own pictures; a blocked one is an
error, and the browser lists all others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from browser.chromium import dump, find_browser, seen_in  # noqa: E402
from support.gallery import Page  # noqa: E402

from benchmark_eval import make_synthetic  # noqa: E402
from benchmark_eval.gallery import write_gallery  # noqa: E402

WIDTHS = (390, 1280, 1920)
NO_BACKGROUND = (
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--no-first-run", "--enable-logging=stderr"),
)
"""Flags for fewer requests of Chromium's own, and to print the console."""
DARK = "--blink-settings=preferredColorScheme=0"
HOST = """<!DOCTYPE html><html><head><meta name="color-scheme" content="light dark"></head><body>
<iframe src="walk.html" style="width: {width}px; height: 900px; border: 0"></iframe>
<script>onmessage = (event) => {{
  const left = document.createElement("pre");
  left.id = "seen";
  left.textContent = event.data;
  document.body.append(left);
}};</script></body></html>"""
"""A page that shows the gallery in a given width: windows of Chromium are at least 500 px wide."""
HOSTILE = "<img src=x onerror=alert(1)> \"'&amp; " + "long" * 70
LEAST_CONTRAST = 4.5
"""Of text, as in WCAG 2.1, level AA."""


def main() -> int:
    """Exit code 0 if the page is as expected, 1 if not, 2 without a browser."""
    browser = find_browser()
    if browser is None:
        print("Chromium not found: apt-get install chromium", file=sys.stderr)
        return 2
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = make_page(folder)
        content = Page(page)
        for width in WIDTHS:
            for dark in (False, True):
                found = walk(browser, page, folder, width, dark)
                problems += [f"{width} px, dark {dark}: {p}" for p in compare(found, content)]
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    if not problems:
        print(f"{len(content.cases)} cases, all filters as expected at {len(WIDTHS)} widths")
    return 1 if problems else 0


def make_page(folder: Path) -> Path:
    """A gallery of two models; one species has a name with markup, some images are missing."""
    made = make_synthetic(folder / "data", scale=0.005, images=40, detections_per_specimen=4)
    first = made.predictions_dir / "alder_gu_kall_s0"
    second = made.predictions_dir / "worse"
    second.mkdir()
    for path in first.iterdir():
        records = json.loads(path.read_text())
        (second / path.name).write_text(json.dumps(records[::3]))
    for path in (made.benchmark_dir / "detection/annotations_coco").iterdir():
        coco = json.loads(path.read_text())
        for category in coco["categories"]:
            if category["id"] == 1:
                category["name"] = HOSTILE
        path.write_text(json.dumps(coco))
    output = folder / "gallery"
    write_gallery(
        [first.name, second.name],
        output,
        benchmark_dir=made.benchmark_dir,
        predictions_dir=made.predictions_dir,
        eval_dir=None,
        cases=6,
    )
    return output / "index.html"


def walk(browser: str, page: Path, folder: Path, width: int, dark: bool) -> dict[str, Any]:
    """Content of the page, as collected by ``walk_gallery.js``, and the browser's log."""
    script = (HERE / "walk_gallery.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = page.read_text()
    walked = page.with_name("walk.html")
    # before all other scripts, to see their errors; the policy of the page allows no other script
    walked.write_text(
        text.replace("script-src ", f"script-src 'sha256-{digest}' ").replace(
            "<title>", f"<script>{script}</script><title>", 1
        )
    )
    host = page.with_name("host.html")
    host.write_text(HOST.format(width=width))
    flags = [*NO_BACKGROUND, "--window-size=2000,1000", *([DARK] if dark else [])]
    document, printed = dump(browser, host, folder, *flags)
    walked.unlink()
    host.unlink()
    seen = seen_in(document, "walk_gallery.js")
    seen["console"] = [line for line in printed.splitlines() if "CONSOLE" in line]
    seen["expected"] = {"dark": dark, "width": width}
    return seen


def compare(seen: Mapping[str, Any], page: Page) -> list[str]:
    """Differences between what was shown and the page."""
    problems = [*seen["errors"], *seen["console"]]
    problems += [
        f"a request to {url}" for url in seen["resources"] if not url.startswith("file://")
    ]
    expected = seen["expected"]
    if seen["dark"] is not expected["dark"] or seen["width"] != expected["width"]:
        problems.append(f"dark is {seen['dark']}, the width {seen['width']}")
    if seen["scroll"] > seen["width"]:
        problems.append(f"the page is {seen['scroll']} px wide")
    problems += different({}, seen["before"], page)
    for name, options in seen["filters"].items():
        if not options:
            problems.append(f"the filter {name} has no options")
        for value, shown in options.items():
            problems += different({name: value}, shown, page)
            if not shown["cases"]:
                problems.append(f"no case fits {name} = {value}")
    wanted = {"model", "split", "type", "species", "band", "density"}
    if set(seen["filters"]) != wanted:
        problems.append(f"the filters are {sorted(seen['filters'])}")
    for pair in seen["pairs"]:
        problems += different(pair["chosen"], pair, page)
    pictures = [picture["src"] for case in page.cases for picture in case["pictures"]]
    if [image["src"] for image in seen["images"]] != pictures or not pictures:
        problems.append(f"{len(seen['images'])} images, expected {len(pictures)}")
    for image in seen["images"]:
        if not image["width"] or not image["box"] or not image["alt"]:
            problems.append(f"the image {image}")
    problems += [
        f"a control without a name or focus: {control}"
        for control in seen["controls"]
        if not control["name"] or not control["focused"]
    ]
    problems += [
        f"the contrast of {name} is {value:.1f}"
        for name, value in seen["contrast"].items()
        if value < LEAST_CONTRAST
    ]
    return problems


def different(chosen: Mapping[str, str], shown: Mapping[str, Any], page: Page) -> list[str]:
    """Whether the cases shown are those that fit the chosen values."""
    fits = [
        at
        for at, case in enumerate(page.cases)
        if all(value in case[f"data-{name}"].split() for name, value in chosen.items())
    ]
    problems = []
    if shown["cases"] != fits:
        problems.append(f"{dict(chosen)} shows {shown['cases']}, expected {fits}")
    if shown["status"] != f"{len(fits)} of {len(page.cases)} cases shown":
        problems.append(f"{dict(chosen)} says {shown['status']!r}")
    if bool(shown["groups"]) is not bool(fits):
        problems.append(f"{dict(chosen)} shows {shown['groups']} sections")
    return problems


if __name__ == "__main__":
    sys.exit(main())
