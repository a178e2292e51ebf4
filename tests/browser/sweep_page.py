"""Test the page of a sweep in a browser: make test-report.

Makes the page of a small sweep, and of one with hostile names, and opens both in headless Chromium
without network: no console error, no request, every control changes what it should (compared with
the CSV files), the state in the address, downloads, widths from 390 to 1,920 px, axe-core, and
the page without JavaScript.
"""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from sweep.golden.sweep import run  # noqa: E402

from benchmark_eval.cli.main import main as command  # noqa: E402
from benchmark_eval.core.csv_text import csv_cell  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
WIDTHS = (390, 768, 1280, 1920)
MARKUP = "<img src=x onerror=\"document.title='run'\"> \"a\" 'b' </script>"
LONG = "n" * 300
GU, TA = "global_uniform", "incremental_uniform_targets"
SERIOUS = ("serious", "critical")

problems: list[str] = []


def expect(held: bool, text: str) -> None:
    """Note a problem unless the condition holds."""
    if not held:
        problems.append(text)


def main() -> int:
    """Exit code 0 if the page is as expected, 1 if not, 2 without a browser."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        print("Chromium not found: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        page, hostile = make_pages(folder)
        browser = playwright.chromium.launch(executable_path=found, args=list(OPTIONS))
        tests: tuple[Callable[[Browser, Path], None], ...] = (
            leaderboard, curves, costs, threshold, species, genera, toolbox, address, downloads,
            widths, accessible, without_script,
        )  # fmt: skip
        for test in tests:
            test(browser, page)
        names(browser, hostile)
        browser.close()
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    if not problems:
        print(f"{len(tests) + 1} tests of the page, all as expected")
    return 1 if problems else 0


def make_pages(folder: Path) -> tuple[Path, Path]:
    """The page of the golden sweep, and one whose two architectures have hostile names."""
    results = run(folder)
    page = ["page", "--eval-dir", str(results / "models")]
    command(
        [
            *(*page, "--aggregated", str(results / "aggregated/aggregated.json")),
            *("--output", str(results / "report.html")),
        ]
    )
    header, *rows = (folder / "manifest.csv").read_text().splitlines()
    named = [f"{row},{csv_cell(LONG if row.endswith('1') else MARKUP)}" for row in rows]
    manifest = folder / "hostile.csv"
    manifest.write_text("\n".join([f"{header},architecture", *named]) + "\n")
    given = ["--manifest", str(manifest), "--benchmark-dir", str(folder / "benchmark")]
    out = str(results / "hostile")
    command(["aggregate", "--eval-dir", str(results / "models"), *given, "--output-dir", out])
    hostile = results / "hostile.html"
    command([*page, "--aggregated", f"{out}/aggregated.json", "--output", str(hostile)])
    return results / "report.html", hostile


@contextmanager
def opened(browser: Browser, page: Path, state: str = "", **options: Any) -> Iterator[Page]:
    """A page that is ready; notes console messages, errors and requests."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_offline(True)
    tab = context.new_page()
    tab.on("console", lambda message: problems.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: problems.append(f"error: {error}"))
    tab.on(
        "request",
        lambda request: expect(
            request.url.startswith((page.as_uri(), "data:", "blob:")), f"request to {request.url}"
        ),
    )
    tab.goto(page.as_uri() + state)
    if options.get("java_script_enabled", True):
        ready(tab)
    yield tab
    context.close()


def ready(tab: Page) -> None:
    """Wait until every chart is drawn."""
    tab.wait_for_selector("html[data-ready]")


def drawn(tab: Page, panel: str) -> list[dict[str, Any]]:
    """The rows behind the marks of a chart, as Vega holds them."""
    code = (
        "id => { const { view } = Page.charts.panels[id]; return view ? view.data('rows') : []; }"
    )
    rows: list[dict[str, Any]] = tab.evaluate(code, panel)
    return rows


def choose(tab: Page, control: str, value: str, panel: str) -> list[dict[str, Any]]:
    """Choose a value and return the rows that are drawn then."""
    tab.locator(f"[id='{control}']").select_option(value)
    ready(tab)
    return drawn(tab, panel)


def table(page: Path, name: str) -> list[dict[str, str]]:
    """A CSV file of the sweep."""
    with (page.parent / "aggregated" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def close(shown: float | None, text: str) -> bool:
    """Whether a number of the page is that of a CSV file."""
    if shown is None or text == "":
        return shown is None and text == ""
    return abs(shown - float(text)) <= 1e-4 * max(1.0, abs(shown))


def visible(tab: Page) -> list[str]:
    """The text of the visible rows of the leaderboard."""
    return tab.locator("#leaderboard-table tbody tr:not([hidden])").all_inner_texts()


def leaderboard(browser: Browser, page: Path) -> None:
    """Sorting, searching, selecting, columns and intervals."""
    with opened(browser, page) as tab:
        total = len(visible(tab))
        expect(total == 5, f"leaderboard: {total} rows, expected 5")
        head = tab.locator("#leaderboard-table th", has_text="AP@[.5:.95], in-distribution").last
        values = "rows => rows.map(row => Number(row.querySelectorAll('td.num')[1].dataset.v))"
        for order in ("descending", "ascending"):
            head.locator("button").click()
            found = tab.locator("#leaderboard-table tbody tr").evaluate_all(values)
            expected = sorted(found, reverse=order == "descending")
            expect(head.get_attribute("aria-sort") == order, f"leaderboard: not {order}")
            expect(found == expected, f"leaderboard: {found} is not {order}")
        tab.locator("[id='leaderboard-table.search']").fill("incremental_natural")
        expect(len(visible(tab)) == 1, "leaderboard: search for incremental_natural")
        tab.locator("[id='leaderboard-table.search']").fill("")
        tab.locator("#leaderboard .tools select").first.select_option("global_uniform")
        expect(len(visible(tab)) == 2, "leaderboard: selection of global_uniform")
        interval = tab.locator("[id='leaderboard-table.interval']")
        for value, shown, hidden in (("r", ".r", ".sr"), ("sr", ".sr", ".r")):
            interval.select_option(value)
            row = tab.locator("#leaderboard-table tbody tr:not([hidden])").first
            expect(row.locator(shown).first.is_visible(), f"leaderboard: no {shown} for {value}")
            expect(not row.locator(hidden).first.is_visible(), f"leaderboard: {hidden} for {value}")
        column = tab.locator("#leaderboard-table th.extra").first
        label = column.inner_text() or column.text_content() or ""
        expect(not column.is_visible(), "leaderboard: an extra column is shown at first")
        tab.locator("#leaderboard .tools summary").click()
        tab.locator("#leaderboard .tools fieldset label", has_text=label.strip()).first.click()
        expect(column.is_visible(), f"leaderboard: column {label} is not shown when chosen")


def curves(browser: Browser, page: Path) -> None:
    """Every split, metric and interval shows the numbers of learning_curves.csv."""
    held = {(row["regime"], row["k_or_p"]): row for row in table(page, "learning_curves.csv")}
    prefixes = {"in-distribution": "iid", "field photographs": "inat", "unseen species": "ood"}
    names = {"AP@[.5:.95]": "AP_50_95", "AP@.5": "AP_50", "detection recall": "detection_recall"}
    compared = 0
    with opened(browser, page) as tab:
        for split, prefix in prefixes.items():
            choose(tab, "curves.split", split, "curves")
            offered = tab.locator("[id='curves.metric'] option").all_inner_texts()
            for label in (name for name in names if name in offered):
                choose(tab, "curves.metric", label, "curves")
                for interval, part in (("retraining", ""), ("both", "species_")):
                    rows = choose(tab, "curves.interval", interval, "curves")
                    for row in (each for each in rows if each["kind"] == "mean"):
                        budget = row["budget"].partition("=")[2]
                        source = held[row["regime"], budget]
                        stem = f"{prefix}_{names[label]}"
                        low = source.get(f"{stem}_ci95_{part}retraining_low", "")
                        compared += 1
                        expect(
                            close(row["value"], source[f"{stem}_mean"]) and close(row["low"], low),
                            f"curves: {stem}, {interval}: {row['value']} from {row['low']}; "
                            f"expected {source[f'{stem}_mean']} from {low}",
                        )
                        expect(
                            row["interval"] != "", "curves: a mean without a word on its interval"
                        )
    expect(compared >= 60, f"curves: only {compared} numbers were compared")


def costs(browser: Browser, page: Path) -> None:
    """The axis of images, and that of the prices entered in the page."""
    held = {(row["regime"], row["k_or_p"]): row for row in table(page, "budget_curves.csv")}
    with opened(browser, page) as tab:
        for axis in ("images", "cost"):
            rows = choose(tab, "curves.axis", axis, "curves")
            if axis == "cost":
                expect(rows == [], "costs: shown without prices")
                tab.locator("[id='curves.price.image']").fill("2")
                tab.locator("[id='curves.price.specimen']").fill("0.5")
                ready(tab)
                rows = drawn(tab, "curves")
            expect(len(rows) > 0, f"costs: no rows for {axis}")
            for row in rows:
                source = held[row["regime"], row["budget"].partition("=")[2]]
                images, specimens = float(source["n_images"]), float(source["n_specimens"])
                expected = images if axis == "images" else 2 * images + 0.5 * specimens
                expect(abs(row["x"] - expected) < 1e-3 * expected, f"costs: {row['x']}, {expected}")


def threshold(browser: Browser, page: Path) -> None:
    """The slider shows the values of operating_curves.csv."""
    held = {
        (row["split"], round(float(row["confidence"]), 2)): row
        for row in table(page, "operating_curves.csv")
    }
    with opened(browser, page) as tab:
        slider = tab.locator("[id='threshold.at']")
        for split, name in (("in-distribution", "iid_test"), ("unseen species", "semantic_ood")):
            choose(tab, "threshold.split", split, "threshold")
            for value in ("0.25", "0.6"):
                slider.fill(value)
                ready(tab)
                listed = tab.evaluate("Page.charts.panels.threshold.listed")
                source = held[name, float(value)]
                expect(len(listed) >= 2, f"threshold: {len(listed)} rows at {value}")
                for row in listed:
                    if row["quantity"].startswith("missed"):
                        expected = 100 - 100 * float(source["recall_mean"])
                        expect(abs(row["value"] - expected) < 0.01, f"threshold: {row['value']}")
                rows = tab.locator("#panel-threshold tbody tr").count()
                expect(rows == len(listed), f"threshold: {rows} rows in the table")
        slider.focus()
        tab.keyboard.press("ArrowRight")
        said = tab.locator("[id='threshold.at-value']").inner_text()
        expect(said == "0.61", f"threshold: the arrow key leads to {said}")


def species(browser: Browser, page: Path) -> None:
    """The explorer shows the species that is asked for."""
    with opened(browser, page) as tab:
        name = tab.evaluate("Page.charts.panels.species.made.choices.species.values.at(-1)")
        tab.locator("[id='species.species']").fill(name)
        tab.locator("[id='species.species']").press("Enter")
        choose(tab, "species.metric", "detection_recall", "species")
        ready(tab)
        rows = drawn(tab, "species")
        expect({row["species"] for row in rows} == {name}, f"species: rows of others than {name}")
        text = tab.locator("#panel-species .about").inner_text()
        for words in (name, "Do not rely on:", "Training images:", "is mistaken for"):
            expect(words in text, f"species: {words!r} is not shown")


def genera(browser: Browser, page: Path) -> None:
    """No genus has more specimens than are scored, and correct ones are on the diagonal."""
    labels = [row for row in table(page, "labels.csv") if row["group"] == "all"]
    labels = [row for row in labels if row["split"] == "iid_test"]
    with opened(browser, page) as tab:
        totals: dict[str, float] = {}
        for row in drawn(tab, "genera"):
            totals[row["true"]] = totals.get(row["true"], 0) + row["value"]
            of = [
                r
                for r in labels
                if r["split"] == "iid_test" and r["label"].split()[0] == row["true"]
            ]
            right = sum(float(r["n_right"]) for r in of)
            if row["true"] == row["predicted"]:
                expect(row["count"] >= right - 1e-3, f"genera: {row['count']} of {right} correct")
        expect(len(totals) >= 3, f"genera: {len(totals)} rows")
        expect(max(totals.values()) <= 1.0001, f"genera: {totals}")


def toolbox(browser: Browser, page: Path) -> None:
    """Hiding and highlighting by text and by pattern, in tables, charts and models."""
    with opened(browser, page) as tab:
        tab.locator("#toolbox summary").click()
        before = drawn(tab, "curves")
        tab.locator("#tool-hide").fill("incremental_natural")
        ready(tab)
        after = drawn(tab, "curves")
        expect(len(visible(tab)) == 4, "toolbox: hidden condition in the leaderboard")
        regimes = {row["regime"] for row in after}
        expect(regimes == {GU, TA}, f"toolbox: {regimes} in the chart")
        kept = {(r["regime"], r["budget"], r["kind"], r["model"]): r["value"] for r in after}
        for row in before:
            key = (row["regime"], row["budget"], row["kind"], row["model"])
            expect(key not in kept or kept[key] == row["value"], f"toolbox: {key} changed")
        shown = tab.locator(".card:not([hidden])").count()
        expect(shown == 8, f"toolbox: {shown} models shown, expected 8")
        tab.locator("#tool-pattern").check()
        tab.locator("#tool-hide").fill("")
        tab.locator("#tool-highlight").fill("k=(1|all)$")
        ready(tab)
        hit = tab.locator("#leaderboard-table tr.hit").count()
        expect(hit == 2, f"toolbox: {hit} rows highlighted, expected 2")
        tab.locator("#tool-highlight").fill("(")
        said = tab.locator("#tool-said").inner_text()
        expect("Not a pattern" in said, f"toolbox: a broken pattern gives {said!r}")


def address(browser: Browser, page: Path) -> None:
    """A view can be passed on by its address."""
    with opened(browser, page) as tab:
        choose(tab, "curves.split", "unseen species", "curves")
        choose(tab, "curves.interval", "retraining", "curves")
        tab.locator("#toolbox summary").click()
        tab.locator("#tool-hide").fill("k=1")
        ready(tab)
        state, rows = tab.evaluate("location.hash"), drawn(tab, "curves")
    with opened(browser, page, state) as tab:
        same = [(r["metric"], r["value"], r["low"]) for r in drawn(tab, "curves")]
        expect(same == [(r["metric"], r["value"], r["low"]) for r in rows], "address: another view")
        expect(tab.locator("#tool-hide").input_value() == "k=1", "address: the toolbox is empty")
        tab.locator("nav a", has_text="Models").click()
        tab.wait_for_timeout(300)
        now = tab.evaluate("location.hash")
        expect(now.startswith("#models&") and "hide=" in now, f"address: {now} after a link")


def downloads(browser: Browser, page: Path) -> None:
    """CSV, SVG and PNG files open and have the content of the view."""
    with opened(browser, page, accept_downloads=True) as tab:
        with tab.expect_download() as caught:
            tab.locator("#leaderboard .tools button", has_text="CSV").click()
        rows = list(csv.DictReader(caught.value.path().read_text().splitlines()))
        held = {(r["regime"], r["k_or_p"]): r for r in table(page, "learning_curves.csv")}
        expect(len(rows) == 5, f"downloads: {len(rows)} rows")
        for row in rows:
            mean = held[row["regime"], row["k_or_p"]]["iid_AP_50_95_mean"]
            expect(close(float(row["iid_AP_50_95_mean"]), mean), "downloads: another mean")
        for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with tab.expect_download() as caught:
                tab.locator("#panel-curves button", has_text=kind).click()
            data = caught.value.path().read_bytes()
            expect(data.startswith(start) and len(data) > 3000, f"downloads: {kind} {data[:20]!r}")


def widths(browser: Browser, page: Path) -> None:
    """Nothing is wider than the window, from a phone to a large screen."""
    for width in WIDTHS:
        with opened(browser, page, viewport={"width": width, "height": 900}) as tab:
            wide = tab.evaluate("document.documentElement.scrollWidth")
            expect(wide <= width, f"widths: {wide} px in a window of {width} px")


def accessible(browser: Browser, page: Path) -> None:
    """axe-core finds nothing serious, light and dark; every control can be reached by keyboard."""
    for scheme in ("light", "dark"):
        with opened(browser, page, color_scheme=scheme) as tab:
            for found in Axe().run(tab).response["violations"]:
                expect(
                    found["impact"] not in SERIOUS,
                    f"axe, {scheme}: {found['id']} in {found['nodes'][0]['html'][:200]}",
                )
            colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            dark = colour != "rgb(255, 255, 255)"
            expect(dark == (scheme == "dark"), f"axe: {colour} in a {scheme} browser")
            lost = tab.evaluate(
                "[...document.querySelectorAll('button, select, input, textarea')]"
                ".filter(node => node.tabIndex < 0).map(node => node.id || node.textContent)"
            )
            expect(lost == [], f"keyboard: {lost} cannot be reached")


def without_script(browser: Browser, page: Path) -> None:
    """The bottom line, the tables and static figures are there without JavaScript."""
    with opened(browser, page, java_script_enabled=False) as tab:
        expect(tab.locator("#bottom-line li").first.is_visible(), "no script: no bottom line")
        expect(tab.locator("#leaderboard-table").is_visible(), "no script: no leaderboard")
        figures = tab.locator("img.static")
        expect(figures.count() >= 8, f"no script: {figures.count()} figures")
        expect(figures.first.is_visible(), "no script: the first figure is not visible")


def names(browser: Browser, page: Path) -> None:
    """Markup and very long names stay text, also in tooltips and on a narrow screen."""
    with opened(browser, page, viewport={"width": 390, "height": 900}) as tab:
        expect(tab.title() == "Report of the sweep", f"names: a name ran: {tab.title()}")
        expect(
            MARKUP in tab.locator("#leaderboard-table").inner_text(), "names: changed in a table"
        )
        wide = tab.evaluate("document.documentElement.scrollWidth")
        expect(wide <= 390, f"names: {wide} px in a window of 390 px")
        rows = drawn(tab, "curves")
        held = {row["architecture"] for row in rows}
        expect(held == {MARKUP, LONG}, f"names: changed in a chart: {sorted(held)}")
        mark = tab.locator("#panel-curves .role-mark.mark-symbol path").last
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        tab.wait_for_timeout(300)
        tip = tab.locator("#vg-tooltip-element")
        expect(tip.count() == 1 and tip.locator("img").count() == 0, "names: markup in a tooltip")


if __name__ == "__main__":
    sys.exit(main())
