"""What may be a model's name (a folder, the start of file names), and how names are written."""

from __future__ import annotations

import unicodedata

from benchmark_eval.core.csv_text import is_formula

MAX_NAME_BYTES = 180
"""File systems take 255 bytes a name; the suffix of the longest file of a model must fit too."""

# control, format (bidirectional overrides), surrogate, line and paragraph ends
_ODD = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def name_problem(name: str) -> str | None:
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
