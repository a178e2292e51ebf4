"""How counts and shares are put into words, the same in every message and report."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 box``, ``1,200 boxes``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def some_of(items: Sequence[object], most: int) -> str:
    """The first ``most`` of them, and how many more there are: ``a, b and 1,200 more``."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def percent(part: int, whole: int) -> str:
    """A share as text: ``7 %``, ``0.02 %``, never 0 for something nor 100 for less than all."""
    share = 100 * part / whole
    digits = 0
    while digits < 6 and part not in (0, whole) and float(f"{share:.{digits}f}") in (0, 100):
        digits += 1
    return f"{share:.{digits}f} %"
