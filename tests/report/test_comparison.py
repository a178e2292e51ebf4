"""The command ``compare`` and its formats."""

import csv
import io
import json
import re

import pytest
from support.factories import evaluation, write_evaluation
from support.sides import DIGESTS, random_side, write_side

from benchmark_eval import compare
from benchmark_eval.cli.main import main
from benchmark_eval.report.comparison import CSV_COLUMNS, escape_latex, render

HOSTILE = "Ips\x1b[2J_^{}\\#$%&~<b>|*`x`[a](b) \u202eé@x"


@pytest.fixture
def run(capsys):
    """Run the command; returns exit code, output and errors."""

    def call(*words):
        try:
            main(["compare", *map(str, words)])
            code = 0
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def sides(tmp_path):
    return [
        write_side(tmp_path, name, random_side(i, shift))
        for i, (name, shift) in enumerate((("a", 0.2), ("b", 0.0), ("c", 0.19)))
    ]


def test_text_and_its_numbers(sides, run):
    code, out, _ = run(*sides)
    assert code == 0
    result = compare(*sides)
    row = result.differences[0]
    assert f"A - B  {row.a_minus_b:+.3f} [{row.ci95_low:+.3f}, {row.ci95_high:+.3f}]" in out
    assert "A is higher" in out
    for value in result.values:
        assert f"{value.mean:.3f}" in out
    assert "tie group of the best: " in out
    assert max(map(len, out.splitlines())) < 130


def test_json_has_every_number(sides, run):
    code, out, _ = run(*sides, "--json")
    tree = json.loads(out)
    result = compare(*sides)
    assert code == 0
    assert [row["a_minus_b"] for row in tree["differences"]] == [
        row.a_minus_b for row in result.differences
    ]
    assert tree["schema_version"] == 1


def test_csv_has_the_headline_table_and_the_differences(sides, run):
    _, out, _ = run(*sides, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    result = compare(*sides)
    assert list(rows[0]) == list(CSV_COLUMNS)
    values = [row for row in rows if row["row"] == "value"]
    assert [float(row["estimate"]) for row in values] == [v.mean for v in result.values]
    differences = [row for row in rows if row["row"] == "difference"]
    assert [row["verdict"] for row in differences] == [row.verdict for row in result.differences]


@pytest.mark.parametrize(("kind", "separator"), [("md", "|"), ("latex", "&")])
def test_tables_have_equal_rows(sides, run, kind, separator):
    _, out, _ = run(*sides, "--format", kind)
    value = compare(*sides).values[0]
    assert f"{value.mean:.3f} [{value.ci95_low:.3f}, {value.ci95_high:.3f}]" in out.replace(
        "\\", ""
    )
    rows = [line for line in out.splitlines() if line.endswith(("|", r"\\"))]
    counts = {len(re.findall(rf"(?<!\\)\{separator}", row)) for row in rows}
    assert len(counts) == 2  # one per table
    assert len(rows) > 10


def test_hostile_names_in_every_format(tmp_path, run):
    a = write_side(tmp_path, "a", random_side(1))
    write_evaluation(tmp_path / "b", evaluation("b", 0.4, benchmark=DIGESTS))
    path = tmp_path / "b/b_summary.json"
    path.write_text(path.read_text().replace('"model":"b"', f'"model":{json.dumps(HOSTILE)}'))
    for kind in ("text", "md", "csv", "latex"):
        code, out, _ = run(a, path, "--format", kind)
        assert code == 0
        assert out.replace("\n", "").isprintable(), kind
    _, out, _ = run(a, path, "--format", "md")
    assert "<b>" not in out
    assert "[a](b)" not in out
    _, out, _ = run(a, path, "--format", "latex")
    assert r"\_\textasciicircum{}\{\}\textbackslash{}\#\$\%\&\textasciitilde{}" in out
    assert not re.search(
        r"(?<!\\)[#$%&](?!\d* )", re.sub(r"\$[-<]\$|^%.*$| & ", "", out, flags=re.M)
    )
    _, out, _ = run(a, path, "--json")
    assert out.isascii()
    assert json.loads(out)["sides"][1]["name"] == HOSTILE


def test_long_names(tmp_path, run):
    sides = [f"{name * 300}={write_side(tmp_path, name, random_side(i))}"
             for i, name in enumerate("ab")]  # fmt: skip
    for kind in ("text", "md", "csv", "latex"):
        code, out, _ = run(*sides, "--format", kind)
        assert code == 0
        assert "a" * 80 in out.replace("\n", "")
    code, _, _ = run(*sides, "--plot", tmp_path / "plot.svg")
    assert code == 0


def test_a_formula_as_a_name_is_escaped_in_csv(tmp_path):
    sides = [write_side(tmp_path, name, random_side(i)) for i, name in enumerate("ab")]
    text = render(compare(f"+1={sides[0]}", sides[1]), "csv")
    assert ",'+1," in text
    assert ",+1," not in text


def test_latex_escapes_every_special_character():
    assert escape_latex("a_b") == r"a\_b"
    assert escape_latex("50 % & ~") == r"50 \% \& \textasciitilde{}"
    assert escape_latex("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert escape_latex("in-distribution --- ''x") == "in-distribution -{}-{}- '{}'x"


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_figure(sides, run, tmp_path, kind):
    plot = tmp_path / f"plot.{kind}"
    assert run(*sides, "--plot", plot)[0] == 0
    first = plot.read_bytes()
    assert run(*sides, "--plot", plot)[0] == 0  # our own file is replaced
    assert plot.read_bytes() == first


def test_the_figure_shows_the_intervals_and_verdicts(sides):
    from benchmark_eval.report import figures
    from benchmark_eval.report.plots.compared import differences

    result = compare(*sides)
    with figures.house_style():
        figure = differences(result)
    shown = {}
    for panel in figure.axes:
        for line in panel.lines:
            if str(line.get_label()).startswith("mean|"):
                shown[line.get_label()] = (line.get_xdata()[0], line.get_markerfacecolor())
        for bar in panel.collections:
            (segment,) = bar.get_segments()
            row = next(
                r for r in result.differences
                if bar.get_label() == f"ci95|{r.metric}|{r.a}|{r.b}"
            )  # fmt: skip
            assert segment[:, 0].tolist() == [row.ci95_low, row.ci95_high]
    for row in result.differences:
        x, face = shown[f"mean|{row.metric}|{row.a}|{row.b}"]
        assert x == row.a_minus_b
        assert (face == "white") == (row.verdict not in ("higher", "lower"))


def test_many_sides_are_drawn_against_the_best(tmp_path):
    from benchmark_eval.report import figures
    from benchmark_eval.report.plots.compared import differences

    sides = [write_side(tmp_path, f"m{i}", random_side(i, i / 50)) for i in range(7)]
    result = compare(*sides)
    with figures.house_style():
        figure = differences(result)
    panel = figure.axes[0]
    labels = [line.get_label() for line in panel.lines if str(line.get_label()).startswith("mean|")]
    best = result.rankings[0].order[0]
    assert len(labels) == 6
    assert all(best in label.split("|")[2:] for label in labels)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--json", "--format", "md"], "found --json and --format md; expected one of them"),
        (["--plot", "x.jpg"], "found the suffix '.jpg'; expected .svg, .png, .pdf"),
        (["--format", "xlsx"], "'xlsx' is not one of"),
    ],
)
def test_wrong_options(sides, run, words, expected):
    code, out, err = run(*sides, *words)
    assert (code, out) == (2, "")
    assert expected in err


def test_the_figure_never_replaces_an_input_or_a_file_of_others(sides, run, tmp_path):
    other = tmp_path / "mine.svg"
    other.write_text("mine")
    code, out, err = run(*sides, "--plot", other)
    assert (code, out) == (2, "")
    assert "did not write" in err
    assert other.read_text() == "mine"
    assert run(*sides, "--plot", other, "--force")[0] == 0


def test_problems_set_the_exit_code(tmp_path, run):
    code, out, err = run(tmp_path / "x", tmp_path / "y")
    assert (code, out) == (1, "")
    assert "2 problems found" in err
    assert run()[0] == 2
