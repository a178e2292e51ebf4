"""Valid names of models, which become folders and the start of file names."""

from __future__ import annotations

import unicodedata

from benchmark_eval.core.csv_text import is_formula

MAX_NAME_BYTES = 180
"""File systems allow 255 bytes per name, including the longest suffix of a model's files."""

# control, format (bidirectional overrides), surrogate, line and paragraph separators
_CONTROL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def name_problem(name: str) -> str | None:
    """Why ``name`` is not a valid name of a model; None if it is.

    The text completes "a name ...": ``with a slash``, ``that starts with '-'``.
    """
    control = next((c for c in name if unicodedata.category(c) in _CONTROL), " ")
    checks = (
        (not name, "that is empty"),
        (name != name.strip(), "with leading or trailing whitespace"),
        ("/" in name or "\\" in name, "with a slash"),
        (name[:1] in ("-", "."), f"that starts with {name[:1]!r}"),
        (is_formula(name), f"that starts with {name[:1]!r}, like a formula in a spreadsheet"),
        (".." in name, "with '..'"),
        (control != " ", f"with the control character U+{ord(control):04X}"),
        (
            len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES,
            f"longer than {MAX_NAME_BYTES} bytes",
        ),
    )
    return next((text for failed, text in checks if failed), None)


def name_key(name: str) -> str:
    """A key that is equal for names that some file systems treat as the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
