"""Markdown text: escaped names, numbers with their n, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmark_eval.core.intervals import Estimate
from benchmark_eval.core.text import some_of, visible

MISSING = "–"
"""An undefined number in a table."""
# an underscore inside a word and a colon at the end of one are not markup and stay readable
_MARKUP = re.compile(r"([\\`*{}\[\]()#+!|~]|(?<![^\W_])_|_(?![^\W_]))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def escape(text: str) -> str:
    """A user's name as plain text, without markup, HTML, links or mentions."""
    plain = _MARKUP.sub(r"\\\1", visible(text))
    plain = "".join(_ENTITIES.get(c, c) for c in plain)
    return re.sub(r":(?=\S)", "&#58;", plain).replace("www.", "www&#46;")


def number(value: float | None) -> str:
    """A fraction or difference with three digits."""
    return MISSING if value is None else f"{_zero(value):.3f}"


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return MISSING if value is None else f"{_zero(value):+.3f}"


def _zero(value: float) -> float:
    """0.0 for a number that rounds to zero, so that none is printed as -0.000."""
    return 0.0 if abs(value) < 0.0005 else value


def estimate(value: Estimate, *, sign: bool = False) -> str:
    """``0.540 (0.441 to 0.639; n=3)``: mean, interval, n; without an interval ``0.500 (n=1)``.

    Several seeds without an interval share a prediction file: ``0.500 (n=3, same files)``. An
    interval of width 0 would look like certainty: ``0.500 (seeds agree; n=3)``.
    """
    show = signed if sign else number
    if value.mean is None:
        return "undefined (n=0)"
    if value.ci95_low is None or value.ci95_high is None:
        return f"{show(value.mean)} (n={value.n}{_copies(value)})"
    low, high = show(value.ci95_low), show(value.ci95_high)
    if low == high:
        return f"{show(value.mean)} (seeds agree; n={value.n})"
    return f"{show(value.mean)} ({low} to {high}; n={value.n})"


def _copies(value: Estimate) -> str:
    return ", same files" if value.n > 1 and value.ci95_low is None else ""


def cell(value: Estimate, seeds: int) -> str:
    """``0.540 ± 0.040, n=3`` for a table; ``n=2 of 3`` if a seed has no value."""
    n = f"n={value.n}" if value.n == seeds else f"n={value.n} of {seeds}"
    n += _copies(value)
    if value.mean is None:
        return f"{MISSING}, {n}" if seeds else MISSING
    spread = "" if value.std is None else f" ± {number(value.std)}"
    return f"{number(value.mean)}{spread}, {n}"


def listing(items: Sequence[str], most: int = 12) -> str:
    """``a, b and c``; after ``most`` items the number of the others."""
    if len(items) > most:
        return some_of(items, most)
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """A Markdown table; the first ``left`` columns are aligned left, the others right."""
    rule = [":--" if i < left else "--:" for i in range(len(header))]
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]
