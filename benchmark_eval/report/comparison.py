"""A comparison of models or conditions as text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.core.intervals import Covers
from benchmark_eval.core.text import counted, visible
from benchmark_eval.report import markdown
from benchmark_eval.report.markdown import MISSING
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.compare import (
    STUDENTISED_RANGE,
    Comparison,
    Pairing,
    SideDifference,
    SideFacts,
    SideRanking,
    SideValue,
)
from benchmark_eval.sweep.verdicts import Word

Format = Literal["text", "md", "csv", "latex", "json"]
FORMATS: tuple[Format, ...] = ("text", "md", "csv", "latex", "json")
WIDTH = 88
_COVERS = {
    Covers.BOTH: "other species and retraining",
    Covers.SPECIES: "other species only",
    Covers.RETRAINING: "retraining only",
}
_MARK = {Covers.BOTH: "", Covers.SPECIES: "s", Covers.RETRAINING: "r"}
"""The mark of an interval that does not cover both sources of randomness."""
CSV_COLUMNS = (
    "row",
    "metric",
    "split",
    "a",
    "a_name",
    "b",
    "b_name",
    "estimate",
    "ci95_low",
    "ci95_high",
    "covers",
    "n_species",
    "n_seeds",
    "n_left_out",
    "share_a_higher",
    "paired_by",
    "p",
    "p_holm",
    "n_tests",
    "verdict",
    "reason",
)


def render(result: Comparison, kind: Format = "text") -> str:
    """The comparison in one of ``FORMATS``, with a trailing line feed."""
    if kind == "json":
        # escapes every character that a terminal could interpret
        return json.dumps(msgspec.to_builtins(result), indent=1) + "\n"
    if kind == "csv":
        return csv_text(CSV_COLUMNS, _csv_rows(result))
    lines: Iterator[str] = {"text": _text, "md": _markdown, "latex": _latex}[kind](result)
    return "\n".join(map(visible, lines)) + "\n"


# ------------------------------------------------------------------ cells


def number(value: float | None) -> str:
    """A value with three decimals."""
    return MISSING if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    """A difference with its sign and three decimals; 0 without a minus."""
    return MISSING if value is None else f"{0.0 if abs(value) < 0.0005 else value:+.3f}"


def interval(low: float | None, high: float | None, show: Callable[[float | None], str]) -> str:
    """``[0.470, 0.554]``; empty without an interval."""
    return "" if low is None or high is None else f"[{show(low)}, {show(high)}]"


def value_cell(value: SideValue) -> str:
    """``0.512 [0.470, 0.554]``, with a mark if the interval does not cover both sources."""
    text = number(value.mean)
    limits = interval(value.ci95_low, value.ci95_high, number)
    mark = _MARK[value.covers]
    return f"{text} {limits}{f' {mark}' if mark else ''}" if limits else text


def difference_cell(row: SideDifference) -> str:
    """``+0.042 [+0.012, +0.071]``."""
    return f"{signed(row.a_minus_b)} {interval(row.ci95_low, row.ci95_high, signed)}".rstrip()


def p_cell(value: float | None) -> str:
    """A p-value with three digits; ``<0.001`` below that."""
    if value is None:
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def verdict_words(row: SideDifference) -> str:
    """``A is higher``, ``B is higher``, or the verdict with its reason."""
    if row.verdict in (Word.HIGHER, Word.LOWER):
        return f"{row.a if row.verdict is Word.HIGHER else row.b} is higher"
    return f"{row.verdict} ({row.reason})" if row.reason else str(row.verdict)


def _seeds(row: SideDifference) -> str:
    paired = "paired" if row.paired_by is Pairing.SPECIES_AND_SEEDS else "not paired"
    return f"{row.n_seeds}, {paired}" if row.n_seeds > 1 else str(row.n_seeds)


def _species(row: SideDifference) -> str:
    left = f" ({row.n_left_out} left out)" if row.n_left_out else ""
    return f"{row.n_species}{left}"


def ranking_sentence(row: SideRanking) -> str:
    """The order of the sides and the tie group of the best."""
    order = row.order[0]
    for (side, mean), above in zip(
        zip(row.order[1:], row.means[1:], strict=True), row.means, strict=False
    ):
        order += f" {'=' if mean == above else '>'} {side}"
    if row.reason:
        return f"{order} by mean; not tested ({row.reason})"
    how = "studentised range" if row.method == STUDENTISED_RANGE else "Holm, all pairs"
    if len(row.tied) == 1:
        return f"{order} by mean; {row.tied[0]} is best ({how})"
    return f"{order} by mean; tie group of the best: {', '.join(row.tied)} ({how})"


def _place(split: str | None) -> str:
    return SPLIT_LABEL[split] if split else ""


def _by_metric(values: Sequence[SideValue]) -> dict[str, list[SideValue]]:
    found: dict[str, list[SideValue]] = {}
    for value in values:
        found.setdefault(value.metric, []).append(value)
    return found


def _interval_note(result: Comparison) -> str:
    used = {v.covers for v in result.values if v.ci95_low is not None}
    marks = [f"{_MARK[c]}: {_COVERS[c]}" for c in Covers if c in used and _MARK[c]]
    text = "In brackets: 95 % intervals"
    if Covers.BOTH in used:
        text += f", which cover {_COVERS[Covers.BOTH]} unless marked"
    return f"{text} ({'; '.join(marks)})." if marks else f"{text}."


def _test_note(result: Comparison) -> str:
    n = max((row.n_tests for row in result.differences), default=0)
    covers = list(dict.fromkeys(_COVERS[row.covers] for row in result.differences))
    text = f"Means over species; 95 % intervals cover {' or '.join(covers)}"
    if not n:
        return f"{text}; nothing was tested."
    if n == 1:
        return f"{text}. One test per metric; verdicts at p < 0.05."
    return (
        f"{text}. p is adjusted by Holm's correction for the tests of the metric (up to {n}); "
        "verdicts at p < 0.05."
    )


def _options(side: SideFacts) -> str:
    confidence = (
        "best F1 on iid_test"
        if side.operating_confidence is None
        else f"{side.operating_confidence:g}"
    )
    return f"localisation IoU {side.iou_threshold:g}, operating confidence: {confidence}"


def _sources(result: Comparison) -> str:
    return (
        f"benchmark-eval {result.package_version}, scoring code {result.scoring_code[:12]}; "
        f"{'; '.join(dict.fromkeys(_options(side) for side in result.sides))}"
    )


# ------------------------------------------------------------------ text


def _text(result: Comparison) -> Iterator[str]:
    yield from textwrap.wrap(f"Comparison: {result.title}", WIDTH)
    if result.benchmark:
        yield from textwrap.wrap(f"Data: {result.benchmark}", WIDTH)
    yield ""
    for side in result.sides:
        models = f"{counted(len(side.models), 'model')}: {', '.join(side.models)}"
        text = side.name if side.models == [side.name] else f"{side.name} ({models})"
        yield from textwrap.wrap(
            f"{side.letter}  {text}", WIDTH, subsequent_indent="   ", break_on_hyphens=False
        )
    yield ""
    yield "Headline metrics, mean over the models of each side"
    yield from _wide_table(result)
    yield from textwrap.wrap(_interval_note(result), WIDTH, initial_indent="  ",
                             subsequent_indent="  ")  # fmt: skip
    custom = [value for value in result.values if value.split is None]
    if custom:
        yield ""
        yield "Your metrics, mean over the models of each side (no verdict)"
        rows = [[value.label, value.side, value_cell(value)] for value in custom]
        yield from _columns(["metric", "side", "value"], rows)
    yield ""
    yield "Differences"
    rows = []
    for row in result.differences:
        rows.append(
            [
                f"{row.label}, {_place(row.split)}",
                f"{row.a} - {row.b}",
                difference_cell(row),
                _species(row),
                _seeds(row),
                p_cell(row.p_holm),
                verdict_words(row),
            ]
        )
    yield from _grouped_columns(["pair", "difference", "species", "seeds", "p", "verdict"], rows)
    yield from textwrap.wrap(_test_note(result), WIDTH, initial_indent="  ",
                             subsequent_indent="  ")  # fmt: skip
    if result.rankings:
        yield ""
        yield "Rankings"
        for ranking in result.rankings:
            yield f"  {ranking.label}, {_place(ranking.split)}"
            yield f"    {ranking_sentence(ranking)}"
    if result.notes:
        yield ""
        yield "Notes"
        for note in result.notes:
            yield from textwrap.wrap(f"- {note}", WIDTH, initial_indent="  ",
                                     subsequent_indent="    ")  # fmt: skip
    yield ""
    yield from textwrap.wrap(_sources(result), WIDTH)


def _wide_table(result: Comparison) -> Iterator[str]:
    """One row per metric and side."""
    for group in _by_metric([v for v in result.values if v.split]).values():
        yield f"  {group[0].label}, {_place(group[0].split)}"
        for value in group:
            why = f"   no interval: {value.reason}" if value.reason else ""
            n = (
                ""
                if value.n_species is None
                else f", {counted(value.n_species, 'species', 'species')}"
            )
            yield (
                f"    {value.side}  {value_cell(value):<26} "
                f"({counted(value.n_models, 'model')}{n}){why}"
            )


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        yield (
            "    "
            + "  ".join(
                cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
            ).rstrip()
        )


def _grouped_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose first column becomes a heading above its rows."""
    lines = list(_columns(header, [row[1:] for row in rows]))
    if rows:
        yield lines[0]
    last = None
    for row, line in zip(rows, lines[1:], strict=True):
        if row[0] != last:
            yield f"  {row[0]}"
            last = row[0]
        yield line


# ------------------------------------------------------------------ Markdown and LaTeX


def _headline_table(result: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the headline table: one row per side, one column per metric."""
    groups = _by_metric(result.values)
    header = ["side", "models"]
    for group in groups.values():
        place = _place(group[0].split)
        header.append(f"{group[0].label}, {place}" if place else group[0].label)
    cells: dict[str, list[str]] = {side.letter: [] for side in result.sides}
    for group in groups.values():
        for value in group:
            cells[value.side].append(value_cell(value))
    rows = [
        [f"{side.letter}: {side.name}", str(len(side.models)), *cells[side.letter]]
        for side in result.sides
    ]
    return header, rows


_DIFFERENCE_HEADER = ("metric", "pair", "difference", "species", "seeds", "p", "verdict")


def _difference_table(result: Comparison) -> list[list[str]]:
    return [
        [
            f"{row.label}, {_place(row.split)}",
            f"{row.a} {MISSING} {row.b}",
            difference_cell(row),
            _species(row),
            _seeds(row),
            p_cell(row.p_holm),
            verdict_words(row),
        ]
        for row in result.differences
    ]


def _markdown(result: Comparison) -> Iterator[str]:
    escape = markdown.escape

    def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[str]:
        return markdown.table(
            [escape(cell) for cell in header],
            [[escape(cell) for cell in row] for row in rows],
            left,
        )

    yield f"## Comparison: {escape(result.title)}"
    yield ""
    if result.benchmark:
        yield f"Data: {escape(result.benchmark)}"
        yield ""
    yield from table(*_headline_table(result), 1)
    yield ""
    yield escape(_interval_note(result))
    yield ""
    yield from table(_DIFFERENCE_HEADER, _difference_table(result), 2)
    yield ""
    yield escape(_test_note(result))
    for ranking in result.rankings:
        yield ""
        yield escape(f"{ranking.label}, {_place(ranking.split)}: {ranking_sentence(ranking)}.")
    if result.notes:
        yield ""
        yield from (f"- {escape(note)}" for note in result.notes)
    yield ""
    for side in result.sides:
        yield f"- {side.letter}: {escape(', '.join(side.models))}"
    yield ""
    yield escape(_sources(result))


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    MISSING: "--",
}
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))
# these become one character where they meet
_LIGATURE = re.compile(r"([-',])(?=\1)")
# the minus of a number, which is longer than the hyphen of a word
_MINUS = re.compile(r"(?<![\w.)])-(?=\d)")


def escape_latex(text: str) -> str:
    """Plain text for LaTeX: no character of it is a command, a comment or a ligature."""
    plain = _LIGATURE.sub("\\1\0", visible(text))  # NUL stands for {} until braces are escaped
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], plain).replace("\0", "{}")


def _number_latex(text: str) -> str:
    """A cell with numbers of this module; a minus before a number is one."""
    return _MINUS.sub(r"$-$", text).replace("<", "$<$").replace(MISSING, "--")


def _latex(result: Comparison) -> Iterator[str]:
    yield "% needs \\usepackage{booktabs,textcomp}; with pdfLaTeX also \\usepackage[T1]{fontenc}"
    header, rows = _headline_table(result)
    yield from _tabular(
        header,
        [[escape_latex(name), *map(_number_latex, cells)] for name, *cells in rows],
        "l" + "r" * (len(header) - 1),
        f"{result.title}. {_interval_note(result)}",
    )
    yield ""
    yield from _tabular(
        _DIFFERENCE_HEADER,
        [
            [
                escape_latex(metric),
                escape_latex(pair),
                *map(_number_latex, numbers),
                escape_latex(v),
            ]
            for metric, pair, *numbers, v in _difference_table(result)
        ],
        "llrrrrl",
        " ".join(
            [
                _test_note(result),
                *(f"{r.label}, {_place(r.split)}: {ranking_sentence(r)}." for r in result.rankings),
                *result.notes,
                _sources(result) + ".",
            ]
        ),
    )


def _tabular(
    header: Sequence[str], rows: Sequence[Sequence[str]], columns: str, caption: str
) -> Iterator[str]:
    yield r"\begin{table}"
    yield rf"\caption{{{escape_latex(caption)}}}"
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield " & ".join(map(escape_latex, header)) + r" \\"
    yield r"\midrule"
    yield from (" & ".join(cells) + r" \\" for cells in rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


# ------------------------------------------------------------------ CSV


def _csv_rows(result: Comparison) -> Iterator[tuple[object, ...]]:
    """The headline table (rows "value"), then the differences."""
    names = {side.letter: side.name for side in result.sides}
    for v in result.values:
        yield (
            "value", v.metric, v.split, v.side, names[v.side], None, None, v.mean, v.ci95_low,
            v.ci95_high, v.covers, v.n_species, v.n_models, None, None, None, None, None, None,
            None, v.reason,
        )  # fmt: skip
    for d in result.differences:
        yield (
            "difference", d.metric, d.split, d.a, names[d.a], d.b, names[d.b], d.a_minus_b,
            d.ci95_low, d.ci95_high, d.covers, d.n_species, d.n_seeds, d.n_left_out,
            d.share_a_higher, d.paired_by,
            d.p, d.p_holm, d.n_tests, d.verdict, d.reason,
        )  # fmt: skip
