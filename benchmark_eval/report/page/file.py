"""The file of the page: its name, and how it can be told from other pages."""

from __future__ import annotations

from pathlib import Path

from benchmark_eval.core.safe_read import open_input

PAGE = "report.html"
"""Name of the page in the results folder of the workflow."""
GENERATOR = b'<meta name="generator" content="benchmark-eval '
_HEAD = 4096


def foreign_page(path: Path) -> bool:
    """Whether there is a file that is not the page of a sweep, such as Snakemake's own report."""
    try:
        with open_input(path) as stream:
            return GENERATOR not in stream.read(_HEAD)
    except FileNotFoundError:
        return False
    except OSError:
        return True
