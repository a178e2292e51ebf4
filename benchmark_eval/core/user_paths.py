"""Paths as users write them."""

from __future__ import annotations

import os
import re

_HOME = re.compile(r"(--[\w-]+=)?(~(?:/.*)?)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")


URL_CAUSE = (
    "a URL: all data must be on a disk. Copy them to one that this computer and all computers that "
    "run jobs can read, and write the path (docs/cluster.md, Storage)"
)
"""The likely cause and the remedy if a URL is found instead of a path."""


def is_url(text: str) -> bool:
    """Whether text is a URL of any scheme, such as ``s3://bucket/folder`` or ``file:///data``."""
    return _URL.match(text) is not None


def expand_home(text: str) -> str:
    """A path with a leading ``~`` replaced by the home folder; a folder named ~ is ``./~``."""
    return os.path.expanduser(text)  # noqa: PTH111  (unchanged for an unknown user)


def expand_argument(argument: str) -> str:
    """``--option=~/x`` or ``~/x`` with the home folder, which shells replace only at the start."""
    found = _HOME.fullmatch(argument)
    return argument if found is None else (found[1] or "") + expand_home(found[2])


def not_expanded(path: str | os.PathLike[str]) -> str:
    """The likely cause if a path that does not exist has ``$HOME`` or ``~`` in it; else blank."""
    text = os.fspath(path)
    if found := _VARIABLE.search(text):
        return f"variables such as {found[0]} are not replaced here: write the path itself"
    if text.startswith("~"):
        return "~ is not replaced here: write the path itself"
    return ""
