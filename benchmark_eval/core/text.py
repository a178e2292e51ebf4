"""Wording of all messages and reports: names, counts and percentages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control and format characters, surrogates, line and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""The format characters that words of several scripts contain."""


def visible(text: str) -> str:
    r"""One line of text with escapes such as ``\x1b`` in place of characters that control output.

    Otherwise, a name could move the cursor, hide or reorder text, or add a line to a log. Letters,
    accents and signs of all scripts stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii")
        if unicodedata.category(c) in _HIDDEN and c not in _JOINERS
        else c
        for c in text
    )


def nfc(text: str) -> str:
    """Text with composed characters (Unicode NFC); macOS decomposes those of file names."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


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
