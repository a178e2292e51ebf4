"""What a file that cannot be read really is, from its first bytes."""

from __future__ import annotations

import codecs
import json

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
SNIFFED = 512
"""Number of bytes that ``foreign`` needs."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WEB_PAGE = (b"<!doctype html", b"<html", b"<head")


def foreign(start: bytes) -> tuple[str, str] | None:
    """What was found and the likely cause, if no text file of any format starts like this.

    ``start`` are the first bytes of a file (``SNIFFED`` are enough); None for other content.
    """
    if start.startswith(LFS_POINTER):
        return "a Git LFS pointer", "the file itself was not downloaded: run git lfs pull"
    if start.startswith(GZIP):
        return "gzip data", "a compressed file without .gz in its name: unpack it"
    if start.startswith(ZIP):
        return "a zip archive", "a compressed file, or a spreadsheet: unpack it, or save it as CSV"
    text = start.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if text.startswith(_WEB_PAGE):
        return "an HTML page", "a login or error page saved instead of the file: download it again"
    return None


def encoding_cause(data: bytes) -> str:
    """The likely cause of text that is not UTF-8."""
    if data.startswith(_UTF16) or b"\0" in data[:2]:
        return "UTF-16 ('Unicode' on Windows): save as UTF-8"
    return "another encoding such as Latin-1, saved by a spreadsheet for example: save as UTF-8"


def json_cause(data: bytes) -> str:
    """The likely cause of text that is not JSON."""
    text = data.removeprefix(codecs.BOM_UTF8).strip()
    if known := foreign(data[:SNIFFED]):
        cause = ": ".join(known)
    elif not text:
        cause = "an empty file"
    elif not data.strip(b"\0"):
        cause = "only zeros: an interrupted copy or a full disk"
    elif data.startswith(_UTF16) or b"\0" in data[:2]:
        cause = encoding_cause(data)
    elif text.startswith(b"<"):
        cause = "XML instead of JSON"
    elif _is_json_lines(text):
        cause = "JSON Lines (one record per line): write one list [...] with commas instead"
    else:
        cause = "truncated or damaged file"
    return cause


def _is_json_lines(text: bytes) -> bool:
    """Whether the first line is a complete record and another one follows."""
    first, _, rest = text.partition(b"\n")
    if not rest.lstrip().startswith((b"{", b"[")):
        return False
    try:
        return isinstance(json.loads(first), dict | list)
    except (ValueError, RecursionError):
        return False
