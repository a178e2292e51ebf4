"""Markdown text: escaped names, numbers with their n, tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from benchmark_eval.core.intervals import Covers, Estimate, Reason
from benchmark_eval.core.text import some_of, visible

MISSING = "–"
"""An undefined number in a table."""
# an underscore inside a word and a colon at the end of one are not markup and stay readable
_MARKUP = re.compile(r"([\\`*{}\[\]()#+!|~]|(?<![^\W_])_|_(?![^\W_]))")
_MOST_DECIMALS = 4
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def escape(text: str) -> str:
    """A user's name as plain text, without markup, HTML, links or mentions."""
    plain = _MARKUP.sub(r"\\\1", visible(text))
    plain = "".join(_ENTITIES.get(c, c) for c in plain)
    return re.sub(r":(?=\S)", "&#58;", plain).replace("www.", "www&#46;")


def decimals(low: float, high: float, least: int = 2) -> int:
    """The decimals that an interval permits: one or two significant digits of its half-width.

    Two if they are at most 35, as for the uncertainties of the Particle Data Group; at least
    ``least`` decimals and at most four.

    Examples
    --------
    >>> decimals(0.527, 0.547), decimals(0.40, 0.68)
    (3, 2)
    """
    half = (high - low) / 2
    return (
        max(least, min(_MOST_DECIMALS, math.ceil(1 - math.log10(half / 0.355))))
        if half > 0
        else _MOST_DECIMALS
    )


def number(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A fraction or a difference; 0 without a minus."""
    if value is None:
        return MISSING
    value = 0.0 if abs(value) < 0.5 * 10.0**-digits else value
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def with_interval(
    mean: float | None,
    low: float | None,
    high: float | None,
    *,
    covers: Covers = Covers.BOTH,
    reason: object = None,
    sign: bool = False,
    least: int = 2,
) -> str:
    """``0.54 [0.48, 0.60]``, to the precision of the interval.

    The interval names what it covers unless that is species and retraining:
    ``0.537 [0.527, 0.547; retraining]``. Without one: ``0.54 (no interval: only one seed)``.
    ``least`` is the smallest number of decimals.
    """
    if mean is None:
        return f"undefined ({reason})" if reason else "undefined"
    if low is not None and low == high:  # would look certain
        low, reason = None, Reason.NO_VARIATION
    if low is None or high is None:
        return f"{number(mean, least, sign=sign)} (no interval{f': {reason}' if reason else ''})"
    digits = decimals(low, high, least)
    what = "" if covers == Covers.BOTH else f"; {covers}"
    limits = f"{_limit(low, digits)}, {_limit(high, digits)}"
    return f"{number(mean, digits, sign=sign)} [{limits}{what}]"


def _limit(value: float, digits: int) -> str:
    """An end of an interval; near 0 with more digits, so that its sign can be read."""
    while digits < _MOST_DECIMALS and value and round(value, digits) == 0:
        digits += 1
    return number(value, digits)


def over_seeds(value: Estimate) -> str:
    """A mean over seeds with its plain interval (retraining), for what can leave [0, 1]."""
    reason = (
        Reason.NO_VALUES
        if value.mean is None
        else Reason.ONE_SEED
        if value.n == 1
        else Reason.IDENTICAL_RUNS
    )
    return with_interval(
        value.mean, value.ci95_low, value.ci95_high, covers=Covers.RETRAINING, reason=reason
    )


def spread(value: Estimate) -> str:
    """``0.94 (SD 0.006)``: a mean over seeds and their standard deviation."""
    if value.mean is None or value.std is None:
        return number(value.mean)
    digits = decimals(-value.std, value.std) if value.std else 2
    return f"{number(value.mean, digits)} (SD {number(value.std, digits)})"


def sentence_case(text: str) -> str:
    """The text with a capital at its start."""
    return f"{text[:1].upper()}{text[1:]}"


def listing(items: Sequence[str], most: int = 12) -> str:
    """``a, b and c``; after ``most`` items the number of the others."""
    if len(items) > most:
        return some_of(items, most)
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """A Markdown table; the first ``left`` columns are aligned left, the others right."""
    rule = [":--" if i < left else "--:" for i in range(len(header))]
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]
