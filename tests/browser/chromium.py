"""Headless Chromium: opens a page and returns its content after its scripts have run."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 300


def find_browser() -> str | None:
    """The path of an installed browser."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def dump(browser: str, page: Path, folder: Path, *flags: str) -> tuple[str, str]:
    """The document of a page after its scripts have run, and the log of the browser.

    ``folder`` is for the files of the browser.
    """
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=600000"),
            *flags,
            *("--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout, done.stderr


def seen_in(document: str, script: str) -> dict[str, Any]:
    """What a script left as JSON in the page."""
    found = re.search(r'<pre id="seen">(.*?)</pre>', document, re.DOTALL)
    if found is None:
        raise SystemExit(f"FAILED: {script} did not finish")
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen
