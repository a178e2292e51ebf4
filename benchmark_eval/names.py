"""What may be a model's name (a folder, the start of file names), and how names are written."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_NAME_BYTES = 180
"""File systems take 255 bytes a name; the suffix of the longest file of a model must fit too."""

# control, format (bidirectional overrides), surrogate, line and paragraph ends
_ODD = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def name_fault(name: str) -> str | None:
    """Why ``name`` cannot be the name of a model, or None if it can.

    The text completes "a name ...": ``with a slash``, ``that starts with '-'``.
    """
    odd = next((c for c in name if unicodedata.category(c) in _ODD), " ")
    faults = (
        (not name, "that is empty"),
        (name != name.strip(), "with blanks at an end"),
        ("/" in name or "\\" in name, "with a slash"),
        (name[:1] in ("-", "."), f"that starts with {name[:1]!r}"),
        (is_formula(name), f"that starts with {name[:1]!r}, as a formula of a spreadsheet does"),
        (".." in name, "with '..'"),
        (odd != " ", f"with the control character U+{ord(odd):04X}"),
        (
            len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES,
            f"longer than {MAX_NAME_BYTES} bytes",
        ),
    )
    return next((text for fault, text in faults if fault), None)


def name_key(name: str) -> str:
    """Equal for names that one file system or another would not tell apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a cell with this text."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r")


def separator_hint(header: Sequence[str]) -> str:
    """What a CSV file's columns are separated by instead of commas, or the empty text."""
    other = next((c for c in (";", "\t", "|") if c in header[0]), "") if len(header) == 1 else ""
    return f"the columns are separated by {other!r}" if other else ""


def neutral(cell: object) -> object:
    """A cell of a CSV file: a text that a spreadsheet would run as a formula gets an apostrophe.

    Models and architectures are never called so; species in a benchmark's files may be.
    """
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell
