"""The page of a sweep: what it holds, what it must not hold, and the rows behind its charts."""

import csv
import html
import io
import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from support.factories import BUDGETS
from support.small_sweep import noisy, run_sweep

from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import UsageError
from benchmark_eval.report import write_page
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.page import panels, rows, static
from benchmark_eval.report.page.document import embedded, render
from benchmark_eval.report.page.models import files_below
from benchmark_eval.report.page.prose import to_html
from benchmark_eval.report.questions import bottom_line

GU, IN, TA = BUDGETS
MARKUP = "<img src=x onerror=alert(1)> \"a\" & 'b' </script><!-- {{ 7*7 }} **x**"
LONG = "n" * 300


@pytest.fixture(autouse=True)
def _without_vega(monkeypatch):
    """Pages without pictures and Vega, which take seconds; the browser test has both."""
    monkeypatch.setattr(static, "bundle", lambda: "var vegaEmbed;")

    def picture(panel, table):
        return "data:image/svg+xml;base64," if static.default_rows(panel, table)[0] else ""

    monkeypatch.setattr(static, "picture", picture)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two architectures in all regimes, and the rows of learning_curves.csv."""
    conditions = {
        (name, regime, budget): 0.02 * at + 0.05 * (name == "birch")
        for name in ("alder", "birch")
        for regime, budgets in BUDGETS.items()
        for at, budget in enumerate(budgets[::2])
    }
    return run_sweep(tmp_path_factory.mktemp("sweep") / "s", list(noisy(conditions)))


@pytest.fixture(scope="module")
def page(sweep):
    """The page of the sweep with its pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static, "bundle", lambda: "var vegaEmbed;")
        return render(sweep[0])


def data_of(page):
    return json.loads(re.search(r'id="page-data">(.*?)</script>', page, re.S).group(1))


def unpacked(table):
    """The rows of a table of the page, as its script reads them."""
    columns = {}
    for name, held in table["columns"].items():
        values = held["values"]
        if "runs" in held:
            values = [v for v, n in zip(values, held["runs"], strict=True) for _ in range(n)]
        columns[name] = [held["words"][v] for v in values] if "words" in held else values
    return [{name: columns[name][at] for name in columns} for at in range(table["n"])]


class Elements(HTMLParser):
    """The tags of a page with their attributes, and its text outside scripts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.inside = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside = tag if tag in {"script", "style"} else None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside is None:
            self.text.append(data)


def cells_of(page, table):
    """The CSV text of a table, from the cells that the script joins."""
    body = re.search(rf'<table class="grid" id="{table}".*?</table>', page, re.S).group(0)
    lines = [
        ",".join(html.unescape(cell) for cell in re.findall(r'data-csv="(.*?)"', row))
        for row in re.findall(r"<tr.*?</tr>", body, re.S)
    ]
    return list(csv.DictReader(io.StringIO("\n".join(lines))))


def key(row):
    return row["architecture"], row["regime"], row["k_or_p"]


# ---------------------------------------------------------------------------- numbers


def test_the_leaderboard_has_the_numbers_of_learning_curves_csv(sweep, page):
    found = {
        (r["architecture"], r["regime"], r["k_or_p"]): r
        for r in cells_of(page, "leaderboard-table")
    }
    assert len(found) == len(sweep[1]) == 18
    compared = 0
    for row in sweep[1]:
        shown = found[key(row)]
        for name, text in shown.items():
            if name in row and name not in {"architecture", "regime", "k_or_p"}:
                if row[name]:
                    assert float(text) == pytest.approx(float(row[name]), rel=1e-4), name
                    compared += 1
                else:
                    assert text == ""
    assert compared > 18 * 20


def test_the_tie_group_is_that_of_the_comparisons(sweep, page):
    facts = Facts(sweep[0])
    best = facts.best("iid_AP_50_95")
    words = {key(row): row["tie_group_iid_AP_50_95"] for row in cells_of(page, "leaderboard-table")}

    def of(conditions):
        return {(c.architecture, c.regime, c.k_or_p) for c in conditions}

    for word, conditions in (
        ("best", [best.condition]),
        ("tied", best.tied),
        ("lower", best.lower),
    ):
        assert {name for name, found in words.items() if found == word} == of(conditions)
    assert best.lower  # the test could not tell otherwise


def test_the_charts_have_the_numbers_of_the_tables_with_their_lines(sweep, page):
    made = unpacked(data_of(page)["tables"]["learning"])
    means = [row for row in made if row["kind"] == "mean" and row["metric"] == "AP@[.5:.95]"]
    means = [row for row in means if row["split"] == "in-distribution"]
    assert len(means) == 18
    for row in means:
        line = sweep[1][row["line"] - 2]
        assert (row["architecture"], row["regime"]) == (line["architecture"], line["regime"])
        assert row["value"] == pytest.approx(float(line["iid_AP_50_95_mean"]), rel=1e-4)
        assert row["r_low"] == pytest.approx(
            float(line["iid_AP_50_95_ci95_retraining_low"]), rel=1e-4
        )
        assert row["n"] == 3
    seeds = [
        row for row in made if row["kind"] == "seed" and row["model"] == "alder_global_uniform_1_0"
    ]
    assert {row["file"] for row in seeds} == {"models.csv"}


def test_missed_specimens_are_those_that_recall_leaves(sweep):
    found = rows.thresholds(Facts(sweep[0]))
    held = {(row.architecture, row.split, row.confidence): row for row in sweep[0].operating_curves}
    by_split = {
        "in-distribution": "iid_test",
        "field photographs": "inat_test",
        "unseen species": "semantic_ood",
    }
    seen = set()
    for row in found:
        source = held[row["architecture"], by_split[row["split"]], row["confidence"]]
        seen.add(row["quantity"])
        if row["quantity"] == "missed specimens (%)":
            recall = source.metrics["recall"]
            assert row["value"] == pytest.approx(100 - 100 * recall.mean)
            assert row["low"] == pytest.approx(100 - 100 * recall.ci95_high)
            assert row["high"] == pytest.approx(100 - 100 * recall.ci95_low)
        elif row["quantity"] == "false alarms per 100 images":
            assert row["value"] == pytest.approx(
                100 * source.metrics["false_positives_per_image"].mean
            )
    assert seen == set(rows.QUANTITIES)


def test_strata_of_fewer_than_10_images_have_no_interval(sweep):
    table = sweep[0]
    sizes = iter([9, 10] * len(table.density_curves))
    curves = [replace(row, n_images=next(sizes)) for row in table.density_curves]
    found = rows.density(Facts(replace(table, density_curves=curves)))
    few, enough = ([row for row in found if row["n_images"] == n] for n in (9, 10))
    assert {(row["low"], row["why"]) for row in few} == {(None, "fewer than 10 images")}
    assert any(row["low"] is not None for row in enough)


def test_rows_survive_the_compact_form():
    given = [
        {"a": "x", "b": 1, "c": 0.123456789},
        {"a": "x", "b": 1, "c": None},
        {"a": None, "b": 1, "c": 2.0},
        {"a": "y", "b": 2, "c": 2.0},
        {"a": "y", "b": 2, "c": 2.0},
    ]
    made = json.loads(json.dumps({"t": rows.columns(given)}))["t"]
    assert "runs" in made["columns"]["b"]
    assert unpacked(made) == [*[{**given[0], "c": 0.12346}], *given[1:]]
    assert rows.columns([]) == {"n": 0, "columns": {}}


def test_every_panel_names_columns_that_its_rows_have(sweep):
    facts = Facts(sweep[0])
    tables = panels.tables(facts)
    for group in panels.panels(facts).values():
        for panel in group:
            have = {name for row in tables[panel.table] for name in row}
            if not have:
                assert panel.empty, panel.id
                continue
            asked = {c["field"] for c in panel.controls if "field" in c} | set(panel.where)
            for control in panel.controls:
                for each in control.get("options", ()):
                    asked |= {name for name in each["map"].values() if name}
            assert asked <= have, panel.id


# ---------------------------------------------------------------------------- text


def test_the_bottom_line_is_that_of_the_report(sweep, page):
    text = re.sub(r"\s+", " ", "".join(Elements(page).text))
    for name, sentence in bottom_line(Facts(sweep[0])):
        plain = re.sub(r"<.*?>", "", html.unescape(str(to_html(sentence, {}, inline=True))))
        assert f"{name}. {plain.strip()}" in text


def test_names_are_text(tmp_path):
    models = list(noisy({(MARKUP, GU, "1"): 0.0, (LONG, GU, "1"): 0.1, ("a", GU, "all"): 0.1}))
    models = [
        ((f"m{at}", '"' + row[1].replace('"', '""') + '"', *row[2:]), made)
        for at, (row, made) in enumerate(models)
    ]
    table, _ = run_sweep(tmp_path / "s", models)
    page = render(table)
    elements = Elements(page)
    assert not [tag for tag, attributes in elements.found if "onerror" in attributes]
    assert {tag for tag, _ in elements.found if tag == "img"} <= {"img"}
    assert all(a["src"].startswith("data:image/svg") for tag, a in elements.found if tag == "img")
    assert page.count("</script>") == sum(tag == "script" for tag, _ in elements.found)
    text = "".join(elements.text)
    assert MARKUP in text
    assert LONG in text
    assert MARKUP in data_of(page)["tables"]["learning"]["columns"]["architecture"]["words"]


def test_json_cannot_end_its_script():
    text = embedded({"a": "</script><!--&\u2028"})
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!--&\u2028"}


def test_links_lead_to_known_places_only():
    text = "[a](x.csv), [b](javascript:alert(1)), [c](y.csv), <b>d</b>"
    made = to_html(text, {"x.csv": "tables/x.csv"}, inline=True)
    assert str(made) == (
        '<a href="tables/x.csv">a</a>, [b](javascript:alert(1)), <span>c</span>, '
        "&lt;b&gt;d&lt;/b&gt;"
    )


# ---------------------------------------------------------------------------- files


def test_a_page_links_only_to_files_at_or_below_its_folder(tmp_path):
    (tmp_path / "results/a b").mkdir(parents=True)
    (tmp_path / "results/a b/x.csv").touch()
    found = files_below(tmp_path / "results", tmp_path / "results/a b", ["x.csv", "y.csv"])
    assert found == {"x.csv": "a%20b/x.csv"}
    assert files_below(tmp_path / "results/a b", tmp_path / "results", ["x.csv"]) == {}
    assert files_below(tmp_path, None, ["x.csv"]) == {}


def test_the_command_writes_the_same_bytes_twice_without_paths(sweep, tmp_path, monkeypatch):
    folder = tmp_path / "results of somebody"
    run_sweep(folder, list(noisy({("a", GU, "1"): 0.0, ("a", GU, "all"): 0.1})))
    command = ["page", "--aggregated", str(folder / "out/aggregated.json")]
    command += ["--eval-dir", str(folder / "eval"), "--output", str(folder / "report.html")]
    main(command)
    first = (folder / "report.html").read_bytes()
    main(command)
    assert (folder / "report.html").read_bytes() == first
    assert str(tmp_path).encode() not in first
    assert b"somebody" not in first
    page = first.decode()
    links = {a["href"] for tag, a in Elements(page).found if tag == "a"}
    assert {"eval/a_global_uniform_1_0_summary.json", "out/learning_curves.csv"} <= links
    assert {link for link in links if not link.startswith("#")} <= {
        path.relative_to(folder).as_posix() for path in folder.rglob("*")
    }
    elsewhere = tmp_path / "other/report.html"
    main([*command[:-1], str(elsewhere)])
    links = {a["href"] for tag, a in Elements(elsewhere.read_text()).found if tag == "a"}
    assert all(link.startswith("#") for link in links)


def test_the_page_loads_nothing(page):
    elements = Elements(page)
    for tag, attributes in elements.found:
        for name in ("src", "href", "action", "data", "poster"):
            value = attributes.get(name)
            if value is not None and tag != "a":
                assert value.startswith("data:"), (tag, value)
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, re.S))
    assert "url(" not in styles
    assert "@import" not in styles


def test_an_output_that_is_no_page_is_refused(sweep, tmp_path):
    with pytest.raises(UsageError, match=r"found \.md; expected a file that ends in \.html"):
        write_page(sweep[0], tmp_path / "report.md")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------- what is missing


def test_parts_without_data_say_why(tmp_path):
    models = list(noisy({("a", GU, "1"): 0.0}, n_seeds=1, splits=("iid_test",)))
    table, _ = run_sweep(tmp_path / "s", models)
    page = render(table)
    text = "".join(Elements(page).text)
    assert f"Regime {TA} is not in the manifest." in text
    assert "Split semantic_ood was not evaluated." in text
    assert "1 of 1 models have no evidence file" in text
    assert "made without the folder of the evaluations" in text
    held = data_of(page)
    for panel in held["panels"]:
        if held["tables"][panel["table"]]["n"] == 0:
            assert panel["empty"]


def test_without_javascript_there_are_figures_and_tables(page):
    static_parts = re.findall(r"<noscript>(.*?)</noscript>", page, re.S)
    pictures = [part for part in static_parts if "<img" in part]
    assert len(static_parts) == len(data_of(page)["panels"])
    assert len(pictures) >= 4
    assert all('alt="' in part for part in pictures)
    assert "No rows" not in page
