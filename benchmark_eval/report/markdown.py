"""Markdown text: escaping what comes from a manifest, numbers with their n, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmark_eval.core.intervals import Estimate
from benchmark_eval.core.text import some_of

MISSING = "–"
"""What stands for an undefined number in a table."""
# an underscore inside a word and a colon at its end mean nothing, and stay readable
_MARKUP = re.compile(r"([\\`*{}\[\]()#+!|~]|(?<![^\W_])_|_(?![^\W_]))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def escape(text: str) -> str:
    """A name of the user's as plain text: no markup, HTML, link or mention comes of it."""
    plain = _MARKUP.sub(r"\\\1", text)
    plain = "".join(_ENTITIES.get(c, c) for c in plain)
    return re.sub(r":(?=\S)", "&#58;", plain).replace("www.", "www&#46;")


def number(value: float | None) -> str:
    """A share or difference with three digits."""
    return MISSING if value is None else f"{_zero(value):.3f}"


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return MISSING if value is None else f"{_zero(value):+.3f}"


def _zero(value: float) -> float:
    """No minus in front of what rounds to zero."""
    return 0.0 if abs(value) < 0.0005 else value


def estimate(value: Estimate, *, sign: bool = False) -> str:
    """``0.540 (0.441 to 0.639; n=3)``: mean, interval, n; without an interval ``0.500 (n=1)``.

    Seeds without an interval are copies of one file, and are said to be. An interval without
    width would pass for certainty: ``0.500 (seeds agree; n=3)``.
    """
    show = signed if sign else number
    if value.mean is None:
        return "not defined (n=0)"
    if value.ci95_low is None or value.ci95_high is None:
        return f"{show(value.mean)} (n={value.n}{_copies(value)})"
    low, high = show(value.ci95_low), show(value.ci95_high)
    if low == high:
        return f"{show(value.mean)} (seeds agree; n={value.n})"
    return f"{show(value.mean)} ({low} to {high}; n={value.n})"


def _copies(value: Estimate) -> str:
    return ", same files" if value.n > 1 and value.ci95_low is None else ""


def cell(value: Estimate, seeds: int) -> str:
    """``0.540 ± 0.040, n=3`` for a table; ``n=2 of 3`` where a seed has no value."""
    n = f"n={value.n}" if value.n == seeds else f"n={value.n} of {seeds}"
    n += _copies(value)
    if value.mean is None:
        return f"{MISSING}, {n}" if seeds else MISSING
    spread = "" if value.std is None else f" ± {number(value.std)}"
    return f"{number(value.mean)}{spread}, {n}"


def listing(items: Sequence[str], most: int = 12) -> str:
    """``a, b and c``; after ``most`` items only how many more."""
    if len(items) > most:
        return some_of(items, most)
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """A Markdown table; the first ``left`` columns are aligned left, the others right."""
    rule = [":--" if i < left else "--:" for i in range(len(header))]
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]
