"""Wording of counts and percentages in all messages and reports."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 box``, ``1,200 boxes``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def some_of(items: Sequence[object], most: int) -> str:
    """The first ``most`` items and the number of the others: ``a, b and 1,200 more``."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def percent(part: int, whole: int) -> str:
    """``part`` of ``whole`` in percent: ``7 %``, ``0.02 %``; 0 % and 100 % only if exact."""
    value = 100 * part / whole
    digits = 0
    while digits < 6 and part not in (0, whole) and float(f"{value:.{digits}f}") in (0, 100):
        digits += 1
    return f"{value:.{digits}f} %"
