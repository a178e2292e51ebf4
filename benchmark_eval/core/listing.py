"""Listing folders: names that start with a dot are never inputs.

macOS (``._name``, ``.DS_Store``), editors, copying tools and the writers of this package create
such files beside the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is ignored."""
    return name.startswith(".")


def listed(folder: str | Path) -> list[Path]:
    """Files and folders in ``folder``, sorted by name, without hidden ones.

    Raises ``OSError`` if the folder cannot be listed.
    """
    return [Path(folder, name) for name in sorted(os.listdir(folder)) if not is_hidden(name)]  # noqa: PTH208


def walked(folder: str | Path) -> Iterator[Path]:
    """Files in ``folder`` and its subfolders, without hidden ones and those in hidden folders."""
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        yield from (Path(where, name) for name in sorted(files) if not is_hidden(name))
