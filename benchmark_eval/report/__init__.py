"""Plots and the written report of a sweep, from the tables of ``benchmark_eval.sweep``.

Functions are imported on first use, so that the workflow can read the list of plots
(``report.captions``) without importing numpy and matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark_eval.report.document import write_report
    from benchmark_eval.report.draw import write_plots
    from benchmark_eval.report.page.document import write_page

__all__ = ["write_page", "write_plots", "write_report"]

_MODULES = {"write_plots": "draw", "write_report": "document", "write_page": "page.document"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
